"""What top-k leaves out of a gradient (tau_k), measured or from a Weibull tail.

tau_k bounds |g - top-k(g)| <= tau_k |g| (paper, assumptions of Theorem 6). Arrays over k run from k = 1 at index 0
to k = D at index D - 1, where tau is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import gammainc

from datalens.errors import ConfigError

_SHAPES = (0.05, 50.0)
"""Range in which the shape of a Weibull tail is sought."""


@dataclass(frozen=True)
class WeibullTail:
    """Magnitudes with P(|g| > x) = exp(-(x / scale)^shape), each coordinate by itself.

    Attributes:
        shape: rho_2 of the paper, above 0; below 1 for the heavy tails that top-k likes.
        scale: rho_1 of the paper, above 0, in the unit of the gradient.

    Raises:
        ConfigError: a parameter out of range.

    >>> WeibullTail(shape=1.0, scale=3.0).tau(4).round(4).tolist()
    [0.404, 0.1825, 0.0566, 0.0]
    """

    shape: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("shape", self.shape), ("scale", self.scale)):
            if not (value > 0 and math.isfinite(value)):
                raise ConfigError(f"Weibull {name} is {value!r}, but must be above 0 and finite: correct it")

    def mean_square(self) -> float:
        """E g^2 = scale^2 Gamma(1 + 2 / shape)."""
        return self.scale**2 * math.gamma(1 + 2 / self.shape)

    def tau(self, dim: int) -> np.ndarray:
        """tau_k for k = 1..dim, float64 [dim]: what the bound should use; the scale cancels.

        Keeping the share k/dim of largest magnitudes cuts at u = (x/scale)^shape = ln(dim/k); the mean square
        below the cut is scale^2 times the integral of u^(2/shape) e^-u from 0 to ln(dim/k), so
        tau_k^2 = P(1 + 2/shape, ln(dim/k)) with the regularised lower incomplete gamma function P.
        """
        share_kept = np.arange(1, check_dim(dim) + 1) / dim
        return np.sqrt(gammainc(1 + 2 / self.shape, -np.log(share_kept)))

    def printed_tau(self, dim: int) -> np.ndarray:
        """tau_k as the paper prints it after Theorem 6, float64 [dim]; made 1 at k = 0, never below 0.

        tau_k is proportional to exp(-(k / (scale dim))^shape) - exp(-1). It changes with the unit that
        gradients are measured in, though top-k does not, and is 0 at k = dim only for scale 1.
        """
        share_kept = np.arange(1, check_dim(dim) + 1) / dim
        left = np.exp(-((share_kept / self.scale) ** self.shape)) - math.exp(-1)
        return np.maximum(left, 0.0) / -math.expm1(-1)

    def draw(self, rows: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """Synthetic gradients, float64 [rows, dim]: Weibull magnitudes with signs of fair coins."""
        sign = rng.choice((-1.0, 1.0), (rows, check_dim(dim)))
        return sign * self.scale * rng.weibull(self.shape, (rows, dim))


def fit_weibull(grad: np.ndarray) -> WeibullTail:
    """The likeliest Weibull tail of the magnitudes that are not zero.

    The shape s solves sum x^s ln x / sum x^s - 1/s = mean ln x, the scale is (mean x^s)^(1/s).

    Args:
        grad: gradients of any shape; finite.

    Raises:
        ConfigError: fewer than two different magnitudes, or one that is not finite.

    >>> drawn = WeibullTail(0.5, 2.0).draw(100, 100, np.random.default_rng(0))
    >>> round(fit_weibull(drawn).shape, 2)
    0.5
    """
    magnitude = np.abs(np.asarray(grad, dtype=np.float64)).ravel()
    magnitude = magnitude[magnitude > 0]
    if not np.isfinite(magnitude).all() or np.unique(magnitude).size < 2:
        raise ConfigError(
            "a Weibull tail needs at least two different finite magnitudes: give other gradients"
        )
    largest = magnitude.max()
    log = np.log(magnitude / largest)  # at most 0, so that powers stay below 1

    def excess(shape: float) -> float:
        power = np.exp(shape * log)
        return float((power * log).sum() / power.sum() - 1 / shape - log.mean())

    low, high = _SHAPES
    if excess(high) < 0:
        shape = high  # magnitudes that are all but equal
    elif excess(low) > 0:
        shape = low
    else:
        shape = float(root_scalar(excess, bracket=(low, high)).root)
    return WeibullTail(shape, float(largest * np.exp(shape * log).mean() ** (1 / shape)))


def compression_error(grad: np.ndarray, *, worst: bool = False) -> np.ndarray:
    """Measured tau_k of gradients, k = 1..D.

    Args:
        grad: [R, D], rows of gradients; finite. Rows of zeros count as nothing left out.
        worst: the largest |g - top-k(g)| / |g| of a row, as the assumption is worded. Left out, the ratio of
            root mean squares over rows: Theorem 6's proof needs no more, since it only uses the mean of
            |g - top-k(g)| and |g|^2.

    Returns:
        float64 [D], falling to 0.

    >>> compression_error(np.array([[3.0, 0.0, -4.0]])).tolist()
    [0.6, 0.0, 0.0]
    """
    square = np.sort(np.square(check_gradients(grad)), axis=1)  # ascending
    left = np.cumsum(square, axis=1)[:, ::-1]  # left[:, j]: energy of all but the j largest
    whole = left[:, 0]
    left = np.concatenate([left[:, 1:], np.zeros((len(left), 1))], axis=1)
    if worst:
        share = np.divide(left, whole[:, None], out=np.zeros_like(left), where=whole[:, None] > 0)
        return np.sqrt(share.max(axis=0))
    total = whole.sum()
    return np.sqrt(left.sum(axis=0) / total) if total > 0 else np.zeros(left.shape[1])


def check_gradients(grad: np.ndarray) -> np.ndarray:
    """``grad`` as float64 [R, D], or ConfigError where it is of another shape, empty, or not finite."""
    grad = np.asarray(grad, dtype=np.float64)
    if grad.ndim != 2 or grad.size == 0 or not np.isfinite(grad).all():
        raise ConfigError(f"gradients of shape {grad.shape} must be [rows, coordinates], filled and finite")
    return grad


def check_dim(dim: int) -> int:
    """``dim``, or ConfigError unless it is a whole number from 1."""
    if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1:
        raise ConfigError(f"dim is {dim!r}, but must be a whole number: choose 1 or more")
    return dim
