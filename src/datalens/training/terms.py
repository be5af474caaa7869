"""On which terms a run is charged: the ledger's first line, and later changes that the ledger records.

Some settings may change when a run is resumed: noise, votes kept, threshold, number of steps, epsilon. The ledger
holds every change, so that ``release/config.json`` is written once and a crash leaves no two truths. All other
settings, and the number of teachers, the slot map and the data, are frozen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from datalens.errors import BudgetError, ConfigError, LedgerError
from datalens.mechanisms.topagg import TopAgg
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import Event, compact, times
from datalens.privacy.ledger import Ledger, LedgerLine, LineKind
from datalens.privacy.wording import rounded_up
from datalens.teachers.partition import Partition
from datalens.training.config import Config
from datalens.training.facts import PublicFacts
from datalens.training.plan import Plan, mechanism_of, score_mechanism, vote_threshold
from datalens.version import __version__

CHANGEABLE = ("epsilon", "noise_stddev", "top_k", "vote_threshold", "num_steps")


@dataclass(frozen=True)
class Terms:
    """The settings that may change on resume, as they are now.

    Attributes:
        top_k: votes of a teacher on an image.
        noise_stddev: in votes.
        vote_threshold: fraction of the teachers.
        num_steps: the run ends before the step of this number.
    """

    top_k: int
    noise_stddev: float
    vote_threshold: float
    num_steps: int

    def config(self, config: Config) -> Config:
        """The run's settings with these in force."""
        voting = {
            "top_k": self.top_k,
            "noise_stddev": self.noise_stddev if config.privacy.is_private else None,
            "num_steps": self.num_steps,
        }
        return config.replace(voting=voting)

    def mechanism(self, config: Config) -> TopAgg:
        """TopAgg on these terms; its noise is replaced step by step."""
        mechanism = mechanism_of(self.config(config), self.noise_stddev)
        return replace(mechanism, vote_threshold=self.vote_threshold)


def ledger_header(facts: PublicFacts, plan: Plan, partition: Partition, run_id: str) -> dict[str, Any]:
    """Line 0 of the ledger: what was authorised and on which terms. Nothing of it comes from records."""
    voting, privacy = facts.config.voting, facts.config.privacy
    return {
        "datalens": __version__,
        "method": "datalens",
        "run_id": run_id,
        "authorisation": plan.authorisation.to_json(),
        "adjacency": "add-or-remove-one" if partition.from_os_entropy else "one-record-blanked",
        "mechanism": {
            "name": "topagg",
            "num_teachers": voting.num_teachers,
            "shard_size": partition.shard_size,
            "num_records": facts.num_records,
            "group_size": privacy.group_size,
            "top_k": voting.top_k,
            "batch_size": voting.batch_size,
            "images_per_teacher": voting.images_per_teacher,
            "coordinates": facts.dim,
            "vote_threshold": plan.mechanism.vote_threshold,
            "noise_stddev": plan.noise_stddev,
            "noise": str(privacy.noise),
            "num_steps": plan.num_steps,
        },
        "score_noise": privacy.score_noise,
        "planned_events": [event.to_json() for event in _planned_events(facts.config, plan)],
        "publishable": privacy.is_publishable,
        "data": facts.data_name,
    }


def _planned_events(config: Config, plan: Plan) -> list[Event]:
    """All releases that are planned, where the authorisation is a ceiling and does not name them itself."""
    if plan.authorisation.planned is not None or not plan.authorisation.is_private:
        return []
    score = score_mechanism(config)
    return [times(plan.event, plan.num_steps), *([] if score is None else [score.event(1)])]


def terms_in_force(ledger: Ledger) -> Terms:
    """The terms of the header, or of the last line that changed them.

    Raises:
        LedgerError: they are not there.
    """
    bodies = [ledger.header.get("mechanism")]
    bodies += [line.body for line in ledger.lines if line.kind == LineKind.SETTINGS]
    match bodies[-1]:
        case {
            "top_k": int(top_k),
            "noise_stddev": int() | float() as noise_stddev,
            "vote_threshold": int() | float() as vote_threshold,
            "num_steps": int(num_steps),
        }:
            return Terms(top_k, float(noise_stddev), float(vote_threshold), num_steps)
    raise LedgerError(f"ledger {ledger.path or 'in memory'} does not hold a run's terms; restore it")


