"""Seconds of a generator step, the memory it takes, and what lies on disk.

    python benchmarks/step.py mnist --recipe mnist-paper --steps 3
    python benchmarks/step.py mnist --recipe mnist-quick --steps 10
    python benchmarks/step.py mnist --recipe mnist-quick --num-teachers 20000 --teacher-store disk --steps 5

The first step is timed apart: teachers are made in it, and take more steps than later. Prints one line of JSON, and
one to standard error after every step.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time

import numpy as np
import torch

from datalens import recipes
from datalens.data import load
from datalens.training.release import environment
from datalens.training.session import Progress, Session

BYTES_OF_RSS = 1 if sys.platform == "darwin" else 1024


def measure(source: str, recipe: str, steps: int, changes: dict[str, object]) -> dict[str, object]:
    """Train in memory, or in a temporary file, for one step and then for ``steps`` more."""
    config = recipes.by_name(recipe).replace(privacy__insecure_seed=0, **changes)
    session = Session.begin(config, load(source, split="train"), None, signal_matters=False)
    teachers = session.parts.teachers
    ends = [time.perf_counter()]

    def tell(progress: Progress) -> None:
        ends.append(time.perf_counter())
        sys.stderr.write(f"step {progress.step}: {ends[-1] - ends[-2]:.2f} s\n")

    try:
        session.run(tell=tell, stop=lambda: len(ends) > steps + 1)
        on_disk = teachers.disk_bytes
    finally:
        session.close()
    seconds = np.diff(ends)
    return {
        "source": source,
        "recipe": recipe,
        "teachers": teachers.num_teachers,
        "chunk_size": teachers.chunk_size,
        "steps": len(seconds) - 1,
        "seconds_of_the_first_step": float(seconds[0]),
        "seconds_a_step": float(np.median(seconds[1:])),
        "least_and_most": [float(seconds[1:].min()), float(seconds[1:].max())],
        "milliseconds_a_teacher": 1000 * float(np.median(seconds[1:])) / teachers.num_teachers,
        "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * BYTES_OF_RSS,
        "disk_bytes": on_disk,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        **environment(config.performance.device),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", default="shapes")
    parser.add_argument("--recipe", default="shapes-quick")
    parser.add_argument("--steps", type=int, default=5, help="timed steps, after the first")
    parser.add_argument("--num-teachers", type=int)
    parser.add_argument("--teacher-store", default="auto")
    parser.add_argument("--teacher-memory", type=float, help="GiB")
    parser.add_argument("--chunk-size", type=int)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args(arguments)
    changes: dict[str, object] = {
        "performance__teacher_store": given.teacher_store,
        "performance__teacher_memory": given.teacher_memory,
        "performance__chunk_size": given.chunk_size,
        "performance__device": given.device,
    }
    if given.num_teachers is not None:
        changes |= {"voting__num_teachers": given.num_teachers, "voting__shard_size": None}
    sys.stdout.write(json.dumps(measure(given.source, given.recipe, given.steps, changes)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
