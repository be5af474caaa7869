"""The certificate a second time, from ledger and settings alone, by code that shares nothing with the first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from datalens.audit.ledger_reader import Difference, Entry
from datalens.audit.second_curves import CLASSIC, EXACT, RDP, TOLERANCE, epsilon_again, totals_again
from datalens.audit.second_neighbours import exchanged_again, is_sampled, or_null, relation_again
from datalens.audit.second_sampling import SAMPLED, Between
from datalens.privacy import promises

Json = dict[str, Any]


def certificate_again(
    entries: Sequence[Entry], config: Mapping[str, Any], files: Mapping[str, str], environment: Any
) -> Json:
    """What ``certificate.json`` must say.

    Raises:
        Difference: the ledger authorises nothing, or less than was released.
    """
    header = entries[0].body
    mechanism = header.get("mechanism", {})
    events = [event for entry in entries for event in entry.charges]
    granted = authorisations_again(entries)
    privacy = config.get("config", {}).get("privacy", {})
    drawn = _drawn(events, header)
    kinds = {str(event.get("noise")) for event in drawn}
    reasons = []
    if privacy.get("as_published"):
        reasons.append(promises.AS_PUBLISHED)
    elif "none" in kinds or privacy.get("noise") == "none":
        reasons.append(promises.NO_NOISE)
    if privacy.get("insecure_seed") is not None:
        reasons.append(promises.INSECURE_SEED)
    if "continuous-gaussian" in kinds or privacy.get("noise") == "continuous-gaussian":
        reasons.append(promises.CONTINUOUS)
    return {
        "format": promises.CERTIFICATE_FORMAT,
        "fit_for_publication": reasons == [],
        "not_fit_because": reasons,
        "guarantee": _guarantee(entries, granted, int(mechanism.get("group_size", 1))),
        "spent": _spent(entries, granted[-1][1]),
        "mechanism": {
            **mechanism,
            "changed_on_resume": [entry.body for entry in entries if entry.kind == "settings"],
        },
        "noise": {
            **_noise(drawn, insecure=privacy.get("insecure_seed") is not None),
            "releases": _releases(entries),
        },
        "assumed_public": {
            "bound_on_records": mechanism.get("num_records"),
            "num_teachers": mechanism.get("num_teachers"),
            "slots_of_each_teacher": mechanism.get("shard_size"),
            "image_shape": config.get("image_shape"),
            "classes": config.get("classes"),
            "classes_were_read_off_the_data": config.get("classes_from_data"),
            "class_list": class_list_again(config, privacy),
            "generated_labels": _labels_again(header.get("method"), mechanism),
            "data": config.get("data"),
        },
        "not_covered": list(promises.NOT_COVERED)
        + ([promises.FLOATING_POINT] if "continuous-gaussian" in kinds else [])
        + [
            {promises.ADD_OR_REMOVE_GROUP: promises.SEVERAL_NAMES}.get(
                str(header.get("adjacency")), promises.BEYOND_GROUP_SIZE
            )
        ],
        "later_authorisations": [
            {**said, "decided_after_looking": True} for looked, said in granted if looked
        ],
        "tuning": header.get("tuning"),
        "dataset_budget": header.get("dataset_budget"),
        "ledger": {
            "run_id": header.get("run_id"),
            "last_line": entries[-1].number,
            "head": entries[-1].digest,
        },
        "files": dict(files),
        "environment": environment,
    }


def class_list_again(config: Mapping[str, Any], privacy: Mapping[str, Any]) -> str:
    """Why the class list is no secret."""
    if config.get("data") != "private":
        return promises.CLASSES_PUBLISHED
    named = (
        promises.CLASSES_FOUND_AND_DECLARED if privacy.get("labels_are_public") else promises.CLASSES_FOUND
    )
    return named if config.get("classes_from_data") else promises.CLASSES_DECLARED


def authorisations_again(entries: Sequence[Entry]) -> list[tuple[bool, Json]]:
    """Whether something had been released before, and what was authorised; oldest first.

    Raises:
        Difference: nothing was authorised.
    """
    found = []
    looked = False
    for entry in entries:
        looked = looked or entry.kind in ("release", "recovered")
        if entry.kind in ("header", "authorisation") and isinstance(entry.body.get("authorisation"), dict):
            found.append((looked, entry.body["authorisation"]))
    if not found:
        raise Difference("the ledger authorises nothing")
    return found


def promised_by(said: Mapping[str, Any]) -> float:
    """The epsilon that one authorisation promises: its plan's cost, or its ceiling."""
    if said.get("planned") is not None and said.get("num_releases") is not None:
        return epsilon_again([_repeated(said)], said["delta"], said["accountant"])
    return math.inf if said.get("epsilon") is None else float(said["epsilon"])


