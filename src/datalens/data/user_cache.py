"""The one folder that is written to though nobody named it."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """This user's cache for DataLens: ``datalens`` under the variable XDG_CACHE_HOME, else under ``~/.cache``.

    A variable that does not begin at the root of the file system counts for nothing, as its standard has it: it
    would put the cache below whatever folder a command happens to be started in.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (named if named.is_absolute() else Path.home() / ".cache") / "datalens"
