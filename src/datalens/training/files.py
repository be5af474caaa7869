"""Files that are whole or absent: written under a temporary name, flushed to disk, then renamed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from datalens.errors import RunError


def write_atomically(path: Path, content: bytes) -> None:
    """Write ``content`` so that ``path`` never holds a part of it.

    Raises:
        RunError: it cannot be written; ``path`` is as it was and nothing else is left.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise RunError(f"{path}: cannot be written ({error.strerror}); make room or permit it") from None


def write_json(path: Path, value: Any) -> None:
    """:func:`write_atomically` for JSON: indented, keys in the given order, no NaN."""
    write_atomically(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """The value in a JSON file.

    Raises:
        RunError: the file is missing or is not JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise RunError(f"{path}: no such file; give the folder of a run") from None
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"{path}: cannot be read ({reason:.120}); restore the file") from None


def sync_folder(folder: Path) -> None:
    """Flush a folder's list of names to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
