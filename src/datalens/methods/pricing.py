"""The least noise under which all planned releases of a baseline cost what was asked for. No data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from datalens.errors import ConfigError
from datalens.methods.method import Planned
from datalens.noise.table import MAX_STDDEV, MIN_STDDEV, SLACK_BOUND
from datalens.privacy.accountant import Accountant
from datalens.privacy.calibration import tidy
from datalens.privacy.events import Event, NoiseKind, SamplerSlack, times
from datalens.privacy.replacing import replace_one_epsilon
from datalens.privacy.wording import rounded_up
from datalens.training.sections import Privacy

UNTABULATED_LIMIT = 1e9
"""Most noise of samplers that need no table."""

EventsOf = Callable[[float], Iterable[Event]]


@dataclass(frozen=True)
class NoiseOnPaper:
    """A noise source that has a price and no draws: the largest slack of its kind, and no table to build.

    Attributes:
        kind: the distribution.
    """

    kind: NoiseKind
    secure = False

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        """Never: nothing is released on paper."""
        raise RuntimeError("noise on paper has no draws: make a real source with make_noise")

    def slack(self, stddev: float) -> SamplerSlack:
        """The bound that holds for every standard deviation."""
        return SLACK_BOUND


def noise_that_fits(
    privacy: Privacy,
    events_of: EventsOf,
    asked: float | None,
    remedy: str,
    setting: tuple[str, float] = ("noise_stddev", 1.0),
) -> float:
    """The noise asked for, if the releases fit then, or else the least with which they do (four digits, rounded up).

    Args:
        privacy: epsilon, delta and accountant; the noise kind decides how much noise there is.
        events_of: from a standard deviation to every release of the whole training.
        asked: a standard deviation given by the user, or None.
        remedy: what to change where nothing fits, such as "fewer steps or a smaller batch".
        setting: name of the one that asks for noise, and the standard deviation of its 1.

    Returns:
        0 without privacy.

    Raises:
        ConfigError: the releases cost more than ``privacy.epsilon``; names what they cost.
    """
    name, unit = setting
    if not privacy.is_private:
        if asked is not None:
            raise ConfigError(f"{name} = {asked / unit:g} with noise 'none': leave out one of the two")
        return 0.0

    def price(stddev: float) -> float:
        return Accountant(privacy.accountant).epsilon(events_of(stddev), privacy.delta)

    most = MAX_STDDEV if privacy.noise is NoiseKind.ROUNDED else UNTABULATED_LIMIT
    stddev = most if asked is None else drawable(privacy, asked, setting)
    cost = price(stddev)
    if cost > privacy.epsilon:
        costs = f"epsilon {rounded_up(cost)}" if math.isfinite(cost) else "no finite epsilon"
        raise ConfigError(
            f"epsilon = {privacy.epsilon:g}: these releases cost {costs} at delta = {privacy.delta:g} with {name} "
            f"{stddev / unit:g}; use {remedy}" + (", or more noise" if asked is not None else "")
        )
    if asked is not None:
        return asked
    low, high = MIN_STDDEV, most
    if price(low) <= privacy.epsilon:
        return low
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if price(middle) <= privacy.epsilon else (middle, high)
    return min(most, tidy(high))


def drawable(privacy: Privacy, stddev: float, setting: tuple[str, float]) -> float:
    """The noise, where its sampler can draw it; ``setting`` as in :func:`noise_that_fits`.

    Raises:
        ConfigError: it is too small or too large for rounded Gaussian noise.
    """
    name, unit = setting
    if privacy.noise is NoiseKind.ROUNDED and not MIN_STDDEV <= stddev <= MAX_STDDEV:
        raise ConfigError(
            f"{name} = {stddev / unit:g}: {NoiseKind.ROUNDED} noise can be drawn from {MIN_STDDEV / unit:g} to "
            f"{MAX_STDDEV / unit:g}; choose one in between"
        )
    return stddev


def replace_one_price(planned: Iterable[Planned], accountant: Accountant, delta: float) -> float:
    """Epsilon of a whole plan where one record is replaced by another.

    By the events that say so; where one of the releases has none, by the bound for two moves, over the whole plan.
    """
    planned = tuple(planned)
    exact = [times(part.replace_one, part.count) for part in planned if part.replace_one is not None]
    if len(exact) == len(planned):
        return accountant.epsilon(exact, delta)
    return replace_one_epsilon(accountant, [times(part.event, part.count) for part in planned], delta)
