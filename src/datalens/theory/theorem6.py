"""Theorem 6: how fast TopAgg's descent converges, as printed and as corrected, for every k.

Update (equation (2)): x' = x - (gamma/N) sum_n (Q(clip(top-k(F_n'(x)), c)) + noise of variance A k), with
A = sigma^2/k = 2 lambda/alpha. Bound (equation (3)), with tau_k, M, the spread sigma over teachers, and L:

    min(c, 1)/(d + 2) * mean over t of min(E |grad f|^2, E |grad f|_1)
        <= min(tau_k M^2, c (d - k) M)                        bias of top-k
         + L gamma A k                                        privacy
         + (f(x_0) - f(x*))/(T gamma)                         start
         + max(|sigma|^2 + |sigma| M, 2 |sigma|_1)            spread
         + 2 L gamma (sigma_Q^2 + min(c^2, M^2))              quantiser; without one L gamma min(c^2, M^2)

Slips, each corrected here:

* privacy: a noise of standard deviation sigma on each of d coordinates, divided by N, has expected square
  d sigma^2/N^2 = d A k/N^2; d A k/N where N independent noises are added, as equation (2) writes it;
* clip: k coordinates of size c have the square k c^2, so min(k c^2, M^2);
* quantiser: sigma_Q^2 is not one constant, it grows with k (:func:`datalens.theory.quantiser.variance_bound`);
* spread: the proof gives 2 c |sigma|_1, which the printed 2 |sigma|_1 covers only up to c = 1;
* tau_k of a Weibull tail: see :meth:`datalens.theory.tail.WeibullTail.tau`;
* left side: the proof bounds E min(., .), not the larger min(E ., E .).

What is valid, if loose, stays as printed: the factor 2 of |a + b|^2 <= 2|a|^2 + 2|b|^2 (noise and quantiser
have mean 0, half would do), and c (d - k), where sqrt(d - k) would do. The bound knows neither Algorithm 2's
normalisation nor Algorithm 3's threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import numpy as np

from datalens.errors import ConfigError
from datalens.theory.quantiser import Quantiser, variance_bound
from datalens.theory.tail import WeibullTail, check_gradients, compression_error


class Reading(StrEnum):
    """Which text of Theorem 6: as printed; corrected with one noise after the sum (Algorithm 3); corrected with N
    independent noises, one a teacher (equation (2) read literally)."""

    PRINTED = "printed"
    CORRECTED = "corrected"
    INDEPENDENT = "corrected, noise of each teacher"


@dataclass(frozen=True, eq=False)
class GradientFacts:
    """All that the bound knows of the teachers' gradients. As private as they are.

    Attributes:
        norm: M, the root mean square over teachers of |F_n'(x)|; the largest over x.
        tau: float64 [D], tau_k for k = 1..D.
        spread_l2: |sigma|, where sigma_i is the standard deviation over teachers of coordinate i.
        spread_l1: |sigma|_1.
        printed_tau: float64 [D], the paper's formula for tau_k, where there is one; else None.
    """

    norm: float
    tau: np.ndarray
    spread_l2: float
    spread_l1: float
    printed_tau: np.ndarray | None = None

    @property
    def dim(self) -> int:
        """D, the paper's d."""
        return len(self.tau)

    @classmethod
    def from_gradients(cls, grad: np.ndarray) -> Self:
        """Measured on gradients of public or synthetic images.

        Args:
            grad: [R, D], one row a teacher, all at the same x; or [T, B, D], teachers at B different x, of
                which the worst counts for each fact.

        Raises:
            ConfigError: another shape, nothing in it, or a number that is not finite.

        >>> facts = GradientFacts.from_gradients(np.array([[3.0, -4.0], [3.0, -4.0]]))
        >>> facts.norm, facts.tau.tolist(), facts.spread_l2
        (5.0, [0.6, 0.0], 0.0)
        """
        grad = np.asarray(grad, dtype=np.float64)
        points = [grad] if grad.ndim != 3 else [grad[:, image] for image in range(grad.shape[1])]
        if not points:
            raise ConfigError(f"gradients of shape {grad.shape} hold no image: give at least one")
        points = [check_gradients(point) for point in points]
        spread_D = np.max([point.std(axis=0) for point in points], axis=0)
        return cls(
            norm=max(math.sqrt(np.square(point).sum(axis=1).mean()) for point in points),
            tau=np.max([compression_error(point) for point in points], axis=0),
            spread_l2=float(np.linalg.norm(spread_D)),
            spread_l1=float(spread_D.sum()),
        )

    @classmethod
    def from_tail(cls, tail: WeibullTail, dim: int, *, spread: float = 0.0) -> Self:
        """From a Weibull tail, drawn or fitted, whose every coordinate differs by ``spread`` over teachers."""
        return cls(
            norm=math.sqrt(dim * tail.mean_square()),
            tau=tail.tau(dim),
            spread_l2=spread * math.sqrt(dim),
            spread_l1=spread * dim,
            printed_tau=tail.printed_tau(dim),
        )


