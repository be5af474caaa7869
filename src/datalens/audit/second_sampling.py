"""What Poisson-sampled Gaussian steps cost, a second way, for verification: integrals in place of series.

The Rényi divergence of order a of one step, sampled with probability q and of noise multiplier s, is

    log E[((1 - q) + q exp((2 x - 1) / (2 s^2)))^a] / (a - 1),    x normal with standard deviation s,

in the costlier direction (Mironov, Talwar and Zhang 2019, section 3). The account has it from series; here it is
integrated by the trapezoidal rule. An account may try some orders only and is right with each. So what passes is an
epsilon from the minimum over all orders up to the minimum over some whole ones, which no account need exceed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

SAMPLED = "poisson-gaussian"
WHOLE_ORDERS = (*range(2, 65), *(int(2 ** (step / 4)) for step in range(25, 69)))

Steps = tuple[tuple[float, float, int], ...]
"""Sampling probability, noise multiplier and number of equal steps."""

_LEAST_GAP, _MOST_GAP, _PLACES = 0.01, 131071.0, 300
"""Orders less 1 that an account may take, and how many of them are looked at first."""
_FAR, _FINE = 14.0, 0.125
_USEFUL = 3000.0
_LARGEST = 600.0
_LEAST_NOISE = 0.01


class Between(float):
    """An epsilon that is known to lie from this value, the least that can be proved, to :attr:`most`."""

    most: float

    def __new__(cls, least: float, most: float) -> Between:
        """Both ends; a most that is below the least, by rounding, is the least."""
        made = super().__new__(cls, least)
        made.most = max(least, most)
        return made


def steps_again(events: Iterable[Mapping[str, Any]]) -> Steps:
    """The sampled steps among events as the ledger's JSON has them, those without noise left out.

    Raises:
        ValueError: a probability or a multiplier that none can have, or so little noise that the integrals would
            not end; it costs an epsilon of thousands.
    """
    counts: dict[tuple[float, float], int] = {}
    for event in events:
        if event["type"] == SAMPLED and event["noise"] != "none":
            key = float(event["sampling_probability"]), float(event["noise_multiplier"])
            if not (0 < key[0] <= 1 and _LEAST_NOISE <= key[1] < math.inf):
                raise ValueError(f"sampled with probability {key[0]:g} and noise {key[1]:g}")
            counts[key] = counts.get(key, 0) + event["count"]
    return tuple(sorted((*key, count) for key, count in counts.items()))


def step_again(order: float, probability: float, multiplier: float) -> float:
    """Rényi divergence of one step.

    >>> round(step_again(8.0, 1.0, 2.0), 9)
    1.0
    """
    inverse = 1 / multiplier
    spacing = min(_FINE, multiplier / 2)  # the integrand has no singularity within pi times the multiplier
    x = np.arange(-_FAR, order * inverse + _FAR, spacing)  # in units of the noise
    ratio = math.log(probability) + x * inverse - inverse**2 / 2
    rest = math.log1p(-probability) if probability < 1 else -math.inf
    log_terms = order * np.logaddexp(rest, ratio) - x * x / 2
    log_sum: Any = logsumexp(log_terms)
    moment = float(log_sum) + math.log(spacing) - 0.5 * math.log(2 * math.pi)
    return max(0.0, moment) / (order - 1)


def sampled_epsilon(mu: float, steps: Steps, delta: float, *, classic: bool, whole: bool) -> float:
    """Epsilon of Gaussian releases of ``mu`` together and sampled steps, at ``delta``: the best order's.

    Args:
        mu: of all Gaussian releases, 0 for none.
        steps: the sampled ones.
        delta: above 0.
        classic: by the paper's conversion, else by the tight one.
        whole: the best of :data:`WHOLE_ORDERS` instead of the best of all.
    """
    gaps, curve = _curve(mu, steps, whole)
    first = [_converted(1 + gap, cost, delta, classic=classic) for gap, cost in zip(gaps, curve, strict=True)]
    best = int(np.argmin(first))
    if whole:
        return max(0.0, first[best])

    def at(log_gap: float) -> float:
        order = 1 + math.exp(log_gap)
        return _converted(order, _cost(order, mu, steps), delta, classic=classic)

    low, high = gaps[max(0, best - 1)], gaps[min(len(gaps) - 1, best + 1)]
    found: Any = minimize_scalar(
        at, bounds=(math.log(low), math.log(high)), method="bounded", options={"xatol": 1e-7}
    )
    return max(0.0, min(first[best], float(found.fun)))


def two_moves(epsilon_at: Callable[[float], float], delta: float) -> Between:
    """Epsilon where a record is replaced: one removed and one added, so (1 + e^e) times as much delta, and 2 e.

    Args:
        epsilon_at: from a delta to the epsilon of the whole plan, where one record is added or removed.
        delta: that is to be kept.
    """

    def least(of: Callable[[float], float]) -> float:
        low, high = 0.0, of(delta) + 1e-12
        while (needed := of(delta / (1 + math.exp(high)))) > high:
            # no stride beyond what is needed: it may pass where delta is the sampler's slack
            low, high = high, needed * (1 + 1e-6)
            if high > _LARGEST:
                return math.inf
        while high - low > 1e-8 * high:
            middle = (low + high) / 2
            found = of(delta / (1 + math.exp(middle)))
            low, high = (low, middle) if found <= middle else (middle, high)
        return 2 * high

    return Between(least(epsilon_at), least(lambda delta: most_of(epsilon_at(delta))))


def most_of(epsilon: float) -> float:
    """The upper end, or the epsilon itself where it is known exactly."""
    return epsilon.most if isinstance(epsilon, Between) else epsilon


@lru_cache(maxsize=64)
def _curve(mu: float, steps: Steps, whole: bool) -> tuple[Sequence[float], Sequence[float]]:
    """Orders less 1, and what all releases cost at each."""
    most = min(_MOST_GAP, _USEFUL * max(multiplier for _, multiplier, _ in steps) + 100)
    gaps = np.geomspace(_LEAST_GAP, most, _PLACES).tolist()
    if whole:
        gaps = [order - 1.0 for order in WHOLE_ORDERS if order - 1 <= most]
    return gaps, [_cost(1 + gap, mu, steps) for gap in gaps]


def _cost(order: float, mu: float, steps: Steps) -> float:
    sampled = math.fsum(count * step_again(order, q, multiplier) for q, multiplier, count in steps)
    return order * mu * mu / 2 + sampled


def _converted(order: float, cost: float, delta: float, *, classic: bool) -> float:
    gap = order - 1
    if classic:
        return cost - math.log(delta) / gap
    if -math.expm1(-cost) <= delta * delta:
        return 0.0
    return cost - (math.log(delta) + math.log(order)) / gap + math.log(gap / order)
