"""Names that a mistaken path may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

_MOST_LOOKED_AT = 1000


def near_names(path: Path, known: Iterable[str] = ()) -> str:
    """What lies beside a path that isn't there and is called nearly so, as part of a sentence; empty for nothing.

    Args:
        path: what was asked for.
        known: names that are no paths.

    >>> near_names(Path("nowhere/at/all"), ["mnist"])
    ''
    >>> near_names(Path("minst"), ["mnist"])
    "did you mean 'mnist'? "
    """
    beside: list[str] = []
    try:
        for entry in path.parent.iterdir():
            if not entry.name.startswith("."):
                beside.append(entry.name)
            if len(beside) == _MOST_LOOKED_AT:
                break
    except OSError:
        pass
    names = {name: name for name in known} | {name: str(path.parent / name) for name in sorted(beside)}
    found = [names[name] for name in difflib.get_close_matches(path.name, names, 2)]
    return f"did you mean {' or '.join(map(repr, found))}? " if found else ""
