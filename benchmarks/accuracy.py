"""Accuracy of a recipe under P1-last: train, draw, train the paper's CNN on the samples, test on real images.

    python benchmarks/accuracy.py mnist --recipe mnist-quick --seeds 0 1 2 --out benchmarks/results/mnist.json

Insecure seeds, so that anyone gets these numbers again; nothing is chosen on the test set. The file is rewritten
after every seed and says command, versions and machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

import torch

from datalens import __version__, data, recipes
from datalens.evaluation import evaluate_utility
from datalens.student.sampling import sample_images
from datalens.training.session import Session


def main() -> None:
    """Measure every seed and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", choices=["mnist", "fashion-mnist", "shapes"])
    parser.add_argument("--recipe", required=True, choices=sorted(recipes.RECIPES))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--samples", type=int, nargs="+", default=[10000, 60000])
    parser.add_argument(
        "--without-noise", type=int, metavar="STEPS", help="train without noise, so many steps"
    )
    parser.add_argument("--data-root")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    train, test = (
        data.load(options.source, split=split, root=options.data_root) for split in ("train", "test")
    )
    runs = []
    for seed in options.seeds:
        config = recipes.by_name(options.recipe, epsilon=options.epsilon).replace(privacy__insecure_seed=seed)
        if options.without_noise:
            config = config.replace(privacy__noise="none", voting__num_steps=options.without_noise)
        started = time.monotonic()
        session = Session.begin(config, train, None)
        session.run()
        seconds = {"training": time.monotonic() - started}
        generator = session.student.finished_generator()
        latent = session.facts.student_plan.latent
        accuracy = {}
        for count in options.samples:
            started = time.monotonic()
            images, labels = sample_images(generator, latent, count, seed=seed)
            result = evaluate_utility(
                images, labels, test.images, test.labels, num_classes=test.num_classes, seed=seed
            )
            seconds[f"evaluation of {count}"] = time.monotonic() - started
            accuracy[str(count)] = {"last": result.last_accuracy, "best epoch": result.best_epoch_accuracy}
        agreement = [round(found.rms_agreement, 4) for found in session.diagnostics]
        runs.append(
            {
                "seed": seed,
                "epsilon spent": session.budget.spent_epsilon() if config.privacy.is_private else None,
                "accuracy": accuracy,
                "rms vote of the teachers, as a fraction of N, at every tenth step": agreement[::10],
                "seconds": {name: round(value, 1) for name, value in seconds.items()},
            }
        )
        print(json.dumps(runs[-1]), flush=True)  # noqa: T201  a script's answer
        last = [run["accuracy"][str(options.samples[-1])]["last"] for run in runs]
        report = {
            "command": " ".join(["python", "benchmarks/accuracy.py", *sys.argv[1:]]),
            "epochs": result.epochs,
            "mean of the last": statistics.mean(last),
            "spread of the last (standard deviation)": statistics.stdev(last) if len(last) > 1 else None,
            "versions": {
                "datalens": __version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
            "config": config.to_json(),
            "runs": runs,
        }
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
