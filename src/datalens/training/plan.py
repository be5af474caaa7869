"""From settings to what will be asked and paid: noise, number of steps, the event of one step. No data.

:func:`check_plan` is what every way of beginning a run asks first: settings that cannot be paid, or that would
spend a budget for nothing, are refused there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from datalens.errors import ConfigError
from datalens.mechanisms.d2p_fed import D2PFed
from datalens.mechanisms.fetchsgd import PublishedFetchSGD, SketchedSum
from datalens.mechanisms.kinds import MechanismKind
from datalens.mechanisms.topagg import TopAgg
from datalens.mechanisms.vote_sum import VoteSum
from datalens.noise import make_noise
from datalens.privacy.budget import Authorisation
from datalens.privacy.calibration import max_releases, require_releases, tidy
from datalens.privacy.events import GaussianEvent, NoiseKind
from datalens.privacy.signal import Signal, require_signal, signal_of
from datalens.privacy.wording import delta_warning, rounded_up
from datalens.training.config import Config
from datalens.training.groups import check_groups
from datalens.training.mechanisms import check_mechanism
from datalens.training.pricing import (
    cost,
    drowned,
    is_heard,
    least_epsilon,
    least_noise,
    noise_limit,
    score_mechanism,
    vote_threshold,
)
from datalens.training.warm_plan import check_warm_start

__all__ = [
    "Plan",
    "check_plan",
    "least_epsilon",
    "mechanism_of",
    "plan_releases",
    "plan_signal",
    "score_mechanism",
    "vote_threshold",
]

USUAL_SHARD = 15
"""Records of a teacher in the paper's settings: what a number of teachers is suggested for."""

WITHOUT_NOISE = "give --num-steps (voting.num_steps) where there is no noise to limit them"


@dataclass(frozen=True)
class Plan:
    """What a run may do, fixed before the first release.

    Attributes:
        noise_stddev: in votes; 0 without noise.
        num_steps: generator steps, hence releases.
        event: what one step costs.
        authorisation: the ceiling, and these releases as its plan.
        mechanism: TopAgg or another with these settings; its noise is replaced step by step.
    """

    noise_stddev: float
    num_steps: int
    event: GaussianEvent
    authorisation: Authorisation
    mechanism: VoteSum


def check_plan(
    config: Config,
    num_records: int,
    image_shape: tuple[int, int, int],
    *,
    signal_matters: bool = True,
    of_groups: bool = False,
) -> tuple[Plan, tuple[str, ...]]:
    """The plan of a new run, with lines of warning for its owner; asked before anything is drawn or spent.

    Args:
        config: settings.
        num_records: the public number of records.
        image_shape: (C, H, W).
        signal_matters: False for an audit's few teachers, from whom nothing is learned.
        of_groups: records come in groups, each for one teacher, whose slots need not all be filled.

    Raises:
        ConfigError: settings that contradict each other, or a plan that leaves no signal: even where all
            teachers agree, noise would decide.
        BudgetError: epsilon too small for one step. Both name the smallest epsilon that works, if one does.
    """
    dim = math.prod(image_shape)
    if of_groups:
        check_groups(config.privacy)
    check_warm_start(config, image_shape, of_groups=of_groups)
    _check_shards(config, num_records, of_groups=of_groups)
    check_mechanism(config, dim)
    voting, privacy = config.voting, config.privacy
    noise_is_free = privacy.is_private and voting.noise_stddev is None and voting.num_steps is not None
    if signal_matters and noise_is_free and not is_heard(config, least_noise(config, dim)):
        raise drowned(config, dim)
    plan = plan_releases(config, dim)
    if signal_matters:
        plan_signal(config, plan, require=True)
    warning = delta_warning(privacy.delta, num_records) if privacy.is_private else None
    return plan, () if warning is None else (warning,)


def plan_signal(config: Config, plan: Plan, *, require: bool = False) -> Signal:
    """What is heard of the teachers under a plan.

    Raises:
        ConfigError: nothing, and ``require``.
    """
    voting = config.voting
    judge = require_signal if require else signal_of
    share = voting.images_voted / voting.batch_size
    mechanism = plan.mechanism
    return judge(voting.num_teachers, mechanism.noise_in_votes, mechanism.vote_threshold, share_voting=share)


def plan_releases(config: Config, dim: int) -> Plan:
    """Work out noise and steps from the settings and the number of coordinates of an image.

    Whether anything is heard of the teachers is another question: see :func:`check_plan`.

    Raises:
        ConfigError: settings that contradict each other; says which and what would fit.
        BudgetError: epsilon too small for one step; names the smallest that works.
    """
    voting, privacy = config.voting, config.privacy
    check_mechanism(config, dim)
    if privacy.as_published:
        return _as_printed(config, dim)
    if not privacy.is_private:
        if voting.noise_stddev is not None:
            raise ConfigError(
                f"noise_stddev = {voting.noise_stddev:g} with noise 'none': leave out one of the two"
            )
        if voting.num_steps is None:
            raise ConfigError(f"num_steps is not set: {WITHOUT_NOISE}")
        mechanism = mechanism_of(config, dim, 0.0)
        event = mechanism.event(voting.batch_size, dim)
        return Plan(0.0, voting.num_steps, event, Authorisation.not_private(privacy.delta), mechanism)
    stddev = voting.noise_stddev if voting.noise_stddev is not None else _noise_for_steps(config, dim)
    mechanism = mechanism_of(config, dim, stddev)
    event = mechanism.event(voting.batch_size, dim)
    target = (privacy.epsilon, privacy.delta, privacy.accountant)
    require_releases(event, *target)
    num_steps = voting.num_steps if voting.num_steps is not None else _most_steps(event, config)
    price = cost(event, num_steps, config)
    if price > privacy.epsilon:
        costs = (
            f"costs epsilon {rounded_up(price)}, above {privacy.epsilon:g}"
            if math.isfinite(price)
            else f"has no finite cost at delta = {privacy.delta:g}"
        )
        raise ConfigError(
            f"num_steps = {num_steps} with noise_stddev = {stddev:g} {costs}; use at most "
            f"{_most_steps(event, config)} steps or more noise"
        )
    if privacy.score_noise is None and not config.warm_start.enabled:
        authorisation = Authorisation(*target, num_releases=num_steps, planned=event)
    else:  # the cost of exactly these steps and what is beside them, with room for the last bit of a float
        ceiling = min(privacy.epsilon, price * (1 + 1e-9))
        authorisation = Authorisation(ceiling, privacy.delta, privacy.accountant)
    return Plan(stddev, num_steps, event, authorisation, mechanism)


