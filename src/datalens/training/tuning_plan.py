"""What a tuning may do and what it costs, fixed before any of it is done: candidates, one try's share, the event.

One try draws a candidate uniformly, draws a slot map, trains the candidate on the records in the teachers' slots,
and counts with noise how many records in the last ``held_slots`` slots a classifier names rightly that learned
from the try's own samples. Given the slot map, a record is with one teacher, or held out, or neither, so it moves
the training or the count and never both; a person's records split between the two cost no more than all of them
on the costlier side. So one try is mu-Gaussian at every Rényi order, with mu the larger of the two: divergences
are quasi-convex, so the mixture over maps and candidates is no worse than its worst part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from datalens.errors import BudgetError, ConfigError
from datalens.mechanisms.gaussian_sum import GaussianSum
from datalens.mechanisms.kinds import MechanismKind
from datalens.noise import make_noise
from datalens.noise.table import SLACK_BOUND
from datalens.privacy import private_tuning
from datalens.privacy.accountant import Accountant
from datalens.privacy.authorisation import Authorisation
from datalens.privacy.events import GaussianEvent, TuningEvent
from datalens.training.config import Config
from datalens.training.plan import check_plan
from datalens.training.sections import Privacy

_FIRST_DRAWS = 10**4
_TIDY = 0.25


@dataclass(frozen=True)
class TuningSettings:
    """How tries are made and compared; all of it public.

    Attributes:
        expected_tries: E[K], above 1.
        eta: shape of the law of K; 1 is geometric.
        held_out: share of the slots whose records score and do not teach, in (0, 1).
        score_noise: standard deviation of the noise on a score, in right predictions; None for the least that
            costs nothing beside the training.
        classifier: that learns from a try's samples.
        num_samples: of each try, for the classifier.
        epochs: of the classifier; None for its usual number.
    """

    expected_tries: float = 5.0
    eta: float = 1.0
    held_out: float = 0.1
    score_noise: float | None = None
    classifier: str = "logistic"
    num_samples: int = 10000
    epochs: int | None = None

    def __post_init__(self) -> None:
        private_tuning.check_law(self.expected_tries, self.eta)
        if not 0 < self.held_out < 1:
            raise ConfigError(f"held_out = {self.held_out:g}: must be above 0 and below 1; 0.1 is usual")
        if self.score_noise is not None and not (
            math.isfinite(self.score_noise) and self.score_noise >= _TIDY
        ):
            raise ConfigError(
                f"score_noise = {self.score_noise:g}: must be {_TIDY:g} or more; leave it out for the least"
            )


@dataclass(frozen=True)
class TuningPlan:
    """Everything that is decided before the first try.

    Attributes:
        settings: how tries are made.
        candidates: complete settings, each at one try's share of epsilon.
        event: what the whole tuning costs.
        authorisation: exactly that event.
        score: releases the count of one try.
        held_slots: records in so many last slots are held out.
    """

    settings: TuningSettings
    candidates: tuple[Config, ...]
    event: TuningEvent
    authorisation: Authorisation
    score: GaussianSum
    held_slots: int


def plan_tuning(
    candidates: Sequence[Config],
    settings: TuningSettings,
    privacy: Privacy,
    num_records: int,
    image_shape: tuple[int, int, int],
) -> TuningPlan:
    """Work out one try's share of the budget and check that every candidate keeps to it.

    Args:
        candidates: settings of voting, teachers and student; their privacy is replaced.
        settings: how tries are made.
        privacy: epsilon and delta of the whole tuning, and the rest of what is promised.
        num_records: the public number of records.
        image_shape: (C, H, W).

    Raises:
        ConfigError: a candidate that does not fit, named by its number; or settings out of range.
        BudgetError: epsilon too small for any try.
    """
    if len(candidates) < 2:
        raise ConfigError(f"{len(candidates)} candidate: there is nothing to choose from; give two or more")
    if not privacy.is_publishable:
        raise ConfigError(
            "a tuning needs rounded or discrete noise and no insecure seed: its result is to be published"
        )
    for number, config in enumerate(candidates):
        if config.voting.mechanism is not MechanismKind.TOPAGG:
            raise ConfigError(
                f"candidate {number}: mechanism = {config.voting.mechanism}: a tuning is of topagg; leave it out"
            )
    held = int(settings.held_out * num_records)
    if held < 1:
        raise ConfigError(f"held_out = {settings.held_out:g}: holds out no record of {num_records}; raise it")
    draws = _FIRST_DRAWS
    while True:
        mu, mass = _share(settings, privacy, draws)
        configs = [_at_share(config, mu, privacy, held, num_records) for config in candidates]
        costs = [
            _cost_of(number, config, num_records, image_shape) for number, config in enumerate(configs, 1)
        ]
        most = max(count for _, count in costs) + 1
        if most <= draws:
            break
        draws = 2 * most
    score = _score(settings, privacy, mu)
    largest = max(score.event(1).mu, *(tried for tried, _ in costs))
    if largest > mu:
        raise BudgetError("a try would cost more than its share: raise epsilon or the noise")
    event = TuningEvent(largest, settings.expected_tries, settings.eta, mass)
    authorisation = Authorisation(
        privacy.epsilon, privacy.delta, privacy.accountant, num_releases=1, planned=event
    )
    return TuningPlan(settings, tuple(configs), event, authorisation, score, held)


def _share(settings: TuningSettings, privacy: Privacy, draws: int) -> tuple[float, float]:
    """mu of one try under the whole budget, and the mass that real samplers are charged."""
    mass = private_tuning.sampler_mass(settings.expected_tries, draws, SLACK_BOUND.eta, SLACK_BOUND.tau)
    accountant = Accountant(privacy.accountant)

    def cost(mu: float) -> float:
        event = TuningEvent(mu, settings.expected_tries, settings.eta, mass)
        return accountant.epsilon(event, privacy.delta)

    return private_tuning.mu_for(cost, privacy.epsilon), mass


def _at_share(config: Config, mu: float, privacy: Privacy, held: int, num_records: int) -> Config:
    """A candidate with one try's epsilon, and with shards that leave the last ``held`` slots alone."""
    one = GaussianEvent(mu, 1.0, 1, privacy.noise)
    share = Accountant(privacy.accountant).epsilon(one, privacy.delta) * (1 - 1e-9)
    voting = config.voting
    room = num_records - held
    size = voting.shard_size or room // voting.num_teachers
    if size < 1 or size * voting.num_teachers > room:
        raise ConfigError(
            f"num_teachers = {voting.num_teachers}: {room} of {num_records} slots are not held out; "
            "use fewer teachers, smaller shards or a smaller --held-out"
        )
    own = {**privacy.model_dump(), "epsilon": share, "score_noise": None, "num_records": num_records}
    return config.replace(privacy=own, voting__shard_size=size)


def _cost_of(
    number: int, config: Config, num_records: int, image_shape: tuple[int, int, int]
) -> tuple[float, int]:
    """mu of all steps of a candidate, and how many noise draws they take; a hopeless one is refused here."""
    try:
        plan, _ = check_plan(config, num_records, image_shape)
    except (ConfigError, BudgetError) as error:
        share = config.privacy.epsilon
        raise type(error)(f"candidate {number} (a try's own epsilon is {share:.4g}): {error}") from None
    return plan.event.mu * math.sqrt(plan.num_steps), plan.event.coordinates * plan.num_steps


def _score(settings: TuningSettings, privacy: Privacy, mu: float) -> GaussianSum:
    """The score's mechanism; without a wish, with the least noise that keeps to the share."""
    size = float(privacy.group_size)
    least = max(_TIDY, math.ceil(100 * size / mu) / 100)
    stddev = settings.score_noise if settings.score_noise is not None else least
    if size / stddev > mu:
        raise ConfigError(
            f"score_noise = {stddev:g}: one such score costs more than a try may; use {least:g} or more"
        )
    return GaussianSum(size, stddev, make_noise(privacy.noise))