def unequal(expected: Any, found: Any, where: str = "certificate.json") -> Iterator[str]:
    """One line for each leaf that differs; floats may differ by one part in a million.

    An epsilon of Poisson-sampled steps may also be larger, up to the most that an account need find.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in sorted(expected.keys() | found.keys()):
            if name not in expected or name not in found:
                yield f"{where}: {name} is {'missing' if name in expected else 'unknown'}"
            else:
                yield from unequal(expected[name], found[name], f"{where}: {name}")
    elif isinstance(expected, list | tuple) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{where}: has {len(found)} items where {len(expected)} belong"
        for number, (mine, theirs) in enumerate(zip(expected, found, strict=False)):
            yield from unequal(mine, theirs, f"{where} {number}")
    elif isinstance(expected, float) and isinstance(found, float):
        nearest = min(max(expected, found), expected.most) if isinstance(expected, Between) else expected
        if not abs(nearest - found) <= TOLERANCE * max(abs(nearest), abs(found)):
            yield f"{where} is {found!r}, but the ledger gives {expected!r}"
    elif type(expected) is not type(found) or expected != found:
        yield f"{where} is {found!r:.80}, but the rest of the release gives {expected!r:.80}"


def _labels_again(method: Any, mechanism: Mapping[str, Any]) -> str | None:
    """How generated images come by their labels; a classifier generates none."""
    if method in promises.CLASSIFIERS:
        return None
    if "releases" in mechanism and method not in promises.VOTING_METHODS:
        return promises.LABELS_OF_SAMPLES
    return promises.LABELS_TEXT


def _guarantee(entries: Sequence[Entry], granted: list[tuple[bool, Json]], group_size: int) -> Json:
    header = entries[0].body
    first = [said for looked, said in granted if not looked][-1]
    delta, accountant = first["delta"], first["accountant"]
    if any((said["delta"], said["accountant"]) != (delta, accountant) for _, said in granted):
        raise Difference("authorisations differ in delta or accountant")
    own = promised_by(first)
    promised = max([own, *(promised_by(said) for looked, said in granted if looked)])
    proved = promised == own
    cautions = [] if proved else [promises.RAISED_TEXT]
    events = [event for entry in entries for event in entry.charges]
    spent = epsilon_again(events, delta, accountant)
    planned = proved
    if spent > promised * (1 + TOLERANCE):
        released = [event for entry in entries if entry.kind == "release" for event in entry.charges]
        if epsilon_again(released, delta, accountant) > promised * (1 + TOLERANCE):
            raise Difference("more was released than was authorised")
        cautions.append(promises.CUT_OFF_TEXT)
        promised, proved, planned = spent, False, False
    cautions += [promises.WEAK_TEXT] * (math.isfinite(promised) and promised > promises.WEAK_ABOVE)
    mechanism = header.get("mechanism", {})
    cautions += [promises.OWN_METHOD] * (
        "releases" in mechanism and mechanism["name"] not in promises.METHOD_TEXT
    )
    plan = _planned(first, header) if planned else []
    if epsilon_again(plan, delta, accountant) > promised * (1 + TOLERANCE):
        raise Difference("more was planned than was authorised")
    one = [
        event if event["type"] == SAMPLED else {**event, name: event[name] / group_size}
        for event in plan
        for name in ["mu" if event["type"] == "tuning" else "sensitivity"]
    ]  # of sampled steps, those of all records of a person stand for those of one
    adjacency, in_words = relation_again(header)
    return {
        "epsilon": or_null(promised),
        "delta": delta,
        "adjacency": adjacency,
        "adjacency_means": in_words,
        "replace_one": exchanged_again(header, delta, accountant, promised, plan, events),
        "group_size": group_size,
        "epsilon_for_one_record": or_null(epsilon_again(one, delta, accountant)) if plan else None,
        "accountant": accountant,
        "accountant_used": _used(plan or events, accountant),
        "under_other_accountants": _each(plan or events, delta, first),
        "other_accountants_speak": promises.OF_PLAN if plan else promises.OF_SPENT,
        "planned_releases": first.get("num_releases"),
        "ceiling_fixed_beforehand": proved,
        "cautions": cautions,
    }


def _spent(entries: Sequence[Entry], said: Json) -> Json:
    events = [event for entry in entries for event in entry.charges]
    none = said["epsilon"] is None
    return {
        "epsilon": None if none else or_null(epsilon_again(events, said["delta"], said["accountant"])),
        "under_other_accountants": _each(events, said["delta"], said),
        "releases": len([entry for entry in entries if entry.kind == "release"]),
        "cut_off_lines_charged": len([entry for entry in entries if entry.kind == "recovered"]),
        "mu": None if none or is_sampled(events) else or_null(totals_again(events)[0]),
        "note": promises.SPENT_TEXT,
    }


def _noise(events: list[Json], *, insecure: bool) -> Json:
    _, ratios, masses, kinds = totals_again(events)
    plain = [event for event in events if event["type"] != SAMPLED]
    return {
        "kinds": sorted(kinds),
        "source": "insecure seed" if insecure else "operating system",
        "sensitivities": sorted({event["sensitivity"] for event in plain}),
        "stddevs": sorted({event["noise_stddev"] for event in plain}),
        "coordinates_drawn": sum(event["coordinates"] * event["count"] for event in events),
        "slack_eta": max([0.0, *(event["slack"]["eta"] for event in events)]),
        "slack_tau": max([0.0, *(event["slack"]["tau"] for event in events)]),
        "slack_in_epsilon": 2 * ratios,
        "slack_mass": masses,
    }


def _releases(entries: Sequence[Entry]) -> list[Json]:
    """How often votes and scores were released, each with its noise; a tuning's are those of the best try."""
    counts: dict[tuple[tuple[str, Any], ...], int] = {}
    for entry in entries:
        if entry.kind != "release":
            continue
        charges, note = list(entry.charges), entry.body.get("note") or {}
        if charges[0].get("type") == "tuning":
            charges, kinds = list(entries[0].body["tuning"]["chosen"]), ["votes", "score"]
        else:
            kinds = ["score" if "score" in note else note.get("what", "votes")]
        for kind, event in zip(kinds, charges, strict=True):
            names = ("sensitivity", "noise_stddev")
            if event["type"] == SAMPLED:
                names = ("sampling_probability", "noise_multiplier")
            key = (("what", str(kind)), *((name, float(event[name])) for name in names))
            counts[key] = counts.get(key, 0) + event["count"]
    found = [{**dict(key), "count": count} for key, count in counts.items()]
    order = list(dict.fromkeys(["votes", "score", *(item["what"] for item in found)]))
    return sorted(found, key=lambda item: order.index(item["what"]))


