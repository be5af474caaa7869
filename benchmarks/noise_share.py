"""How much of a training's time goes into drawing noise: seconds inside the sampler over seconds of all steps.

    python benchmarks/noise_share.py mnist --recipe mnist-quick --steps 10
    python benchmarks/noise_share.py shapes

The first step builds the sampler's table and warms everything up; it is timed apart. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass, field, replace

import numpy as np

from datalens import recipes
from datalens.data import load
from datalens.noise import NoiseSource
from datalens.privacy.events import NoiseKind, SamplerSlack
from datalens.training.release import environment
from datalens.training.session import Progress, Session


@dataclass
class Timed:
    """A noise source that counts the seconds spent in it."""

    inner: NoiseSource
    seconds: list[float] = field(default_factory=list)

    @property
    def kind(self) -> NoiseKind:
        return self.inner.kind

    @property
    def secure(self) -> bool:
        return self.inner.secure

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        started = time.perf_counter()
        drawn = self.inner.sample(shape, stddev)
        self.seconds.append(time.perf_counter() - started)
        return drawn

    def slack(self, stddev: float) -> SamplerSlack:
        return self.inner.slack(stddev)


def measure(source: str, recipe: str, steps: int) -> dict[str, object]:
    """Train in memory for one step and then for ``steps`` more, and time both parts of each."""
    config = recipes.by_name(recipe)
    session = Session.begin(config, load(source, split="train"), None, signal_matters=False)
    timed: list[Timed] = []
    ends = [time.perf_counter()]
    make = session.parts.noise_for_step

    def noise_for_step(step: int) -> NoiseSource:
        timed.append(Timed(make(step)))
        return timed[-1]

    def tell(progress: Progress) -> None:
        ends.append(time.perf_counter())

    session.parts = replace(session.parts, noise_for_step=noise_for_step)
    try:
        session.run(tell=tell, stop=lambda: len(ends) > steps + 1)
    finally:
        session.close()
    drawing = [sum(one.seconds) for one in timed]
    whole = np.diff(ends)
    return {
        "source": source,
        "recipe": recipe,
        "steps": len(whole) - 1,
        "share": sum(drawing[1:]) / float(whole[1:].sum()),
        "milliseconds_of_noise_a_step": 1000 * float(np.median(drawing[1:])),
        "milliseconds_a_step": 1000 * float(np.median(whole[1:])),
        "first_step": {"noise": drawing[0], "whole": float(whole[0])},
        "cores": os.cpu_count(),
        **environment(config.performance.device),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the share."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", default="shapes")
    parser.add_argument("--recipe", default="shapes-quick")
    parser.add_argument("--steps", type=int, default=10, help="timed steps, after the first")
    given = parser.parse_args(arguments)
    sys.stdout.write(json.dumps(measure(given.source, given.recipe, given.steps)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
