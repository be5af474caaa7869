"""From settings to what will be asked and paid: noise, number of steps, the event of one step. No data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from datalens.errors import ConfigError
from datalens.mechanisms.topagg import TopAgg
from datalens.noise import make_noise
from datalens.noise.table import SLACK_BOUND
from datalens.privacy.budget import Authorisation
from datalens.privacy.calibration import epsilon_for, max_releases, noise_for, require_releases
from datalens.privacy.events import GaussianEvent, NoiseKind
from datalens.training.config import Config, Voting

BEST_THRESHOLD = 0.612
"""Threshold, in standard deviations of the noise, at which {-1, 0, 1} keeps most of a weak signal.

A mean of size e << 1 under unit noise, cut at t, is seen with signal-to-noise ratio e * phi(t) * sqrt(2 / Phi(-t)),
largest at t = 0.612: 0.90 of what the uncut value has, where the sign alone (t = 0) has 0.80.
"""

WITHOUT_NOISE = "give --num-steps (voting.num_steps) where there is no noise to limit them"


@dataclass(frozen=True)
class Plan:
    """What a run may do, fixed before the first release.

    Attributes:
        noise_stddev: in votes; 0 without noise.
        num_steps: generator steps, hence releases.
        event: what one step costs.
        authorisation: the ceiling, and these releases as its plan.
        mechanism: TopAgg with these settings; its noise is replaced step by step.
    """

    noise_stddev: float
    num_steps: int
    event: GaussianEvent
    authorisation: Authorisation
    mechanism: TopAgg


def plan_releases(config: Config, dim: int) -> Plan:
    """Work out noise and steps from the settings and the number of coordinates of an image.

    Raises:
        ConfigError: settings that contradict each other; says which and what would fit.
        BudgetError: epsilon too small for one step; names the smallest that works.
    """
    voting, privacy = config.voting, config.privacy
    if voting.top_k > dim:
        raise ConfigError(f"top_k = {voting.top_k}: an image has {dim} coordinates; choose at most {dim}")
    if not privacy.is_private:
        if voting.noise_stddev is not None:
            raise ConfigError(
                f"noise_stddev = {voting.noise_stddev:g} with noise 'none': leave out one of the two"
            )
        if voting.num_steps is None:
            raise ConfigError(f"num_steps is not set: {WITHOUT_NOISE}")
        mechanism = _mechanism(config, 0.0)
        event = mechanism.event(voting.batch_size, dim)
        return Plan(0.0, voting.num_steps, event, Authorisation.not_private(privacy.delta), mechanism)
    stddev = voting.noise_stddev if voting.noise_stddev is not None else _noise_for_steps(config, dim)
    mechanism = _mechanism(config, stddev)
    event = mechanism.event(voting.batch_size, dim)
    target = (privacy.epsilon, privacy.delta, privacy.accountant)
    if voting.num_steps is None:
        num_steps = require_releases(event, *target)
    else:
        num_steps = voting.num_steps
        require_releases(event, *target)
        cost = epsilon_for(event, num_steps, privacy.delta, privacy.accountant)
        if cost > privacy.epsilon:
            raise ConfigError(
                f"num_steps = {num_steps} with noise_stddev = {stddev:g} costs epsilon {cost:.4g}, above "
                f"{privacy.epsilon:g}; use at most {max_releases(event, *target)} steps or more noise"
            )
    authorisation = Authorisation(*target, num_releases=num_steps, planned=event)
    return Plan(stddev, num_steps, event, authorisation, mechanism)


def _noise_for_steps(config: Config, dim: int) -> float:
    """The smallest tidy noise with which the asked number of steps fits the budget."""
    voting, privacy = config.voting, config.privacy
    if voting.num_steps is None:
        raise ConfigError(
            "noise_stddev and num_steps are both unset: give one of them, the budget decides the other"
        )
    images = min(voting.batch_size, voting.images_per_teacher or voting.batch_size)
    draft = GaussianEvent(
        2 * math.sqrt(voting.top_k * images), 1.0, voting.batch_size * dim, privacy.noise, SLACK_BOUND
    )
    target = (privacy.epsilon, privacy.delta, privacy.accountant)
    stddev = _tidy(noise_for(draft, voting.num_steps, *target))
    while True:
        event = _mechanism(config, stddev).event(voting.batch_size, dim)  # with the sampler's slack
        if epsilon_for(event, voting.num_steps, privacy.delta, privacy.accountant) <= privacy.epsilon:
            return stddev
        stddev = _tidy(stddev * 1.001)


def _tidy(stddev: float) -> float:
    """Rounded up to four significant digits.

    >>> _tidy(4979.03)
    4980.0
    """
    unit = 10.0 ** (math.floor(math.log10(stddev)) - 3)
    return math.ceil(stddev / unit) * unit


def _vote_threshold(voting: Voting, stddev: float) -> float:
    """The threshold asked for, or the one that loses least under this noise (a twentieth of N without any)."""
    if voting.vote_threshold is not None:
        return voting.vote_threshold
    if stddev == 0:
        return 0.05
    return round(BEST_THRESHOLD * stddev / voting.num_teachers, 4)


def _mechanism(config: Config, stddev: float) -> TopAgg:
    voting = config.voting
    kind = config.privacy.noise
    key = None if config.privacy.insecure_seed is None or kind is NoiseKind.NONE else b"plan only"
    return TopAgg(
        voting.num_teachers,
        voting.top_k,
        stddev,
        _vote_threshold(voting, stddev),
        make_noise(kind, key),
        voting.images_per_teacher,
    )
