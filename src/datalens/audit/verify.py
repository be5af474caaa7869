"""``datalens verify``: is everything in ``release/`` what the ledger says it is? Needs ``release/`` alone.

Ledger, directions, epsilon and certificate are read and computed by code of their own; a page for people is
compared word for word. What is found is a list of differences, each one line; none means that the files agree,
not that whoever made them was honest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datalens.audit.direction_reader import read_direction_records
from datalens.audit.ledger_reader import Difference, Entry, read_entries
from datalens.audit.second_certificate import certificate_again, promised_by, unequal
from datalens.audit.second_curves import TOLERANCE, epsilon_again
from datalens.audit.second_settings import is_charge, score_charge, setting_differences, step_charge
from datalens.audit.tuned import is_tuned, tuned_checks
from datalens.errors import RunError
from datalens.privacy import promises
from datalens.privacy.data_card import data_card
from datalens.training.heads import known_head

LEDGER, CONFIG, CERTIFICATE, CARD = "ledger.jsonl", "config.json", "certificate.json", "README.md"
DIRECTIONS, GENERATOR, SCORES = "directions.bin", "generator.safetensors", "scores.json"


@dataclass
class Verification:
    """What was found.

    Attributes:
        differences: one line each; empty where everything agrees.
        certificate: what the certificate must say, recomputed; empty where that was not possible.
        lost_steps: releases that were charged and whose direction was lost in a crash.
        replay: what the replay of the student's training found, where it was asked for.
    """

    differences: list[str] = field(default_factory=list)
    certificate: dict[str, Any] = field(default_factory=dict)
    lost_steps: int = 0
    replay: dict[str, Any] | None = None

    @property
    def agrees(self) -> bool:
        """Whether there is no difference."""
        return not self.differences

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "agrees": self.agrees,
            "differences": self.differences,
            "lost_steps": self.lost_steps,
            "certificate": self.certificate,
            "replay": self.replay,
        }


def verify_run(root: Path, *, replay: bool = False) -> Verification:
    """Verify the run in ``root``.

    Args:
        root: the folder that holds ``release/``.
        replay: also train the student again from the released directions and compare the generators.

    Raises:
        RunError: there is no ledger.
    """
    release = _released(root)
    found = Verification()
    try:
        entries = read_entries(release / LEDGER)
        config = _json(release / CONFIG)
    except Difference as error:
        found.differences.append(str(error))
        return found
    checks: list[Callable[[], None]] = [
        lambda: _check_head(entries),
        lambda: _check_settings(entries, config, release, found),
        lambda: _check_order(entries),
        lambda: _check_events(entries),
        lambda: _check_directions(entries, release, found),
        lambda: _check_scores(entries, release),
        lambda: _check_certificate(entries, config, release, found),
    ]
    if is_tuned(entries):
        middle = tuned_checks(entries, config, release)
        checks = [
            checks[0],
            lambda: _check_order(entries),
            *middle,
            *checks[-2:],
        ]  # only public scores are paid for
    for check in checks:
        try:
            check()
        except Difference as error:
            found.differences.append(str(error))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            found.differences.append(f"release/ cannot be understood ({type(error).__name__}: {error!s:.80})")
    if replay:
        from datalens.audit.student_replay import replay_student

        try:
            found.replay = replay_student(root)
        except Difference as error:
            found.differences.append(str(error))
    return found


def _released(root: Path) -> Path:
    """The shared folder, under the one name or the other."""
    names = (promises.RELEASE_FOLDER, promises.UNFIT_RELEASE_FOLDER)
    found = [root / name for name in names if (root / name / LEDGER).is_file()]
    if not found:
        raise RunError(f"{root}: holds no run (no release/{LEDGER}); give the folder of a run")
    if len(found) > 1:
        raise RunError(f"{root}: holds two runs ({' and '.join(names)}); keep the one that belongs there")
    return found[0]


def _check_head(entries: Sequence[Entry]) -> None:
    known = known_head(str(entries[0].body.get("run_id", "")))
    if known is None:
        return
    number, digest = known
    if not 0 <= number < len(entries):
        raise Difference(f"{LEDGER} ends at line {len(entries) - 1}, but line {number} was seen here before")
    if entries[number].digest != digest:
        raise Difference(f"{LEDGER} has another line {number} than was seen here before")


def _check_settings(
    entries: Sequence[Entry], config: dict[str, Any], release: Path, found: Verification
) -> None:
    """``config.json`` is about the run of this ledger."""
    for difference in setting_differences(entries, config, release.name):  # kept also where a later one fails
        found.differences.append(difference)


def _check_order(entries: Sequence[Entry]) -> None:
    """Whatever was released fitted what was authorised at that time."""
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


def _check_events(entries: Sequence[Entry]) -> None:
    """Every release was charged for what the mechanism with the settings of its time does."""
    mechanism = dict(entries[0].body["mechanism"])
    for entry in entries:
        if entry.kind == "settings":
            mechanism |= {name: entry.body[name] for name in ("top_k", "noise_stddev")}
        if entry.kind != "release":
            continue
        [event], note = entry.charges, entry.body.get("note") or {}
        expected = score_charge(entries[0].body) if "score" in note else step_charge(mechanism)
        if not is_charge(event, expected):
            charged = (event["sensitivity"], event["noise_stddev"], event["coordinates"])
            raise Difference(
                f"{LEDGER} line {entry.number}: charges {charged}, the mechanism costs {expected}"
            )
        if event["noise"] != mechanism["noise"] or event["count"] != 1:
            raise Difference(f"{LEDGER} line {entry.number}: charges another noise than the mechanism's")


def _check_directions(entries: Sequence[Entry], release: Path, found: Verification) -> None:
    """Every recorded direction was paid for by a line of its own."""
    unused = {}
    for entry in entries:
        if entry.kind == "release" and "score" not in (entry.body.get("note") or {}):
            unused[entry.digest] = entry.body["note"]["step"]
    if len(set(unused.values())) != len(unused):
        raise Difference(f"{LEDGER}: a step was charged twice, so its noise may have been drawn twice")
    mechanism = entries[0].body["mechanism"]
    shape, last = (mechanism["batch_size"], mechanism["coordinates"]), -1
    for record in read_direction_records(release / DIRECTIONS):
        if unused.pop(record.paid_by, None) != record.step:
            raise Difference(f"{DIRECTIONS}: no line of {LEDGER} of its own pays for step {record.step}")
        if record.values.shape != shape or record.step <= last:
            raise Difference(f"{DIRECTIONS}: step {record.step} has another shape or order than the run's")
        last = record.step
    found.lost_steps = len(unused)


def _check_scores(entries: Sequence[Entry], release: Path) -> None:
    """Every score on people's data was paid for by a line of its own."""
    if not (release / SCORES).is_file():
        return
    paid = {
        entry.digest
        for entry in entries
        if entry.kind == "release" and "score" in (entry.body.get("note") or {})
    }
    for number, score in enumerate(_json(release / SCORES)["scores"]):
        if score["data_is_public"] is True:
            continue
        if score["line_hash"] not in paid:
            raise Difference(f"{SCORES}: no line of {LEDGER} of its own pays for score {number}")
        paid.remove(score["line_hash"])


def _check_certificate(
    entries: Sequence[Entry], config: dict[str, Any], release: Path, found: Verification
) -> None:
    names = [name for name in (CONFIG, DIRECTIONS, GENERATOR, SCORES) if (release / name).is_file()]
    files = {name: hashlib.sha256((release / name).read_bytes()).hexdigest() for name in names}
    if GENERATOR not in files:
        found.differences.append(f"{GENERATOR} is missing")
    said = _json(release / CERTIFICATE)
    expected = certificate_again(entries, config, files, said.get("environment"))
    found.certificate = expected
    found.differences += list(unequal(expected, said))
    try:
        card = (release / CARD).read_text()
    except (OSError, UnicodeDecodeError):
        raise Difference(f"{CARD} cannot be read") from None
    if card != data_card(said):
        raise Difference(f"{CARD} does not say what {CERTIFICATE} says")


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        raise Difference(f"{path.name} is missing or is not JSON") from None
    if not isinstance(value, dict):
        raise Difference(f"{path.name} is not a JSON object")
    return value
