"""How much faster two ranks of one thread are than one: seconds of a generator step, alternating within one run.

    python benchmarks/ranks.py mnist --recipe mnist-paper --num-teachers 80 --steps 4
    python benchmarks/ranks.py mnist --recipe mnist-quick --steps 4

Starts its own processes, which hold the same teachers twice: all of them on the first rank, and shared out. Steps of
both kinds take turns, so that whatever else the machine does meets both. The first of each kind is left out: teachers
are made in it. Beside the ratio of seconds stands that of the first rank's processor seconds: what the former would
be if nothing else ran and the ranks never waited. Fewer teachers keep the shards of the recipe's number. Prints one
line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from measuring import explained, machine

from datalens import recipes
from datalens.data import load
from datalens.data.images import LabelledImages
from datalens.distributed.ranks import Ranks
from datalens.training.algorithm import generator_step
from datalens.training.config import Config
from datalens.training.following import follow
from datalens.training.session import Session

Seconds = list[tuple[float, float]]
"""Of each step, on the clock and of the processor."""
CEILING_SECONDS = 1.0
"""Of each plain piece of work."""
FOLDER = "DATALENS_BENCHMARK_FOLDER"
"""Where the ranks keep what they share; whoever finds it in the environment is one of them."""


def take_turns(config: Config, data: LabelledImages, steps: int, ranks: Ranks) -> dict[str, Seconds]:
    """The steps alone and those shared, as the first rank has them."""
    folder = Path(os.environ[FOLDER]) / "run"
    seconds: dict[str, Seconds] = {"alone": [], "shared": []}
    if not ranks.is_first:
        follow(folder, data, ranks, lambda: False)
        return seconds
    shared = Session.begin(config, data, folder, signal_matters=False, ranks=ranks)
    alone = Session.begin(config, data, None, signal_matters=False)
    try:
        for step in range(steps + 1):
            for name, session in (("alone", alone), ("shared", shared)):
                started, used = time.perf_counter(), time.process_time()
                generator_step(session.parts, step)
                seconds[name].append((time.perf_counter() - started, time.process_time() - used))
        shared.dismiss()
    finally:
        shared.close()
        alone.close()
    return seconds


def machine_ratio(ranks: Ranks, seconds: float = CEILING_SECONDS) -> dict[str, float]:
    """How much more plain work all ranks do together than one alone, by kind of work, as the first rank sees it."""
    few = torch.rand(384, 384)
    many = torch.rand(16 * 2**20)
    product, sums = torch.empty_like(few), torch.empty_like(many)
    works = {
        "product in the cache": lambda: torch.mm(few, few, out=product),
        "passes over memory": lambda: torch.mul(many, 2, out=sums),
    }
    found = {}
    for name, work in works.items():
        ranks.largest(0)  # a barrier
        alone = rate(work, seconds) if ranks.is_first else 0.0
        ranks.largest(0)
        together = rate(work, seconds)
        found[name] = ranks.world_size * together / alone if ranks.is_first else 0.0
    return found


def rate(work: Callable[[], object], seconds: float) -> float:
    """How often a second, for so many seconds, after one time that is thrown away."""
    work()
    started, times = time.perf_counter(), 0
    while (took := time.perf_counter() - started) < seconds:
        work()
        times += 1
    return times / took


def work(given: argparse.Namespace) -> None:
    """One rank's part; the first one prints."""
    torch.set_num_threads(1)
    config = recipes.by_name(given.recipe).replace(privacy__insecure_seed=0)
    data = load(given.source, split="train")
    if given.num_teachers is not None:
        shard = data.num_records // config.voting.num_teachers
        config = config.replace(voting__num_teachers=given.num_teachers, voting__shard_size=shard)
    with Ranks.join() as ranks:
        ceilings = machine_ratio(ranks)
        seconds = take_turns(config, data, given.steps, ranks)
        if not ranks.is_first:
            return
        alone, shared = (np.array(seconds[name][1:]) for name in ("alone", "shared"))
        answer = {
            "source": given.source,
            "recipe": given.recipe,
            "teachers": config.voting.num_teachers,
            "ranks": ranks.world_size,
            "steps": len(alone),
            "ratio": float(np.median(alone[:, 0]) / np.median(shared[:, 0])),
            "ratio_of_each_pair": [round(float(ratio), 3) for ratio in alone[:, 0] / shared[:, 0]],
            "ratio_of_processor_seconds": float(np.median(alone[:, 1]) / np.median(shared[:, 1])),
            "machine_ratio": ceilings,
            "seconds_a_step_alone": float(np.median(alone[:, 0])),
            "seconds_a_step_shared": float(np.median(shared[:, 0])),
            "seed": 0,
            **machine(config.performance.device),
        }
        sys.stdout.write(json.dumps(answer) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Start the ranks, or be one of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", default="shapes")
    parser.add_argument("--recipe", default="shapes-quick")
    parser.add_argument("--num-teachers", type=int)
    parser.add_argument("--steps", type=int, default=4, help="timed steps of each kind, after the first")
    parser.add_argument("--ranks", type=int, default=2)
    given = parser.parse_args(arguments)
    if FOLDER in os.environ:
        work(given)
        return 0
    words = sys.argv[1:] if arguments is None else arguments
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(given.ranks)]
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, FOLDER: folder, "OMP_NUM_THREADS": "1"}
        return subprocess.run([*launcher, __file__, *words], env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(explained(main))
