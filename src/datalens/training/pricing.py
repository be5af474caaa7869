"""How much noise and how small an epsilon settings allow: solved from public numbers, no table built. No data."""

from __future__ import annotations

import math

from datalens.errors import ConfigError
from datalens.mechanisms.gaussian_sum import GaussianSum
from datalens.mechanisms.kinds import MechanismKind
from datalens.noise import make_noise
from datalens.noise.table import MAX_STDDEV, MIN_STDDEV, SLACK_BOUND
from datalens.privacy.accountant import Accountant
from datalens.privacy.calibration import epsilon_for, tidy
from datalens.privacy.events import GaussianEvent, NoiseKind, times
from datalens.privacy.signal import best_threshold, signal_of
from datalens.privacy.wording import rounded_up
from datalens.training.config import Config, Voting
from datalens.training.mechanisms import step_bound, units_a_vote
from datalens.training.warm_plan import stand_ins
from datalens.training.warm_settings import WarmStart

SCORE_SHARE = 0.9
"""A score may take so much of epsilon; the steps need the rest."""
_ANY_DIM = 2**20
"""Coordinates to reckon with where images are not known yet; to TopAgg they matter for the sampler's slack alone."""
_UNTABULATED_LIMIT = 1e9
_SPARE_NOISE = 1.01
"""What rounding may add to the least noise."""
_NONE = WarmStart().model_dump()
_HOPELESS = 1e9
"""An epsilon beyond which nobody looks for one that pays for a warm start, too."""


def least_epsilon(config: Config, dim: int | None = None) -> float | None:
    """The smallest epsilon at which these settings, with that epsilon instead of theirs, make a plan.

    Where the noise is given, it pays for the steps asked for, or one. Where it is free, it pays for them with
    the most noise that the sampler has and that leaves a signal.

    Returns:
        None where no epsilon helps, or none is needed, or where it depends on the images and they are not known.
    """
    voting, privacy = config.voting, config.privacy
    if not privacy.is_private or (dim is None and voting.mechanism is not MechanismKind.TOPAGG):
        return None
    dim = dim or _ANY_DIM
    score = score_mechanism(config)
    if voting.noise_stddev is not None:
        if not is_heard(config, voting.noise_stddev):
            return None
        return _finite(
            _least_beside_warm(_draft(config, dim, voting.noise_stddev), voting.num_steps or 1, config)
        )
    most = _most_noise(config)
    if voting.num_steps is None or most is None:
        return None
    least = _least_beside_warm(_draft(config, dim, most / _SPARE_NOISE), voting.num_steps, config)
    if score is None:
        return _finite(least)
    return _finite(max(least, score_cost(score, config) / SCORE_SHARE))


def _least_beside_warm(event: GaussianEvent, num_steps: int, config: Config) -> float:
    """The smallest epsilon that pays for steps and score and leaves a warm start, if there is one, its share.

    What a warm start costs grows with epsilon, but it leaves the others the rest of mu squared, which grows too.
    """
    low = cost(event, num_steps, config.replace(warm_start=_NONE))
    if not config.warm_start.enabled or not math.isfinite(low):
        return low

    def fits(epsilon: float) -> bool:
        return cost(event, num_steps, config.replace(privacy__epsilon=epsilon)) <= epsilon

    high = 2 * low
    while not fits(high):
        low, high = high, 2 * high
        if high > _HOPELESS:
            return math.inf
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None


def score_mechanism(config: Config) -> GaussianSum | None:
    """What may release one count of right predictions; None where no room was left for it.

    One record more, less or changed moves the count by at most 1, so ``group_size`` records by that many.

    Raises:
        ConfigError: less or more noise than its sampler has.
    """
    privacy = config.privacy
    if privacy.score_noise is None or not privacy.is_private:
        return None
    if privacy.noise is NoiseKind.ROUNDED and not MIN_STDDEV <= privacy.score_noise <= MAX_STDDEV:
        raise ConfigError(
            f"score_noise = {privacy.score_noise:g}: rounded Gaussian noise goes from {MIN_STDDEV} to "
            f"{MAX_STDDEV:.0f}; choose a value in between, or another noise kind"
        )
    return GaussianSum(float(privacy.group_size), privacy.score_noise, make_noise(privacy.noise))


def vote_threshold(voting: Voting, stddev: float) -> float:
    """The threshold asked for, or the one that loses least under this noise (a twentieth of N without any)."""
    if voting.vote_threshold is not None:
        return voting.vote_threshold
    if stddev == 0:
        return 0.05
    return best_threshold(voting.num_teachers, stddev / units_a_vote(voting))


