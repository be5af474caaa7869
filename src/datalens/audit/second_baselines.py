"""What ``datalens verify`` asks of a baseline's run: every release is one that its settings give, and was paid for.

Sensitivities and numbers of releases are worked out again from the settings in ``config.json``, by formulas of
``second_releases`` alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datalens.audit.ledger_reader import Difference, Entry
from datalens.audit.second_certificate import class_list_again
from datalens.audit.second_curves import TOLERANCE, epsilon_again
from datalens.audit.second_neighbours import relation_of
from datalens.audit.second_noise import same_slack, slack_again
from datalens.audit.second_releases import KINDS, LEAST_NOISE, PUBLISHED, Kinds
from datalens.audit.second_sampling import SAMPLED, most_of
from datalens.audit.second_settings import SECURE_NOISE, is_charge
from datalens.privacy import promises

CONFIG, LEDGER = "config.json", "ledger.jsonl"
Json = Mapping[str, Any]
SHARDED = ("pate-gan", "g-pate", "gs-wgan")
"""Methods with teachers or critics, who may hold whole groups."""
_LESS = 0.99
"""Part of the least noise that costs more than was asked for: noise is rounded up to four digits."""


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


def _kinds(config: Json) -> Kinds:
    said = config["config"]
    return KINDS[said["method"]](said["settings"], config, said["privacy"]["group_size"])


def _check_claims(header: Json, config: Json, release: Path) -> None:
    """What the first line says of itself, against the settings that decide it."""
    privacy, mechanism = config["config"]["privacy"], header["mechanism"]
    insecure = privacy["insecure_seed"] is not None
    fit = privacy["noise"] in SECURE_NOISE and not insecure and not privacy["as_published"]
    pairs = {
        "method": (header["method"], config["method"], config["config"]["method"]),
        "name": (mechanism["name"], config["method"]),
        "adjacency": (header["adjacency"], relation_of(config)),
        "publishable": (header["publishable"], fit),
        "data": (header["data"], config["data"]),
        "num_records": (mechanism["num_records"], config["num_records"]),
        "num_steps": (mechanism["num_steps"], config["num_steps"], *_asked_steps(config)),
        "group_size": (mechanism["group_size"], privacy["group_size"]),
        "noise": (mechanism["noise"], privacy["noise"]),
        "folder": (release.name, promises.RELEASE_FOLDER if fit else promises.UNFIT_RELEASE_FOLDER),
    }
    for name, (said, *expected) in pairs.items():
        for value in expected:
            if said != value:
                raise Difference(f"{LEDGER} says {name} {said!r:.40}, {CONFIG} gives {value!r:.40}")
    if "unit" in config and (config["method"] not in SHARDED or privacy["group_size"] != 1):
        raise Difference(f"{CONFIG}: unit {config['unit']!r:.40}, where records are looked at one by one")
    if privacy["as_published"] and config["method"] not in PUBLISHED:
        raise Difference(f"{CONFIG}: as_published with {config['method']!r:.40}, which has no published form")
    if fit and class_list_again(config, privacy) == promises.CLASSES_FOUND:
        raise Difference(
            f"{CONFIG}: the class list was {promises.CLASSES_FOUND}, in a run that says it is fit to publish"
        )


def _asked_steps(config: Json) -> list[Any]:
    """The number of steps in the settings, where it is there and does not follow from others."""
    asked = config["config"]["settings"]["num_steps"]
    return [] if asked is None and config["method"] in promises.CLASSIFIERS else [asked]


def _check_plan(header: Json, config: Json) -> None:
    """The plan holds what the settings give and nothing else, and costs no more than was asked for."""
    privacy, said, mechanism = config["config"]["privacy"], header["authorisation"], header["mechanism"]
    kinds = _kinds(config)
    planned = {release["what"]: release for release in mechanism["releases"]}
    if planned.keys() != kinds.keys() or len(planned) != len(mechanism["releases"]):
        raise Difference(f"{LEDGER}: plans {sorted(planned)}, the settings give {sorted(kinds)}")
    for what, kind in kinds.items():
        _require_event(planned[what]["event"], what, kinds, mechanism)
        if kind.noise is not None and not math.isclose(kind.stddev(planned[what]["event"]), kind.noise):
            raise Difference(f"{LEDGER}: plans {what} with another noise than the {kind.noise:g} asked for")
        if planned[what]["count"] != kind.count:
            raise Difference(
                f"{LEDGER}: plans {planned[what]['count']!r:.20} {what}, the settings give {kind.count}"
            )
    whole = [{**release["event"], "count": release["count"]} for release in mechanism["releases"]]
    teachers = 2 if "unit" in config else 1  # one group for another may move two
    exchanged = [
        {**event, "sensitivity": teachers * event["sensitivity"] * kinds[release["what"]].exchanged}
        for event, release in zip(whole, mechanism["releases"], strict=True)
        if kinds[release["what"]].sampled is None
    ]  # for sampled releases a bound for the whole plan stands in the certificate
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
        follows = all(kind.noise is None for kind in kinds.values())
        noise = min(kinds[what].stddev(release["event"]) for what, release in planned.items())
        _check_shares(kinds, planned, noise)
        less = epsilon_again([_with_less_noise(event) for event in whole], said["delta"], said["accountant"])
        if follows and noise > LEAST_NOISE and most_of(less) < privacy["epsilon"]:
            raise Difference(
                f"{LEDGER}: a plan of epsilon {cost:g}, where the noise follows from {privacy['epsilon']:g}"
            )


def _check_shares(kinds: Kinds, planned: Mapping[str, Json], noise: float) -> None:
    """The budget is split as the settings say, unless one release has the least noise that there is."""
    squares = {
        what: kind.count * (kind.sensitivity / kind.stddev(planned[what]["event"])) ** 2
        for what, kind in kinds.items()
    }
    for what, kind in kinds.items():
        part = squares[what] / sum(squares.values())
        if (
            kind.share is not None
            and noise > LEAST_NOISE
            and not math.isclose(part, kind.share, rel_tol=1e-9)
        ):
            raise Difference(
                f"{LEDGER}: {what} has {part:.6g} of the budget, the settings give {kind.share:.6g}"
            )


def _with_less_noise(event: dict[str, Any]) -> dict[str, Any]:
    """With the largest slack of any noise too, which a search for the least noise reckons with."""
    name = "noise_multiplier" if event["type"] == SAMPLED else "noise_stddev"
    slack = {"eta": 2.0**-56, "tau": 2.0**-120} if event["noise"] == "rounded-gaussian" else event["slack"]
    return {**event, name: event[name] * _LESS, "slack": slack}


def _check_releases(entries: Sequence[Entry], config: Json) -> None:
    """Every release line is a planned one's, no kind was released too often, and none in a step of another's."""
    kinds, mechanism = _kinds(config), entries[0].body["mechanism"]
    counts: dict[tuple[str, int], int] = {}
    last, named = 0, []
    for entry in entries:
        where = f"{LEDGER} line {entry.number}"
        if entry.kind == "recovered" and not all(_covers(entry.charges, event) for event in named):
            raise Difference(f"{where}: charges a cut-off line less than the costliest release")
        if entry.kind in ("planned", "release"):
            named.append(entry.body["event"])
        if entry.kind == "planned" and not any(
            _is_planned(entry.body["event"], what, kinds, mechanism) for what in kinds
        ):
            raise Difference(f"{where}: names {entry.body['event']!r:.120}, which no setting gives")
        if entry.kind != "release":
            continue
        note = entry.body["note"]
        what, step = note.get("what"), note.get("step")
        if what not in kinds or not isinstance(step, int) or not last <= step < mechanism["num_steps"]:
            raise Difference(f"{where}: releases {what!r:.40} in step {step!r:.20}, which no setting gives")
        _require_event(entry.body["event"], what, kinds, mechanism)
        counts[what, step], last = counts.get((what, step), 0) + 1, step
        if counts[what, step] > kinds[what].each:
            raise Difference(f"{where}: releases {what} once too often in step {step}")
        if sum(count for (other, _), count in counts.items() if other == what) > kinds[what].count:
            raise Difference(f"{where}: releases {what} more often than planned")


def _require_event(event: Json, what: str, kinds: Kinds, mechanism: Json) -> None:
    """An event is what one release of its kind costs, with the noise that was planned for it."""
    if not _is_planned(event, what, kinds, mechanism):
        charge = kinds[what].charge(_planned(what, mechanism))
        raise Difference(f"{LEDGER}: {what} is charged {event!r:.200}, the settings give {charge}")


def _is_planned(event: Json, what: str, kinds: Kinds, mechanism: Json) -> bool:
    kind, noise = kinds[what], mechanism["noise"]
    charge = kind.charge(_planned(what, mechanism))
    if kind.sampled is None:
        return (event["type"], event["noise"], event["count"]) == ("gaussian", noise, 1) and is_charge(
            event, charge
        )
    said = event["sampling_probability"], event["noise_multiplier"], event["coordinates"]
    return (
        (event["type"], event["noise"], event["count"]) == (SAMPLED, noise, 1)
        and all(math.isclose(mine, theirs, rel_tol=1e-11) for mine, theirs in zip(charge, said, strict=True))
        and any(same_slack(event["slack"], slack) for slack in slack_again(noise, kind.stddev(event)))
    )


def _planned(what: str, mechanism: Json) -> Json:
    [planned] = [release["event"] for release in mechanism["releases"] if release["what"] == what]
    return planned


def _covers(charges: Iterable[Json], event: Json) -> bool:
    """Whether one of the charges costs no less than an event."""
    alike = [charge for charge in charges if charge["type"] == event["type"]]
    if event["noise"] == "none":
        return bool(alike)
    if event["type"] == SAMPLED:
        return any(
            charge["sampling_probability"] >= event["sampling_probability"]
            and charge["noise_multiplier"] <= event["noise_multiplier"]
            for charge in alike
        )
    costs = (charge["sensitivity"] * event["noise_stddev"] / charge["noise_stddev"] for charge in alike)
    return any(cost >= event["sensitivity"] * (1 - TOLERANCE) for cost in costs)
