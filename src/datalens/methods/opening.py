"""What a run is made from: decided when it begins, and compared when it goes on."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from datalens.data.images import LabelledImages
from datalens.errors import BudgetError, ConfigError, PrivacyWarning, RunError
from datalens.methods.facts import MethodConfig, MethodFacts, plan_of
from datalens.methods.method import Planned, PlannedMethod, PublicSize
from datalens.noise import NoiseSource, make_noise
from datalens.privacy.accountant import Accountant
from datalens.privacy.budget import Authorisation
from datalens.privacy.dataset_budget import DatasetBudget
from datalens.privacy.events import Event, times
from datalens.privacy.ledger import Ledger
from datalens.privacy.neighbours import of_two_teachers
from datalens.privacy.promises import ADD_OR_REMOVE, ADD_OR_REMOVE_GROUP, BLANKED
from datalens.privacy.wording import delta_warning
from datalens.randomness import Streams
from datalens.training.devices import require_device
from datalens.training.facts import declared_records, require_public_classes, shown_of
from datalens.training.groups import check_groups
from datalens.training.repeats import refuse_groups
from datalens.training.sections import Privacy
from datalens.version import __version__

ROOM = 1 + 1e-9
"""For the last bit of a float between a plan's cost and a ceiling."""


Facts = TypeVar("Facts", bound=MethodFacts)


@dataclass(frozen=True)
class Decided(Generic[Facts]):
    """What a new run is made from.

    Attributes:
        facts: what everybody may know.
        private: private random streams.
        header: line 0 of its ledger.
    """

    facts: Facts
    private: Streams
    header: dict[str, Any]


def decide(
    kind: type[Facts], config: MethodConfig, data: LabelledImages, shared: DatasetBudget | None
) -> Decided[Facts]:
    """Price a new run, and draw what it begins with.

    Raises:
        DataLensError: settings or data that do not fit.

    Warns:
        PrivacyWarning: a delta at which releasing a whole record would be allowed.
    """
    privacy = config.privacy
    of_groups = data.group_ids is not None
    if not config.settings.keeps_groups:
        refuse_groups(data)
    if of_groups:
        check_groups(privacy)
    require_device(config.performance.device)
    num_records = declared_records(privacy, data)
    require_public_classes(privacy, data)
    if privacy.is_private and (doubt := delta_warning(privacy.delta, num_records)) is not None:
        warnings.warn(doubt, PrivacyWarning, stacklevel=4)
    size = PublicSize(num_records, data.image_shape, data.num_classes, of_groups)
    method = plan_of(config.settings, privacy, size)
    if method.name != config.method:
        raise ConfigError(
            f"method {config.method!r}: its settings plan the method {method.name!r}, and the certificate would be "
            "about that one; give settings of the method, or the plan its name"
        )
    seed = privacy.insecure_seed
    public, private = (
        Streams.from_entropy() if seed is None else Streams.from_insecure_seed(seed, name)
        for name in ("public", "private")
    )
    facts = kind(
        config=config,
        **shown_of(data),
        num_records=num_records,
        num_steps=method.num_steps,
        public_root=public.root,
    )
    header = ledger_header(facts, method, secrets.token_hex(16))
    if shared is not None:
        if not privacy.is_private:
            how = "as published, which has no guarantee" if privacy.as_published else "without noise"
            raise BudgetError(
                f"the budget of {shared.data_name!r} cannot pay for {method.name} {how}: leave --budget-file out"
            )
        first, *others = _events(method.planned())
        shared.require(first, 1, *others)
        header["dataset_budget"] = shared.to_json()
    return Decided(facts, private, header)


def ledger_header(facts: MethodFacts, method: PlannedMethod, run_id: str) -> dict[str, Any]:
    """Line 0 of the ledger: what was authorised and on which terms. Nothing of it comes from records."""
    privacy = facts.config.privacy
    planned = method.planned()
    exchanged = [times(one.replace_one, one.count) for one in planned if one.replace_one is not None]
    return {
        "datalens": __version__,
        "method": method.name,
        "run_id": run_id,
        "authorisation": authorisation_of(privacy, planned).to_json(),
        "adjacency": _adjacency(facts),
        "mechanism": {
            "name": method.name,
            "num_records": facts.num_records,
            "group_size": privacy.group_size,
            "num_steps": facts.num_steps,
            "noise": str(privacy.noise),
            "releases": [
                {"what": one.what, "count": one.count, "event": one.event.to_json()} for one in planned
            ],
        },
        "replace_one_events": [
            (of_two_teachers(event) if facts.of_groups else event).to_json() for event in exchanged
        ],
        "score_noise": None,
        "planned_events": [event.to_json() for event in _events(planned)] if privacy.is_private else [],
        "publishable": privacy.is_publishable,
        "data": facts.data_name,
    }


def _adjacency(facts: MethodFacts) -> str:
    if facts.of_groups:
        return ADD_OR_REMOVE_GROUP
    return ADD_OR_REMOVE if facts.config.privacy.insecure_seed is None else BLANKED


def authorisation_of(privacy: Privacy, planned: tuple[Planned, ...]) -> Authorisation:
    """The cost of exactly what is planned, as a ceiling.

    Raises:
        BudgetError: it is more than was asked for.
    """
    if not privacy.is_private:
        return Authorisation.not_private(privacy.delta)
    cost = Accountant(privacy.accountant).epsilon(_events(planned), privacy.delta)
    if cost > privacy.epsilon * ROOM:
        raise BudgetError(
            f"epsilon = {privacy.epsilon:g}: the plan costs {cost:g}; lower the number of releases"
        )
    return Authorisation(min(privacy.epsilon, cost * ROOM), privacy.delta, privacy.accountant)


def _events(planned: tuple[Planned, ...]) -> list[Event]:
    return [times(one.event, one.count) for one in planned]


def check_header(ledger: Ledger, facts: MethodFacts) -> None:
    """The ledger's first line is about these settings.

    Raises:
        RunError: names what differs.
    """
    expected = ledger_header(facts, facts.method, str(ledger.header.get("run_id")))
    for name, value in expected.items():
        if ledger.header.get(name) != value and name != "datalens":
            raise RunError(
                f"{ledger.path}: says another {name} than the run's settings; restore the files that belong together"
            )


def noise_for(privacy: Privacy) -> Callable[[str, int], NoiseSource]:
    """From what is released and its number to a noise source; with an insecure seed each has a stream of its own."""
    if privacy.insecure_seed is None or not privacy.adds_noise:
        noise = make_noise(privacy.noise)
        return lambda what, number: noise
    streams = Streams.from_insecure_seed(privacy.insecure_seed, "noise")
    return lambda what, number: make_noise(privacy.noise, streams.key(what, number))
