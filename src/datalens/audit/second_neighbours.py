"""The neighbouring relation of a certificate a second time: in words, and what an exchange costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from datalens.audit.second_curves import epsilon_again
from datalens.audit.second_sampling import SAMPLED, two_moves
from datalens.privacy import promises

Json = dict[str, Any]
GROUP = "group"
"""What ``config.json`` says is protected, where that is not a single record."""


def relation_again(header: Mapping[str, Any]) -> tuple[str, str]:
    """The name of the relation, and the same in words."""
    adjacency = str(header.get("adjacency", promises.BLANKED))
    size = header.get("mechanism", {}).get("group_size", 1)
    whose = (
        promises.ONE_RECORD if size == 1 else promises.SEVERAL_RECORDS.replace("{group_size}", str(int(size)))
    )
    if header.get("replace_one_events") is not None and adjacency == promises.ADD_OR_REMOVE:
        return adjacency, promises.ADJACENCY_OF_BASELINES.replace("{whose}", whose)
    return adjacency, promises.ADJACENCY_TEXT.get(adjacency, adjacency).replace("{whose}", whose)


def relation_of(config: Mapping[str, Any]) -> str:
    """The relation that the settings of a run of DataLens give."""
    if "unit" in config:
        return promises.ADD_OR_REMOVE_GROUP if config["unit"] == GROUP else repr(config["unit"])
    insecure = config["config"]["privacy"].get("insecure_seed") is not None
    return promises.BLANKED if insecure else promises.ADD_OR_REMOVE


def exchanged_again(
    header: Mapping[str, Any],
    delta: float,
    accountant: str,
    promised: float,
    plan: list[Json],
    events: list[Json],
) -> Json:
    """One for another: a group by two teachers, a record as TopAgg, as the header plans it, or by two moves."""
    if header.get("adjacency") == promises.ADD_OR_REMOVE_GROUP:
        both = [{**event, "sensitivity": 2 * event["sensitivity"]} for event in plan]
        cost = epsilon_again(both, delta, accountant) if plan else math.inf
        return {"epsilon": or_null(cost), "why": promises.REPLACE_ONE_GROUP_TEXT}
    if is_sampled([*plan, *events]):
        cost = two_moves(lambda left: epsilon_again(plan, left, accountant), delta) if plan else math.inf
        return {"epsilon": or_null(cost), "why": promises.REPLACE_ONE_BY_TWO_TEXT}
    planned = header.get("replace_one_events")
    if planned is None:
        return {"epsilon": or_null(promised), "why": promises.REPLACE_ONE_TEXT}
    cost = max(promised, epsilon_again(list(planned), delta, accountant))
    return {"epsilon": or_null(cost), "why": promises.REPLACE_ONE_COUNTED}


def is_sampled(events: Sequence[Json]) -> bool:
    """Whether some of them are of Poisson-sampled steps."""
    return any(event.get("type") == SAMPLED for event in events)


def or_null(value: float) -> float | None:
    """The number, or None where it is infinite."""
    return value if math.isfinite(value) else None
