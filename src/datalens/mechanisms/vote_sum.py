"""What mechanisms on teachers' votes have in common: check, charge, draw noise, release, in this order.

They differ in the votes that they take, in what of the votes the noise is put on, and in how a direction is read
from the noisy sum, which is post-processing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from datalens.errors import ConfigError
from datalens.mechanisms.base import Release
from datalens.noise.base import NoiseSource
from datalens.privacy.events import GaussianEvent, NoiseKind
from datalens.privacy.sensitivity import images_voted

if TYPE_CHECKING:
    from datalens.privacy.budget import Budget


class VoteSum(ABC):
    """A noisy sum of the votes of ``num_teachers`` teachers, and a direction in {-1, 0, 1} read from it.

    Raises:
        ConfigError: a setting out of range.
    """

    __dataclass_fields__: ClassVar[
        dict[str, Any]
    ]  # every mechanism is a frozen dataclass, with fields of its own
    num_teachers: int
    noise_stddev: float
    vote_threshold: float
    noise: NoiseSource
    images_per_teacher: int | None
    group_size: int

    def __post_init__(self) -> None:
        check_counts({"num_teachers": self.num_teachers, "group_size": self.group_size})
        if self.images_per_teacher is not None:
            check_counts({"images_per_teacher": self.images_per_teacher})
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

    @abstractmethod
    def event(self, batch_size: int, dim: int) -> GaussianEvent:
        """What one joint release of ``batch_size`` images with ``dim`` coordinates each costs.

        Depends on settings only, never on a vote.
        """

    @abstractmethod
    def check_tally(self, tally_BD: Tensor) -> None:
        """Refuse a tally that cannot be a sum of valid votes (a defect, not a matter of data).

        Raises:
            ValueError: its sensitivity would not be the one charged.
        """

    @property
    def noise_in_votes(self) -> float:
        """Standard deviation of the noise on a summed integer, in whole votes of a teacher."""
        return self.noise_stddev

    def summed(self, tally_BD: Tensor) -> Tensor:
        """The integers that noise is put on: a linear map of the votes. Private."""
        return tally_BD

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
        self.check_tally(tally_BD)
        dim = self._dim_of(tally_BD)
        event = self.event(len(tally_BD), dim)
        line = budget.charge(event, note)
        direction_BD = self.direction_of(self.noisy_tally(tally_BD), dim)
        return Release(value=direction_BD, event=event, line_hash=line.hash)

    def noisy_tally(self, tally_BD: Tensor) -> Tensor:
        """The summed votes with fresh noise: public once it has been charged, which :meth:`release` does first.

        On its own this charges nothing. It is apart so that the audit attacks the very function that
        training uses, before the threshold hides anything.

        Returns:
            int64 (float64 for continuous noise) on the tally's device.
        """
        summed = self.summed(tally_BD)
        noise = torch.from_numpy(self.noise.sample(tuple(summed.shape), self.noise_stddev))
        return summed + noise.to(summed.device)

    def direction_of(self, noisy: Tensor, dim: int) -> Tensor:
        """The direction of images of ``dim`` coordinates, from what :meth:`noisy_tally` gave. Post-processing."""
        return self.threshold(noisy)

    def threshold(self, noisy_BD: Tensor) -> Tensor:
        """+1 where ``noisy >= vote_threshold * N``, -1 where ``noisy <= -vote_threshold * N``, else 0: int8.

        Post-processing. With a threshold of 0 it is the sign, and a noisy sum of exactly 0 gives 0. The
        threshold is read as the decimal it prints as: 0.07 of 100 teachers is 7 votes.
        """
        votes = Fraction(str(float(self.vote_threshold))) * self.num_teachers
        cut = float(votes) if noisy_BD.is_floating_point() else math.ceil(votes)
        return (noisy_BD >= cut).to(torch.int8) - (noisy_BD <= -cut).to(torch.int8)

    def _dim_of(self, tally_BD: Tensor) -> int:
        """Coordinates of an image, from those of a tally."""
        return tally_BD.shape[1]

    def _event(self, sensitivity: float, coordinates: int) -> GaussianEvent:
        return GaussianEvent(
            sensitivity=sensitivity,
            noise_stddev=self.noise_stddev,
            coordinates=coordinates,
            noise=self.noise.kind,
            slack=self.noise.slack(self.noise_stddev),
        )

    def _check_magnitude(self, tally_BD: Tensor, largest: int, most_an_image: int, remedy: str) -> None:
        """Refuse a tally above what teachers can cast: ``largest`` a coordinate, ``most_an_image`` in all."""
        if tally_BD.ndim != 2 or tally_BD.is_floating_point() or tally_BD.is_complex():
            raise ValueError(
                f"a tally of type {tally_BD.dtype} and shape {tuple(tally_BD.shape)} cannot be released; "
                "pass integers of shape [images, coordinates]"
            )
        magnitude = tally_BD.to(torch.int64).abs()
        of_all = self.num_teachers * most_an_image
        per_image = magnitude.sum(-1)
        if (
            bool((magnitude > self.num_teachers * largest).any())
            or bool((per_image > of_all).any())
            or int(per_image.sum()) > of_all * images_voted(len(tally_BD), self.images_per_teacher)
        ):
            raise ValueError(
                f"the tally holds more votes than {self.num_teachers} teachers with {most_an_image} votes an "
                f"image can cast, so its sensitivity is not the one charged; compress with {remedy}"
            )


def check_counts(counts: dict[str, int]) -> None:
    """Refuse a count that is not a whole number from 1.

    Raises:
        ConfigError: names it.
    """
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{name} is {value}, but must be a whole number; choose 1 or more")
