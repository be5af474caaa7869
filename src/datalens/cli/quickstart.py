"""``datalens quickstart``: the whole way on a published data set, with what each part took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import Output
from datalens.cli.params import Number, Once, Text, Whole
from datalens.cli.progress import TrainingProgress
from datalens.errors import ConfigError


@click.command(cls=Once, short_help="Fetch, train, sample and evaluate in one go.")
@click.argument("source", type=Text(), default="mnist")
@click.option("--out", type=Text(), default="runs/quickstart", show_default=True, help="A folder to make.")
@click.option("--epsilon", type=Number(anything=True), show_default="1; for shapes 10")
@click.option("--num-samples", "-n", type=Whole(), default=10000, show_default=True)
@click.option("--insecure-seed", type=Whole(0), help="Repeatable, noise included: for experiments only.")
@click.option("--data-root", type=Text(), metavar="FOLDER", help="Where published sets lie.")
@quiet_option
@json_option
def quickstart(source: str, **options: Any) -> None:
    """Train on SOURCE (mnist, fashion-mnist or shapes), draw images, and measure a classifier on them.

    Uses the quick recipe of SOURCE: compact teachers instead of the paper's networks. Where --out exists the
    next free name is taken.

    \b
    datalens quickstart
    datalens quickstart fashion-mnist --epsilon 10
    """
    from datalens.cli.announcing import announce_plan, plan_announced
    from datalens.cli.settings import RECIPE_OF_SOURCE, build_config

    if source not in RECIPE_OF_SOURCE:
        raise ConfigError(
            f"SOURCE is {source!r}: quickstart knows {', '.join(RECIPE_OF_SOURCE)}; use train for others"
        )
    output = Output(options["json_target"], quiet=options["quiet"])
    config = build_config(None, None, options, source)
    run = _free_name(Path(options["out"]))
    seconds: dict[str, float] = {}
    with _timed(seconds, "data"):
        from datalens.data import fetch, load

        fetch(source, options["data_root"], tell=output.say)
        train_data = load(source, split="train", root=options["data_root"])
        test_data = load(source, split="test", root=options["data_root"])
    from datalens.cli.fitness import unfit_line
    from datalens.cli.targets import marked
    from datalens.evaluation.utility import evaluate_utility
    from datalens.training.run_folder import RunFolder
    from datalens.training.synthesizer import DataLens
    from datalens.writing import Contents, SampleFormat, write_samples

    output.say(
        f"training {config.recipe} at epsilon {config.privacy.epsilon:g}, delta {config.privacy.delta:g}: "
        f"{config.voting.num_teachers} compact {config.teachers.kind} teachers (not the paper's networks)"
    )
    announce_plan(config, train_data, output)
    run.parent.mkdir(parents=True, exist_ok=True)
    with _timed(seconds, "training"), TrainingProgress(quiet=output.quiet) as progress, plan_announced():
        model = DataLens(config).fit(train_data, out=run, tell=progress.tell)
    release = RunFolder.open(run).release
    samples = marked(release / "samples.npz", publishable=model.is_publishable)
    with _timed(seconds, "sampling"):
        images, labels = model.sample(options["num_samples"])
        contents = Contents.of(images, model.classes)
        write_samples(samples, SampleFormat.NPZ, contents, [(images, labels)])
    with _timed(seconds, "evaluation"):
        result = evaluate_utility(
            images, labels, test_data.images, test_data.labels, num_classes=test_data.num_classes
        )
    spent, last = model.spent_epsilon(config.privacy.delta), unfit_line(config)
    output.finish(
        {
            "run": str(run),
            "recipe": config.recipe,
            "epsilon_spent": spent,
            "delta": config.privacy.delta,
            "samples": str(samples),
            "seconds": seconds,
            "note": last,
            **{f"classifier_{name}": value for name, value in result.to_json().items()},
        }
    )
    output.say(
        f"epsilon     {spent:.4g} spent of {config.privacy.epsilon:g} at delta {config.privacy.delta:g}"
    )
    output.say(
        f"accuracy    {result.last_accuracy:.2%}: a CNN trained on {result.num_train} synthetic images for "
        f"{result.epochs} epochs, tested on {result.num_test} real ones (last epoch)"
    )
    output.say(f"samples     {samples}")
    label = "to share   " if model.is_publishable else "unfit      "
    output.say(f"{label} {release} (never {run / 'private'})")
    output.say("seconds     " + ", ".join(f"{name} {value:.0f}" for name, value in seconds.items()))
    if last is not None:
        output.insist(last)


def _free_name(wanted: Path) -> Path:
    """``wanted``, or the first of ``wanted-2``, ``wanted-3``, ... that does not exist."""
    number, path = 1, wanted
    while path.exists():
        number += 1
        path = wanted.with_name(f"{wanted.name}-{number}")
    return path


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    seconds[name] = time.monotonic() - started
