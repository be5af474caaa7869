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

import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from datalens.errors import LedgerError, RunError
from datalens.privacy.events import (
    Event,
    GaussianEvent,
    NoiseKind,
    PoissonGaussianEvent,
    SamplerSlack,
    event_from_json,
)

FORMAT = "datalens-ledger/1"
GENESIS = "0" * 64
_CUT = b" #cut-off"
_OWN_KINDS = frozenset({"header", "planned", "recovered"})

Head = tuple[int, str]


@dataclass(frozen=True)
class LedgerLine:
    """One intact line. ``hash`` commits to it and to every line before it."""

    index: int
    kind: str
    body: dict[str, Any]
    previous: str
    hash: str

    def encode(self) -> bytes:
        """The line as it stands in the file, with its newline."""
        return (canonical_json(self.__dict__) + "\n").encode()


def canonical_json(value: Any) -> str:
    """The one JSON text of ``value``: sorted keys, no spaces, ASCII, floats by repr (read back exactly).

    Raises:
        LedgerError: NaN, an infinity, or something JSON has no form for.

    >>> canonical_json({"b": 0.1, "a": 1})
    '{"a":1,"b":0.1}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise LedgerError(f"ledger cannot hold {value!r:.80} ({error}): give plain finite values") from error


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
        line = _make_line(0, "header", {**header, "format": FORMAT}, GENESIS)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
        descriptor: int | None = None
        try:
            descriptor = os.open(
                temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644
            )
            _lock(descriptor, path)
            _write_all(descriptor, line.encode())
            os.fsync(descriptor)
            _publish(temporary, path)
            _sync_folder(path.parent)
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
            _lock(descriptor, path)
            content = _read_all(descriptor)
            lines, cut = _parse(content, path)
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
        lines, cut = _parse(content, path)
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
            [_make_line(0, "header", {**(header or {}), "format": FORMAT}, GENESIS)],
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
        if kind in _OWN_KINDS or not kind.isidentifier():
            self._fail(f"cannot take a line of kind {kind!r}: that kind is the ledger's own")
        if kind == "release":
            self._announce(event_from_json(body.get("event") or {}))
        return self._write(_make_line(len(self._lines), kind, dict(body), self._lines[-1].hash))

    def charge(self, event: Event, note: Mapping[str, Any] | None = None) -> LedgerLine:
        """Add the line of one release and return it once it is on disk; only then may the noise be drawn."""
        return self.append("release", {"event": event.to_json(), "note": dict(note or {})})

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
        self._write(_make_line(len(self._lines), "planned", body, self._lines[-1].hash))

    def _recover(self, cut: bytes) -> None:
        body = {
            "after_index": self._lines[-1].index,
            "cut_bytes": len(cut) + len(_CUT) + 1,
            "cut_sha256": hashlib.sha256(cut + _CUT + b"\n").hexdigest(),
            "events": [event.to_json() for event in costliest(self._known)],
        }
        line = _make_line(len(self._lines), "recovered", body, self._lines[-1].hash)
        self._write(line, before=_CUT + b"\n")

    def _write(self, line: LedgerLine, before: bytes = b"") -> LedgerLine:
        if self._refusal:
            self._fail(f"takes no line: {self._refusal}")
        if self._path is not None:
            descriptor = self._descriptor
            if descriptor is None:
                self._fail("takes no line: it was closed; open it again")
            size = os.fstat(descriptor).st_size
            try:
                _write_all(descriptor, before + line.encode())
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
        self._known.update(_events_of(line, charged_only=False))
        self._charged.extend(_events_of(line, charged_only=True))

    def _fail(self, reason: str) -> NoReturn:
        raise LedgerError(f"ledger {self._path or 'in memory'} {reason}")


def costliest(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events that together cost at least as much as the costliest of ``events``: one for each family.

    A family is a kind of noise, or Poisson sampling; its event has the largest of every parameter.
    """
    gaussians: dict[NoiseKind, list[GaussianEvent]] = {}
    sampled: list[PoissonGaussianEvent] = []
    for event in events:
        if isinstance(event, GaussianEvent):
            gaussians.setdefault(event.noise, []).append(event)
        else:
            sampled.append(event)
    worst: list[Event] = [_worst_gaussian(gaussians[kind]) for kind in NoiseKind if kind in gaussians]
    if sampled:
        worst.append(
            PoissonGaussianEvent(
                sampling_probability=max(event.sampling_probability for event in sampled),
                noise_multiplier=min(event.noise_multiplier for event in sampled),
                count=max(event.count for event in sampled),
            )
        )
    return tuple(worst)