@dataclass(frozen=True)
class Descent:
    """The numbers of equation (2) and of the function that is descended.

    Attributes:
        num_teachers: N.
        noise_per_kept: A = sigma^2/k (votes squared) = 2 lambda/alpha of one image's release; at a fixed
            privacy of a step the variance of the noise is A k.
        clip_bound: c, in the unit of the gradient.
        step_size: gamma.
        num_steps: T.
        smoothness: L, 1 for a squared distance, such as that to a teacher's mean image.
        start_gap: f(x_0) - f(x*).

    Raises:
        ConfigError: a value out of range.
    """

    num_teachers: int
    noise_per_kept: float
    clip_bound: float
    step_size: float = 1e-3
    num_steps: int = 86
    smoothness: float = 1.0
    start_gap: float = 0.0

    def __post_init__(self) -> None:
        for name in ("num_teachers", "clip_bound", "step_size", "num_steps", "smoothness"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)!r}, but must be above 0: correct it")
        for name in ("noise_per_kept", "start_gap"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} is {getattr(self, name)!r}, but must be 0 or more and finite")


@dataclass(frozen=True, eq=False)
class Bound:
    """Both sides of equation (3) over k = 1..D; every term float64 [D].

    Attributes:
        bias: min(tau_k M^2, c (d - k) M).
        privacy: what the noise adds.
        start: what is left of the way from x_0; the same for every k.
        spread: what teachers that differ add; the same for every k.
        quantiser: clipping and, with a quantiser, its variance.
        left_factor: min(c, 1)/(d + 2), what multiplies the gradient on the left.
        largest: M^2, above which a bound on |grad f|^2 says nothing.
    """

    bias: np.ndarray
    privacy: np.ndarray
    start: np.ndarray
    spread: np.ndarray
    quantiser: np.ndarray
    left_factor: float
    largest: float

    @property
    def top_k(self) -> np.ndarray:
        """k = 1..D."""
        return np.arange(1, len(self.bias) + 1)

    @property
    def total(self) -> np.ndarray:
        """The right side, float64 [D]."""
        return self.bias + self.privacy + self.start + self.spread + self.quantiser

    @property
    def favoured_k(self) -> int:
        """The k of the smallest right side; the smallest of equals."""
        return int(np.argmin(self.bias + self.privacy + self.quantiser)) + 1

    @property
    def says_something(self) -> bool:
        """Whether, for any k, the gradient is bounded by less than M^2, which holds anyway."""
        return bool(self.total.min() / self.left_factor < self.largest)


def noise_per_kept(noise_stddev: float, top_k: int) -> float:
    """A of equation (2) from the noise that was run at one k: sigma^2/k.

    >>> noise_per_kept(5000.0, 200)
    125000.0
    """
    if not (top_k >= 1 and 0 <= noise_stddev < math.inf):
        raise ConfigError(f"noise_stddev={noise_stddev!r} with top_k={top_k!r}: use 0 or more, and 1 or more")
    return noise_stddev**2 / top_k


def bound(
    facts: GradientFacts, descent: Descent, reading: Reading, quantiser: Quantiser = Quantiser.BERNOULLI
) -> Bound:
    """Theorem 6 for every k.

    Args:
        facts: of the gradients.
        descent: of equation (2).
        reading: which text of the theorem.
        quantiser: of the kept coordinates; as printed, its variance is the one constant that covers all k.

    Raises:
        ConfigError: a quantiser with a clip above 1.

    Source: Wang et al. 2021, Theorem 6, equation (3), and its proof, equations (4) to (11).

    >>> facts = GradientFacts.from_tail(WeibullTail(0.5), 784)
    >>> descent = Descent(4000, 125000.0, clip_bound=1.0)
    >>> [bound(facts, descent, reading).favoured_k for reading in (Reading.PRINTED, Reading.CORRECTED)]
    [14, 774]
    """
    k = np.arange(1, facts.dim + 1, dtype=np.float64)
    dim, norm, clip = facts.dim, facts.norm, descent.clip_bound
    pace = descent.smoothness * descent.step_size
    printed = reading is Reading.PRINTED
    tau = facts.printed_tau if printed and facts.printed_tau is not None else facts.tau
    if printed:
        noise = descent.noise_per_kept * k
        variance = np.full(dim, variance_bound(np.array(dim), clip, quantiser))
        clipped = np.full(dim, min(clip**2, norm**2))
    else:
        divisor = descent.num_teachers ** (1 if reading is Reading.INDEPENDENT else 2)
        noise = dim * descent.noise_per_kept * k / divisor
        variance = variance_bound(k, clip, quantiser)
        clipped = np.minimum(k * clip**2, norm**2)
    sign_spread = 2 * facts.spread_l1 * (1 if printed else max(clip, 1.0))
    spread = max(facts.spread_l2**2 + facts.spread_l2 * norm, sign_spread)
    left_out = np.minimum(tau * norm**2, np.where(k < dim, clip * (dim - k), 0.0) * norm)
    return Bound(
        bias=left_out,
        privacy=pace * noise,
        start=np.full(dim, descent.start_gap / (descent.num_steps * descent.step_size)),
        spread=np.full(dim, spread),
        quantiser=pace * (clipped if quantiser is Quantiser.NONE else 2 * (variance + clipped)),
        left_factor=min(clip, 1.0) / (dim + 2),
        largest=norm**2,
    )