def cost(event: GaussianEvent, num_steps: int, config: Config) -> float:
    """Epsilon of the steps, and of the score and the warm start if there are to be such."""
    score = score_mechanism(config)
    events = [times(event, num_steps), *([] if score is None else [score.event(1)]), *stand_ins(config)]
    return Accountant(config.privacy.accountant).epsilon(events, config.privacy.delta)


def score_cost(score: GaussianSum, config: Config) -> float:
    """Epsilon of one score alone."""
    return epsilon_for(score.event(1), 1, config.privacy.delta, config.privacy.accountant)


def least_noise(config: Config, dim: int) -> float:
    """The smallest tidy noise with which the steps fit beside the rest; infinite where there is not so much.

    Raises:
        ConfigError: the score alone takes nearly all of epsilon.
    """
    voting, privacy = config.voting, config.privacy
    score = score_mechanism(config)
    if score is not None and score_cost(score, config) > SCORE_SHARE * privacy.epsilon:
        raise ConfigError(
            f"score_noise = {score.noise_stddev:g}: one such score takes nearly all of epsilon "
            f"{privacy.epsilon:g}; use more noise for the score, or leave it out"
        )

    def fits(stddev: float) -> bool:
        return cost(_draft(config, dim, stddev), voting.num_steps or 1, config) <= privacy.epsilon

    low, high = MIN_STDDEV, noise_limit(config)
    if not fits(high):
        return math.inf
    if fits(low):
        return low
    while high / low > 1 + 1e-7:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return tidy(high)


def _draft(config: Config, dim: int, stddev: float) -> GaussianEvent:
    """A step's event with the largest slack that the sampler has at any noise: no table need be built."""
    sensitivity, coordinates = step_bound(config, dim)
    return GaussianEvent(sensitivity, stddev, coordinates, config.privacy.noise, SLACK_BOUND)


def noise_limit(config: Config) -> float:
    """The most noise that there is."""
    return MAX_STDDEV if config.privacy.noise is NoiseKind.ROUNDED else _UNTABULATED_LIMIT


def is_heard(config: Config, stddev: float) -> bool:
    """Whether unanimous teachers are heard through so much noise."""
    voting = config.voting
    if not math.isfinite(stddev):
        return False
    signal = signal_of(
        voting.num_teachers,
        stddev / units_a_vote(voting),
        vote_threshold(voting, stddev),
        share_voting=voting.images_voted / voting.batch_size,
    )
    return not signal.is_hopeless


def _most_noise(config: Config) -> float | None:
    """The most noise, to one part in a million, through which the teachers are heard; None if through none.

    A threshold above all votes is reached with the help of noise only, so less noise need not be better: the
    search goes from much noise to little.
    """
    most = 16.0 * config.voting.num_teachers * units_a_vote(config.voting)
    high = min(noise_limit(config), most)  # beyond that nothing is heard
    if is_heard(config, high):
        return high
    low = high / 1.05
    while not is_heard(config, low):
        low, high = low / 1.05, low
        if low < MIN_STDDEV:
            return None
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        if is_heard(config, middle):
            low = middle
        else:
            high = middle
    return low


def drowned(config: Config, dim: int) -> ConfigError:
    """The refusal of a plan whose noise hides all votes: what would help, and the smallest epsilon that does."""
    voting, privacy = config.voting, config.privacy
    least = least_epsilon(config, dim)
    smaller = "top_k or batch" if privacy.group_size == 1 else "group_size, top_k or batch"
    remedy = f"a smaller {smaller}, fewer steps, or more teachers"
    if math.isinf(cost(_draft(config, dim, noise_limit(config)), voting.num_steps or 1, config)):
        return ConfigError(
            f"delta = {privacy.delta:g}: these releases have no finite cost there, even with the most noise; "
            "use a larger delta, a smaller top_k, group_size or batch, or fewer steps"
        )
    if least is not None:
        remedy = f"epsilon {rounded_up(least)} or more, {remedy}"
    elif voting.vote_threshold is not None:
        remedy = f"a vote_threshold below {voting.vote_threshold:g}, or more teachers"
    steps = f"{voting.num_steps} step" + "s" * (voting.num_steps != 1)
    return ConfigError(
        f"epsilon = {privacy.epsilon:g} leaves no signal of {voting.num_teachers} teachers in {steps} (even "
        f"where all of them agree, noise decides); use {remedy}"
    )
