"""One file of a folder truncated, with one bit flipped, or gone."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

WAYS = ("cut", "flip", "remove")


def damage(files: list[Path], rng: random.Random, ways: Sequence[str] = WAYS) -> tuple[Path, str]:
    """Damage one of the files.

    Args:
        files: to choose from.
        rng: chooses file, way and place.
        ways: some of "cut", "flip", "remove".

    Returns:
        The file, and what was done to it in words.
    """
    path, way = rng.choice(sorted(files)), rng.choice(ways)
    content = path.read_bytes()
    if way == "remove" or not content:
        path.unlink()
        return path, "removed"
    place = rng.randrange(len(content))
    if way == "cut":
        path.write_bytes(content[:place])
        return path, f"cut to {place} of {len(content)} bytes"
    bit = 1 << rng.randrange(8)
    path.write_bytes(content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
    return path, f"bit {bit} of byte {place} of {len(content)} flipped"


def files_of(folder: Path, wanted: Callable[[Path], bool] = lambda _: True) -> list[Path]:
    """All files under a folder that are wanted."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and wanted(path))
