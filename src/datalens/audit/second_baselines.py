"""What ``datalens verify`` asks of a baseline's run: every release is one that its settings give, and was paid for.

Sensitivities and numbers of releases are worked out again from the settings in ``config.json``, by formulas of this
file alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datalens.audit.ledger_reader import Difference, Entry
from datalens.audit.second_certificate import class_list_again
from datalens.audit.second_curves import TOLERANCE, epsilon_again
from datalens.audit.second_settings import SECURE_NOISE, is_charge
from datalens.privacy import promises

CONFIG, LEDGER = "config.json", "ledger.jsonl"
Json = Mapping[str, Any]
Kind = tuple[float, int, int, int, float]
"""Sensitivity for one record, coordinates, how many in a whole training, how many a step, and the sensitivity where
a record is replaced over that where it is added."""


def is_baseline(entries: Sequence[Entry]) -> bool:
    """Whether the ledger is of a method in :data:`KINDS`."""
    return entries[0].body.get("method") in KINDS


def baseline_checks(entries: Sequence[Entry], config: Json, release: Path) -> list[Callable[[], None]]:
    """The checks that stand in for those of a run of DataLens."""
    return [
        lambda: _check_claims(entries[0].body, config, release),
        lambda: _check_plan(entries[0].body, config),
        lambda: _check_releases(entries, config),
    ]


def _merf(settings: Json, size: Json) -> dict[str, Kind]:
    """One sum of joint features, each as long as a power of two near 4 sqrt(F)."""
    features = settings["num_features"]
    units = float(max(512, 2 ** math.ceil(math.log2(4 * math.sqrt(features)))))
    return {"mean embedding": (units, features * len(size["classes"]), 1, 1, 2.0)}


def _pate_gan(settings: Json, size: Json) -> dict[str, Kind]:
    """A count of yes an image, which a teacher moves by one."""
    batch, each = settings["batch_size"], settings["student_steps"]
    return {"votes": (math.sqrt(batch), batch, settings["num_steps"] * each, each, 1.0)}


def _g_pate(settings: Json, size: Json) -> dict[str, Kind]:
    """A fullest count a question, and a histogram a question."""
    asked, steps = settings["batch_size"] * settings["num_projected"], settings["num_steps"]
    return {
        "checks": (math.sqrt(asked), asked, steps, 1, 1.0),
        "answers": (math.sqrt(2 * asked), asked * settings["num_bins"], steps, 1, 1.0),
    }


KINDS: dict[str, Callable[[Json, Json], dict[str, Kind]]] = {
    "dc-gan": lambda settings, size: {},
    "dp-merf": _merf,
    "pate-gan": _pate_gan,
    "g-pate": _g_pate,
}


def _kinds(config: Json) -> dict[str, Kind]:
    said = config["config"]
    return KINDS[said["method"]](said["settings"], config)


def _check_claims(header: Json, config: Json, release: Path) -> None:
    """What the first line says of itself, against the settings that decide it."""
    privacy, mechanism = config["config"]["privacy"], header["mechanism"]
    insecure = privacy["insecure_seed"] is not None
    fit = privacy["noise"] in SECURE_NOISE and not insecure and not privacy["as_published"]
    pairs = {
        "method": (header["method"], config["method"], config["config"]["method"]),
        "name": (mechanism["name"], config["method"]),
        "adjacency": (header["adjacency"], promises.BLANKED if insecure else promises.ADD_OR_REMOVE),
        "publishable": (header["publishable"], fit),
        "data": (header["data"], config["data"]),
        "num_records": (mechanism["num_records"], config["num_records"]),
        "num_steps": (mechanism["num_steps"], config["num_steps"], config["config"]["settings"]["num_steps"]),
        "group_size": (mechanism["group_size"], privacy["group_size"]),
        "noise": (mechanism["noise"], privacy["noise"]),
        "folder": (release.name, promises.RELEASE_FOLDER if fit else promises.UNFIT_RELEASE_FOLDER),
    }
    for name, (said, *expected) in pairs.items():
        for value in expected:
            if said != value:
                raise Difference(f"{LEDGER} says {name} {said!r:.40}, {CONFIG} gives {value!r:.40}")
    if fit and class_list_again(config, privacy) == promises.CLASSES_FOUND:
        raise Difference(
            f"{CONFIG}: the class list was {promises.CLASSES_FOUND}, in a run that says it is fit to publish"
        )


def _check_plan(header: Json, config: Json) -> None:
    """The plan holds what the settings give and nothing else, and costs no more than was asked for."""
    privacy, said, mechanism = config["config"]["privacy"], header["authorisation"], header["mechanism"]
    kinds = _kinds(config)
    planned = {release["what"]: release for release in mechanism["releases"]}
    if planned.keys() != kinds.keys() or len(planned) != len(mechanism["releases"]):
        raise Difference(f"{LEDGER}: plans {sorted(planned)}, the settings give {sorted(kinds)}")
    for what, (_, _, count, _, _) in kinds.items():
        _require_event(planned[what]["event"], what, kinds, mechanism)
        if planned[what]["count"] != count:
            raise Difference(
                f"{LEDGER}: plans {planned[what]['count']!r:.20} {what}, the settings give {count}"
            )
    whole = [{**release["event"], "count": release["count"]} for release in mechanism["releases"]]
    exchanged = [
        {**event, "sensitivity": event["sensitivity"] * kinds[release["what"]][4]}
        for event, release in zip(whole, mechanism["releases"], strict=True)
    ]
    private = privacy["noise"] != "none" and not privacy["as_published"]
    if header["planned_events"] != (whole if private else []):
        raise Difference(f"{LEDGER}: planned_events are not the releases that it plans")
    if header["replace_one_events"] != exchanged:
        raise Difference(f"{LEDGER}: replace_one_events are not what replacing a record moves")
    if (said["delta"], said["accountant"]) != (privacy["delta"], privacy["accountant"]):
        raise Difference(f"{CONFIG} and {LEDGER} differ in delta or accountant")
    if (said["epsilon"] is None) is private:
        raise Difference(f"{LEDGER}: authorises {said['epsilon']!r:.40} with noise {privacy['noise']!r:.40}")
    if private:
        cost = epsilon_again(whole, said["delta"], said["accountant"])
        if not cost <= said["epsilon"] * (1 + TOLERANCE) <= privacy["epsilon"] * (1 + TOLERANCE) ** 2:
            raise Difference(f"{LEDGER}: a plan of epsilon {cost:g} with {said['epsilon']!r:.40} authorised")


def _check_releases(entries: Sequence[Entry], config: Json) -> None:
    """Every release line is a planned one's, no kind was released too often, and none in a step of another's."""
    kinds, mechanism = _kinds(config), entries[0].body["mechanism"]
    counts: dict[tuple[str, int], int] = {}
    last = 0
    for entry in entries:
        if entry.kind != "release":
            continue
        note, where = entry.body["note"], f"{LEDGER} line {entry.number}"
        what, step = note.get("what"), note.get("step")
        if what not in kinds or not isinstance(step, int) or not last <= step < mechanism["num_steps"]:
            raise Difference(f"{where}: releases {what!r:.40} in step {step!r:.20}, which no setting gives")
        _require_event(entry.body["event"], what, kinds, mechanism)
        counts[what, step], last = counts.get((what, step), 0) + 1, step
        if counts[what, step] > kinds[what][3]:
            raise Difference(f"{where}: releases {what} once too often in step {step}")
        if sum(count for (other, _), count in counts.items() if other == what) > kinds[what][2]:
            raise Difference(f"{where}: releases {what} more often than planned")


def _require_event(event: Json, what: str, kinds: dict[str, Kind], mechanism: Json) -> None:
    """An event is what one release of its kind costs, with the noise that was planned for it."""
    [planned] = [release["event"] for release in mechanism["releases"] if release["what"] == what]
    sensitivity, coordinates, _, _, _ = kinds[what]
    charge = (mechanism["group_size"] * sensitivity, planned["noise_stddev"], coordinates)
    kind = (event["type"], event["noise"], event["count"])
    if not is_charge(event, charge) or kind != ("gaussian", mechanism["noise"], 1):
        raise Difference(f"{LEDGER}: {what} is charged {event!r:.120}, the settings give {charge}")