def _drawn(events: list[Json], header: Mapping[str, Any]) -> list[Json]:
    """The Gaussian releases charged; of a tuning, those of the best try, as the header has them."""
    found = [event for event in events if event.get("type") != "tuning"]
    return found + (list(header["tuning"]["chosen"]) if len(found) < len(events) else [])


def _used(events: list[Json], accountant: str) -> str:
    kinds = {event["noise"] if event["type"] == "gaussian" else event["type"] for event in events}
    return RDP if accountant == EXACT and kinds - {"rounded-gaussian", "continuous-gaussian"} else accountant


def _each(events: list[Json], delta: float, said: Json) -> Json:
    """Under every accountant; none has a number where nothing was promised."""
    if said["epsilon"] is None:
        return dict.fromkeys((EXACT, RDP, CLASSIC))
    return {name: or_null(epsilon_again(events, delta, name)) for name in (EXACT, RDP, CLASSIC)}


def _planned(said: Json, header: Mapping[str, Any]) -> list[Json]:
    """Every release that was planned beforehand; none where only a ceiling is known."""
    if said.get("planned") is not None and said.get("num_releases") is not None:
        return [_repeated(said)]
    return list(header.get("planned_events") or []) if header.get("authorisation") == said else []


def _repeated(said: Mapping[str, Any]) -> Json:
    return {**said["planned"], "count": said["planned"]["count"] * said["num_releases"]}