def plan_in_force(facts: PublicFacts, ledger: Ledger, authorisation: Authorisation) -> Plan:
    """The plan of a run that goes on, from what was recorded and not from a new calculation."""
    terms = terms_in_force(ledger)
    mechanism = terms.mechanism(facts.config)
    event = mechanism.event(facts.config.voting.batch_size, facts.dim)
    return Plan(terms.noise_stddev, terms.num_steps, event, authorisation, mechanism)


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
    """
    given = {name: value for name, value in changes.items() if value is not None}
    for name in given:
        if name not in CHANGEABLE:
            raise ConfigError(
                f"{name} = {given[name]!r}: is frozen once a run has begun; may change: {', '.join(CHANGEABLE)}"
            )
    ledger, before = budget.ledger, terms_in_force(budget.ledger)
    epsilon = given.pop("epsilon", None)
    checked = facts.config.replace(voting=given, privacy={} if epsilon is None else {"epsilon": epsilon})
    epsilon = None if epsilon is None else checked.privacy.epsilon
    if epsilon == budget.authorisation.epsilon:
        epsilon = None
    wanted = replace(before, **{name: getattr(checked.voting, name) for name in given})
    if "noise_stddev" in given and "vote_threshold" not in given:
        wanted = replace(wanted, vote_threshold=_following_threshold(facts.config, before, wanted))
    event = wanted.mechanism(facts.config).event(facts.config.voting.batch_size, facts.dim)
    if epsilon is None and wanted == before:
        return None
    if not facts.config.privacy.is_private:
        if epsilon is not None or "noise_stddev" in given:
            raise ConfigError(
                "epsilon and noise_stddev have no meaning for a run without noise; leave them out"
            )
        room = max(0, wanted.num_steps - next_step(ledger.lines))
    else:
        room = _room(budget, shared, epsilon, event, _reserved(facts.config, ledger.lines))
    start = next_step(ledger.lines)
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


def _following_threshold(config: Config, before: Terms, wanted: Terms) -> float:
    """The threshold that suits the new noise, where the one in force was solved for the old and not chosen."""
    voting = config.voting
    if voting.vote_threshold is None and before.vote_threshold == vote_threshold(voting, before.noise_stddev):
        return vote_threshold(voting, wanted.noise_stddev)
    return before.vote_threshold


def next_step(lines: Iterable[LedgerLine]) -> int:
    """The number after every step that was ever charged: a charged step is never done twice.

    A line that was cut off stands for a step too, as it is charged like one.

    Raises:
        LedgerError: a release line that does not say its step.
    """
    step = 0
    for line in lines:
        if line.kind == LineKind.RECOVERED:
            step += 1
        elif line.kind == LineKind.RELEASE and is_step(line):
            step = max(step, step_of(line) + 1)
    return step


def is_step(line: LedgerLine) -> bool:
    """Whether a release line is a generator step's (and not a score's)."""
    note = line.body.get("note")
    return not (isinstance(note, dict) and "score" in note)


def step_of(line: LedgerLine) -> int:
    """The generator step that a release line charged.

    Raises:
        LedgerError: it does not say.
    """
    match line.body.get("note"):
        case {"step": int(step)} if not isinstance(step, bool) and step >= 0:
            return step
    raise LedgerError(f"ledger line {line.index} does not say which step it charged; restore the ledger")


def _room(
    budget: Budget, shared: Budget | None, epsilon: float | None, event: Event, reserved: Event | None
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


def _room_beside(budget: Budget, authorisation: Authorisation, event: Event, reserved: Event | None) -> int:
    trial = Ledger.in_memory({"authorisation": authorisation.to_json()})
    for charged in (*compact(budget.ledger.events()), *([] if reserved is None else [reserved])):
        trial.charge(charged)
    return Budget(trial).remaining_releases(event)


def _reserved(config: Config, lines: Iterable[LedgerLine]) -> Event | None:
    """The score that the budget must still leave room for."""
    score = score_mechanism(config)
    if score is None or any(line.kind == LineKind.RELEASE and not is_step(line) for line in lines):
        return None
    return score.event(1)