def _check_shards(config: Config, num_records: int, *, of_groups: bool) -> None:
    """Every teacher needs records of its own; where they come in groups, its slots need not be filled."""
    num_teachers = config.voting.num_teachers
    shard_size = None if of_groups else config.voting.shard_size
    if num_teachers * (shard_size or 1) <= num_records:
        return
    if shard_size is None:
        fewer = max(1, num_records // USUAL_SHARD)
        needs, remedy = "one", f"use about {fewer}, so that each has {num_records // fewer}"
    else:
        needs = f"{shard_size} (voting.shard_size)"
        remedy = (
            f"use at most {num_records // shard_size}"
            if shard_size <= num_records
            else "use a smaller shard_size"
        )
    raise ConfigError(
        f"--num-teachers {num_teachers} (voting.num_teachers): each needs {needs} of {num_records} records for "
        f"itself; {remedy}"
    )


def _as_printed(config: Config, dim: int) -> Plan:
    """The noise and steps that the paper would take for an epsilon, which is TopAgg's count; nothing is promised."""
    counted = config.replace(privacy__as_published=False, voting__mechanism=MechanismKind.TOPAGG)
    plan = plan_releases(counted, dim)
    mechanism = mechanism_of(config, dim, plan.noise_stddev)
    event = mechanism.event(config.voting.batch_size, dim)
    nothing = Authorisation.not_private(config.privacy.delta)
    return Plan(plan.noise_stddev, plan.num_steps, event, nothing, mechanism)


def mechanism_of(config: Config, dim: int, stddev: float) -> VoteSum:
    """The mechanism with these settings, for planning: its noise is a stand-in."""
    voting = config.voting
    kind = config.privacy.noise
    key = None if config.privacy.insecure_seed is None or kind is NoiseKind.NONE else b"plan only"
    rest = (
        stddev,
        vote_threshold(voting, stddev),
        make_noise(kind, key),
        voting.images_per_teacher,
        config.privacy.group_size,
    )
    sketch = (voting.sketch_rows, voting.sketch_buckets)
    match voting.mechanism:
        case MechanismKind.TOPAGG:
            return TopAgg(voting.num_teachers, voting.top_k, *rest)
        case MechanismKind.D2P_FED:
            return D2PFed(voting.num_teachers, voting.levels, dim, *rest)
        case MechanismKind.FETCHSGD_SOUND:
            return SketchedSum(voting.num_teachers, voting.top_k, *rest, *sketch)
        case MechanismKind.FETCHSGD:
            return PublishedFetchSGD(voting.num_teachers, voting.top_k, *rest, *sketch)


def _most_steps(event: GaussianEvent, config: Config) -> int:
    """The largest number of steps that fits beside the score and the warm start."""
    privacy = config.privacy
    low, high = 0, max_releases(event, privacy.epsilon, privacy.delta, privacy.accountant) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if cost(event, middle, config) <= privacy.epsilon:
            low = middle
        else:
            high = middle
    if low == 0:
        raise _no_room(config)
    return low


def _no_room(config: Config) -> ConfigError:
    """The refusal of what leaves no room for a step."""
    privacy = config.privacy
    if privacy.score_noise is None:
        return ConfigError(
            f"warm_start.share = {config.warm_start.share:g}: leaves no room for a step at epsilon "
            f"{privacy.epsilon:g}; use a smaller share, or leave the warm start out"
        )
    return ConfigError(
        f"score_noise = {privacy.score_noise}: one such score leaves no room for a step at epsilon "
        f"{privacy.epsilon:g}; use more noise for the score, or leave it out"
    )


def _noise_for_steps(config: Config, dim: int) -> float:
    """The smallest tidy noise with which the asked number of steps fits the budget."""
    voting, privacy = config.voting, config.privacy
    if voting.num_steps is None:
        raise ConfigError(
            "noise_stddev and num_steps are both unset: give one of them, the budget decides the other"
        )
    stddev = least_noise(config, dim)
    while stddev <= noise_limit(config):
        event = mechanism_of(config, dim, stddev).event(voting.batch_size, dim)  # with the sampler's slack
        if cost(event, voting.num_steps, config) <= privacy.epsilon:
            return stddev
        stddev = tidy(stddev * 1.001)
    raise drowned(config, dim)