def _worst_gaussian(events: list[GaussianEvent]) -> GaussianEvent:
    return GaussianEvent(
        sensitivity=max(event.sensitivity for event in events),
        noise_stddev=min(event.noise_stddev for event in events),
        coordinates=max(event.coordinates for event in events),
        noise=events[0].noise,
        slack=SamplerSlack(
            max(event.slack.eta for event in events), max(event.slack.tau for event in events)
        ),
        count=max(event.count for event in events),
    )


def _events_of(line: LedgerLine, *, charged_only: bool) -> list[Event]:
    """The events that a line charges, or (charged_only=False) every event it names."""
    if line.kind == "release" or (line.kind == "planned" and not charged_only):
        return [event_from_json(line.body["event"])]
    if line.kind == "recovered":
        return [event_from_json(event) for event in line.body["events"]]
    return []


def _make_line(index: int, kind: str, body: dict[str, Any], previous: str) -> LedgerLine:
    text = canonical_json({"index": index, "kind": kind, "body": body})
    digest = hashlib.sha256((previous + text).encode()).hexdigest()
    return LedgerLine(index, kind, json.loads(canonical_json(body)), previous, digest)


def _parse(content: bytes, path: Path) -> tuple[list[LedgerLine], bytes]:
    """All intact lines, and the bytes of a cut-off end (empty if there is none).

    Raises:
        LedgerError: a damaged line that is not a cut-off end.
    """
    lines: list[LedgerLine] = []
    cut = b""
    *complete, tail = content.split(b"\n")
    for number, raw in enumerate(complete, start=1):
        if raw.endswith(_CUT) and lines:
            cut += raw + b"\n"
            continue
        try:
            line = _read_line(raw, lines)
            _check_recovery(line, cut)
        except LedgerError as error:
            raise LedgerError(
                f"ledger {path} is damaged at line {number} ({error}): restore it from a copy"
            ) from error
        lines.append(line)
        cut = b""
    if not lines:
        raise LedgerError(
            f"ledger {path} is damaged at line 1 (no whole header): nothing was released under it, remove it"
        )
    if tail.count(b'"kind":"release"') > 1:
        raise LedgerError(
            f"ledger {path} is damaged at line {len(complete) + 1} (two lines in one): restore it from a copy"
        )
    return lines, cut + tail


def _read_line(raw: bytes, before: list[LedgerLine]) -> LedgerLine:
    try:
        value = json.loads(raw.decode("ascii"))
        line = _make_line(value["index"], value["kind"], value["body"], value["previous"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LedgerError(f"not a ledger line: {type(error).__name__}") from error
    previous = before[-1].hash if before else GENESIS
    if type(line.index) is not int or line.index != len(before):
        raise LedgerError(f"index {line.index!r:.20} where {len(before)} belongs")
    if line.previous != previous or line.encode() != raw + b"\n":
        raise LedgerError("its hash does not match its content or the line before")
    if (line.kind == "header") != (not before) or (not before and line.body.get("format") != FORMAT):
        raise LedgerError(f"a header of format {FORMAT} belongs in line 1 and nowhere else")
    _events_of(line, charged_only=False)
    return line


def _check_recovery(line: LedgerLine, cut: bytes) -> None:
    if (line.kind == "recovered") != bool(cut):
        raise LedgerError("a cut-off line and the line that charges it must stand together")
    if cut and line.body.get("cut_sha256") != hashlib.sha256(cut).hexdigest():
        raise LedgerError("the cut-off line before it has changed")


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunError(f"ledger {path} is in use by another process: wait until that run ends") from None
    except OSError as error:
        raise LedgerError(f"ledger {path} cannot be locked ({error}): keep it on a local disk") from error


def _publish(temporary: Path, path: Path) -> None:
    """Give the finished file its name, never replacing an existing one."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError(path) from None
        os.rename(temporary, path)
    else:
        temporary.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _read_all(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    chunks = []
    while chunk := os.read(descriptor, 1 << 20):
        chunks.append(chunk)
    return b"".join(chunks)
