"""Seconds of a generator step, the memory it takes, and what lies on disk.

    python benchmarks/step.py mnist --recipe mnist-paper --steps 3
    python benchmarks/step.py mnist --recipe mnist-quick --steps 10
    python benchmarks/step.py mnist --recipe mnist-quick --num-teachers 20000 --teacher-store disk --steps 5
    python benchmarks/step.py random --recipe colour-quick --num-records 162770 --steps 2

The source `random` is colour images of 64x64 drawn by lot, of two classes, as many as CelebA trains on. The first
step is timed apart: teachers are made in it, and take more steps than later. Prints one line of JSON, and one to
standard error after every step.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np
from measuring import explained, machine, peak_resident_mib, spread

from datalens import recipes
from datalens.data import load
from datalens.data.images import LabelledImages
from datalens.training.session import Progress, Session

RANDOM = "random"


def drawn(num_records: int) -> LabelledImages:
    """Records without any meaning: what a step costs does not depend on what they show."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (num_records, 3, 64, 64), np.uint8)
    return LabelledImages(images, rng.integers(0, 2, num_records), ("a", "b"), RANDOM, public=True)


def measure(data: LabelledImages, recipe: str, steps: int, changes: dict[str, object]) -> dict[str, object]:
    """Train in memory, or in a temporary file, for one step and then for ``steps`` more."""
    config = recipes.by_name(recipe).replace(privacy__insecure_seed=0, **changes)
    session = Session.begin(config, data, None, signal_matters=False)
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
        "source": data.name,
        "records": data.num_records,
        "recipe": recipe,
        "teachers": teachers.num_teachers,
        "chunk_size": teachers.chunk_size,
        "steps": len(seconds) - 1,
        "seconds_of_the_first_step": float(seconds[0]),
        "seconds_a_step": spread(seconds[1:].tolist()),
        "milliseconds_a_teacher": spread((1000 * seconds[1:] / teachers.num_teachers).tolist()),
        "peak_resident_mib": peak_resident_mib(),
        "disk_mib": on_disk / 2**20,
        "seed": 0,
        **machine(config.performance.device),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", default="shapes")
    parser.add_argument("--num-records", type=int, default=162_770, help="of the source random")
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
    data = drawn(given.num_records) if given.source == RANDOM else load(given.source, split="train")
    sys.stdout.write(json.dumps(measure(data, given.recipe, given.steps, changes)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(explained(main))
