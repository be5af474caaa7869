"""A mechanism of your own: what a release costs, and the one function in which private becomes public.

python examples/own_mechanism.py
"""

# ruff: noqa: T201
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from datalens.baselines.own import Budget, GaussianEvent, NoiseKind, NoiseSource, Release, make_noise
from datalens.errors import BudgetError
from datalens.privacy.budget import Authorisation
from datalens.privacy.ledger import Ledger

LEVELS, WHAT = 7, "level sums"  # brightness is counted in whole steps, 0 to 7


@dataclass(frozen=True)
class LevelSum:
    """Sums over records of D pixels in 0..LEVELS, with noise: whole numbers on both sides, so the proof is exact.

    A record that is added or removed moves the sums by its own pixels, at most LEVELS sqrt(D) in L2 norm, in one
    class. One that is replaced moves two classes by so much, or one by no more: sqrt(2) times as far. With
    group_size records of one person it is at most that many times as far.
    """

    dim: int
    noise_stddev: float
    noise: NoiseSource
    group_size: int = 1

    def event(self, classes: int, *, replacing: bool = False) -> GaussianEvent:
        """What a release costs: from settings alone, never from data."""
        moved = self.group_size * LEVELS * math.sqrt(self.dim) * (math.sqrt(2) if replacing else 1)
        slack = self.noise.slack(self.noise_stddev)
        return GaussianEvent(moved, self.noise_stddev, classes * self.dim, noise=self.noise.kind, slack=slack)

    def release(self, sums_YD: np.ndarray, budget: Budget, note: dict[str, Any]) -> Release[np.ndarray]:
        """Charge, which writes the ledger or raises BudgetError; only then draw noise, and let the sum out."""
        event = self.event(len(sums_YD))
        line = budget.charge(event, note)
        return Release(sums_YD + self.noise.sample(sums_YD.shape, self.noise_stddev), event, line.hash)


if __name__ == "__main__":
    budget = Budget(Ledger.in_memory(), Authorisation(epsilon=1.0, delta=1e-6))
    mechanism = LevelSum(dim=4, noise_stddev=80.0, noise=make_noise(NoiseKind.ROUNDED))
    for year in (2024, 2025):
        try:
            print(year, mechanism.release(np.array([[700, 0, 350, 20]]), budget, {"year": year}).value)
        except BudgetError as error:
            print(year, error)
    print(f"epsilon {budget.spent_epsilon():.3f} spent")
