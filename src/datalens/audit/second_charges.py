"""The ledger's lines in order: was each release authorised, charged what it costs, and is what lines say so?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from datalens.audit.ledger_reader import Difference, Entry
from datalens.audit.second_certificate import promised_by
from datalens.audit.second_compared import charged_noise
from datalens.audit.second_curves import TOLERANCE, epsilon_again
from datalens.audit.second_settings import is_charge, score_charge, step_charge
from datalens.audit.second_warm import NOTE as WARM
from datalens.audit.second_warm import warm_charges

LEDGER = "ledger.jsonl"
Charge = tuple[float, float, int]
"""Sensitivity, noise and coordinates of a release."""
KINDS = {"header", "planned", "release", "recovered", "authorisation", "settings"}


def check_lines(entries: Sequence[Entry]) -> None:
    """Lines are of known kinds, and what they say of their own place in the run is true.

    Raises:
        Difference: one does not.
    """
    looked, step = False, 0
    for entry in entries:
        body, where = entry.body, f"{LEDGER} line {entry.number}"
        if entry.kind not in KINDS:
            raise Difference(f"{where}: is of the unknown kind {entry.kind!r:.30}")
        if entry.kind in ("authorisation", "settings") and body["decided_after_release"] is not looked:
            raise Difference(f"{where}: says decided_after_release {body['decided_after_release']!r:.20}")
        if entry.kind == "settings" and body["from_step"] != step:
            raise Difference(
                f"{where}: holds from step {body['from_step']!r:.20}, but the next step is {step}"
            )
        said = body.get("authorisation")
        if isinstance(said, dict) and (said["planned"] is None) is not (said["num_releases"] is None):
            raise Difference(f"{where}: authorises a plan by halves")
        looked = looked or bool(entry.charges)
        if entry.kind == "recovered":
            step += 1
        elif entry.kind == "release" and "step" in (body.get("note") or {}):
            step = max(step, body["note"]["step"] + 1)


def check_order(entries: Sequence[Entry]) -> None:
    """Whatever was released fitted what was authorised at that time.

    Raises:
        Difference: it did not.
    """
    in_force: dict[str, Any] | None = None
    charged: list[dict[str, Any]] = []
    for number, entry in enumerate(entries):
        if isinstance(entry.body.get("authorisation"), dict) and entry.kind in ("header", "authorisation"):
            in_force = entry.body["authorisation"]
        charged += entry.charges
        if entry.kind != "release":
            continue
        if in_force is None:
            raise Difference(f"{LEDGER} line {entry.number}: something was released before it was authorised")
        rest = entries[number + 1 :]
        upcoming = next((later.kind for later in rest if later.kind in ("release", "authorisation")), "end")
        if upcoming == "release":  # cost only grows, so the last release under an authorisation decides
            continue
        limit = promised_by(in_force)
        if not epsilon_again(charged, in_force["delta"], in_force["accountant"]) <= limit * (1 + TOLERANCE):
            raise Difference(f"{LEDGER} line {entry.number}: brings epsilon above the {limit:g} authorised")


def check_events(entries: Sequence[Entry], config: Mapping[str, Any]) -> None:
    """Every release was charged for what the mechanism with the settings of its time does.

    A line that a crash cut off was charged no less than any release that was named before.

    Raises:
        Difference: one was not.
    """
    mechanism, named = dict(entries[0].body["mechanism"]), 0.0
    score = None if entries[0].body.get("score_noise") is None else score_charge(entries[0].body)
    warm = warm_charges(entries[0].body, config)
    for entry in entries:
        body, where = entry.body, f"{LEDGER} line {entry.number}"
        if entry.kind == "settings":
            mechanism |= {name: body[name] for name in ("top_k", "noise_stddev")}
        elif entry.kind == "recovered" and max((_mu(event) for event in entry.charges), default=0.0) < named:
            raise Difference(f"{where}: charges a cut-off line less than the costliest release")
        if entry.kind not in ("planned", "release"):
            continue
        event, note = body["event"], body.get("note") or {}
        named = max(named, _mu(event))
        named_after = _what(note) if entry.kind == "release" else _alike(event, score, warm)
        other = {"score": score, **warm}.get(named_after)
        expected = step_charge(mechanism) if other is None else other
        if not is_charge(event, expected):
            charged = (event["sensitivity"], event["noise_stddev"], event["coordinates"])
            raise Difference(f"{where}: charges {charged}, the mechanism costs {expected}")
        if (event["type"], event["noise"], event["count"]) != ("gaussian", charged_noise(mechanism), 1):
            raise Difference(f"{where}: charges another noise than the mechanism's")


def _what(note: Mapping[str, Any]) -> str:
    """What a line says that it released: a score, one of a warm start's sums, or votes."""
    return "score" if "score" in note else str(note["what"]) if WARM in note else "votes"


def _alike(event: dict[str, Any], score: Charge | None, warm: Mapping[str, Charge]) -> str:
    """The same of a line that only names a release."""
    if score is not None and is_charge(event, score):
        return "score"
    return next((what for what, charge in warm.items() if is_charge(event, charge)), "votes")


def _mu(event: dict[str, Any]) -> float:
    return event["sensitivity"] / event["noise_stddev"] if event["noise_stddev"] else 0.0
