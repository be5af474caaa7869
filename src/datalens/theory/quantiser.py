"""How much a stochastic quantiser adds to a clipped top-k gradient: its variance, which grows with k."""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np

from datalens.errors import ConfigError


class Quantiser(StrEnum):
    """How a kept, clipped coordinate x is sent; each is unbiased.

    ``NONE``: as it is. ``BERNOULLI``: sign(x) with probability |x|, else 0 (paper, equation (2)); needs |x| <= 1.
    ``SIGN``: +1 with probability (1 + x)/2, else -1 (paper, Algorithm 2, line 7); needs |x| <= 1.
    """

    NONE = "none"
    BERNOULLI = "bernoulli"
    SIGN = "sign"


def quantiser_variance(kept: np.ndarray, quantiser: Quantiser) -> np.ndarray:
    """E |Q(x) - x|^2 of given vectors, exactly.

    Args:
        kept: [..., K], the kept coordinates alone, in [-1, 1] unless there is no quantiser. (The coordinates that
            top-k left out are sent as 0 and add nothing.)

    Returns:
        [...]: 0, the sum of |x| (1 - |x|), or the sum of 1 - x^2.

    Raises:
        ConfigError: a coordinate that no probability can stand for.

    >>> [float(quantiser_variance(np.array([0.5, 1.0]), kind)) for kind in Quantiser]
    [0.0, 0.25, 0.75]
    """
    size = np.abs(np.asarray(kept, dtype=np.float64))
    match Quantiser(quantiser):
        case Quantiser.NONE:
            return np.zeros(size.shape[:-1])
        case Quantiser.BERNOULLI:
            return (_check_unit(size) * (1 - size)).sum(axis=-1)
        case Quantiser.SIGN:
            return (1 - _check_unit(size) ** 2).sum(axis=-1)


def variance_bound(top_k: np.ndarray, clip_bound: float, quantiser: Quantiser) -> np.ndarray:
    """The largest E |Q(x) - x|^2 over all x with k coordinates in [-c, c]: sigma-tilde squared of Theorem 6.

    ``BERNOULLI``: |x| (1 - |x|) is largest at min(c, 1/2), so k min(c, 1/2) (1 - min(c, 1/2)). ``SIGN``: k, at 0.

    Args:
        top_k: numbers of kept coordinates, any shape.
        clip_bound: c; at most 1 where there is a quantiser.

    >>> variance_bound(np.array([1, 200]), 1e-5, Quantiser.BERNOULLI).round(6).tolist()
    [1e-05, 0.002]
    """
    top_k = np.asarray(top_k, dtype=np.float64)
    if not clip_bound > 0:
        raise ConfigError(f"clip_bound is {clip_bound!r}, but must be above 0: the paper uses 1e-5")
    match Quantiser(quantiser):
        case Quantiser.NONE:
            return np.zeros_like(top_k)
        case Quantiser.BERNOULLI:
            largest = min(float(_check_unit(np.array(clip_bound))), 0.5)
            return top_k * largest * (1 - largest)
        case Quantiser.SIGN:
            _check_unit(np.array(clip_bound))
            return top_k


def _check_unit(size: np.ndarray) -> np.ndarray:
    largest = float(size.max(initial=0.0))
    if not largest <= 1 or math.isnan(largest):
        raise ConfigError(
            f"a coordinate of size {largest:g} is no probability: clip at 1 or less, or use quantiser 'none'"
        )
    return size
