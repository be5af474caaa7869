"""On which terms a run is charged: the ledger's first line, and later changes that the ledger records.

Some settings may change when a run is resumed: noise, votes kept, threshold, number of steps, epsilon. The ledger
holds every change, so that ``release/config.json`` is written once and a crash leaves no two truths. All other
settings, and the number of teachers, the slot map and the data, are frozen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from datalens.errors import LedgerError
from datalens.mechanisms.kinds import MechanismKind
from datalens.mechanisms.vote_sum import VoteSum
from datalens.privacy.budget import Authorisation
from datalens.privacy.events import Event, times
from datalens.privacy.ledger import Ledger, LedgerLine, LineKind
from datalens.teachers.groups import SlotMap
from datalens.training.config import Config, Voting
from datalens.training.facts import PublicFacts
from datalens.training.plan import Plan, mechanism_of, score_mechanism
from datalens.training.warm_plan import NOTE as WARM
from datalens.training.warm_plan import WarmTerms
from datalens.version import __version__


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
            "noise_stddev": self.noise_stddev if config.privacy.adds_noise else None,
            "num_steps": self.num_steps,
        }
        return config.replace(voting=voting)

    def mechanism(self, config: Config, dim: int) -> VoteSum:
        """The run's mechanism on these terms; its noise is replaced step by step."""
        mechanism = mechanism_of(self.config(config), dim, self.noise_stddev)
        return replace(mechanism, vote_threshold=self.vote_threshold)


def ledger_header(facts: PublicFacts, plan: Plan, partition: SlotMap, run_id: str) -> dict[str, Any]:
    """Line 0 of the ledger: what was authorised and on which terms. Nothing of it comes from records."""
    voting, privacy = facts.config.voting, facts.config.privacy
    warm = WarmTerms.of(facts.config, facts.image_shape)
    return {
        "datalens": __version__,
        "method": "datalens",
        "run_id": run_id,
        "authorisation": plan.authorisation.to_json(),
        "adjacency": partition.adjacency,
        "mechanism": {
            "name": str(voting.mechanism),
            **_own_terms(voting),
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
        "planned_events": [event.to_json() for event in _planned_events(facts, plan, warm)],
        "publishable": privacy.is_publishable,
        "data": facts.data_name,
        **({} if facts.start is None else {"public_init": facts.start.sha256}),
        **({} if warm is None else {WARM: warm.to_json()}),
    }


def _own_terms(voting: Voting) -> dict[str, int]:
    """What a mechanism has that TopAgg has not."""
    match voting.mechanism:
        case MechanismKind.TOPAGG:
            return {}
        case MechanismKind.D2P_FED:
            return {"levels": voting.levels}
        case MechanismKind.FETCHSGD | MechanismKind.FETCHSGD_SOUND:
            return {"sketch_rows": voting.sketch_rows, "sketch_buckets": voting.sketch_buckets}


def _planned_events(facts: PublicFacts, plan: Plan, warm: WarmTerms | None) -> list[Event]:
    """All releases that are planned, where the authorisation is a ceiling and does not name them itself."""
    if plan.authorisation.planned is not None or not plan.authorisation.is_private:
        return []
    return [times(plan.event, plan.num_steps), *beside_steps(facts, warm)]


def beside_steps(facts: PublicFacts, warm: WarmTerms | None) -> list[Event]:
    """What a run releases besides its steps: a score and a warm start's two sums, if there are to be such."""
    score = score_mechanism(facts.config)
    found: list[Event] = [] if score is None else [score.event(1)]
    if warm is not None and facts.config.privacy.is_private:
        found += warm.events(facts.config, facts.measures)
    return found


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
    mechanism = terms.mechanism(facts.config, facts.dim)
    event = mechanism.event(facts.config.voting.batch_size, facts.dim)
    return Plan(terms.noise_stddev, terms.num_steps, event, authorisation, mechanism)


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
    """Whether a release line is a generator step's (and not a score's, a warm start's, or a whole tuning's)."""
    note = line.body.get("note")
    return not (isinstance(note, dict) and not {"score", "tuning", WARM}.isdisjoint(note))


def step_of(line: LedgerLine) -> int:
    """The generator step that a release line charged.

    Raises:
        LedgerError: it does not say.
    """
    match line.body.get("note"):
        case {"step": int(step)} if not isinstance(step, bool) and step >= 0:
            return step
    raise LedgerError(f"ledger line {line.index} does not say which step it charged; restore the ledger")
