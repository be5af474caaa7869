"""Work in a process of its own, so that its memory is its own and can be measured."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from datalens.errors import RunError

Answer = TypeVar("Answer")


def in_fresh_process(work: Callable[..., Answer], *words: Any) -> Answer:
    """What ``work`` returns or raises, from a new interpreter; all that goes in or out is copied.

    The new process never outlives the call, nor this process: not after Ctrl-C, and not where this one is killed.

    Raises:
        RunError: the process was killed, as for want of memory.
    """
    fresh = multiprocessing.get_context("spawn")
    here, there = fresh.Pipe(duplex=False)
    process = fresh.Process(target=_answer, args=(there, work, words), daemon=True)
    with here:
        try:
            with there, _interrupts_held():  # Ctrl-C is for this process alone
                process.start()
            answer, error = here.recv()
        except EOFError:
            raise RunError(
                "the training's process was killed, perhaps for want of memory: free some, or choose smaller settings"
            ) from None
        finally:
            if process.pid is not None:
                process.kill()
                process.join()
    if error is not None:
        raise error
    return answer


def _answer(there: Connection, work: Callable[..., Any], words: tuple[Any, ...]) -> None:
    """What the new process does."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answer = work(*words), None
    except Exception as error:
        error.add_note(traceback.format_exc())  # for a defect; a mistake is told in one line
        answer = None, error
    there.send(answer)


def _end_with_parent() -> None:
    """Nobody waits for this process once its parent is gone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits until the end of this, and never reaches the processes begun meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def peak_memory_mib() -> float:
    """The largest resident set of this process so far, in MiB.

    On Linux read from ``/proc``: what ``getrusage`` says may be that of the process that began this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (2**20 if sys.platform == "darwin" else 2**10)
