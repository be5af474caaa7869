"""The last line that this user has seen of each ledger, in a cache file beside no run.

A ledger that was restored from an older copy together with its checkpoints agrees with all of them; it does not
agree with this file. It guards against accidents only: whoever wants to deceive can delete it, and a dishonest
curator never needed a ledger.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datalens.data.user_cache import user_cache
from datalens.errors import RunError
from datalens.training.files import PRIVATE, write_json

MOST_RUNS = 2000
Head = tuple[int, str]


def heads_file() -> Path:
    """Where they lie: in this user's cache."""
    return user_cache() / "heads.json"


def known_head(run_id: str) -> Head | None:
    """The last head noted for a run, or None."""
    return _parsed(_read().get(run_id))


def note_head(run_id: str, head: Head) -> None:
    """Remember a head; one that is behind the noted one changes nothing, and a failure stops nobody."""
    path = heads_file()
    with contextlib.suppress(OSError, RunError), _locked(path):
        heads = _read()
        before = _parsed(heads.pop(run_id, None))
        heads[run_id] = list(head if before is None or before[0] < head[0] else before)
        for oldest in list(heads)[: max(0, len(heads) - MOST_RUNS)]:
            del heads[oldest]
        write_json(path, heads, mode=PRIVATE)


def _read() -> dict[str, Any]:
    try:
        value = json.loads(heads_file().read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _parsed(value: Any) -> Head | None:
    match value:
        case [int(index), str(digest)]:
            return index, digest
    return None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
