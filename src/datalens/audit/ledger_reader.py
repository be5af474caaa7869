"""A second reader of ledgers, for verification: it shares no code with the one that writes them.

A line is JSON text with sorted keys and no spaces. Its hash is SHA-256 over the hash of the line before (64 zeros
for the first) followed by the JSON of ``body``, ``index`` and ``kind``. A line that a crash cut off ends in
`` #cut-off`` and is followed by a ``recovered`` line that charges it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CUT = b" #cut-off"
LEDGER_FORMAT = "datalens-ledger/1"


class Difference(Exception):
    """Something in a release is not what another part of it says. One line."""


@dataclass(frozen=True)
class Entry:
    """One line of a ledger.

    Attributes:
        number: from 0.
        kind: header, planned, release, recovered, authorisation, settings or another word.
        body: what it says.
        digest: its hash.
        charges: the events that it charges, as JSON has them.
    """

    number: int
    kind: str
    body: dict[str, Any]
    digest: str
    charges: tuple[dict[str, Any], ...]


def read_entries(path: Path) -> list[Entry]:
    """All lines of a ledger, each checked against its hash and the line before.

    Raises:
        Difference: the file is missing, damaged, ends in a cut-off line, or its chain is broken.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Difference(f"{path.name} cannot be read ({error.strerror})") from None
    if not content.endswith(b"\n"):
        raise Difference(f"{path.name} ends in a cut-off line; resume the run, which charges it")
    entries: list[Entry] = []
    last, cut = "0" * 64, b""
    for raw in content[:-1].split(b"\n"):
        if entries and raw.endswith(CUT):
            cut += raw + b"\n"
            continue
        entry = _entry(raw, len(entries), last, path.name)
        if (entry.kind == "recovered") is not bool(cut):
            raise Difference(f"{path.name} line {entry.number}: a cut-off line is not followed by its charge")
        if cut and entry.body.get("cut_sha256") != hashlib.sha256(cut).hexdigest():
            raise Difference(f"{path.name} line {entry.number}: the cut-off line before it has changed")
        entries.append(entry)
        last, cut = entry.digest, b""
    if cut:
        raise Difference(f"{path.name} ends in a cut-off line that nothing charges")
    if not entries or entries[0].kind != "header" or entries[0].body.get("format") != LEDGER_FORMAT:
        raise Difference(f"{path.name} does not begin with a header of {LEDGER_FORMAT}")
    if any(entry.kind == "header" for entry in entries[1:]):
        raise Difference(f"{path.name} has a second header")
    return entries


def _entry(raw: bytes, number: int, last: str, name: str) -> Entry:
    try:
        value = json.loads(raw)
        body, digest = value["body"], value["hash"]
        if set(value) != {"body", "hash", "index", "kind", "previous"} or not isinstance(body, dict):
            raise ValueError
        if _text(value).encode() != raw:
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Difference(f"{name} line {number}: is not a ledger line") from None
    if value["index"] is True or value["index"] != number:
        raise Difference(f"{name} line {number}: calls itself number {value['index']!r:.20}")
    signed = last + _text({"body": body, "index": number, "kind": value["kind"]})
    if value["previous"] != last or hashlib.sha256(signed.encode()).hexdigest() != digest:
        raise Difference(f"{name} line {number}: its hash does not fit its content and the line before")
    return Entry(
        number, str(value["kind"]), body, str(digest), _charges(str(value["kind"]), body, name, number)
    )


def _charges(kind: str, body: dict[str, Any], name: str, number: int) -> tuple[dict[str, Any], ...]:
    found: Any = []
    if kind == "release":
        found = [body.get("event")]
    elif kind == "recovered":
        found = body.get("events")
    if not isinstance(found, list) or not all(isinstance(event, dict) for event in found):
        raise Difference(f"{name} line {number}: does not say what it charges")
    return tuple(found)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
