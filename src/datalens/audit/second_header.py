"""The header of a safetensors file, read without the library that wrote it."""

from __future__ import annotations

import json
from typing import Any

MOST = 10_000_000
"""Bytes of a header that is worth reading."""


def header_of(content: bytes, name: str) -> tuple[list[str], Any]:
    """The names of the tensors in a file, and the one text of this name beside them, which is JSON.

    Raises:
        ValueError: there is no such header.
    """
    size = int.from_bytes(content[:8], "little")
    if size > MOST:
        raise ValueError("a header that is too long")
    try:
        header = json.loads(content[8 : 8 + size])
        text = json.loads(header.pop("__metadata__")[name])
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("no header of ours") from error
    return list(header), text
