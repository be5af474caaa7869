"""``config.json`` and the ledger's first line once more: are they about one run, and does that run make sense?

What follows from a setting is worked out again here, so that a first line that was written anew, with all hashes
right, is still found to claim what the settings do not give.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from datalens.audit.ledger_reader import Entry
from datalens.audit.second_certificate import authorisations_again, class_list_again, promised_by
from datalens.audit.second_compared import D2P, OWN_SETTINGS, PUBLISHED, charged_noise, compared_charge
from datalens.audit.second_curves import TOLERANCE, epsilon_again
from datalens.audit.second_neighbours import relation_of
from datalens.audit.second_warm import warm_differences
from datalens.privacy import promises

CONFIG, LEDGER = "config.json", "ledger.jsonl"
SECURE_NOISE = ("rounded-gaussian", "discrete-gaussian")
Json = Mapping[str, Any]


def setting_differences(entries: Sequence[Entry], config: Json, folder_name: str) -> Iterator[str]:
    """One line for each thing that ledger, settings and the folder's name do not agree on."""
    header, privacy = entries[0].body, config["config"]["privacy"]
    yield from _mechanism(header["mechanism"], config)
    yield from _partition(header["mechanism"], config["config"]["voting"], of_groups="unit" in config)
    if "unit" in config and (privacy.get("group_size", 1) != 1 or privacy.get("score_noise") is not None):
        yield f"{CONFIG}: counts records (group_size, score_noise), but its unit is {config['unit']!r:.40}"
    yield from _claims(header, config)
    fit = _is_fit(privacy)
    if folder_name != (promises.RELEASE_FOLDER if fit else promises.UNFIT_RELEASE_FOLDER):
        yield f"the folder is called {folder_name}, but {CONFIG} is of a run {'' if fit else 'not '}fit to publish"
    if fit and class_list_again(config, privacy) == promises.CLASSES_FOUND:
        yield f"{CONFIG}: the class list was {promises.CLASSES_FOUND}, in a run that says it is fit to publish"
    said = authorisations_again(entries)[0][1]
    if (said["delta"], said["accountant"]) != (privacy["delta"], privacy["accountant"]):
        yield f"{CONFIG} and {LEDGER} differ in delta or accountant"
    yield from _plan(header, said, config)


def step_charge(mechanism: Json) -> tuple[float, float, int]:
    """Sensitivity, noise and coordinates of one step."""
    batch = mechanism["batch_size"]
    images = min(batch, mechanism["images_per_teacher"] or batch)
    usual = 2 * math.sqrt(mechanism["top_k"] * images), batch * mechanism["coordinates"]
    sensitivity, coordinates = compared_charge(mechanism, images) or usual
    return mechanism["group_size"] * sensitivity, mechanism["noise_stddev"], coordinates


def score_charge(header: Json) -> tuple[float, float, int]:
    """The same of one count of right predictions."""
    return float(header["mechanism"]["group_size"]), header["score_noise"], 1


def threshold_again(voting: Json, stddev: float) -> float:
    """The threshold asked for, or 0.612 times the noise of a teacher's share; a twentieth without noise."""
    if voting["vote_threshold"] is not None:
        return voting["vote_threshold"]
    units = voting["levels"] - 1 if voting.get("mechanism") == D2P else 1
    return round(0.612 * stddev / units / voting["num_teachers"], 4) if stddev else 0.05


def name_again(voting: Json) -> str:
    """The mechanism that the settings name; those of older versions name none."""
    return voting.get("mechanism", "topagg")


def is_charge(event: Json, charge: tuple[float, float, int]) -> bool:
    """Whether an event says these three numbers."""
    said = (event["sensitivity"], event["noise_stddev"], event["coordinates"])
    return all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(charge, said, strict=True))


def _mechanism(mechanism: Json, config: Json) -> Iterator[str]:
    voting, privacy = config["config"]["voting"], config["config"]["privacy"]
    pairs = {
        "name": name_again(voting),
        **{name: voting[name] for name in OWN_SETTINGS.get(name_again(voting), ())},
        "num_teachers": voting["num_teachers"],
        "top_k": voting["top_k"],
        "batch_size": voting["batch_size"],
        "images_per_teacher": voting.get("images_per_teacher"),
        "group_size": privacy.get("group_size", 1),
        "noise": privacy["noise"],
        "num_records": config["num_records"],
        "noise_stddev": config["noise_stddev"],
        "num_steps": config["num_steps"],
        "coordinates": math.prod(config["image_shape"]),
    }
    asked = {name: voting.get(name) for name in ("num_steps", "noise_stddev")}
    pairs["vote_threshold"] = threshold_again(voting, config["noise_stddev"])
    for name, value in [
        *pairs.items(),
        *((name, value) for name, value in asked.items() if value is not None),
    ]:
        if mechanism.get(name) != value:
            yield f"{CONFIG} says {name} {value!r:.40}, {LEDGER} says {mechanism.get(name)!r:.40}"


