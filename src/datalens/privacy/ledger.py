"""The privacy ledger: one JSON line a release, chained by hash, on disk before the noise is used.

A line is canonical JSON with ``index``, ``kind``, ``body``, ``previous`` and ``hash`` (SHA-256 over the
previous hash and the canonical JSON of index, kind and body). It guards against accidents, not against a
dishonest curator or a restored copy of everything: whoever can write the file can also write a new chain.

A last line without its newline was cut off. It is kept in place as evidence, closed with a marker, and
followed by a ``recovered`` line that charges it. Nothing can have been drawn under it, since noise waits for
the whole line, but it is charged all the same, as the costliest release that the ledger knows of: before the
first release that costs more than every earlier one, a ``planned`` line names it, so the cut line never cost
more than that.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from datalens.errors import LedgerError, RunError
from datalens.privacy.durable import sync_folder, write_all
from datalens.privacy.events import Event, event_from_json
from datalens.privacy.ledger_file import lock, publish, read_all
from datalens.privacy.ledger_format import (
    CUT,
    FORMAT,
    GENESIS,
    OWN_KINDS,
    Head,
    LedgerLine,
    LineKind,
    canonical_json,
    costliest,
    events_of,
    make_line,
    parse,
)

__all__ = ["FORMAT", "Head", "Ledger", "LedgerLine", "LineKind", "canonical_json", "costliest"]


class Ledger:
    """An append-only, hash-chained list of what was authorised and released.

    Make one with :meth:`create`, :meth:`open` (one writer at a time), :meth:`read` (no lock, no change) or
    :meth:`in_memory`. Every method that writes returns after the line is on disk.
    """

    def __init__(
        self, lines: list[LedgerLine], path: Path | None, descriptor: int | None, *, writable: bool
    ) -> None:
        self._lines = lines
        self._path = path
        self._descriptor = descriptor
        self._refusal = "" if writable else "it was opened for reading only; open it with Ledger.open"
        self._known: set[Event] = set()
        self._charged: list[Event] = []
        self._unrecovered: tuple[Event, ...] = ()
        self._cut_off = False
        for line in lines:
            self._take_note(line)

    # -- making one ------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: str | Path, header: Mapping[str, Any]) -> Ledger:
        """A new ledger file whose line 0 holds ``header`` (what was authorised); it never exists
        half-written.

        Raises:
            RunError: the file exists.
            LedgerError: it cannot be written.
        """
        path = Path(path)
        line = make_line(0, LineKind.HEADER, {**header, "format": FORMAT}, GENESIS)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
        descriptor: int | None = None
        try:
            descriptor = os.open(
                temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644
            )
            lock(descriptor, path)
            write_all(descriptor, line.encode())
            os.fsync(descriptor)
            publish(temporary, path)
            sync_folder(path.parent)
        except OSError as error:
            if descriptor is not None:
                os.close(descriptor)
            with suppress(OSError):
                temporary.unlink()
            if isinstance(error, FileExistsError):
                raise RunError(f"ledger {path} exists: resume that run, or choose another path") from None
            raise LedgerError(
                f"ledger {path} cannot be created ({error}): make room or choose another path"
            ) from error
        return cls([line], path, descriptor, writable=True)

    @classmethod
    def open(cls, path: str | Path) -> Ledger:
        """Lock a ledger file for writing, check every line, and charge a cut-off last line.

        Raises:
            RunError: no such file, or another process writes to it.
            LedgerError: a damaged line (its number and the reason), or the repair cannot be written.
        """
        path = Path(path)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise RunError(
                f"ledger {path} cannot be opened ({error}): give the path of a run's ledger"
            ) from error
        try:
            lock(descriptor, path)
            content = read_all(descriptor)
            lines, cut = parse(content, path)
            ledger = cls(lines, path, descriptor, writable=True)
            if cut:
                ledger._recover(cut)
        except BaseException:
            os.close(descriptor)
            raise
        return ledger

    @classmethod
    def read(cls, path: str | Path) -> Ledger:
        """Check and read a ledger file without locking or changing it; a cut-off last line counts as
        charged."""
        path = Path(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise RunError(
                f"ledger {path} cannot be read ({error}): give the path of a run's ledger"
            ) from error
        lines, cut = parse(content, path)
        ledger = cls(lines, path, None, writable=False)
        if cut:
            ledger._unrecovered, ledger._cut_off = costliest(ledger._known), True
        return ledger

    @classmethod
    def in_memory(cls, header: Mapping[str, Any] | None = None) -> Ledger:
        """The same ledger without a file.

        >>> ledger = Ledger.in_memory({"dataset": "shapes"})
        >>> ledger.append("note", {"text": "hello"}).index
        1
        """
        return cls(
            [make_line(0, LineKind.HEADER, {**(header or {}), "format": FORMAT}, GENESIS)],
            None,
            None,
            writable=True,
        )

    # -- reading ---------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path | None:
        """The file, or None in memory."""
        return self._path

    @property
    def lines(self) -> tuple[LedgerLine, ...]:
        """All intact lines, oldest first."""
        return tuple(self._lines)

    @property
    def header(self) -> dict[str, Any]:
        """The body of line 0."""
        return dict(self._lines[0].body)

    @property
    def head(self) -> Head:
        """Index and hash of the last line: keep it in checkpoint, certificate and cache."""
        return self._lines[-1].index, self._lines[-1].hash

    @property
    def was_cut_off(self) -> bool:
        """True where :meth:`read` found a cut-off last line; :meth:`open` has recovered it already."""
        return self._cut_off

    def events(self) -> tuple[Event, ...]:
        """Every event that is charged: releases, and what stands for lines that were cut off."""
        return (*self._charged, *self._unrecovered)

    def check_heads(self, known: Iterable[Head]) -> None:
        """Refuse a ledger that is shorter than, or disagrees with, a head seen earlier.

        Raises:
            LedgerError: with the reason.
        """
        for index, digest in known:
            if not 0 <= index < len(self._lines):
                self._fail(
                    f"ends at line {len(self._lines) - 1} but line {index} was seen before: restore the "
                    "whole ledger"
                )
            if self._lines[index].hash != digest:
                self._fail(
                    f"has another line {index} than was seen before: restore the ledger that belongs to "
                    "this run"
                )

    # -- writing ---------------------------------------------------------------------------------------------

    def append(self, kind: str, body: Mapping[str, Any]) -> LedgerLine:
        """Add one line and return it once it is on disk.

        A ``release`` needs ``body["event"]`` (as ``event.to_json()``); see :meth:`charge`.

        Raises:
            LedgerError: a value JSON cannot hold, or the write failed (nothing may be released then).
        """
        if kind in OWN_KINDS or not kind.isidentifier():
            self._fail(f"cannot take a line of kind {kind!r}: that kind is the ledger's own")
        if kind == LineKind.RELEASE:
            self._announce(event_from_json(body.get("event") or {}))
        return self._write(make_line(len(self._lines), kind, dict(body), self._lines[-1].hash))

    def charge(self, event: Event, note: Mapping[str, Any] | None = None) -> LedgerLine:
        """Add the line of one release and return it once it is on disk; only then may the noise be drawn."""
        return self.append(LineKind.RELEASE, {"event": event.to_json(), "note": dict(note or {})})

    def close(self) -> None:
        """Give the lock back; later writes are refused."""
        descriptor, self._descriptor = self._descriptor, None
        self._refusal = self._refusal or "it was closed; open it again"
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _announce(self, event: Event) -> None:
        """Name a release that may cost more than all known ones, so that a cut-off line is never
        under-charged."""
        if event in self._known or costliest([*self._known, event]) == costliest(self._known):
            return
        body = {"event": event.to_json()}
        self._write(make_line(len(self._lines), LineKind.PLANNED, body, self._lines[-1].hash))

    def _recover(self, cut: bytes) -> None:
        body = {
            "after_index": self._lines[-1].index,
            "cut_bytes": len(cut) + len(CUT) + 1,
            "cut_sha256": hashlib.sha256(cut + CUT + b"\n").hexdigest(),
            "events": [event.to_json() for event in costliest(self._known)],
        }
        line = make_line(len(self._lines), LineKind.RECOVERED, body, self._lines[-1].hash)
        self._write(line, before=CUT + b"\n")

    def _write(self, line: LedgerLine, before: bytes = b"") -> LedgerLine:
        if self._refusal:
            self._fail(f"takes no line: {self._refusal}")
        descriptor = self._descriptor  # None in memory; what was closed or only read has a refusal
        if descriptor is not None:
            size = os.fstat(descriptor).st_size
            try:
                write_all(descriptor, before + line.encode())
                os.fsync(descriptor)
            except OSError as error:
                self._refusal = "an earlier write failed; free space and open it again"
                with suppress(OSError):  # what cannot be taken back is a cut-off line at the next opening
                    os.ftruncate(descriptor, size)
                    os.fsync(descriptor)
                raise LedgerError(
                    f"ledger {self._path} cannot be written ({error}): nothing was released"
                ) from error
        self._lines.append(line)
        self._take_note(line)
        return line

    def _take_note(self, line: LedgerLine) -> None:
        self._known.update(events_of(line, charged_only=False))
        self._charged.extend(events_of(line, charged_only=True))

    def _fail(self, reason: str) -> NoReturn:
        raise LedgerError(f"ledger {self._path or 'in memory'} {reason}")
