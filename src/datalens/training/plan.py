"""From settings to what will be asked and paid: noise, number of steps, the event of one step. No data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from datalens.errors import ConfigError
from datalens.mechanisms.gaussian_sum import GaussianSum
from datalens.mechanisms.topagg import TopAgg
from datalens.noise import make_noise
from datalens.noise.table import SLACK_BOUND
from datalens.privacy.accountant import Accountant
from datalens.privacy.budget import Authorisation
from datalens.privacy.calibration import epsilon_for, max_releases, noise_for, require_releases
from datalens.privacy.events import GaussianEvent, NoiseKind, times
from datalens.privacy.signal import best_threshold
from datalens.training.config import Config, Voting

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
        mechanism = mechanism_of(config, 0.0)
        event = mechanism.event(voting.batch_size, dim)
        return Plan(0.0, voting.num_steps, event, Authorisation.not_private(privacy.delta), mechanism)
    stddev = voting.noise_stddev if voting.noise_stddev is not None else _noise_for_steps(config, dim)
    mechanism = mechanism_of(config, stddev)
    event = mechanism.event(voting.batch_size, dim)
    target = (privacy.epsilon, privacy.delta, privacy.accountant)
    require_releases(event, *target)
    num_steps = voting.num_steps if voting.num_steps is not None else _most_steps(event, config)
    cost = _cost(event, num_steps, config)
    if cost > privacy.epsilon:
        raise ConfigError(
            f"num_steps = {num_steps} with noise_stddev = {stddev:g} costs epsilon {cost:.4g}, above "
            f"{privacy.epsilon:g}; use at most {_most_steps(event, config)} steps or more noise"
        )
    if privacy.score_noise is None:
        authorisation = Authorisation(*target, num_releases=num_steps, planned=event)
    else:  # the cost of exactly these steps and one score, with room for the last bit of a float
        ceiling = min(privacy.epsilon, cost * (1 + 1e-9))
        authorisation = Authorisation(ceiling, privacy.delta, privacy.accountant)
    return Plan(stddev, num_steps, event, authorisation, mechanism)


def score_mechanism(config: Config) -> GaussianSum | None:
    """What may release one count of right predictions; None where no room was left for it.

    One record more, less or changed moves the count by at most 1, so ``group_size`` records by that many.
    """
    privacy = config.privacy
    if privacy.score_noise is None or not privacy.is_private:
        return None
    return GaussianSum(float(privacy.group_size), privacy.score_noise, make_noise(privacy.noise))


def _cost(event: GaussianEvent, num_steps: int, config: Config) -> float:
    """Epsilon of the steps, and of the score if there is to be one."""
    score = score_mechanism(config)
    events = [times(event, num_steps), *([] if score is None else [score.event(1)])]
    return Accountant(config.privacy.accountant).epsilon(events, config.privacy.delta)


def _most_steps(event: GaussianEvent, config: Config) -> int:
    """The largest number of steps that fits beside the score."""
    privacy = config.privacy
    low, high = 0, max_releases(event, privacy.epsilon, privacy.delta, privacy.accountant) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _cost(event, middle, config) <= privacy.epsilon:
            low = middle
        else:
            high = middle
    if low == 0:
        raise ConfigError(
            f"score_noise = {privacy.score_noise}: one such score leaves no room for a step at epsilon "
            f"{privacy.epsilon:g}; use more noise for the score, or leave it out"
        )
    return low


def _noise_for_steps(config: Config, dim: int) -> float:
    """The smallest tidy noise with which the asked number of steps fits the budget."""
    voting, privacy = config.voting, config.privacy
    if voting.num_steps is None:
        raise ConfigError(
            "noise_stddev and num_steps are both unset: give one of them, the budget decides the other"
        )
    images = min(voting.batch_size, voting.images_per_teacher or voting.batch_size)
    draft = GaussianEvent(
        privacy.group_size * 2 * math.sqrt(voting.top_k * images),
        1.0,
        voting.batch_size * dim,
        privacy.noise,
        SLACK_BOUND,
    )
    target = (privacy.epsilon, privacy.delta, privacy.accountant)
    score = score_mechanism(config)
    if score is not None and epsilon_for(score.event(1), 1, *target[1:]) > 0.9 * privacy.epsilon:
        raise ConfigError(
            f"score_noise = {score.noise_stddev:g}: one such score takes nearly all of epsilon "
            f"{privacy.epsilon:g}; use more noise for the score, or leave it out"
        )
    stddev = _tidy(noise_for(draft, voting.num_steps, *target))
    while True:
        event = mechanism_of(config, stddev).event(voting.batch_size, dim)  # with the sampler's slack
        if _cost(event, voting.num_steps, config) <= privacy.epsilon:
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
    return best_threshold(voting.num_teachers, stddev)


def mechanism_of(config: Config, stddev: float) -> TopAgg:
    """TopAgg with these settings, for planning: its noise is a stand-in."""
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
        config.privacy.group_size,
    )
