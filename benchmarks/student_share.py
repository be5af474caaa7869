"""How much of a generator step is the student's: drawing the images and learning, over the whole step.

    python benchmarks/student_share.py mnist --recipe mnist-quick --steps 10
    python benchmarks/student_share.py shapes

The first step warms everything up and is thrown away. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, cast

import torch
from measuring import explained, machine, seconds_of, spread

from datalens import recipes
from datalens.data import load
from datalens.student.update import Proposal, Student
from datalens.training.session import Progress, Session


@dataclass
class Timed:
    """A student whose two parts of a step are timed."""

    inner: Student
    device: torch.device
    propose_seconds: list[float] = field(default_factory=list)
    learn_seconds: list[float] = field(default_factory=list)

    def propose(self, step: int) -> Proposal:
        found: list[Proposal] = []
        self.propose_seconds.append(seconds_of(lambda: found.append(self.inner.propose(step)), self.device))
        return found[0]

    def learn(self, direction_BD: torch.Tensor) -> None:
        self.learn_seconds.append(seconds_of(lambda: self.inner.learn(direction_BD), self.device))


def measure(source: str, recipe: str, steps: int, device: str) -> dict[str, Any]:
    """Train in memory for one step and then for ``steps`` more."""
    config = recipes.by_name(recipe).replace(privacy__insecure_seed=0, performance__device=device)
    session = Session.begin(config, load(source, split="train"), None, signal_matters=False)
    timed = Timed(session.student, torch.device(device))
    session.parts = replace(session.parts, student=cast(Student, timed))
    ends = [time.perf_counter()]

    def tell(progress: Progress) -> None:
        ends.append(time.perf_counter())

    try:
        session.run(tell=tell, stop=lambda: len(ends) > steps + 1)
    finally:
        session.close()
    whole = [after - before for before, after in pairwise(ends)][1:]
    parts = list(zip(timed.propose_seconds, timed.learn_seconds, strict=True))[1:]
    shares = [sum(part) / all_of_it for part, all_of_it in zip(parts, whole, strict=True)]
    return {
        "source": source,
        "recipe": recipe,
        "teachers": config.voting.num_teachers,
        "steps": len(whole),
        "seed": 0,
        "share": sum(map(sum, parts)) / sum(whole),
        "share_of_a_step": spread(shares),
        "milliseconds_of_proposing": spread([1000 * propose for propose, _ in parts]),
        "milliseconds_of_learning": spread([1000 * learn for _, learn in parts]),
        "milliseconds_a_step": spread([1000 * value for value in whole]),
        **machine(device),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the share."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", default="shapes")
    parser.add_argument("--recipe", default="shapes-quick")
    parser.add_argument("--steps", type=int, default=10, help="timed steps, after the first")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args(arguments)
    found = measure(given.source, given.recipe, given.steps, given.device)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(explained(main))
