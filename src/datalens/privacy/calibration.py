"""Solve the accountant for releases, noise or epsilon; an answer never overshoots the target."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace

from datalens.errors import BudgetError, ConfigError
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import Event, times
from datalens.privacy.gaussian import check_delta
from datalens.privacy.wording import rounded_up

_MOST_RELEASES = 2**53
_NOISE_TOLERANCE = 1e-6
_LEAST_NOISE, _MOST_NOISE = 1e-6, 1e12


def epsilon_for(event: Event, num_releases: int, delta: float, accountant: AccountantKind) -> float:
    """Epsilon of ``num_releases`` times ``event`` at ``delta``.

    >>> from datalens.privacy.events import GaussianEvent
    >>> round(epsilon_for(GaussianEvent(4.0, 8.0, 1), 10, 1e-5, AccountantKind.EXACT), 3)
    7.511
    """
    if num_releases < 1:
        raise ConfigError(f"num_releases={num_releases!r} must be 1 or more: plan at least one release")
    return Accountant(accountant).epsilon(times(event, num_releases), delta)


def smallest_epsilon(event: Event, delta: float, accountant: AccountantKind) -> float:
    """The smallest epsilon under which one release of ``event`` is allowed."""
    return Accountant(accountant).epsilon(event, delta)


def max_releases(event: Event, epsilon: float, delta: float, accountant: AccountantKind) -> int:
    """The largest number of ``event`` below 2^53 that costs at most ``epsilon``; 0 where not even one fits.

    Raises:
        ConfigError: epsilon not above 0, or delta outside (0, 1).

    >>> from datalens.privacy.events import GaussianEvent
    >>> max_releases(GaussianEvent(2 * 200**0.5, 5000.0, 784), 1.0, 1e-5, AccountantKind.RDP)
    1909
    """
    _check_target(epsilon, delta)
    low, high = 0, 1
    while high < _MOST_RELEASES and epsilon_for(event, high, delta, accountant) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if epsilon_for(event, middle, delta, accountant) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def require_releases(event: Event, epsilon: float, delta: float, accountant: AccountantKind) -> int:
    """As :func:`max_releases`, but refuse a budget too small for one release, naming the smallest that works.

    Raises:
        BudgetError: not even one release fits.
    """
    count = max_releases(event, epsilon, delta, accountant)
    if count == 0:
        needed = smallest_epsilon(event, delta, accountant)
        if math.isinf(needed):
            raise BudgetError(
                f"one step has no finite cost at delta={delta:g}, whatever epsilon is allowed: use more noise or a "
                "larger delta"
            )
        raise BudgetError(
            f"epsilon={epsilon:g} is too small for one step at delta={delta:g}, which costs "
            f"{rounded_up(needed)}: "
            f"use epsilon {rounded_up(needed)} or more, more noise, or a smaller batch"
        )
    return count


def noise_for(
    event: Event | Callable[[float], Event],
    num_releases: int,
    epsilon: float,
    delta: float,
    accountant: AccountantKind,
) -> float:
    """The smallest noise (to one part in a million, from above) with which ``num_releases`` cost at most
    epsilon.

    Args:
        event: an event whose noise is replaced, or a function from noise to event (for slack).
        num_releases: how many of it, 1 or more.
        epsilon: target, above 0 and finite.
        delta: in (0, 1).
        accountant: conversion.

    Returns:
        Noise standard deviation (noise multiplier for a Poisson-sampled event).

    Raises:
        ConfigError: no noise between 1e-6 and 1e12 reaches the target.

    >>> from datalens.privacy.events import GaussianEvent
    >>> round(noise_for(GaussianEvent(4.0, 8.0, 1), 1, 1.9931, 1e-5, AccountantKind.EXACT), 2)
    8.0
    """
    _check_target(epsilon, delta)
    make = event if callable(event) else _with_noise(event)

    def fits(noise: float) -> bool:
        with warnings.catch_warnings():  # what is tried on the way may be far from the answer
            warnings.simplefilter("ignore")
            return epsilon_for(make(noise), num_releases, delta, accountant) <= epsilon

    high = 1.0
    while not fits(high):
        high *= 2
        if high > _MOST_NOISE:
            raise ConfigError(
                f"epsilon={epsilon:g} at delta={delta:g} is out of reach for {num_releases} releases "
                "with noise "
                f"up to {_MOST_NOISE:g}: raise epsilon or delta, or plan fewer releases"
            )
    low = high / 2
    while fits(low):
        low, high = low / 2, low
        if low < _LEAST_NOISE:
            raise ConfigError(
                f"epsilon={epsilon:g} holds with almost no noise ({_LEAST_NOISE:g}): lower epsilon or "
                "check the plan"
            )
    while high / low > 1 + _NOISE_TOLERANCE:
        middle = math.sqrt(low * high)
        if fits(middle):
            high = middle
        else:
            low = middle
    return high


def _with_noise(event: Event) -> Callable[[float], Event]:
    name = "noise_stddev" if hasattr(event, "noise_stddev") else "noise_multiplier"
    return lambda noise: replace(event, **{name: noise})


def _check_target(epsilon: float, delta: float) -> None:
    check_delta(delta)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ConfigError(f"epsilon={epsilon!r} must be above 0 and finite: use a value such as 1")


def tidy(stddev: float) -> float:
    """Rounded up to four significant digits.

    >>> tidy(4979.03)
    4980.0
    """
    unit = 10.0 ** (math.floor(math.log10(stddev)) - 3)
    return math.ceil(stddev / unit) * unit
