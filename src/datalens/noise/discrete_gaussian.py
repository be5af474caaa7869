"""The discrete Gaussian of the OpenDP library, for those who prefer somebody else's exact sampler.

It keeps the Renyi and zCDP curves of the continuous Gaussian, but not the exact (epsilon, delta) curve, so
it is charged by RDP.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from datalens.errors import MissingExtraError
from datalens.noise.base import check_stddev
from datalens.privacy.events import NoiseKind, SamplerSlack


class DiscreteGaussian:
    """Integers with probability proportional to ``exp(-x^2 / (2 stddev^2))``, sampled exactly by OpenDP.

    Some 20 microseconds a draw, a hundred times slower than the rounded Gaussian. Bits come from the
    operating system; there is no seed.

    Raises:
        MissingExtraError: OpenDP is not installed.

    Source: Canonne, Kamath and Steinke 2020.
    """

    kind = NoiseKind.DISCRETE
    secure = True

    def __init__(self) -> None:
        self._prelude = _load_opendp()
        self._measurements: dict[float, Any] = {}

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        """Fresh int64 noise of this shape."""
        measurement = self._measurement(check_stddev(stddev))
        draws = measurement([0] * math.prod(shape))
        return np.array(draws, dtype=np.int64).reshape(shape)

    def slack(self, stddev: float) -> SamplerSlack:
        """Zero: the sampler is exact."""
        check_stddev(stddev)
        return SamplerSlack(eta=0.0, tau=0.0)

    def _measurement(self, stddev: float) -> Any:
        if stddev not in self._measurements:
            dp = self._prelude
            domain = dp.vector_domain(dp.atom_domain(T="i64"))
            self._measurements[stddev] = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=stddev)
        return self._measurements[stddev]


def _load_opendp() -> ModuleType:
    try:
        from opendp import prelude
        from opendp.mod import enable_features
    except ImportError:
        raise MissingExtraError(
            "discrete Gaussian noise needs OpenDP, which is not installed; "
            "run: pip install 'datalens-dp[discrete]'"
        ) from None
    enable_features("contrib")
    return prelude
