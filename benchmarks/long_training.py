"""A whole training with a folder, however long: seconds of every step as they come, and accuracy at the end.

    python benchmarks/long_training.py mnist --recipe mnist-paper --run runs/paper --out training-mnist-paper.json
    python benchmarks/long_training.py mnist --recipe mnist-paper --run runs/paper --out ... --minutes 60

Where the folder holds the run already, it goes on, and the seconds of earlier stretches are kept from ``--out``. That
file is rewritten after every step. ``--minutes`` and ``--steps`` end it after the step in progress, with a
checkpoint. The accuracy is a CNN's on as many generated images, at the last of its epochs. The noise comes from an
insecure seed, so that anyone gets the same directions; they are in the run's folder. Prints the last content of
``--out``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from measuring import explained, machine, peak_resident_mib, spread

from datalens import DataLens, recipes
from datalens.data import load
from datalens.evaluation import evaluate_utility
from datalens.training.files import write_atomically
from datalens.training.session import Progress


def bytes_under(folder: Path) -> int:
    """What the files of a folder take."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class Log:
    """Seconds of the steps of every stretch, on disk after each."""

    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        self.path = path
        earlier = json.loads(path.read_text()) if path.exists() else {}
        self.facts: dict[str, Any] = {**facts, "stretches": earlier.get("stretches", [])}
        self.facts["stretches"].append({"seconds_of_steps": []})
        self._last = time.perf_counter()

    def tell(self, progress: Progress) -> None:
        """A step is done."""
        now = time.perf_counter()
        self.facts["stretches"][-1]["seconds_of_steps"].append(round(now - self._last, 2))
        self._last = now
        self.say(
            steps=progress.step,
            planned_steps=progress.num_steps,
            epsilon_spent=progress.epsilon_spent,
            peak_resident_mib=round(peak_resident_mib()),
        )

    def say(self, **facts: Any) -> None:
        """Add facts and write all of them."""
        self.facts |= facts
        write_atomically(self.path, (json.dumps(self.facts, indent=1) + "\n").encode())


def train(given: argparse.Namespace) -> dict[str, Any]:
    """Train, or go on, and score what came of it."""
    config = recipes.by_name(given.recipe).replace(privacy__insecure_seed=0)
    if given.num_teachers is not None:
        config = config.replace(voting__num_teachers=given.num_teachers, voting__shard_size=None)
    data = load(given.source, split="train")
    about = {
        "source": given.source,
        "recipe": given.recipe,
        "teachers": config.voting.num_teachers,
        "seed": 0,
    }
    log = Log(given.out, {**about, **machine(config.performance.device)})
    until = time.monotonic() + 60 * given.minutes
    steps = log.facts["stretches"][-1]["seconds_of_steps"]

    def stop() -> bool:
        return len(steps) >= given.steps or time.monotonic() > until

    how: dict[str, Any] = {"tell": log.tell, "stop": stop}
    if given.run.exists():
        model = DataLens.resume(given.run, data, **how)
    else:
        model = DataLens(config).fit(data, out=given.run, **how)
    seconds = [each for stretch in log.facts["stretches"] for each in stretch["seconds_of_steps"][1:]]
    log.say(
        finished=not model.was_stopped,
        seconds_a_step=spread(seconds) if seconds else None,
        run_folder_mib=round(bytes_under(given.run) / 2**20),
    )
    test = load(given.source, split="test")
    images, labels = model.sample(given.samples, seed=0)
    scored = evaluate_utility(images, labels, test.images, test.labels, num_classes=test.num_classes, seed=0)
    log.say(samples=given.samples, last_accuracy=scored.last_accuracy, epochs=scored.epochs)
    return log.facts


def main(arguments: list[str] | None = None) -> int:
    """Print what is known at the end."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", default="shapes")
    parser.add_argument("--recipe", default="shapes-quick")
    parser.add_argument("--num-teachers", type=int, help="instead of the recipe's")
    parser.add_argument("--run", type=Path, required=True, help="folder of the run, new or to go on with")
    parser.add_argument("--out", type=Path, required=True, help="JSON, rewritten after every step")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end after the step in progress")
    parser.add_argument("--steps", type=int, default=10**9, help="end after so many of this stretch")
    parser.add_argument("--samples", type=int, default=10000)
    sys.stdout.write(json.dumps(train(parser.parse_args(arguments))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(explained(main))
