"""Train a recipe in memory on a device and say how long each part took, while it runs.

    python scripts/gpu_training.py mnist --recipe mnist-paper --device cuda --out results/gpu/mnist-paper.json
    python scripts/gpu_training.py mnist --recipe mnist-quick --device cuda --accuracy

The whole training, unless ``--steps`` or ``--most-seconds`` ends it early; then ``seconds.foreseen`` says what all
steps would take at the median so far. ``--out`` is rewritten as it goes, so a killed run leaves what it knew. Noise
comes from the operating system, as in a real run. Nothing is kept of the generator. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from datalens import data, recipes
from datalens.evaluation import evaluate_utility
from datalens.student.sampling import sample_images
from datalens.training.release import environment
from datalens.training.session import Progress, Session

EVERY = 5
"""Steps between two writings of ``--out``."""


class Report:
    """What is known so far, on disk as soon as it is."""

    def __init__(self, path: Path | None, facts: dict[str, Any]) -> None:
        self.path, self.facts = path, facts

    def say(self, **facts: Any) -> None:
        """Add facts and write all of them, whole or not at all."""
        self.facts |= facts
        if self.path is not None:
            part = self.path.with_name(self.path.name + ".part")
            part.write_text(json.dumps(self.facts) + "\n")
            part.replace(self.path)


def waited(device: torch.device) -> float:
    """The time once the device has done what it was asked to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def memory(device: torch.device) -> dict[str, float]:
    """Peak memory of the process, and of the device where it has its own, in GiB."""
    found = {"resident_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}
    if device.type == "cuda":
        found["device_gib"] = torch.cuda.max_memory_allocated(device) / 2**30
        found["device_reserved_gib"] = torch.cuda.max_memory_reserved(device) / 2**30
        found["device_total_gib"] = torch.cuda.get_device_properties(device).total_memory / 2**30
    return found


def train(given: argparse.Namespace) -> dict[str, Any]:
    """Train, and measure as it goes."""
    device = torch.device(given.device)
    report = Report(given.out, {"recipe": given.recipe, "source": given.source, "finished": False})
    report.say(**environment(device), seed="operating system")
    config = recipes.by_name(given.recipe, epsilon=given.epsilon).replace(performance__device=given.device)
    if given.teachers:
        config = config.replace(voting__num_teachers=given.teachers)
    if given.chunk_size:
        config = config.replace(performance__chunk_size=given.chunk_size)
    seconds: dict[str, Any] = {}
    started = time.perf_counter()
    images = data.load(given.source, split="train", root=given.data_root)
    seconds["data"] = time.perf_counter() - started
    started = waited(device)
    session = Session.begin(config, images, None, signal_matters=False)
    seconds["begin"] = waited(device) - started
    report.say(
        teachers=config.voting.num_teachers,
        planned_steps=session.plan.num_steps,
        chunk_size=session.parts.teachers.chunk_size,
        seconds=seconds,
        memory=memory(device),
    )
    ends = [waited(device)]

    def tell(progress: Progress) -> None:
        ends.append(waited(device))
        if len(ends) % EVERY == 1 or len(ends) == 2:
            say()

    def say() -> None:
        steps = [after - before for before, after in pairwise(ends)]
        rest = steps[1:] or steps
        seconds["training"] = ends[-1] - ends[0]
        if steps:
            seconds["first_step"] = steps[0]
            seconds["a_step"] = {"least": min(rest), "median": statistics.median(rest), "largest": max(rest)}
            left = session.plan.num_steps - len(steps)
            seconds["foreseen"] = seconds["training"] + max(0, left) * seconds["a_step"]["median"]
        report.say(steps=len(steps), memory=memory(device), epsilon_spent=session.budget.spent_epsilon())

    def stop() -> bool:
        return len(ends) > given.steps or ends[-1] - ends[0] > given.most_seconds

    try:
        report.say(finished=session.run(tell=tell, stop=stop))
    finally:
        session.close()
    say()
    started = waited(device)
    generator = session.student.finished_generator()
    drawn, labels = sample_images(generator, session.facts.student_plan.latent, given.samples)
    seconds["sampling"] = waited(device) - started
    report.say(samples=given.samples)
    if given.accuracy:
        test = data.load(given.source, split="test", root=given.data_root)
        result = evaluate_utility(
            drawn, labels, test.images, test.labels, num_classes=test.num_classes, device=given.device
        )
        seconds["evaluation"] = result.seconds
        report.say(last_accuracy=result.last_accuracy)
    report.say(failed_teachers=sum(len(found.failed) for found in session.diagnostics))
    return report.facts


def main(arguments: list[str] | None = None) -> int:
    """Print what the training took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", default="mnist")
    parser.add_argument("--recipe", default="mnist-paper")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--teachers", type=int, help="instead of the recipe's")
    parser.add_argument("--chunk-size", type=int, help="instead of the recipe's")
    parser.add_argument("--steps", type=int, default=10**9, help="end after so many")
    parser.add_argument("--most-seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--samples", type=int, default=10000)
    parser.add_argument("--accuracy", action="store_true", help="score the samples on the test images")
    parser.add_argument("--data-root")
    parser.add_argument("--out", type=Path)
    sys.stdout.write(json.dumps(train(parser.parse_args(arguments))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
