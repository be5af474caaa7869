"""A noisy sum over a Poisson-sampled lot of records: the step of DP-SGD, in whole numbers.

Sampling makes a step cheap only if every record is in the lot by a coin of its own that nobody can guess. So the lot
is drawn here, next to the event that is charged for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from datalens.mechanisms.base import Release
from datalens.mechanisms.vector_sum import Grid
from datalens.noise.base import NoiseSource
from datalens.noise.entropy import Entropy
from datalens.privacy.events import PoissonGaussianEvent

if TYPE_CHECKING:
    from datalens.privacy.budget import Budget

_WORD_BITS = 64


@dataclass(frozen=True)
class SampledSum:
    """Sums of one vector for each record of a lot, with noise.

    Attributes:
        grid: where every record's vector is put; it bounds what one record adds.
        noise_stddev: standard deviation of the noise on each coordinate, in units of the grid; 0 without noise.
        noise: where the noise comes from.
        sampling_probability: chance of each record to be in a lot, q.
        group_size: records that one person may own, g.

    Guarantee:
        One record added or removed is in the lot with probability at most q, and moves the sum by at most
        ``grid.units`` then: a Poisson-sampled Gaussian step. The g records of a person together cost no more than one
        record that is in the lot with probability 1 - (1 - q)^g and moves the sum g times as far
        (``docs/privacy.md``, section 6.2).

    >>> from datalens.noise import make_noise
    >>> from datalens.privacy.events import NoiseKind
    >>> SampledSum(Grid(1.0, 512, 9), 1024.0, make_noise(NoiseKind.ROUNDED), 0.01).event().noise_multiplier
    2.0
    """

    grid: Grid
    noise_stddev: float
    noise: NoiseSource
    sampling_probability: float
    group_size: int = 1

    def event(self) -> PoissonGaussianEvent:
        """What one release costs where one record is added or removed; depends on settings only."""
        return PoissonGaussianEvent(
            sampling_probability=self._probability_of_a_group(),
            noise_multiplier=self.noise_stddev / (self.group_size * self.grid.units),
            noise=self.noise.kind,
            coordinates=self.grid.dim,
            slack=self.noise.slack(self.noise_stddev),
        )

    def lot(self, num_slots: int, entropy: Entropy) -> np.ndarray:
        """The slots of one lot, int64 in rising order: a coin for each slot, whether a record is in it or not.

        Which slots are drawn says nothing about the records, and how many they are is no fact about the data.

        Args:
            num_slots: public number of slots; each holds at most one record.
            entropy: fresh for every lot; nobody who sees a release may be able to repeat it.
        """
        return poisson_lot(num_slots, self.sampling_probability, entropy)

    def release(self, sum_D: Tensor, budget: Budget, note: dict[str, Any]) -> Release[Tensor]:
        """Charge the budget, then draw noise, then release the noisy sum; an empty lot is charged like any other.

        Args:
            sum_D: int64 [D], the sum of one row of :meth:`Grid.put` for each record of a lot; private.
            budget: asked before any noise is drawn; its ledger line is on disk before this goes on.
            note: public facts for the ledger line.

        Returns:
            A release whose value is the sum of real vectors plus noise: float64 [D].

        Raises:
            BudgetError: the release does not fit; no noise was drawn.
            ValueError: a sum that is not of whole numbers, or not this long (a defect); nothing was charged.
        """
        if sum_D.dtype != torch.int64 or tuple(sum_D.shape) != (self.grid.dim,):
            raise ValueError(
                f"a sum of type {sum_D.dtype} and shape {tuple(sum_D.shape)} cannot be released; pass int64 "
                f"[{self.grid.dim}], summed from rows of Grid.put"
            )
        event = self.event()
        line = budget.charge(event, note)
        noise_D = torch.from_numpy(self.noise.sample(tuple(sum_D.shape), self.noise_stddev))
        return Release(self.grid.back(sum_D + noise_D.to(sum_D.device)), event, line.hash)

    def _probability_of_a_group(self) -> float:
        if self.group_size == 1 or self.sampling_probability == 1:
            return self.sampling_probability
        return min(1.0, -math.expm1(self.group_size * math.log1p(-self.sampling_probability)) * (1 + 1e-12))


def poisson_lot(num_slots: int, probability: float, entropy: Entropy) -> np.ndarray:
    """Which of ``num_slots`` are in, int64 in rising order: each by a coin of its own, never likelier than said.

    >>> from datalens.noise.entropy import OsEntropy
    >>> poisson_lot(3, 1.0, OsEntropy()).tolist()
    [0, 1, 2]
    """
    below = int(probability * 2**_WORD_BITS)  # rounded down
    if below >= 2**_WORD_BITS:
        return np.arange(num_slots)
    return np.flatnonzero(entropy.words(num_slots) < np.uint64(below))
