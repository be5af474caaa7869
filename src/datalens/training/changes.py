"""Other settings for a run that goes on: checked as a whole, refused where no step would follow, then recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from datalens.errors import BudgetError, ConfigError
from datalens.mechanisms.kinds import MechanismKind
from datalens.privacy.accountant import Accountant
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import Event, compact
from datalens.privacy.ledger import Ledger, LineKind
from datalens.privacy.wording import rounded_up
from datalens.training.config import Config, Performance
from datalens.training.facts import PublicFacts
from datalens.training.plan import score_mechanism, vote_threshold
from datalens.training.terms import Terms, next_step, terms_in_force
from datalens.training.warm_plan import NOTE as WARM
from datalens.training.warm_plan import PAID, WarmTerms

CHANGEABLE = ("epsilon", "noise_stddev", "top_k", "vote_threshold", "num_steps")
PERFORMANCE = tuple(Performance.model_fields)


def split_performance(config: Config, changes: Mapping[str, Any]) -> tuple[Performance, dict[str, Any]]:
    """The performance settings of a run that goes on, and the other changes.

    Raises:
        ConfigError: a value that is out of range.
    """
    given = {name: value for name, value in changes.items() if name in PERFORMANCE and value is not None}
    rest = {name: value for name, value in changes.items() if name not in PERFORMANCE}
    return config.replace(performance=given).performance, rest


def change_terms(
    facts: PublicFacts, budget: Budget, changes: Mapping[str, Any], shared: Budget | None = None
) -> str | None:
    """Put other settings in force from the next step on, and record them; what was charged stays charged.

    A higher epsilon is a new authorisation, recorded as decided after looking if anything was released: the
    proof does not cover it. Where epsilon rises and the number of steps is not given, the run goes on for as
    many steps as fit. Where noise changes, a threshold that was nobody's choice follows it. Room that was left
    for a score stays.

    Args:
        facts: of the run.
        budget: of the run, with its ledger.
        changes: some of CHANGEABLE, by name.
        shared: the data set's budget, if there is one.

    Returns:
        One line that says what changed, or None.

    Raises:
        ConfigError: a setting that is frozen, out of range, or does not fit the budget; nothing was recorded.
        BudgetError: not one more step would be taken; nothing was recorded.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    for name in given:
        if name not in CHANGEABLE:
            raise ConfigError(
                f"{name} = {given[name]!r}: is frozen once a run has begun; may change: {', '.join(CHANGEABLE)}"
            )
    if "top_k" in given and facts.config.voting.mechanism is MechanismKind.D2P_FED:
        raise ConfigError(f"top_k = {given['top_k']!r}: d2p-fed keeps all coordinates; leave it out")
    ledger, before = budget.ledger, terms_in_force(budget.ledger)
    epsilon = given.pop("epsilon", None)
    checked = facts.config.replace(voting=given, privacy={} if epsilon is None else {"epsilon": epsilon})
    epsilon = None if epsilon is None else checked.privacy.epsilon
    if epsilon == budget.authorisation.epsilon:
        epsilon = None
    wanted = replace(before, **{name: getattr(checked.voting, name) for name in given})
    if "noise_stddev" in given and "vote_threshold" not in given:
        wanted = replace(wanted, vote_threshold=_following_threshold(facts.config, before, wanted))
    event = wanted.mechanism(facts.config, facts.dim).event(facts.config.voting.batch_size, facts.dim)
    if epsilon is None and wanted == before:
        return None
    if not facts.config.privacy.is_private:
        if epsilon is not None or "noise_stddev" in given:
            raise ConfigError(
                "epsilon and noise_stddev have no meaning for a run without a guarantee; leave them out"
            )
        room = max(0, wanted.num_steps - next_step(ledger.lines))
    else:
        room = _room(budget, shared, epsilon, event, _reserved(facts, ledger))
    start = next_step(ledger.lines)
    ends_here = given == {"num_steps": start} and epsilon is None  # asked for in so many words
    all_taken = wanted.num_steps <= start and "num_steps" not in given and epsilon is None
    if not ends_here and (room == 0 or all_taken):
        asked = ", ".join(f"{name} = {value}" for name, value in changes.items() if value is not None)
        raise BudgetError(f"{asked}: {_why_no_step(facts, budget, shared, event, start, room)}")
    if "num_steps" in given and not start <= wanted.num_steps <= start + room:
        raise ConfigError(
            f"num_steps = {wanted.num_steps}: {start} steps are taken and {room} more fit the budget; "
            f"choose from {start} to {start + room}, or authorise more"
        )
    if "num_steps" not in given:
        most = start + room
        wanted = replace(wanted, num_steps=most if epsilon is not None else min(wanted.num_steps, most))
    if epsilon is not None:
        raised = replace(budget.authorisation, epsilon=epsilon, num_releases=None, planned=None)
        budget.authorise(raised, "changed when the run was resumed")
    if wanted != before:
        body = {"from_step": start, "decided_after_release": bool(ledger.events()), **asdict(wanted)}
        ledger.append(LineKind.SETTINGS, body)
    changed = [
        f"{name} {value:g}" for name, value in asdict(wanted).items() if value != getattr(before, name)
    ]
    if epsilon is not None:
        changed.insert(0, f"epsilon {epsilon:g} (decided after looking: not covered by the proof)")
    return f"from step {start} on: {', '.join(changed)}"


