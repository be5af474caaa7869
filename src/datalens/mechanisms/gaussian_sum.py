"""A noisy sum: a few integers whose movement by one person is bounded, with Gaussian noise on each.

Used for the one score on people's data that may be released: how many of them a classifier names rightly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from datalens.errors import ConfigError
from datalens.mechanisms.base import Release
from datalens.noise.base import NoiseSource
from datalens.privacy.events import GaussianEvent

if TYPE_CHECKING:
    from datalens.privacy.budget import Budget


@dataclass(frozen=True)
class GaussianSum:
    """Integer sums with noise.

    Attributes:
        sensitivity: L2 distance that one person can move the sums; the caller proves it.
        noise_stddev: standard deviation of the noise on each sum.
        noise: where the noise comes from.

    Guarantee:
        A release is a Gaussian mechanism with ``mu = sensitivity / noise_stddev``.

    >>> from datalens.noise import make_noise
    >>> from datalens.privacy.events import NoiseKind
    >>> GaussianSum(1.0, 20.0, make_noise(NoiseKind.ROUNDED)).event(1).mu
    0.05
    """

    sensitivity: float
    noise_stddev: float
    noise: NoiseSource

    def event(self, length: int) -> GaussianEvent:
        """What one release of ``length`` sums costs; depends on settings only."""
        return GaussianEvent(
            sensitivity=self.sensitivity,
            noise_stddev=self.noise_stddev,
            coordinates=length,
            noise=self.noise.kind,
            slack=self.noise.slack(self.noise_stddev),
        )

    def release(self, sums: np.ndarray, budget: Budget, note: dict[str, Any]) -> Release[np.ndarray]:
        """Charge the budget, then draw noise, then release the noisy sums.

        Args:
            sums: int64 [length]; private.
            budget: asked before any noise is drawn; its ledger line is on disk before this goes on.
            note: public facts for the ledger line.

        Raises:
            BudgetError: the release does not fit; no noise was drawn.
            ConfigError: sums that are not whole numbers; nothing was charged.
        """
        if sums.ndim != 1 or sums.dtype.kind not in "iu" or not sums.size:
            raise ConfigError(
                f"sums of type {sums.dtype} and shape {sums.shape}: give whole numbers [length]"
            )
        event = self.event(len(sums))
        line = budget.charge(event, note)
        noisy = sums + self.noise.sample(sums.shape, self.noise_stddev)
        return Release(value=noisy, event=event, line_hash=line.hash)
