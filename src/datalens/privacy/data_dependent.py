"""The paper's data-dependent bound (Theorems 4 and 5, corrected), for its Figure 2 only.

An epsilon that depends on the data says something about the data: it may not be published, and nothing here
is read by the budget, the ledger or a certificate. Everything is computed in log space, since the chance of
the likeliest outcome of a step is about exp(-10,000).

Corrections to Theorem 5, with f the tally without noise and b = vote_threshold * num_teachers: outcomes lie
in {-1, 0, 1}^D; a -1 has chance Phi((-b - f)/sigma); a 0 has Phi((b - f)/sigma) - Phi((-b - f)/sigma), which
is the printed erf only where f = 0. Theorem 4 also needs q * exp(alpha_2) < 1, or its A is not a ratio of
probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, ClassVar, NoReturn

import numpy as np
from scipy.special import log_ndtr, ndtr

from datalens.errors import ConfigError, NotPrivateError
from datalens.privacy.gaussian import check_delta, check_order, rdp

ORDERS: tuple[float, ...] = tuple(1 + float(gap) for gap in np.geomspace(0.01, 1e5, 400))


@dataclass(frozen=True)
class DataDependentCost:
    """An epsilon that depends on the data. Not publishable: keep it under ``private/``.

    Attributes:
        epsilon: at ``delta``; valid for this data set only.
        delta: in (0, 1).
        order: the Rényi order that gave it.
        independent_epsilon: the data-independent bound at the same orders and conversion.
    """

    publishable: ClassVar[bool] = False
    epsilon: float
    delta: float
    order: float
    independent_epsilon: float

    def to_json(self) -> NoReturn:
        """Always refused, so that it cannot slip into a certificate, a ledger or a report.

        Raises:
            NotPrivateError: always.
        """
        raise NotPrivateError(
            "a data-dependent epsilon depends on the records and may not be published: use the "
            "data-independent one"
        )


def log_outcome_chances(
    tally: np.ndarray, num_teachers: int, vote_threshold: float, noise_stddev: float, *, rounded: bool = False
) -> np.ndarray:
    """Log chances of -1, 0 and +1 for every coordinate of a tally.

    Args:
        tally: private sums of votes, any shape S.
        num_teachers: N.
        vote_threshold: fraction of N that a noisy vote must reach, 0 or more (above 0 where rounded).
        noise_stddev: standard deviation of the noise, in votes.
        rounded: noise is rounded to integers before it is added, as the default sampler does.

    Returns:
        float64 array [3, S].

    Raises:
        ConfigError: a setting outside its range.

    Source: Theorem 5, corrected.

    >>> np.exp(log_outcome_chances(np.array([0.0]), 10, 0.5, 5.0)).round(4).ravel().tolist()
    [0.1587, 0.6827, 0.1587]
    """
    if not (noise_stddev > 0 and math.isfinite(noise_stddev)):
        raise ConfigError(f"noise_stddev={noise_stddev!r} must be above 0 and finite: correct it")
    cut = vote_threshold * num_teachers
    if not (cut >= 0 and math.isfinite(cut)) or (rounded and cut == 0):
        raise ConfigError(
            f"vote_threshold={vote_threshold!r} must be 0 or more (above 0 where rounded): raise it"
        )
    if rounded:
        cut = math.ceil(cut) - 0.5
    tally = np.asarray(tally, dtype=np.float64)
    upper, lower = (cut - tally) / noise_stddev, (-cut - tally) / noise_stddev
    plus, minus = log_ndtr(-upper), log_ndtr(lower)
    return np.stack([minus, _log_between(lower, upper), plus])


def log_outcome_probability(log_chances: np.ndarray, outcome: np.ndarray) -> float:
    """Log probability that the release equals ``outcome``, all coordinates together.

    Args:
        log_chances: [3, S] from :func:`log_outcome_chances`.
        outcome: [S] in {-1, 0, 1}.

    Raises:
        ConfigError: shapes differ, or another value than -1, 0 and 1.
    """
    outcome = np.asarray(outcome)
    if outcome.shape != log_chances.shape[1:] or not np.isin(outcome, (-1, 0, 1)).all():
        raise ConfigError(
            f"outcome of shape {outcome.shape} must hold -1, 0 and 1 for {log_chances.shape[1:]}: fix it"
        )
    picked = np.take_along_axis(log_chances, outcome.astype(np.int64)[None] + 1, axis=0)
    return min(0.0, math.fsum(picked.ravel().tolist()))


def likeliest_outcome(log_chances: np.ndarray) -> np.ndarray:
    """The outcome of the largest probability, int8 [S]."""
    return (np.argmax(log_chances, axis=0) - 1).astype(np.int8)


def log_miss_probability(log_hit: float) -> float:
    """log(1 - exp(log_hit)): the log of q, the chance that the outcome is another one.

    >>> log_miss_probability(-1e5) == -math.exp(-1e5) == 0.0
    True
    """
    if log_hit >= 0:
        return -math.inf
    if log_hit > -math.log(2):
        return math.log(-math.expm1(log_hit))
    return math.log1p(-math.exp(log_hit))


def rdp_bound(order: float, mu: float, log_q: float) -> float:
    """Rényi divergence of one Gaussian release at ``order``, given that it misses one outcome with chance q.

    The smaller of Theorem 4 at its best mu_1 and mu_2 and the data-independent order * mu^2/2. With a
    Gaussian's alpha_i = mu_i mu^2/2 and L = log(1/q), A falls with (L - alpha_2)(1 - 1/mu_2) and B with
    -(alpha_1 + L/(mu_1 - 1)), so the best are mu_2 = sqrt(2L)/mu and mu_1 = max(order, 1 + sqrt(2L)/mu).

    Args:
        order: above 1.
        mu: sensitivity over noise of the release.
        log_q: log of the exact chance of any other outcome than the likely one, at most 0.

    Source: Theorem 4, after Papernot et al. 2018 (theorem 6), with q exp(alpha_2) < 1 required besides.
    """
    plain = rdp(check_order(order), mu)
    if math.isnan(log_q) or log_q > 0:
        raise ConfigError(f"log_q={log_q!r} must be 0 or less: give the log of a probability")
    if mu == 0 or math.isinf(mu):
        return plain
    if log_q == 0:
        return plain
    if log_q == -math.inf:
        return 0.0
    root = math.sqrt(-2 * log_q) / mu
    order_1, order_2 = max(order, 1 + root), root
    if order_2 <= 1:
        return plain
    alpha_1, alpha_2 = order_1 * mu * mu / 2, order_2 * mu * mu / 2
    log_ratio = math.log(order_1 / (order_1 - 1)) + math.log(order_2 / (order_2 - 1))
    if log_q + alpha_2 >= 0 or log_q > (order_2 - 1) * alpha_2 - order_2 * log_ratio:
        return plain
    log_keep = log_miss_probability(log_q)
    log_a = log_keep - log_miss_probability((log_q + alpha_2) * (order_2 - 1) / order_2)
    log_b = alpha_1 - log_q / (order_1 - 1)
    total = np.logaddexp(log_keep + (order - 1) * log_a, log_q + (order - 1) * log_b)
    return min(plain, max(0.0, float(total) / (order - 1)))


def data_dependent_cost(steps: Iterable[tuple[float, float]], delta: float) -> DataDependentCost:
    """Compose the bounds of many releases.

    Args:
        steps: for every release, mu and log_q (see :func:`rdp_bound`).
        delta: in (0, 1).

    Returns:
        A cost that refuses to be published.

    >>> cost = data_dependent_cost([(0.5, -1e-9)] * 3, 1e-5)
    >>> cost.publishable, cost.epsilon == cost.independent_epsilon
    (False, True)
    """
    *_, last = running_costs(steps, delta)
    return last


def running_costs(steps: Iterable[tuple[float, float]], delta: float) -> Iterator[DataDependentCost]:
    """:func:`data_dependent_cost` of no release, of the first, of the first two, and so on.

    >>> [round(cost.epsilon, 2) for cost in running_costs([(0.5, -1e-9)] * 2, 1e-5)]
    [0.0, 2.17, 3.19]
    """
    log_inverse = -math.log(check_delta(delta))
    orders = np.array(ORDERS)
    conversion = np.log1p(-1 / orders) + (log_inverse - np.log(orders)) / (orders - 1)
    dependent, independent = np.zeros(len(ORDERS)), np.zeros(len(ORDERS))
    for mu, log_q in chain([(0.0, 0.0)], steps):
        mine, plain = _at_all_orders(mu, log_q)
        dependent, independent = dependent + mine, independent + plain
        best = int(np.argmin(dependent + conversion))
        yield DataDependentCost(
            epsilon=max(0.0, float((dependent + conversion)[best])),
            delta=delta,
            order=ORDERS[best],
            independent_epsilon=max(0.0, float((independent + conversion).min())),
        )


def summary(cost: DataDependentCost) -> dict[str, Any]:
    """The numbers for a private diagnostic, with the reason they stay there."""
    return {
        "publishable": False,
        "why": "depends on the records; for private/ only",
        "data_dependent_epsilon": cost.epsilon,
        "data_independent_epsilon": cost.independent_epsilon,
        "delta": cost.delta,
        "order": cost.order,
    }


@lru_cache(maxsize=64)
def _at_all_orders(mu: float, log_q: float) -> tuple[np.ndarray, np.ndarray]:
    """Both bounds of one release at every order; kept, since releases of a run are often alike."""
    dependent = np.array([rdp_bound(order, mu, log_q) for order in ORDERS])
    return dependent, np.array([rdp(order, mu) for order in ORDERS])


def _log_between(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """log(Phi(upper) - Phi(lower)) for lower <= upper, without cancellation in either tail."""
    mirrored = lower + upper > 0  # work where both tails are on the left
    low = np.where(mirrored, -upper, lower)
    high = np.where(mirrored, -lower, upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.log1p(-(ndtr(low) + ndtr(-high)))
        ratio = log_ndtr(low) - log_ndtr(high)
        tail = log_ndtr(high) + np.log(-np.expm1(ratio))
    return np.where(high > 0, np.where(ndtr(low) + ndtr(-high) < 0.5, inside, tail), tail)
