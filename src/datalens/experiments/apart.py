"""Work in a process of its own, so that its memory is its own and can be measured."""

from __future__ import annotations

import multiprocessing
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import ParamSpec, TypeVar

from datalens.errors import RunError

Words = ParamSpec("Words")
Answer = TypeVar("Answer")


def in_fresh_process(work: Callable[Words, Answer], *words: Words.args, **named: Words.kwargs) -> Answer:
    """What ``work`` returns or raises, from a new interpreter; all that goes in or out is copied.

    Raises:
        RunError: the process was killed, as for want of memory.
    """
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as pool:
        try:
            return pool.submit(work, *words, **named).result()
        except BrokenProcessPool:
            raise RunError(
                "the training's process was killed, perhaps for want of memory: free some, or choose smaller settings"
            ) from None


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
