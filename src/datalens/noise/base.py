"""What a mechanism needs to know of its noise: the draws, their kind, and how far they are from ideal."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np

from datalens.errors import ConfigError
from datalens.privacy.events import NoiseKind, SamplerSlack


@runtime_checkable
class NoiseSource(Protocol):
    """Independent draws with mean 0 and a given standard deviation; no draw is ever given out twice."""

    @property
    def kind(self) -> NoiseKind:
        """The distribution, by which an accountant knows what the noise is worth."""
        ...

    @property
    def secure(self) -> bool:
        """True only if the draws can protect people: unpredictable, and as exact as ``slack`` says."""
        ...

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        """Fresh noise of this shape: int64 for integer kinds, float64 for continuous ones."""
        ...

    def slack(self, stddev: float) -> SamplerSlack:
        """A proved bound, for one coordinate, on the distance of the draws from the ideal ones."""
        ...


def check_stddev(stddev: float) -> float:
    """The standard deviation as a float, or a refusal of one that is not positive and finite."""
    if not (math.isfinite(stddev) and stddev > 0):
        raise ConfigError(f"noise_stddev is {stddev}, but must be positive and finite; choose one above 0")
    return float(stddev)
