"""Epsilon a second way, for verification: from the textbook formulae, sharing no code with the accountants.

The exact curve is written with the normal distribution function and solved by bisection; Rényi conversions are
minimised numerically. Slower and less exact at extremes than what it checks, and good to one part in a million.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr

from datalens.audit.ledger_reader import Difference
from datalens.audit.second_sampling import SAMPLED, Between, Steps, sampled_epsilon, steps_again

TOLERANCE = 1e-6
"""Relative difference between two calculations of one epsilon that counts as none."""
EXACT, RDP, CLASSIC = "exact", "rdp", "rdp-classic"
CONTINUOUS_CURVE = ("rounded-gaussian", "continuous-gaussian")


def epsilon_again(events: Iterable[dict[str, Any]], delta: float, accountant: str) -> float:
    """Epsilon of events (as the ledger's JSON has them) at ``delta``; infinite without noise.

    Where some are Poisson-sampled it is a :class:`~datalens.audit.second_sampling.Between`.

    Raises:
        Difference: an event of an unknown type, or with numbers out of range.
    """
    events = list(events)
    mu, log_ratio, bad_mass, kinds = totals_again(events)
    excess, log_tries = tunings_again(events)
    try:
        steps = steps_again(events)
    except (KeyError, TypeError, ValueError) as error:
        raise Difference(f"an event cannot be read: {error!s:.80}") from None
    if mu == 0 and not steps:
        return 0.0
    if math.isinf(mu):
        return math.inf
    if accountant == EXACT and (steps or not kinds <= set(CONTINUOUS_CURVE)):
        accountant = RDP

    def enough(base: float, *, whole: bool = False) -> bool:
        left = (delta - (1 + math.exp(min(base + 2 * log_ratio, 700))) * bad_mass) * math.exp(-log_ratio)
        shared = left * math.exp(-log_tries)
        if shared <= 0:
            return False
        if steps:
            return _sampled(mu, steps, shared, accountant, whole) <= base - excess
        return _is_enough(base - excess, mu, shared, accountant)

    least = _least(enough, log_ratio)
    return Between(least, _least(partial(enough, whole=True), log_ratio)) if steps else least


def _least(enough: Callable[[float], bool], log_ratio: float) -> float:
    """The least epsilon that is enough, and what the sampler's slack adds."""
    if enough(0.0):
        return 2 * log_ratio
    low, high = 0.0, 1e-4
    while not enough(
        high
    ):  # in small steps: the sampler's slack grows with epsilon, so too large fails again
        low, high = high, high * 1.02
        if high > 1e6:
            return math.inf
    return _bisect(enough, low, high) + 2 * log_ratio


def totals_again(events: Iterable[dict[str, Any]]) -> tuple[float, float, float, set[str]]:
    """mu of all events together, and sums of the sampler's eta and tau over all draws, and the kinds of noise.

    Poisson-sampled steps have no mu and add none.
    """
    squares, ratios, masses, kinds = [], [], [], set()
    for event in events:
        try:
            if event["type"] == "tuning":
                squares.append(event["count"] * event["mu"] ** 2)
                masses.append(event["count"] * event["bad_mass"])
                kinds.add("tuning")
                if event["count"] < 1 or min(squares[-1], masses[-1]) < 0:
                    raise ValueError
                continue
            if event["type"] not in ("gaussian", SAMPLED):
                raise Difference(f"an event of type {event['type']!r:.30} cannot be verified")
            count, draws = event["count"], event["count"] * event["coordinates"]
            eta, tau = event["slack"]["eta"], event["slack"]["tau"]
            if event["noise"] == "none":
                squares.append(math.inf)
            elif event["type"] == SAMPLED:
                squares.append(0.0)
            else:
                squares.append(count * (event["sensitivity"] / event["noise_stddev"]) ** 2)
            if min(count, draws) < 1 or min(eta, tau, squares[-1]) < 0:
                raise ValueError
        except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
            raise Difference(f"an event cannot be read: {event!r:.80}") from None
        ratios.append(draws * eta)
        masses.append(draws * tau)
        kinds.add(str(event["noise"]))
    return math.sqrt(math.fsum(squares)), math.fsum(ratios), math.fsum(masses), kinds


def tunings_again(events: Iterable[dict[str, Any]]) -> tuple[float, float]:
    """What tunings add: a sum for every order, and the sum of log E[K] (Papernot and Steinke 2022, Theorem 2).

    gamma is solved for, and the order b of the middle terms minimised over, numerically.
    """
    excess = log_tries = 0.0
    for event in events:
        if event["type"] != "tuning":
            continue
        try:
            mean, eta, half = event["expected_tries"], event["eta"], event["mu"] ** 2 / 2
            gamma: Any = brentq(lambda g, m=mean, e=eta: _mean_tries(g, e) - m, 1e-30, 1 - 1e-9, xtol=1e-300)
            price = -math.log(float(gamma))
            found: Any = minimize_scalar(
                lambda t, h=half, p=price: h * math.expm1(t) + p * math.exp(-t),
                bounds=(0.0, 60.0),
                method="bounded",
                options={"xatol": 1e-10},
            )
            excess += event["count"] * (1 + eta) * min(float(found.fun), price)
            log_tries += event["count"] * math.log(mean)
        except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError):
            raise Difference(f"an event cannot be read: {event!r:.80}") from None
    return excess, log_tries


def _mean_tries(gamma: float, eta: float) -> float:
    if eta == 0:
        return (1 / gamma - 1) / -math.log(gamma)
    return eta * (1 - gamma) / (gamma * (1 - gamma**eta))


def exact_delta(epsilon: float, mu: float) -> float:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)."""
    first = log_ndtr(mu / 2 - epsilon / mu)
    second = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(math.exp(first) * -math.expm1(min(0.0, second - first)))


def _is_enough(epsilon: float, mu: float, delta: float, accountant: str) -> bool:
    if accountant == EXACT:
        return exact_delta(epsilon, mu) <= delta
    if accountant == CLASSIC:
        return mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta)) <= epsilon
    if accountant != RDP:
        raise Difference(f"accountant {accountant!r:.30} is unknown")
    return _tight_rdp(mu, delta) <= epsilon


@lru_cache(maxsize=1024)
def _sampled(mu: float, steps: Steps, delta: float, accountant: str, whole: bool) -> float:
    if accountant not in (RDP, CLASSIC):
        raise Difference(f"accountant {accountant!r:.30} is unknown")
    return sampled_epsilon(mu, steps, delta, classic=accountant == CLASSIC, whole=whole)


@lru_cache(maxsize=64)  # asked for one mu and nearly always one delta, some hundred times
def _tight_rdp(mu: float, delta: float) -> float:
    """min over a > 1 of a mu^2/2 + log((a-1)/a) - (log delta + log a)/(a-1); 0 where pure closeness is enough."""
    if 1 - math.exp(-mu * mu / 2) <= delta * delta:
        return 0.0

    def at(log_gap: float) -> float:
        order = 1 + math.exp(log_gap)
        gap = order - 1
        return order * mu * mu / 2 + math.log(gap / order) - (math.log(delta) + math.log(order)) / gap

    middle = 0.5 * math.log(-2 * math.log(delta)) - math.log(mu)
    found: Any = minimize_scalar(at, bounds=(max(-30.0, middle - 30), middle + 5), method="bounded",
                            options={"xatol": 1e-10})  # fmt: skip
    classic = mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta))
    return max(0.0, min(float(found.fun), classic))


def _bisect(enough: Callable[[float], bool], low: float, high: float) -> float:
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if enough(middle):
            high = middle
        else:
            low = middle
    return high
