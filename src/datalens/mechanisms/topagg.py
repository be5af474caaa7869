"""TopAgg (Algorithm 3): sum the teachers' votes, add Gaussian noise, keep the signs of large coordinates.

:meth:`TopAgg.release` is the one function in which votes become public. Left of it names say ``tally``
(private), right of it ``noisy``, ``release``, ``direction`` (public).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from datalens.errors import ConfigError
from datalens.mechanisms.base import Release
from datalens.noise.base import NoiseSource
from datalens.privacy.events import GaussianEvent, NoiseKind
from datalens.privacy.sensitivity import images_voted, topagg_sensitivity

if TYPE_CHECKING:
    from datalens.privacy.budget import Budget


@dataclass(frozen=True)
class TopAgg:
    """Differentially private sum of sparse votes with a threshold.

    Attributes:
        num_teachers: teachers that vote, N.
        top_k: most votes that one teacher may cast on one image, k.
        noise_stddev: standard deviation of the noise on each coordinate of the sum, in votes.
        vote_threshold: fraction of N, 0 or more, that a noisy sum must reach to count; 0 releases its sign.
            Above 1 only noise and votes together reach it, which loses least where noise exceeds all votes.
        noise: where the noise comes from.
        images_per_teacher: most images of a step that one teacher may vote on, s; None for all of them.
        group_size: records that one person may own, g; up to g teachers change then, and mu is g times as large.

    Guarantee:
        Changing all votes of one teacher moves the joint tally of m images by at most
        ``2 * sqrt(min(m, s) * top_k)`` in L2 norm, since its votes are at most that many entries of -1 or +1,
        before and after (proof: :func:`~datalens.privacy.sensitivity.topagg_sensitivity`). So a release is a
        Gaussian mechanism with mu = that over ``noise_stddev``; the threshold is post-processing. It covers one
        record, where every record sits with one teacher.

    Raises:
        ConfigError: a setting out of range.

    Source: Wang et al. 2021, Algorithm 3.
    """

    num_teachers: int
    top_k: int
    noise_stddev: float
    vote_threshold: float
    noise: NoiseSource
    images_per_teacher: int | None = None
    group_size: int = 1

    def __post_init__(self) -> None:
        counts = {"num_teachers": self.num_teachers, "top_k": self.top_k, "group_size": self.group_size}
        if self.images_per_teacher is not None:
            counts["images_per_teacher"] = self.images_per_teacher
        for name, value in counts.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} is {value}, but must be a whole number; choose 1 or more")
        silent = self.noise.kind is NoiseKind.NONE and self.noise_stddev == 0
        if not silent and not (math.isfinite(self.noise_stddev) and self.noise_stddev > 0):
            raise ConfigError(
                f"noise_stddev is {self.noise_stddev}, but must be positive and finite; "
                "for training without privacy choose the noise kind 'none'"
            )
        if not (self.vote_threshold >= 0 and math.isfinite(self.vote_threshold)):  # also refuses NaN
            raise ConfigError(
                f"vote_threshold is {self.vote_threshold}, but is a fraction of the teachers; "
                "choose a finite number of 0 or more (0.612 noise_stddev / num_teachers loses least)"
            )

    def event(self, batch_size: int, dim: int) -> GaussianEvent:
        """What one joint release of ``batch_size`` images with ``dim`` coordinates each costs.

        Depends on settings only, never on a vote.
        """
        for name, value in (("batch_size", batch_size), ("dim", dim)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} is {value}, but must be a whole number; choose 1 or more")
        if self.top_k > dim:
            raise ConfigError(
                f"top_k is {self.top_k}, but an image has {dim} coordinates; choose at most {dim}"
            )
        return GaussianEvent(
            sensitivity=topagg_sensitivity(
                self.top_k, images_voted(batch_size, self.images_per_teacher), self.group_size
            ),
            noise_stddev=self.noise_stddev,
            coordinates=batch_size * dim,
            noise=self.noise.kind,
            slack=self.noise.slack(self.noise_stddev),
        )

    def release(self, tally_BD: Tensor, budget: Budget, note: dict[str, Any]) -> Release[Tensor]:
        """Charge the budget, then draw noise, then release the direction that the noisy votes point in.

        Args:
            tally_BD: integers, the sum of the teachers' votes, shape [images, coordinates]; private.
            budget: asked before any noise is drawn; its ledger line is on disk before this goes on.
            note: public facts for the ledger line, such as the step; nothing derived from data.

        Returns:
            A release whose value is ``direction_BD``: int8 in {-1, 0, 1}, on the tally's device.

        Raises:
            BudgetError: the release does not fit; no noise was drawn, nothing was released.
            ValueError: the tally cannot be a sum of valid votes (a defect, not a matter of data); nothing
                was charged or released.
        """
        self._check_tally(tally_BD)
        event = self.event(*tally_BD.shape)
        line = budget.charge(event, note)
        direction_BD = self.threshold(self.noisy_tally(tally_BD))
        return Release(value=direction_BD, event=event, line_hash=line.hash)

    def noisy_tally(self, tally_BD: Tensor) -> Tensor:
        """The tally with fresh noise: public once it has been charged, which :meth:`release` does first.

        On its own this charges nothing. It is apart so that the audit attacks the very function that
        training uses, before the threshold hides anything.

        Returns:
            int64 (float64 for continuous noise) on the tally's device.
        """
        noise = torch.from_numpy(self.noise.sample(tuple(tally_BD.shape), self.noise_stddev))
        return tally_BD + noise.to(tally_BD.device)

    def threshold(self, noisy_BD: Tensor) -> Tensor:
        """+1 where ``noisy >= vote_threshold * N``, -1 where ``noisy <= -vote_threshold * N``, else 0: int8.

        Post-processing. With a threshold of 0 it is the sign, and a noisy sum of exactly 0 gives 0. The
        threshold is read as the decimal it prints as: 0.07 of 100 teachers is 7 votes.
        """
        votes = Fraction(str(float(self.vote_threshold))) * self.num_teachers
        cut = float(votes) if noisy_BD.is_floating_point() else math.ceil(votes)
        return (noisy_BD >= cut).to(torch.int8) - (noisy_BD <= -cut).to(torch.int8)

    def _check_tally(self, tally_BD: Tensor) -> None:
        if tally_BD.ndim != 2 or tally_BD.is_floating_point() or tally_BD.is_complex():
            raise ValueError(
                f"a tally of type {tally_BD.dtype} and shape {tuple(tally_BD.shape)} cannot be released; "
                "pass integers of shape [images, coordinates]"
            )
        magnitude = tally_BD.to(torch.int64).abs()
        most_a_coordinate, most_an_image = self.num_teachers, self.num_teachers * self.top_k
        most_in_all = most_an_image * images_voted(len(tally_BD), self.images_per_teacher)
        per_image = magnitude.sum(-1)
        if (
            bool((magnitude > most_a_coordinate).any())
            or bool((per_image > most_an_image).any())
            or int(per_image.sum()) > most_in_all
        ):
            raise ValueError(
                f"the tally holds more votes than {self.num_teachers} teachers with {self.top_k} votes an "
                "image can cast, so its sensitivity is not the one charged; compress with this top_k"
            )
