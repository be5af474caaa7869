"""The results store: one JSON line a measurement, only ever appended to.

A line holds the cell with its configuration, what was measured, and how: seed, versions, machine, seconds. Later
lines add scores to a cell or replace them. A line that a crash cut off is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from datalens.errors import RunError
from datalens.training.files import append_line

Result = Mapping[str, Any]
REFUSED = "refused"
"""The fact of a result without scores: why the product would not train the cell."""


class Named(Protocol):
    """What a result is of: a :class:`~datalens.experiments.cells.Cell` or a study."""

    @property
    def key(self) -> str:
        """Digest of everything that decides the result."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        ...


class ResultsStore:
    """Results by cell.

    Args:
        path: the file; made at the first result.
        read_only: nothing is to be added.

    A damaged line is passed over, so that what it held is run again.

    Raises:
        RunError: it cannot be read, or its first line is no result.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self._scores: dict[str, dict[str, dict[str, Any]]] = {}
        self._runs: dict[str, Result] = {}
        self._ends_whole = True
        try:
            content = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise RunError(f"{path}: cannot be read ({error.strerror}); give another --store") from None
        lines = content.split(b"\n")
        for number, line in enumerate(lines, 1):
            if line.strip():
                self._read(line, number, last=number == len(lines))

    def score(self, cell: Named, name: str) -> dict[str, Any] | None:
        """What was measured under a name, such as ``cnn-10000``; None where it was not."""
        return self._scores.get(cell.key, {}).get(name)

    def run(self, cell: Named) -> Result | None:
        """The last result of a cell, whole; None where there is none."""
        return self._runs.get(cell.key)

    def refusal(self, cell: Named) -> str | None:
        """Why the product would not train a cell; None where it did, or was not asked yet."""
        return None if self._scores.get(cell.key) else self._runs.get(cell.key, {}).get(REFUSED)

    def missing(self, cell: Named, names: Iterable[str]) -> list[str]:
        """Which of these scores a cell lacks."""
        held = self._scores.get(cell.key, {})
        return [name for name in names if name not in held]

    def add(self, cell: Named, scores: Mapping[str, Mapping[str, Any]], facts: Mapping[str, Any]) -> None:
        """Write one result; it is on disk when this returns.

        Args:
            cell: what ran.
            scores: by name.
            facts: of the run: privacy, steps, seconds, environment.

        Raises:
            RunError: it cannot be written.
        """
        result = {"key": cell.key, "cell": cell.to_json(), "scores": dict(scores), **facts}
        line = json.dumps(result, allow_nan=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        append_line(self.path, line if self._ends_whole else "\n" + line)
        self._ends_whole = True
        self._take(json.loads(line))

    def require_writable(self) -> None:
        """Refuse a file that cannot be added to, before anything is run for it; it is made if it is not there.

        Raises:
            RunError: why.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("ab").close()
        except OSError as error:
            raise RunError(
                f"{self.path}: cannot be written ({error.strerror}); give another --store"
            ) from None

    def _read(self, line: bytes, number: int, *, last: bool) -> None:
        try:
            result = json.loads(line)
            whole = isinstance(result["key"], str) and isinstance(result["scores"], dict)
        except (ValueError, KeyError, TypeError):
            whole, result = False, {}
        if whole:
            self._take(result)
        elif last:  # cut off by a crash; the next result begins a line of its own
            self._ends_whole = False
        elif number == 1:
            raise RunError(f"{self.path}: is not a results store; give another --store")

    def _take(self, result: dict[str, Any]) -> None:
        self._scores.setdefault(result["key"], {}).update(result["scores"])
        self._runs[result["key"]] = {**self._runs.get(result["key"], {}), **result}
