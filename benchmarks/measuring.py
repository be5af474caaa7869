"""What the benchmarks share: medians with their spread, waiting for a device, and what it ran on."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from datalens.cli.problems import MISTAKE, explain
from datalens.training.release import environment


def spread(values: Sequence[float]) -> dict[str, float]:
    """Least, median and largest of some measurements.

    >>> spread([3.0, 1.0, 2.0])
    {'least': 1.0, 'median': 2.0, 'largest': 3.0}
    """
    return {"least": min(values), "median": statistics.median(values), "largest": max(values)}


def explained(main: Callable[[], int]) -> int:
    """The program's exit status; a mistake of its user is one line and status 2, as on the command line."""
    try:
        return main()
    except Exception as error:
        line = explain(error)
        if line is None:
            raise
        sys.stderr.write(f"error: {line}\n")
        return MISTAKE


def seconds_of(work: Callable[[], object], device: torch.device) -> float:
    """Wall time of ``work``, whatever it left running on ``device`` included."""
    wait_for(device)
    started = time.perf_counter()
    work()
    wait_for(device)
    return time.perf_counter() - started


def wait_for(device: torch.device) -> None:
    """Until the device has done what it was asked to; a CPU already has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_resident_mib() -> float:
    """The largest resident set that this process ever had, in MiB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (2**20 if sys.platform == "darwin" else 2**10)


def machine(device: torch.device | str) -> dict[str, Any]:
    """Versions, processor, cores and operating system: with every number, since none holds elsewhere."""
    return {
        **environment(device),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "command": " ".join(["python", *sys.argv]),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
