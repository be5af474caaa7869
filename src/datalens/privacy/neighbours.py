"""What a certificate says of neighbouring data: the relation in words, and what replacing a record costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from datalens.errors import LedgerError
from datalens.privacy import promises
from datalens.privacy.accountant import Accountant
from datalens.privacy.events import Event, GaussianEvent, PoissonGaussianEvent, event_from_json
from datalens.privacy.ledger import Ledger
from datalens.privacy.replacing import replace_one_epsilon


def adjacency_means(header: Mapping[str, Any]) -> str:
    """The neighbouring relation in words."""
    adjacency = str(header.get("adjacency", promises.BLANKED))
    group_size = int(header.get("mechanism", {}).get("group_size", 1))
    several = promises.SEVERAL_RECORDS.format(group_size=group_size)
    text = promises.ADJACENCY_TEXT.get(adjacency, adjacency)
    if adjacency == promises.ADD_OR_REMOVE and "replace_one_events" in header:
        text = promises.ADJACENCY_OF_BASELINES
    return text.replace("{whose}", several if group_size > 1 else promises.ONE_RECORD)


def replace_one(
    ledger: Ledger,
    accountant: Accountant,
    promised: float,
    plan: tuple[Event, ...],
    events: tuple[Event, ...],
    delta: float,
) -> dict[str, Any]:
    """What replacing a record costs.

    TopAgg's teachers make it the same, but for groups, of which two may sit with two teachers; a baseline plans it
    beside the headline; where steps are Poisson-sampled it is that of two moves.
    """
    if ledger.header.get("adjacency") == promises.ADD_OR_REMOVE_GROUP:
        moved = [of_two_teachers(event) for event in plan]
        bound = accountant.epsilon(moved, delta) if plan else math.inf
        return {"epsilon": finite(bound), "why": promises.REPLACE_ONE_GROUP_TEXT}
    if any(isinstance(event, PoissonGaussianEvent) for event in (*plan, *events)):
        bound = replace_one_epsilon(accountant, plan, delta) if plan else math.inf
        return {"epsilon": finite(bound), "why": promises.REPLACE_ONE_BY_TWO_TEXT}
    planned = ledger.header.get("replace_one_events")
    if planned is None:
        return {"epsilon": finite(promised), "why": promises.REPLACE_ONE_TEXT}
    cost = accountant.epsilon([event_from_json(event) for event in planned], delta)
    return {"epsilon": finite(max(cost, promised)), "why": promises.REPLACE_ONE_COUNTED}


def of_two_teachers(event: Event) -> Event:
    """The event of a release in which the votes of two teachers change.

    Raises:
        LedgerError: runs with groups plan no such release.
    """
    if isinstance(event, GaussianEvent):
        return replace(event, sensitivity=2 * event.sensitivity)
    raise LedgerError(f"a run with groups plans a {type(event).__name__}: restore the ledger")


def finite(value: float) -> float | None:
    """The number, or None where it is infinite."""
    return value if math.isfinite(value) else None
