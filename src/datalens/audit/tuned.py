"""What ``datalens verify`` asks of a tuned run: one line that pays for all of it, and a best try within its share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from datalens.audit.direction_reader import read_direction_records
from datalens.audit.ledger_reader import Difference, Entry
from datalens.audit.second_settings import threshold_again
from datalens.privacy import promises

METHOD = "datalens-tune"
CLAIMS: dict[str, object] = {
    "adjacency": promises.ADD_OR_REMOVE,
    "publishable": True,
    "planned_events": [],
    "score_noise": None,
}
"""What the first line of every tuned run says of itself: only such runs are tuned."""
LAW_ERROR = 2.0**-40
"""Charged for the law of the number of tries, besides the samplers'."""
_ROOM = 1 + 1e-9


def is_tuned(entries: Sequence[Entry]) -> bool:
    """Whether the ledger is of a tuned run, or charges a tuning."""
    tunes = any(event.get("type") == "tuning" for entry in entries for event in entry.charges)
    return tunes or entries[0].body.get("method") == METHOD


def tuned_checks(entries: Sequence[Entry], config: dict[str, Any], release: Path) -> list[Callable[[], None]]:
    """The checks that stand in for those of a plain run's settings, events, directions and scores."""
    return [
        lambda: _check_charge(entries),
        lambda: _check_share(entries[0].body),
        lambda: _check_settings(entries[0].body, config),
        lambda: _check_directions(entries, release),
    ]


def _check_charge(entries: Sequence[Entry]) -> None:
    """The tuning is the one thing charged, and the one that was authorised."""
    header = entries[0].body
    charges = [event for entry in entries for event in entry.charges]
    said, tuning = header["authorisation"], header["tuning"]
    if (
        header.get("method") != METHOD
        or len(charges) != 1
        or {entry.kind for entry in entries}
        - {
            "header",
            "planned",
            "release",
        }
    ):
        raise Difference("ledger.jsonl: a tuned run is charged for one tuning and for nothing else")
    [event] = charges
    if event != said["planned"] or said["num_releases"] != 1:
        raise Difference("ledger.jsonl: charges another tuning than was authorised")
    if any(event[name] != tuning[name] for name in ("expected_tries", "eta")) or event["count"] != 1:
        raise Difference("ledger.jsonl: charges another number of tries than was made")


def _check_share(header: dict[str, Any]) -> None:
    """Steps and score of the best try cost no more than the tuning was charged for."""
    mechanism, tuning, event = header["mechanism"], header["tuning"], header["authorisation"]["planned"]
    group, batch = mechanism["group_size"], mechanism["batch_size"]
    images = min(batch, mechanism["images_per_teacher"] or batch)
    steps = group * 2 * math.sqrt(mechanism["top_k"] * images * mechanism["num_steps"])
    made = [(steps, mechanism["noise_stddev"]), (float(group), tuning["score_noise"])]
    if any(not moved / noise <= event["mu"] * _ROOM for moved, noise in made):
        raise Difference("ledger.jsonl: the best try costs more than a try's share of the tuning")
    draws = [batch * mechanism["coordinates"] * mechanism["num_steps"], 1]
    mass = 0.0
    for said, (moved, noise), number in zip(tuning["chosen"], made, draws, strict=True):
        mu = math.sqrt(said["count"]) * said["sensitivity"] / said["noise_stddev"]
        drawn = said["count"] * said["coordinates"]
        if not math.isclose(mu, moved / noise, rel_tol=1e-9) or drawn != number:
            raise Difference("ledger.jsonl: the best try's releases are not what its mechanism makes")
        if said["noise"] != mechanism["noise"]:
            raise Difference("ledger.jsonl: the best try has another noise than the mechanism's")
        mass += number * (said["slack"]["tau"] + math.expm1(said["slack"]["eta"]))
    if not tuning["expected_tries"] * mass + LAW_ERROR <= event["bad_mass"] * _ROOM:
        raise Difference("ledger.jsonl: the tuning is charged less than its samplers' slack")
    if mechanism["num_teachers"] * mechanism["shard_size"] + tuning["held_slots"] > mechanism["num_records"]:
        raise Difference("ledger.jsonl: teachers own held-out slots")


def _check_settings(header: dict[str, Any], config: dict[str, Any]) -> None:
    for where, mine, theirs in _pairs(header, config):
        if mine != theirs:
            raise Difference(f"config.json says {where} {theirs!r:.40}, ledger.jsonl says {mine!r:.40}")


def _pairs(header: dict[str, Any], config: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    mechanism, said = header["mechanism"], header["authorisation"]
    voting, privacy = config["config"]["voting"], config["config"]["privacy"]
    for name in ("num_teachers", "shard_size", "top_k", "batch_size", "images_per_teacher"):
        yield name, mechanism[name], voting[name]
    for name in ("noise", "group_size"):
        yield name, mechanism[name], privacy[name]
    for name in ("epsilon", "delta", "accountant"):
        yield name, said[name], privacy[name]
    for name in ("num_records", "noise_stddev", "num_steps"):
        yield name, mechanism[name], config[name]
    yield "insecure_seed", None, privacy["insecure_seed"]
    yield "unit", None, config.get("unit")
    yield "datalens", header["datalens"], config["datalens"]
    for name, value in CLAIMS.items():
        yield name, header[name], value
    yield "name", mechanism["name"], "topagg"
    yield "vote_threshold", mechanism["vote_threshold"], threshold_again(voting, config["noise_stddev"])
    yield "data", header["data"], config["data"]
    yield "coordinates", mechanism["coordinates"], math.prod(config["image_shape"])


def _check_directions(entries: Sequence[Entry], release: Path) -> None:
    """The one paid line pays for every step of the best try, each released once, and nothing else is there."""
    mechanism = entries[0].body["mechanism"]
    [paid] = [entry.digest for entry in entries if entry.kind == "release"]
    records = list(read_direction_records(release / "directions.bin"))
    shape = (mechanism["batch_size"], mechanism["coordinates"])
    if [record.step for record in records] != list(range(mechanism["num_steps"])):
        raise Difference("directions.bin: has other steps than the best try's")
    if any(record.paid_by != paid or record.values.shape != shape for record in records):
        raise Difference("directions.bin: has a step that the tuning's line does not pay for")
