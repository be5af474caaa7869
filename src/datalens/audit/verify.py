"""``datalens verify``: is everything in ``release/`` what the ledger says it is? Needs ``release/`` alone.

Ledger, directions, epsilon and certificate are read and computed by code of their own; a page for people is
compared word for word. What is found is a list of differences, each one line; none means that the files agree,
not that whoever made them was honest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from datalens.audit.direction_reader import read_direction_records
from datalens.audit.generator_reader import generator_environment
from datalens.audit.ledger_reader import Difference, Entry, read_entries
from datalens.audit.second_baselines import baseline_checks, is_baseline
from datalens.audit.second_certificate import certificate_again, unequal
from datalens.audit.second_charges import check_events, check_lines, check_order
from datalens.audit.second_noise import check_slack
from datalens.audit.second_settings import setting_differences
from datalens.audit.second_start import FILE as START
from datalens.audit.second_start import check_start, start_again
from datalens.audit.second_warm import FILE as WARM_FILE
from datalens.audit.second_warm import NOTE as WARM
from datalens.audit.second_warm import check_warm
from datalens.audit.tuned import is_tuned, tuned_checks
from datalens.errors import RunError
from datalens.privacy import promises
from datalens.privacy.card_front import licence_of
from datalens.privacy.data_card import data_card, is_card_of
from datalens.training.heads import known_head
from datalens.version import __version__

LEDGER, CONFIG, CERTIFICATE, CARD = "ledger.jsonl", "config.json", "certificate.json", "README.md"
DIRECTIONS, GENERATOR, SCORES = "directions.bin", "generator.safetensors", "scores.json"
CLASSIFIER = "classifier.safetensors"
SCORED = "right predictions"
"""The one thing that may be counted on people's data."""


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
    own = "releases" in entries[0].body.get("mechanism", {}) and not is_baseline(entries)
    if replay and (own or is_baseline(entries)):
        raise RunError(f"{root}: --replay is for runs of DataLens, whose directions are kept; leave it out")
    checks: list[Callable[[], None]] = [
        lambda: _check_head(entries),
        lambda: _check_settings(entries, config, release, found),
        lambda: check_order(entries),
        lambda: check_lines(entries),
        lambda: check_slack(
            (entry.body for entry in entries if entry.kind != "recovered"),
            (entry.body for entry in entries if entry.kind == "recovered"),
        ),
        lambda: check_events(entries, config),
        lambda: _check_directions(entries, release, found),
        lambda: _check_scores(entries, release),
        lambda: _check_certificate(entries, config, release, found),
    ]
    if is_tuned(entries):
        middle = tuned_checks(entries, config, release)
        checks = [checks[0], *checks[2:5], *middle, *checks[-2:]]  # only public scores are paid for
    elif is_baseline(entries):
        middle = baseline_checks(entries, config, release)
        checks = [checks[0], *middle, *checks[2:5], *checks[-2:]]
    elif own:
        checks = [checks[0], lambda: _refuse_own(entries), *checks[2:5], *checks[-2:]]
    else:
        checks.insert(1, lambda: check_warm(entries, config, release))
    checks.insert(1, lambda: check_start(entries, config, release))
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


def _refuse_own(entries: Sequence[Entry]) -> None:
    """Of a method that is no part of DataLens nobody here knows which releases its settings give."""
    raise Difference(
        f"{LEDGER} is of the method {entries[0].body['method']!r:.40}, which is no part of DataLens: what it "
        "releases, and how far a record moves that, cannot be worked out again here; ask whoever wrote it for a proof"
    )


def _check_settings(
    entries: Sequence[Entry], config: dict[str, Any], release: Path, found: Verification
) -> None:
    """``config.json`` is about the run of this ledger."""
    for difference in setting_differences(entries, config, release.name):  # kept also where a later one fails
        found.differences.append(difference)


def _check_directions(entries: Sequence[Entry], release: Path, found: Verification) -> None:
    """Every recorded direction was paid for by a line of its own."""
    unused = {}
    for entry in entries:
        if entry.kind == "release" and {"score", WARM}.isdisjoint(entry.body.get("note") or {}):
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
        entry.digest: entry.body
        for entry in entries
        if entry.kind == "release" and "score" in (entry.body.get("note") or {})
    }
    for number, score in enumerate(_json(release / SCORES)["scores"]):
        if score["data_is_public"] is True:
            continue
        if score["line_hash"] not in paid:
            raise Difference(f"{SCORES}: no line of {LEDGER} of its own pays for score {number}")
        body = paid.pop(score["line_hash"])
        said = {**body["note"], "noise_stddev": body["event"]["noise_stddev"]}
        if said.pop("score") != SCORED or any(score.get(name) != value for name, value in said.items()):
            raise Difference(f"{SCORES}: score {number} was measured or noised otherwise than {LEDGER} says")


def _check_certificate(
    entries: Sequence[Entry], config: dict[str, Any], release: Path, found: Verification
) -> None:
    network = CLASSIFIER if entries[0].body.get("method") in promises.CLASSIFIERS else GENERATOR
    names = (CONFIG, DIRECTIONS, network, SCORES, START, WARM_FILE, promises.LOADER_FILE)
    there = [name for name in names if (release / name).is_file()]
    files = {name: hashlib.sha256((release / name).read_bytes()).hexdigest() for name in there}
    if network not in files:
        found.differences.append(f"{network} is missing")
    said = _json(release / CERTIFICATE)
    made_in = generator_environment(release / network) if network in files else said.get("environment")
    expected = certificate_again(entries, config, files, made_in)
    expected["assumed_public"] |= start_again(config)
    found.certificate = expected
    found.differences += list(unequal(expected, said))
    try:
        card = (release / CARD).read_text()
    except (OSError, UnicodeDecodeError):
        raise Difference(f"{CARD} cannot be read") from None
    if not is_card_of(card, said):
        raise Difference(f"{CARD} {_other_words(card, said)}")


def _other_words(card: str, said: Mapping[str, Any]) -> str:
    """Where the page leaves its certificate, and why that may be: nobody can tell an old page from a changed one."""
    expected = data_card(said, licence_of(card)).splitlines()
    lines = zip_longest(card.splitlines(), expected)
    number = next((number for number, (one, other) in enumerate(lines, 1) if one != other), len(expected))
    made_with = str(said["environment"].get("datalens", "an unknown version"))
    why = (
        "it was changed" if made_with == __version__ else f"it was changed, or is as {made_with:.40} words it"
    )
    return (
        f"line {number} does not say what {CERTIFICATE} says in the words of version {__version__} ({why}); "
        f"{CERTIFICATE} is checked by itself, so read that, or have the run resumed, which writes the page"
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        raise Difference(f"{path.name} is missing or is not JSON") from None
    if not isinstance(value, dict):
        raise Difference(f"{path.name} is not a JSON object")
    return value