def _partition(mechanism: Json, voting: Json, *, of_groups: bool) -> Iterator[str]:
    """Every slot of every teacher is one of the public number of slots, and no teacher has more than it may.

    Where groups go to teachers by hash, slots are each teacher's own and may outnumber the records.
    """
    teachers, size, records = (mechanism[name] for name in ("num_teachers", "shard_size", "num_records"))
    asked = voting.get("shard_size")
    usual = min(records, 2 * math.ceil(records / teachers)) if of_groups else records // teachers
    expected = usual if asked is None else asked
    if size != expected:
        yield f"{LEDGER} says shard_size {size!r:.40}, {CONFIG} gives {expected!r:.40}"
    if teachers * size > records and not of_groups:
        yield f"{LEDGER}: {teachers} teachers of {size} slots do not fit into {records} records without sharing any"


def _claims(header: Json, config: Json) -> Iterator[str]:
    """What the first line says of itself, against the settings that decide it."""
    privacy, mechanism = config["config"]["privacy"], header["mechanism"]
    if (mechanism["name"] == PUBLISHED) is not bool(privacy.get("as_published")):
        yield f"{LEDGER} is of {mechanism['name']!r:.40}, {CONFIG} says as_published {privacy.get('as_published')!r}"
    pairs = {
        "adjacency": relation_of(config),
        "publishable": _is_fit(privacy),
        "score_noise": privacy.get("score_noise"),
        "data": config["data"],
        "datalens": config["datalens"],
        "method": "datalens",
    }
    for name, value in pairs.items():
        if header.get(name) != value:
            yield f"{LEDGER} says {name} {header.get(name)!r:.40}, {CONFIG} gives {value!r:.40}"


def _plan(header: Json, said: Json, config: Json) -> Iterator[str]:
    """What was authorised is within the settings, and what was planned is what the mechanism does."""
    privacy, of_scores = config["config"]["privacy"], header.get("score_noise") is not None
    unsound = privacy["noise"] == "none" or bool(privacy.get("as_published"))
    if (said["epsilon"] is None) is not unsound:
        yield f"{LEDGER}: authorises {said['epsilon']!r:.40} with noise {privacy['noise']!r:.40}"
    elif said["epsilon"] is not None and said["epsilon"] > privacy["epsilon"]:
        yield f"{LEDGER}: authorises epsilon {said['epsilon']!r:.40}, {CONFIG} says {privacy['epsilon']!r:.40}"
    mechanism, planned = header["mechanism"], list(header.get("planned_events") or [])
    steps, scores, warm = planned[:1], planned[1 : 1 + of_scores], planned[1 + of_scores :]
    cost = epsilon_again(planned, said["delta"], said["accountant"]) if planned else promised_by(said)
    if said["epsilon"] is not None and cost > said["epsilon"] * (1 + TOLERANCE):
        yield f"{LEDGER}: authorises epsilon {said['epsilon']!r:.40} for a plan that costs {cost:g}"
    if said.get("planned") is not None:
        if said["num_releases"] != mechanism["num_steps"] or said["planned"]["count"] != 1 or planned:
            yield f"{LEDGER}: plans another number of releases than the {mechanism['num_steps']} steps"
        steps = [said["planned"]]
    elif steps and steps[0]["count"] != mechanism["num_steps"]:
        yield f"{LEDGER}: plans {steps[0]['count']!r:.40} releases, but {mechanism['num_steps']} steps"
    if not all(is_charge(event, step_charge(mechanism)) for event in steps):
        yield f"{LEDGER}: what was planned is not what the mechanism costs"
    yield from warm_differences(header, config, warm)
    if planned and len(scores) != of_scores:
        yield f"{LEDGER}: plans {len(scores)} scores with score_noise {header.get('score_noise')!r:.40}"
    elif not all(is_charge(event, score_charge(header)) and event["count"] == 1 for event in scores):
        yield f"{LEDGER}: the score that was planned is not what it costs"
    if any(event["noise"] != charged_noise(mechanism) for event in planned + steps):
        yield f"{LEDGER}: plans another noise than the mechanism's"


def _is_fit(privacy: Json) -> bool:
    sound = privacy["noise"] in SECURE_NOISE and not privacy.get("as_published")
    return sound and privacy.get("insecure_seed") is None
