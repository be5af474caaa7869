"""What comes before and after training: start-up of the command line, sampling, writing, and each stage of scoring.

    python benchmarks/pipeline.py mnist --recipe mnist-quick --samples 2000
    python benchmarks/pipeline.py shapes --recipe shapes-quick --samples 500

Stages take turns, ``--repeats`` times after a first round that is thrown away. The generator and the judges have
their first weights: that changes no time. ``per_image`` is milliseconds an image, ``share`` a stage's part of drawing
and scoring as ``datalens evaluate --metrics utility,is,fid,kid,copies`` does it, at ``--samples`` images and one
epoch. ``ratio`` is a stage over the same stage with 500 images at once, in the same round. Start-up is milliseconds
of a new process; with ``--before SRC`` the sources of another tree take turns with these. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import explained, machine, peak_resident_mib, seconds_of, spread

from datalens import recipes
from datalens.data import load
from datalens.evaluation import evaluate_utility, feature_statistics, frechet_distance, kernel_distance
from datalens.evaluation.copies import nearest
from datalens.evaluation.fitting import EVALUATION_BATCH, batches_of
from datalens.models.classifiers import ClassifierKind, build_classifier
from datalens.student import sampling
from datalens.student.sampling import sample_images
from datalens.student.update import Student
from datalens.training.assembly import draw_run
from datalens.writing import Contents, SampleFormat, write_samples

AT_ONCE = ", 500 at once"
CPU = torch.device("cpu")
COMMANDS = ("--help", "privacy plan --help", "budget --help", "train --help", "sample --help", "--version")


def start_up(repeats: int, before: str | None) -> dict[str, Any]:
    """Milliseconds until a page of help has been printed, commands and trees taking turns."""
    trees = {"milliseconds": None} | ({} if before is None else {"milliseconds_before": before})
    seconds: dict[tuple[str, str], list[float]] = {(name, tree): [] for name in COMMANDS for tree in trees}
    for repeat in range(repeats + 1):
        for (name, tree), found in seconds.items():
            source = trees[tree]
            place = os.environ if source is None else {**os.environ, "PYTHONPATH": source}
            started = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "datalens", *name.split()], env=place, check=True, capture_output=True
            )
            if repeat:
                found.append(1000 * (time.perf_counter() - started))
    answer: dict[str, Any] = {}
    for name in COMMANDS:
        answer[name] = {tree: spread(seconds[name, tree]) for tree in trees}
        if before is not None:
            turns = zip(*(seconds[name, tree] for tree in trees), strict=True)
            answer[name]["ratio"] = spread([here / there for here, there in turns])
    return answer


def stages(given: argparse.Namespace, folder: Path) -> dict[str, tuple[Callable[[], object], int]]:
    """Each stage, and how many images it handles."""
    config = recipes.by_name(given.recipe).replace(privacy__insecure_seed=given.seed)
    train, test = (load(given.source, split=split) for split in ("train", "test"))
    facts, *_ = draw_run(config, train, signal_matters=False)
    student = Student(facts.student_plan, facts.streams)
    generator, latent = student.finished_generator(), facts.student_plan.latent
    images, labels = sample_images(generator, latent, given.samples, seed=given.seed)
    rng = torch.Generator().manual_seed(given.seed)
    net = build_classifier(ClassifierKind.FEATURE_NET, train.image_shape, train.num_classes, rng).eval()
    real, fake = (
        np.random.default_rng(given.seed).normal(size=(count, net.num_features)).astype(np.float32)
        for count in (train.num_records, given.samples)
    )
    count = iter(range(10**9))

    def draw(piece: int) -> object:
        usual, sampling.PIECE = sampling.PIECE, piece
        try:
            return sample_images(generator, latent, given.samples, seed=given.seed)
        finally:
            sampling.PIECE = usual

    def write(form: SampleFormat) -> object:
        target = folder / f"{next(count)}{form.suffix}"
        write_samples(target, form, Contents.of(images, train.classes), [(images, labels)])
        return target

    def judge(batch: int) -> object:
        return list(batches_of(net, images, CPU, batch))

    num_test = min(given.tested, test.num_records)

    def utility() -> object:
        return evaluate_utility(
            images, labels, test.images[:num_test], test.labels[:num_test], num_classes=test.num_classes, epochs=1
        )  # fmt: skip

    return {
        "draw": (lambda: draw(sampling.PIECE), given.samples),
        "draw, 500 at once": (lambda: draw(500), given.samples),
        "judge": (lambda: judge(EVALUATION_BATCH), given.samples),
        "judge, 500 at once": (lambda: judge(500), given.samples),
        "write npz": (lambda: write(SampleFormat.NPZ), given.samples),
        "write folder": (lambda: write(SampleFormat.FOLDER), given.samples),
        "utility, one epoch": (utility, given.samples + num_test),
        "fid": (
            lambda: frechet_distance(feature_statistics(real), feature_statistics(fake)),
            given.samples,
        ),
        "kid": (
            lambda: kernel_distance(real, fake, rng=np.random.default_rng(given.seed)),
            given.samples,
        ),
        "copies": (
            lambda: nearest(
                images.reshape(len(images), -1), train.images.reshape(train.num_records, -1), CPU
            ),
            given.samples,
        ),
    }


def measure(given: argparse.Namespace) -> dict[str, object]:
    """Time start-up and every stage."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so few images give no score worth having
        works = stages(given, Path(name))
        seconds: dict[str, list[float]] = {stage: [] for stage in works}
        for repeat in range(given.repeats + 1):
            for stage, (work, _) in works.items():
                took = seconds_of(work, CPU)
                if repeat:
                    seconds[stage].append(took)
    whole = [
        sum(one)
        for one in zip(
            *(found for stage, found in seconds.items() if not stage.endswith(AT_ONCE)), strict=True
        )
    ]
    return {
        "source": given.source,
        "recipe": given.recipe,
        "samples": given.samples,
        "repeats": given.repeats,
        "seed": given.seed,
        "stages": {
            stage: {
                "per_image": spread([1000 * value / works[stage][1] for value in found]),
                "share": spread([value / all_of_it for value, all_of_it in zip(found, whole, strict=True)]),
                **_ratio(found, seconds.get(stage + AT_ONCE)),
            }
            for stage, found in seconds.items()
        },
        "start_up": start_up(given.start_ups, given.before),
        "peak_resident_mib": round(peak_resident_mib()),
        **machine(CPU),
    }


def _ratio(found: list[float], other: list[float] | None) -> dict[str, Any]:
    if other is None:
        return {}
    return {"ratio": spread([here / there for here, there in zip(found, other, strict=True)])}


def main(arguments: list[str] | None = None) -> int:
    """Print every stage."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", default="mnist")
    parser.add_argument("--recipe", default="mnist-quick")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--tested", type=int, default=2000, help="test images of the utility stage, at most")
    parser.add_argument("--repeats", type=int, default=3, help="after one that is thrown away")
    parser.add_argument("--start-ups", type=int, default=5, help="after one that is thrown away")
    parser.add_argument("--before", metavar="SRC", help="src of another tree, for start-up")
    parser.add_argument("--seed", type=int, default=0)
    sys.stdout.write(json.dumps(measure(parser.parse_args(arguments))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(explained(main))
