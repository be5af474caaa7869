"""Files that are whole or absent: written under a temporary name, flushed to disk, then renamed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from datalens.errors import RunError
from datalens.privacy.durable import sync_folder, write_all

PRIVATE = 0o600
"""Mode of files that only their owner may read."""
SHARED = 0o644
"""Mode of files under ``release/``, before the user's umask."""


def write_atomically(path: Path, content: bytes, *, mode: int = SHARED) -> None:
    """Write ``content`` so that ``path`` never holds a part of it.

    Raises:
        RunError: it cannot be written; ``path`` is as it was and nothing else is left.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            write_all(file.fileno(), content)
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise RunError(f"{path}: cannot be written ({error.strerror}); make room or permit it") from None


def write_json(path: Path, value: Any, *, mode: int = SHARED) -> None:
    """:func:`write_atomically` for JSON: indented, keys in the given order, no NaN."""
    write_atomically(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode(), mode=mode)


def append_line(path: Path, line: str) -> None:
    """Add one line to a private log; a line that does not fit whole is taken back.

    Raises:
        RunError: it cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE)
        try:
            size = os.fstat(descriptor).st_size
            try:
                write_all(descriptor, line.encode() + b"\n")
            except OSError:
                os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror}); make room or permit it") from None


def read_json(path: Path) -> Any:
    """The value in a JSON file.

    Raises:
        RunError: the file is missing or is not JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise RunError(f"{path}: no such file; give the folder of a run") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"{path}: cannot be read ({reason:.120}); restore the file") from None


def sweep(folders: Iterable[Path]) -> None:
    """Remove the temporary files that a killed process left behind; only for whoever holds the run's lock."""
    for folder in folders:
        for path in folder.glob(".*.tmp") if folder.is_dir() else ():
            with contextlib.suppress(OSError):
                if path.is_dir() and not path.is_symlink():
                    for part in path.iterdir():
                        part.unlink()
                    path.rmdir()
                else:
                    path.unlink()


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
