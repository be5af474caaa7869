"""The file under a ledger: one writer at a time, and named only when it is whole."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from datalens.errors import LedgerError, RunError


def lock(descriptor: int, path: Path) -> None:
    """Take the file for this process alone.

    Raises:
        RunError: another process has it.
        LedgerError: the file system has no locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunError(f"ledger {path} is in use by another process: wait until that run ends") from None
    except OSError as error:
        raise LedgerError(f"ledger {path} cannot be locked ({error}): keep it on a local disk") from error


def is_locked(path: Path) -> bool:
    """Whether a process writes to the file just now; False also where the file system cannot tell.

    The lock is asked for and shared, for no longer than the question takes.
    """
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def publish(temporary: Path, path: Path) -> None:
    """Give the finished file its name, never replacing an existing one."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError(path) from None
        os.rename(temporary, path)
    else:
        temporary.unlink()


def read_all(descriptor: int) -> bytes:
    """The whole file."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    chunks = []
    while chunk := os.read(descriptor, 1 << 20):
        chunks.append(chunk)
    return b"".join(chunks)
