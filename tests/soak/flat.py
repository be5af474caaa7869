"""Memory, file handles and threads of this process: measured after each round, and flat over all of them."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

FEWEST = 9
"""Measurements after warming up, without which a trend says nothing."""
WARM_UP = 0.2
"""Fraction of the measurements that is not looked at: caches fill, and every method is imported once."""
MORE_MEMORY, MORE_MIB = 0.05, 32.0
"""What may be more at the end: this fraction of the memory, or so many MiB, whichever is larger."""
MORE_HANDLES = 2


@dataclass(frozen=True)
class Use:
    """What the process holds now."""

    rss_mib: float
    handles: int
    threads: int

    def to_json(self) -> dict[str, float]:
        """Plain values."""
        return asdict(self)


def measure() -> Use:
    """Collect garbage, then look."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    handles = len(os.listdir("/proc/self/fd")) - 1  # the listing has one itself
    threads = len(os.listdir("/proc/self/task"))
    return Use(
        round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1), handles, max(threads, threading.active_count())
    )


def thirds(uses: Sequence[Use]) -> tuple[Use, Use] | None:
    """Medians of the first and the last third after warming up; None where there are too few."""
    warm = uses[round(len(uses) * WARM_UP) :]
    if len(warm) < FEWEST:
        return None
    size = len(warm) // 3
    return _median(warm[:size]), _median(warm[-size:])


def growth(uses: Sequence[Use]) -> list[str]:
    """One line for each of the three that is not flat."""
    ends = thirds(uses)
    if ends is None:
        return []
    first, last = ends
    found = []
    if last.rss_mib > first.rss_mib + max(MORE_MIB, MORE_MEMORY * first.rss_mib):
        found.append(f"memory grows: {first.rss_mib:.0f} MiB at first, {last.rss_mib:.0f} MiB at last")
    if last.handles > first.handles + MORE_HANDLES:
        found.append(f"file handles grow: {first.handles} at first, {last.handles} at last")
    if last.threads > first.threads + MORE_HANDLES:
        found.append(f"threads grow: {first.threads} at first, {last.threads} at last")
    return found


def _median(uses: Sequence[Use]) -> Use:
    return Use(
        median(use.rss_mib for use in uses),
        round(median(use.handles for use in uses)),
        round(median(use.threads for use in uses)),
    )
