"""A second reader of what a generator's file says it was made in: no library, and no tensor is looked at.

A safetensors file begins with a little-endian 64-bit length and a JSON object of that many bytes, whose
``__metadata__`` maps names to texts. Ours has one text, ``environment``, which is JSON again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from datalens.audit.ledger_reader import Difference

MOST = 10_000_000
"""Bytes of a header that is worth reading."""


def generator_environment(path: Path) -> dict[str, Any]:
    """Versions and platform of the training, as the generator's file has them; empty where it says nothing.

    Raises:
        Difference: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if size > MOST:
                raise ValueError
            header = json.loads(file.read(size))
        made_in = json.loads(header.get("__metadata__", {}).get("environment", "{}"))
        if not isinstance(made_in, dict):
            raise TypeError
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        raise Difference(f"{path.name}: its header does not say what it was made in") from None
    return made_in