def _why_no_step(
    facts: PublicFacts, budget: Budget, shared: Budget | None, event: Event, start: int, room: int
) -> str:
    """Why changes leave the run without a next step, and what would fit."""
    if room or not facts.config.privacy.is_private:
        return f"all {start} steps are taken; give --num-steps (num_steps) above {start} too"
    reserved = _reserved(facts, budget.ledger)

    def needed(of: Budget) -> float:
        accountant, charged = Accountant(of.authorisation.accountant), compact(of.ledger.events())
        return accountant.epsilon([*charged, *reserved, event], of.authorisation.delta)

    where, least = f"after the {start} that are taken", needed(budget)
    if shared is not None and needed(shared) > shared.authorised_epsilon():
        where += f" in the data set's budget of epsilon {shared.authorised_epsilon():g}"
        least = math.inf
    enough = f"epsilon {rounded_up(least)} or more, " if math.isfinite(least) else ""
    return f"not one step fits {where}; use {enough}more noise_stddev or a smaller top_k"


def _following_threshold(config: Config, before: Terms, wanted: Terms) -> float:
    """The threshold that suits the new noise, where the one in force was solved for the old and not chosen."""
    voting = config.voting
    if voting.vote_threshold is None and before.vote_threshold == vote_threshold(voting, before.noise_stddev):
        return vote_threshold(voting, wanted.noise_stddev)
    return before.vote_threshold


def _room(
    budget: Budget, shared: Budget | None, epsilon: float | None, event: Event, reserved: Sequence[Event]
) -> int:
    """How many releases fit, under another ceiling if one is given, and under the data set's; none is recorded.

    Args:
        budget: of the run.
        shared: of the data set.
        epsilon: the new ceiling, or None.
        event: the release.
        reserved: what must fit besides.
    """
    authorisation = budget.authorisation
    if epsilon is not None:
        authorisation = replace(authorisation, epsilon=epsilon, num_releases=None, planned=None)
        if budget.spent_epsilon() > epsilon:
            raise BudgetError(
                f"epsilon = {epsilon:g}: {rounded_up(budget.spent_epsilon())} is spent already; choose a larger one"
            )
    room = _room_beside(budget, authorisation, event, reserved)
    return room if shared is None else min(room, _room_beside(shared, shared.authorisation, event, reserved))


def _room_beside(
    budget: Budget, authorisation: Authorisation, event: Event, reserved: Sequence[Event]
) -> int:
    trial = Ledger.in_memory({"authorisation": authorisation.to_json()})
    for charged in (*compact(budget.ledger.events()), *reserved):
        trial.charge(charged)
    return Budget(trial).remaining_releases(event)


def _reserved(facts: PublicFacts, ledger: Ledger) -> list[Event]:
    """What the budget must still leave room for: a score, and what a warm start has not released yet."""
    notes = [line.body.get("note") or {} for line in ledger.lines if line.kind in PAID]
    score = None if any("score" in note for note in notes) else score_mechanism(facts.config)
    found: list[Event] = [] if score is None else [score.event(1)]
    warm = WarmTerms.recorded(ledger)
    if warm is not None and all(WARM in note for note in notes):
        found += warm.events(facts.config, facts.measures)[len(notes) :]
    return found
