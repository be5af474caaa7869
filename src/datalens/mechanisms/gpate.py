"""Confident GNMax (Papernot et al. 2018) as G-PATE uses it: one question for each image and projected coordinate.

A question is answered with the bin of most votes, if that bin is well filled. Both the check and the answer are
noisy, and both are paid for by every question, answered or not: that nothing was answered is an answer, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from datalens.compression.projection import NO_ANSWER
from datalens.errors import ConfigError
from datalens.mechanisms.base import Release
from datalens.mechanisms.gnmax import check_count, check_noise
from datalens.noise.base import NoiseSource
from datalens.privacy.events import GaussianEvent
from datalens.privacy.sensitivity import fullest_bins_sensitivity, histogram_votes_sensitivity

if TYPE_CHECKING:
    from datalens.privacy.budget import Budget


CHECKS, ANSWERS = "checks", "answers"
"""What the ledger calls its two releases."""


@dataclass(frozen=True)
class ConfidentGNMax:
    """Noisy fullest bin, where it holds enough votes.

    Attributes:
        num_teachers: N.
        num_bins: K.
        vote_threshold: fraction of N, from 0 to 1, that the noisy fullest bin must hold for an answer.
        threshold_stddev: standard deviation of the noise on the fullest bin, sigma_1, in votes.
        noise_stddev: standard deviation of the noise on every bin of the answer, sigma_2, in votes.
        noise: where the noise comes from; its draws for check and answer are never the same.
        group_size: records that one person may own, g.

    Guarantee:
        For Q questions the checks are a Gaussian mechanism with mu = ``g sqrt(Q) / threshold_stddev`` and the
        histograms one with mu = ``g sqrt(2 Q) / noise_stddev``, where one record is added or removed and where
        one is replaced alike (proofs: :mod:`datalens.privacy.sensitivity`). What is released is a function of
        the two noisy vectors, so leaving answers out costs no less and no more.

    Raises:
        ConfigError: a setting out of range.

    Source: Long et al. 2021, Algorithm 2, with a data-independent account.
    """

    num_teachers: int
    num_bins: int
    vote_threshold: float
    threshold_stddev: float
    noise_stddev: float
    noise: NoiseSource
    group_size: int = 1

    def __post_init__(self) -> None:
        for name in ("num_teachers", "num_bins", "group_size"):
            check_count(name, getattr(self, name))
        if not 0 <= self.vote_threshold <= 1:
            raise ConfigError(
                f"vote_threshold is {self.vote_threshold}, but is a fraction of the teachers; "
                "choose from 0 to 1"
            )
        for name in ("threshold_stddev", "noise_stddev"):
            check_noise(name, getattr(self, name), self.noise)

    def threshold_event(self, num_questions: int) -> GaussianEvent:
        """What the checks of ``num_questions`` questions cost together; depends on settings only."""
        check_count("num_questions", num_questions)
        sensitivity = fullest_bins_sensitivity(num_questions, self.group_size)
        return self._event(sensitivity, self.threshold_stddev, num_questions)

    def answer_event(self, num_questions: int) -> GaussianEvent:
        """What their noisy histograms cost together, all of them; depends on settings only."""
        check_count("num_questions", num_questions)
        sensitivity = histogram_votes_sensitivity(num_questions, self.group_size)
        return self._event(sensitivity, self.noise_stddev, num_questions * self.num_bins)

    def release(self, tally_BPK: Tensor, budget: Budget, note: dict[str, Any]) -> Release[Tensor]:
        """Charge checks and answers of all questions, then draw noise, then release the bins.

        Args:
            tally_BPK: integers [images, coordinates, bins], the sum of the teachers' votes; private.
            budget: asked for both before any noise is drawn.
            note: public facts for the two ledger lines.

        Returns:
            A release whose value is ``bin_BP`` int64: a bin, or -1 where the check failed. Its event and line are
            those of the answers; the line before it is that of the checks.

        Raises:
            BudgetError: checks and answers do not fit together; nothing was charged, drawn or released.
            ValueError: a tally that these teachers cannot give (a defect); nothing was charged.
        """
        self._check_tally(tally_BPK)
        num_questions = tally_BPK.shape[0] * tally_BPK.shape[1]
        checks, answers = self.threshold_event(num_questions), self.answer_event(num_questions)
        budget.check(checks, answers)
        budget.charge(checks, {**note, "what": CHECKS})
        line = budget.charge(answers, {**note, "what": ANSWERS})
        return Release(value=self._answers(tally_BPK), event=answers, line_hash=line.hash)

    def noisy_fullest(self, tally_BPK: Tensor) -> Tensor:
        """Votes of the fullest bins with fresh noise [images, coordinates]; public once charged."""
        return self._noisy(tally_BPK.amax(2), self.threshold_stddev)

    def noisy_bins(self, tally_BPK: Tensor) -> Tensor:
        """All bins with fresh noise; public once charged."""
        return self._noisy(tally_BPK, self.noise_stddev)

    def _answers(self, tally_BPK: Tensor) -> Tensor:
        needed = Fraction(str(float(self.vote_threshold))) * self.num_teachers
        fullest_BP = self.noisy_fullest(tally_BPK)
        cut = float(needed) if fullest_BP.is_floating_point() else math.ceil(needed)
        bin_BP = self.noisy_bins(tally_BPK).argmax(2)
        return torch.where(fullest_BP >= cut, bin_BP, NO_ANSWER)

    def _noisy(self, votes: Tensor, stddev: float) -> Tensor:
        noise = torch.from_numpy(self.noise.sample(tuple(votes.shape), stddev))
        return votes + noise.to(votes.device)

    def _event(self, sensitivity: float, stddev: float, coordinates: int) -> GaussianEvent:
        return GaussianEvent(
            sensitivity=sensitivity,
            noise_stddev=stddev,
            coordinates=coordinates,
            noise=self.noise.kind,
            slack=self.noise.slack(stddev),
        )

    def _check_tally(self, tally_BPK: Tensor) -> None:
        shaped = tally_BPK.ndim == 3 and tally_BPK.shape[2] == self.num_bins
        if not shaped or tally_BPK.is_floating_point():
            raise ValueError(
                f"a tally of type {tally_BPK.dtype} and shape {tuple(tally_BPK.shape)} cannot be released; "
                f"pass integers of shape [images, coordinates, {self.num_bins}]"
            )
        most = tally_BPK.sum(2)
        if bool((tally_BPK < 0).any()) or bool((most > self.num_teachers).any()):
            raise ValueError(
                f"the tally holds more than one vote a question of each of {self.num_teachers} teachers, so its "
                "sensitivity is not the one charged; vote with datalens.compression.projection"
            )
