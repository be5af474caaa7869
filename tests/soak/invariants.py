"""What must hold whatever happened. Each check returns one line for every violation, none where all is well."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from pathlib import Path

from soak.commands import Ended

from datalens.errors import DataLensError
from datalens.privacy.authorisation import authorisations
from datalens.privacy.budget import Budget
from datalens.privacy.ledger import Ledger
from datalens.privacy.ledger_file import is_locked
from datalens.training.directions import DirectionRecord, read_directions
from datalens.training.run_folder import RunFolder

ROUNDING = 1e-9
NOTHING_BEGUN = 1
"""Lines of a ledger that nothing was charged to: its header."""


def ended_well(ended: Ended, allowed: Collection[int]) -> list[str]:
    """A known exit status; one line about a mistake; never a traceback."""
    found = []
    last = " / ".join(ended.err.splitlines()[-3:])
    if ended.status not in allowed:
        found.append(f"exit status {ended.status}, not one of {sorted(allowed)}: {last}")
    if "Traceback (most recent call last)" in ended.err + ended.out:
        found.append(f"a traceback: {last}")
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    if ended.status == 2 and (len(errors) != 1 or ended.err.splitlines()[-1] != errors[0]):
        found.append(f"status 2 without one line of error at the end: {last}")
    return found


def nothing_left(temporary: Path) -> list[str]:
    """The temporary folder is empty."""
    return [f"left in the temporary folder: {path.name}" for path in sorted(temporary.iterdir())]


def nothing_half_written(run: Path) -> list[str]:
    """No temporary name within a run that ended by itself."""
    names = [path for path in sorted(run.rglob("*")) if path.name.endswith((".tmp", ".new"))]
    return [f"half-written: {path.relative_to(run)}" for path in names]


def not_begun(run: Path) -> list[str]:
    """In a folder without settings nothing was charged."""
    found = []
    for path in run.glob("release*/ledger.jsonl"):
        if len(Ledger.read(path).lines) > NOTHING_BEGUN:
            found.append(f"{path.name}: has charges, and the run has no settings to go on with")
    return found


def tree(folder: Path) -> dict[str, str]:
    """SHA-256 of every file, and the mode of everything, by name."""
    return {
        str(path.relative_to(folder)): f"{path.stat().st_mode:o} "
        + (hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        for path in sorted(folder.rglob("*"))
    }


def untouched(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """A refused command changed nothing."""
    names = sorted(name for name in before | after if before.get(name) != after.get(name))
    return [f"changed by a command that was refused: {', '.join(names)}"] if names else []


class Seen:
    """What of a run was seen so far: nothing of it may ever be gone, or be without its charge."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.directions: dict[int, bytes] = {}
        self._checkpoints_are_whole = True

    def look(self, run: Path) -> list[str]:
        """Look at the run as it lies on the disk, nobody working on it."""
        if not RunFolder.holds_run(run):
            return [*not_begun(run), *(["the run's settings are gone"] if self.lines else [])]
        folder = RunFolder.open(run)
        try:
            ledger = Ledger.read(folder.ledger)
            found = [*self._ledger(ledger), *self._directions(folder, ledger)]
            found += _checkpoints(folder, ledger) if self._checkpoints_are_whole else []
        except DataLensError as error:
            return [f"cannot be read any more: {error}"]
        found += [] if folder.private.stat().st_mode & 0o777 == 0o700 else ["private/ is open to others"]
        return [
            *found,
            *(["the ledger is locked, and nobody works on it"] if is_locked(folder.ledger) else []),
        ]

    def forget(self, damaged: Path, run: Path, backup: Path) -> None:
        """What need not be there any more after a file was damaged on purpose and the run went on.

        Of a damaged ledger all lines must stay that the run's other files knew of; a cut-off record of directions
        is dropped, and a damaged checkpoint may lie there until newer ones replace it.

        Args:
            damaged: the file.
            run: the run's folder.
            backup: the folder as it was before.
        """
        self._checkpoints_are_whole = False
        folder, before = RunFolder.open(run), RunFolder.open(backup)
        if damaged == folder.directions:
            self.directions.clear()
        if damaged == folder.ledger:
            known = [index for _, (index, _) in _heads(before)]
            paying = {record.line_hash for record in _records(before)}
            known += [index for index, line in enumerate(self.lines) if line in paying]
            self.lines = self.lines[: max(known, default=0) + 1]

    def _ledger(self, ledger: Ledger) -> list[str]:
        lines, found = [line.hash for line in ledger.lines], []
        if lines[: len(self.lines)] != self.lines:
            found.append(f"lost: the ledger had {len(self.lines)} lines, and no longer has them all")
        self.lines = lines
        spent, authorised = _spent(ledger), authorisations(ledger)[-1].authorisation.epsilon
        if not spent <= authorised * (1 + ROUNDING):
            found.append(f"epsilon {spent:.6g} spent, {authorised:.6g} authorised")
        return found

    def _directions(self, folder: RunFolder, ledger: Ledger) -> list[str]:
        if not folder.directions.is_file():
            return ["lost: the file of directions is gone"] if self.directions else []
        records, found = _records(folder), []
        paid = {line.hash: line.body["note"]["step"] for line in ledger.lines if line.kind == "release"}
        used = [record.line_hash for record in records]
        if len(set(used)) != len(used):
            found.append("uncharged: one line of the ledger pays for two steps")
        found += [
            f"uncharged: step {record.step} was recorded and no line of the ledger pays for it"
            for record in records
            if paid.get(record.line_hash) != record.step
        ]
        now = {record.step: record.direction_BD.numpy().tobytes() for record in records}
        if not now.items() >= self.directions.items():
            found.append("lost: a direction that was recorded is gone or another one")
        self.directions = now
        return found


def _spent(ledger: Ledger) -> float:
    return Budget(ledger).spent_epsilon()


def _records(folder: RunFolder) -> list[DirectionRecord]:
    return read_directions(folder.directions) if folder.directions.is_file() else []


def _heads(folder: RunFolder) -> list[tuple[str, tuple[int, str]]]:
    """(checkpoint, the ledger's last line as it knows it) of every whole checkpoint."""
    found = []
    for path in sorted(folder.checkpoints.glob("step-*/meta.json")):
        try:
            index, digest = json.loads(path.read_bytes())["head"]
        except (ValueError, KeyError, TypeError):
            continue
        found.append((path.parent.name, (index, digest)))
    return found


def _checkpoints(folder: RunFolder, ledger: Ledger) -> list[str]:
    """Whatever a checkpoint learned from has its line in the ledger."""
    return [
        f"uncharged: {name} knows line {index} of the ledger, which is not there"
        for name, (index, digest) in _heads(folder)
        if index >= len(ledger.lines) or ledger.lines[index].hash != digest
    ]
