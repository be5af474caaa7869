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
from datalens.privacy.ledger import Ledger, LedgerLine
from datalens.teachers.partition import Partition
from datalens.training.config import Config
from datalens.training.facts import PublicFacts
from datalens.training.plan import Plan, mechanism_of
from datalens.version import __version__

CHANGEABLE = ("epsilon", "noise_stddev", "top_k", "vote_threshold", "num_steps")
SETTINGS_LINE = "settings"


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
        "publishable": privacy.is_publishable,
        "data": facts.data_name,
    }


def terms_in_force(ledger: Ledger) -> Terms:
    """The terms of the header, or of the last line that changed them.

    Raises:
        LedgerError: they are not there.
    """
    bodies = [ledger.header.get("mechanism")]
    bodies += [line.body for line in ledger.lines if line.kind == SETTINGS_LINE]
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


def change_terms(facts: PublicFacts, budget: Budget, changes: Mapping[str, Any]) -> str | None:
    """Put other settings in force from the next step on, and record them; what was charged stays charged.

    A higher epsilon is a new authorisation, recorded as decided after looking if anything was released: the
    proof does not cover it. Where epsilon rises and the number of steps is not given, the run goes on for as
    many steps as fit.

    Args:
        facts: of the run.
        budget: of the run, with its ledger.
        changes: some of CHANGEABLE, by name.

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
    if epsilon == budget.authorisation.epsilon:
        epsilon = None
    wanted = replace(before, **{name: type(getattr(before, name))(value) for name, value in given.items()})
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
        room = _room(budget, epsilon, event)
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
        raised = replace(budget.authorisation, epsilon=float(epsilon), num_releases=None, planned=None)
        budget.authorise(raised, "changed when the run was resumed")
    if wanted != before:
        body = {"from_step": start, "decided_after_release": bool(ledger.events()), **asdict(wanted)}
        ledger.append(SETTINGS_LINE, body)
    changed = [
        f"{name} {value:g}" for name, value in asdict(wanted).items() if value != getattr(before, name)
    ]
    if epsilon is not None:
        changed.insert(0, f"epsilon {epsilon:g} (decided after looking: not covered by the proof)")
    return f"from step {start} on: {', '.join(changed)}"


def next_step(lines: Iterable[LedgerLine]) -> int:
    """The number after every step that was ever charged: a charged step is never done twice.

    A line that was cut off stands for a step too, as it is charged like one.

    Raises:
        LedgerError: a release line that does not say its step.
    """
    step = 0
    for line in lines:
        if line.kind == "recovered":
            step += 1
        elif line.kind == "release" and is_step(line):
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


def _room(budget: Budget, epsilon: float | None, event: Any) -> int:
    """How many releases fit, under another ceiling if one is given; nothing is recorded."""
    if epsilon is None:
        return budget.remaining_releases(event)
    raised = replace(budget.authorisation, epsilon=float(epsilon), num_releases=None, planned=None)
    trial = Ledger.in_memory({"authorisation": raised.to_json()})
    for charged in budget.ledger.events():
        trial.charge(charged)
    probe = Budget(trial)
    if probe.spent_epsilon() > raised.epsilon:
        raise BudgetError(
            f"epsilon = {epsilon:g}: {probe.spent_epsilon():.4g} is spent already; choose a larger one"
        )
    return probe.remaining_releases(event)
