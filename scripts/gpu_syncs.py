"""How often does a generator step make the host wait for the device, and where?

    python scripts/gpu_syncs.py --recipe mnist-paper --teachers 400
    python scripts/gpu_syncs.py --recipe shapes-quick --source shapes --device cpu

PyTorch warns of every operation that waits (``torch.cuda.set_sync_debug_mode``): reading a value, copying to the
host, copying ordinary host memory to the device. The warnings of some steps after the first two are counted by the
line that caused them. On a CPU nothing waits, and the count is null. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from pathlib import Path

import torch

from datalens import recipes
from datalens.data import load
from datalens.training.release import environment
from datalens.training.session import Progress, Session

WARM_UP = 2
ROOT = Path(__file__).resolve().parents[1]


def count(given: argparse.Namespace) -> dict[str, object]:
    """Take some steps while PyTorch warns of every wait."""
    device = torch.device(given.device)
    config = recipes.by_name(given.recipe).replace(privacy__insecure_seed=0, performance__device=given.device)
    if given.teachers:
        config = config.replace(voting__num_teachers=given.teachers)
    session = Session.begin(config, load(given.source, split="train"), None, signal_matters=False)
    waits: Counter[str] = Counter()
    done = 0

    def watch(mode: str) -> None:
        if device.type == "cuda":
            torch.cuda.set_sync_debug_mode(mode)

    def tell(progress: Progress) -> None:
        nonlocal done
        done += 1
        if done == WARM_UP:
            watch("warn")
        if done <= WARM_UP:
            caught.clear()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            session.run(tell=tell, stop=lambda: done >= WARM_UP + given.steps)
        finally:
            watch("default")
            session.close()
        waits.update(_place(warning) for warning in caught if "synchroniz" in str(warning.message))
    steps = max(1, done - WARM_UP)
    return {
        "waits_a_step": sum(waits.values()) / steps if device.type == "cuda" else None,
        "where": {place: number / steps for place, number in waits.most_common()},
        "steps": steps,
        "recipe": given.recipe,
        "source": given.source,
        "teachers": config.voting.num_teachers,
        "chunk_size": session.parts.teachers.chunk_size,
        "seed": 0,
        **environment(device),
    }


def _place(warning: warnings.WarningMessage) -> str:
    path = Path(warning.filename)
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
    return f"{name}:{warning.lineno}"


def main(arguments: list[str] | None = None) -> int:
    """Print the waits."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--recipe", default="mnist-paper")
    parser.add_argument("--source", default="mnist")
    parser.add_argument("--teachers", type=int, help="instead of the recipe's")
    parser.add_argument("--steps", type=int, default=3)
    sys.stdout.write(json.dumps(count(parser.parse_args(arguments))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
