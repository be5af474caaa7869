"""GNMax for yes-or-no questions (PATE, PATE-GAN): noisy counts of the teachers' answers become labels.

:meth:`GNMax.release` is where the counts of a batch of questions become public, all of them in one joint release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from datalens.errors import ConfigError
from datalens.mechanisms.base import Release
from datalens.noise.base import NoiseSource
from datalens.privacy.events import GaussianEvent, NoiseKind
from datalens.privacy.sensitivity import binary_votes_sensitivity

if TYPE_CHECKING:
    from datalens.privacy.budget import Budget


@dataclass(frozen=True)
class GNMax:
    """Noisy majority of teachers that answer yes or no.

    The count of yes answers is enough: with a public number of teachers the other count follows from it. Two
    counts with the noise that pays for two (``sqrt(2)`` times as much on each) give a difference of exactly the
    same signal and noise, so ``counts=2`` is only there for comparison with what was published.

    Attributes:
        num_teachers: teachers that answer, N.
        noise_stddev: standard deviation of the noise on each count, in votes.
        noise: where the noise comes from.
        counts: 1 for the count of yes alone, 2 for the counts of yes and no.
        group_size: records that one person may own, g.

    Guarantee:
        A release of B questions is a Gaussian mechanism with mu = ``g * sqrt(counts * B) / noise_stddev``, where
        one record is added or removed and where one is replaced alike (proof:
        :func:`~datalens.privacy.sensitivity.binary_votes_sensitivity`). Labels are post-processing.

    Raises:
        ConfigError: a setting out of range.

    Source: Papernot et al. 2018 (GNMax); Yoon, Jordon and van der Schaar 2019, with Laplace noise.

    >>> from datalens.noise import make_noise
    >>> GNMax(100, 40.0, make_noise(NoiseKind.ROUNDED)).event(64).mu
    0.2
    """

    num_teachers: int
    noise_stddev: float
    noise: NoiseSource
    counts: int = 1
    group_size: int = 1

    def __post_init__(self) -> None:
        check_count("num_teachers", self.num_teachers)
        check_count("group_size", self.group_size)
        if self.counts not in (1, 2) or isinstance(self.counts, bool):
            raise ConfigError(f"counts is {self.counts}, but a vote of yes or no has 1 or 2; choose 1")
        check_noise("noise_stddev", self.noise_stddev, self.noise)

    def event(self, batch_size: int) -> GaussianEvent:
        """What one joint release of ``batch_size`` questions costs; depends on settings only."""
        check_count("batch_size", batch_size)
        return GaussianEvent(
            sensitivity=binary_votes_sensitivity(batch_size, self.counts, self.group_size),
            noise_stddev=self.noise_stddev,
            coordinates=batch_size * self.counts,
            noise=self.noise.kind,
            slack=self.noise.slack(self.noise_stddev),
        )

    def release(self, count_BC: Tensor, budget: Budget, note: dict[str, Any]) -> Release[Tensor]:
        """Charge the budget, then draw noise, then release the label that the noisy counts favour.

        Args:
            count_BC: integers [questions, ``counts``]: how many teachers said yes, and how many no; private.
            budget: asked before any noise is drawn; its ledger line is on disk before this goes on.
            note: public facts for the ledger line.

        Returns:
            A release whose value is ``label_B``: float32, 1 for yes, 0 for no, 0.5 for a tie.

        Raises:
            BudgetError: the release does not fit; no noise was drawn, nothing was released.
            ValueError: counts that these teachers cannot give (a defect); nothing was charged.
        """
        self._check_counts(count_BC)
        event = self.event(len(count_BC))
        line = budget.charge(event, note)
        label_B = self.label(self.noisy_counts(count_BC))
        return Release(value=label_B, event=event, line_hash=line.hash)

    def noisy_counts(self, count_BC: Tensor) -> Tensor:
        """The counts with fresh noise; public once charged, which :meth:`release` does first."""
        noise = torch.from_numpy(self.noise.sample(tuple(count_BC.shape), self.noise_stddev))
        return count_BC + noise.to(count_BC.device)

    def label(self, noisy_BC: Tensor) -> Tensor:
        """The noisy majority: post-processing. float32 [questions]."""
        yes_B = noisy_BC[:, 0]
        no_B = self.num_teachers - yes_B if self.counts == 1 else noisy_BC[:, 1]
        return (torch.sign(yes_B - no_B) + 1).to(torch.float32) / 2

    def _check_counts(self, count_BC: Tensor) -> None:
        if count_BC.ndim != 2 or count_BC.shape[1] != self.counts or count_BC.is_floating_point():
            raise ValueError(
                f"counts of type {count_BC.dtype} and shape {tuple(count_BC.shape)} cannot be released; "
                f"pass integers of shape [questions, {self.counts}]"
            )
        if bool((count_BC < 0).any()) or bool((count_BC.sum(1) > self.num_teachers).any()):
            raise ValueError(
                f"the counts hold more answers than {self.num_teachers} teachers give to a question, so their "
                "sensitivity is not the one charged; count one answer a teacher"
            )


def check_count(name: str, value: object) -> None:
    """Refuse what is not a whole number of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name} is {value}, but must be a whole number; choose 1 or more")


def check_noise(name: str, stddev: float, noise: NoiseSource) -> None:
    """Refuse noise that is not positive and finite, but for none at all from a source of none."""
    silent = noise.kind is NoiseKind.NONE and stddev == 0
    if not silent and not (math.isfinite(stddev) and stddev > 0):
        raise ConfigError(
            f"{name} is {stddev}, but must be positive and finite; "
            "for training without privacy choose the noise kind 'none'"
        )
