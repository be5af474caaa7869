"""A public start once more: its file, what the file says of itself, and what settings, ledger and certificate say."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datalens.audit.ledger_reader import Difference, Entry
from datalens.audit.second_header import header_of
from datalens.privacy import promises

FILE = promises.PUBLIC_INIT_FILE


def start_again(config: Mapping[str, Any]) -> dict[str, str]:
    """What the certificate must say of the weights that a run begins with."""
    said = config.get("public_init")
    if said is None:
        return {}
    who = promises.START_OF[said["discriminators"]]
    how = promises.START_FROM[said["source"]]
    classes = promises.START_CLASSES[(said["source"], said["same_classes"])]
    return {"start": f"{who} {how}: {said['name']}, {classes} ({FILE}, SHA-256 {said['sha256']})"}


def check_start(entries: Sequence[Entry], config: Mapping[str, Any], release: Path) -> None:
    """The file that a run begins with is the one of its settings and its ledger, and says the same of itself.

    Raises:
        Difference: it is not, or there is one where the run names none.
    """
    said, paid = config.get("public_init"), entries[0].body.get("public_init")
    path = release / FILE
    if said is None:
        if paid is not None or path.exists():
            raise Difference(f"{FILE}: is there or in ledger.jsonl, but config.json says of no public start")
        return
    if not path.is_file():
        raise Difference(f"{FILE} is missing")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    for where, expected in (("config.json", said["sha256"]), ("ledger.jsonl", paid)):
        if expected != found:
            raise Difference(f"{FILE} is not the one that {where} names (its SHA-256 is {found:.12}...)")
    try:
        names, origin = header_of(content, "origin")
    except ValueError:
        raise Difference(f"{FILE}: its header does not say where it comes from") from None
    if origin != {name: value for name, value in said.items() if name != "sha256"}:
        raise Difference(f"{FILE} says another origin of itself than config.json")
    parts = {name.partition("/")[0] for name in names}
    if parts != {"generator", *(["discriminator"] if said["discriminators"] else [])}:
        raise Difference(f"{FILE} holds other networks than config.json says")
    if said["discriminators"] and config["config"]["teachers"]["kind"] != "paper":
        raise Difference(f"{FILE} starts discriminators, but the teachers of config.json have no weights")
