"""Names of classes as names of folders, on every system."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_SAFE = re.compile(r"[^./\\:*?\"<>|][^/\\:*?\"<>|]{0,99}")
_MOST_BYTES = 255
_SPLIT_NAMES = ("train", "test")
_DEVICES = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³])(\..*)?")
"""Names that Windows keeps for devices, whatever comes after a dot."""


def folder_names(classes: Sequence[str]) -> tuple[str, ...]:
    """Sub-folder names of the classes, safe on every system and distinct in every case.

    Returns:
        The classes' own names, or their numbers where one of them cannot name a folder.

    >>> folder_names(["cat", "../dog"])
    ('0', '1')
    """
    folded = [unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold()) for name in classes]
    plain = all(map(_names_a_folder, classes, folded))
    if plain and len(set(folded)) == len(classes):
        return tuple(classes)
    return tuple(str(number) for number in range(len(classes)))


def _names_a_folder(name: str, folded: str) -> bool:
    """Whether a class's own name can be the name of a folder, on every system."""
    return (
        name.isprintable()
        and _SAFE.fullmatch(name) is not None
        and name == name.strip()
        and not name.endswith(".")
        and len(unicodedata.normalize("NFD", name).encode()) <= _MOST_BYTES
        and folded not in _SPLIT_NAMES
        and _DEVICES.fullmatch(folded) is None
    )
