"""``datalens quickstart``: the whole way on a published data set, with what each part took."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from datalens.cli.known import DATALENS
from datalens.cli.options import json_option, quiet_option, verbose_option
from datalens.cli.output import Output
from datalens.cli.params import Number, Once, Text, Whole
from datalens.cli.progress import TrainingProgress
from datalens.cli.reporting import pages_after
from datalens.cli.stopping import interruption_told
from datalens.errors import ConfigError

if TYPE_CHECKING:
    from datalens.baselines.model import Baseline
    from datalens.baselines.registry import BaselineConfig
    from datalens.data.images import LabelledImages
    from datalens.training.config import Config
    from datalens.training.synthesizer import DataLens

MOST_SAMPLES = 1_000_000
"""They are drawn at once, after the training has been paid for."""
MOMENTS, SHAPES = "moments", "shapes"
QUICK_SOURCES = ("mnist", "fashion-mnist", SHAPES)


@click.command(cls=Once, short_help="Fetch, train, sample and evaluate in one go.")
@click.argument("source", type=Text(*QUICK_SOURCES), default="mnist")
@click.option(
    "--method",
    type=Text(MOMENTS, DATALENS),
    default=MOMENTS,
    show_default=True,
    metavar="moments|datalens",
    help="Seconds, or the paper's with compact teachers: minutes.",
)
@click.option(
    "--out", type=Text(paths=True), default="runs/quickstart", show_default=True, help="A folder to make."
)
@click.option("--epsilon", type=Number(anything=True), show_default="1; for shapes 10")
@click.option("--num-samples", "-n", type=Whole(), default=10000, show_default=True)
@click.option("--insecure-seed", type=Whole(0), help="Repeatable, noise included: for experiments only.")
@click.option("--data-root", type=Text(paths=True), metavar="FOLDER", help="Where published sets lie.")
@quiet_option
@verbose_option
@json_option
def quickstart(source: str, method: str, **options: Any) -> None:
    """Train on SOURCE (mnist, fashion-mnist or shapes), draw images, and measure a classifier on them.

    By the method that reaches most here, or by DataLens with the quick recipe of SOURCE: compact teachers instead of
    the paper's networks. Where --out exists the next free name is taken.

    \b
    datalens quickstart
    datalens quickstart fashion-mnist --epsilon 10
    datalens quickstart --method datalens
    """
    from datalens.cli.baselines import baseline_config
    from datalens.cli.settings import build_config

    if source not in QUICK_SOURCES:
        raise ConfigError(
            f"SOURCE is {source!r}: quickstart knows {', '.join(QUICK_SOURCES)}; use train for others"
        )
    if method not in (MOMENTS, DATALENS):
        raise ConfigError(
            f"--method {method}: quickstart knows {MOMENTS} and {DATALENS}; use train for others"
        )
    if options["num_samples"] > MOST_SAMPLES:
        raise ConfigError(
            f"--num-samples {options['num_samples']}: quickstart draws at most {MOST_SAMPLES}; then use "
            "`datalens sample`, which writes as it draws"
        )
    output = Output.of(options)
    if method == MOMENTS and options["epsilon"] is None and source == SHAPES:
        options["epsilon"] = 10.0
    config = (
        baseline_config(method, options, source)
        if method == MOMENTS
        else build_config(None, None, options, source)
    )
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
    from datalens.writing import Contents, SampleFormat, write_samples

    run.parent.mkdir(parents=True, exist_ok=True)
    with _timed(seconds, "training"), interruption_told(source, run, _root_words(options)):
        model = _trained(config, train_data, run, output)
    pages_after(run, output)
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


def _trained(
    config: BaselineConfig | Config, data: LabelledImages, run: Path, output: Output
) -> Baseline | DataLens:
    """A run by either method, its plan said before it begins."""
    from datalens.baselines.model import Baseline
    from datalens.cli.announcing import announce_plan, plan_announced, say_details
    from datalens.training.config import Config
    from datalens.training.synthesizer import DataLens

    privacy = config.privacy
    what = f"training {config.recipe} at epsilon {privacy.epsilon:g}, delta {privacy.delta:g}"
    say_details(config, output)
    if isinstance(config, Config):
        teachers = f"{config.voting.num_teachers} compact {config.teachers.kind} teachers"
        output.say(f"{what}: {teachers} (not the paper's networks)")
        announce_plan(config, data, output)
        with (
            TrainingProgress(quiet=output.quiet, verbose=output.verbose) as progress,
            plan_announced(),
        ):
            return DataLens(config).fit(data, out=run, tell=progress.tell)
    output.say(f"{what}: two noisy sums over all records, and no teachers (for those: --method datalens)")
    with TrainingProgress(quiet=output.quiet, verbose=output.verbose) as progress:
        return Baseline(config).fit(data, out=run, tell=progress.tell)


def _root_words(options: dict[str, Any]) -> list[str]:
    return [] if options["data_root"] is None else ["--data-root", options["data_root"]]


def _free_name(wanted: Path) -> Path:
    """``wanted``, or the first of ``wanted-2``, ``wanted-3``, ... that does not exist.

    Raises:
        ConfigError: it has no name that a number could be added to, such as ``.``.
    """
    if wanted.name in ("", ".."):
        raise ConfigError(f"--out {wanted}: is a folder that is there; give the name of a new one")
    number, path = 1, wanted
    while os.path.lexists(path):
        number += 1
        path = wanted.with_name(f"{wanted.name}-{number}")
    return path


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    seconds[name] = time.monotonic() - started
