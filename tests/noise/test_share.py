"""Noise that protects people takes under a tenth of a quick training's time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from datalens import recipes
from datalens.noise import make_noise
from datalens.randomness import Streams
from datalens.teachers.ensemble import TeacherEnsemble
from datalens.teachers.families import TeacherSettings, make_family
from datalens.teachers.family import Fakes
from datalens.teachers.shards import RecordShards
from datalens.training.plan import plan_releases

IMAGE_SHAPE, CLASSES, SHARD = (1, 28, 28), 10, 15
ASKED, TRIES = 200, 3


def least_seconds(work: Callable[[], object]) -> float:
    """The shortest of some tries, after one that warms up: what else runs here only adds."""
    work()
    seconds = []
    for _ in range(TRIES):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def test_noise_is_under_a_tenth_of_a_quick_step() -> None:
    """A step's draws against the teachers' part of that step alone, measured on a twentieth of them."""
    config = recipes.mnist_quick()
    voting, teachers, plan = config.voting, config.teachers, plan_releases(config, 784)
    settings = TeacherSettings(
        IMAGE_SHAPE,
        CLASSES,
        SHARD,
        voting.batch_size,
        plan.num_steps,
        teachers.learning_rate,
        teachers.bandwidth,
        teachers.first_bandwidth,
        teachers.annealing,
    )
    records = ASKED * SHARD
    rng = torch.Generator().manual_seed(0)
    shards = RecordShards(
        torch.randint(256, (records, *IMAGE_SHAPE), dtype=torch.uint8, generator=rng),
        torch.arange(records) % CLASSES,
        torch.arange(records).view(ASKED, SHARD),
    )
    ensemble = TeacherEnsemble(
        make_family(teachers.kind, settings),
        shards,
        Streams.from_insecure_seed(0, "private"),
        40,
    )
    images = torch.rand(voting.batch_size, *IMAGE_SHAPE, generator=rng)
    fakes = Fakes(images, torch.arange(voting.batch_size) % CLASSES)
    noise = make_noise(config.privacy.noise)
    drawing = least_seconds(lambda: noise.sample((voting.batch_size, 784), plan.noise_stddev))
    asking = least_seconds(
        lambda: ensemble.tally(fakes, 0, teachers.steps, voting.top_k, 1e-5, voting.images_per_teacher)
    )
    assert drawing < 0.1 * asking * voting.num_teachers / ASKED


def test_the_benchmark_prints_a_share() -> None:
    """``benchmarks/noise_share.py`` counts the noise of every step, which is part of the step."""
    script = Path(__file__).parents[2] / "benchmarks" / "noise_share.py"
    done = subprocess.run(
        [sys.executable, script, "shapes", "--recipe", "shapes-quick", "--steps", "1"],
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout)
    assert said["steps"] == 1
    assert 0 < said["share"] < 0.5
    assert 0 < said["milliseconds_of_noise_a_step"] < said["milliseconds_a_step"]
