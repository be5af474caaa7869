"""``datalens sample``: synthetic images from a run's ``release/`` alone."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import STDOUT, Output
from datalens.cli.params import Once, Text, Whole
from datalens.errors import ConfigError, RunError


@click.command(cls=Once, short_help="Draw synthetic images from a run.")
@click.argument("run", type=Text())
@click.option("--num-samples", "-n", type=Whole(), required=True, help="How many images.")
@click.option(
    "--out",
    type=Text(),
    required=True,
    metavar="FILE.npz|FOLDER",
    help="An .npz with x (uint8, N x C x H x W) and y, or a folder with a sub-folder a class.",
)
@click.option(
    "--labels",
    type=Text(),
    metavar="A,B,C",
    show_default="uniform on the classes",
    help="Class names or numbers from 0, repeated in this order until there are enough.",
)
@click.option("--seed", type=Whole(0), show_default="fresh every time", help="For the same images again.")
@click.option("--overwrite", is_flag=True, help="Replace what --out names: a file, or a folder of samples.")
@quiet_option
@json_option
def sample(
    run: str,
    num_samples: int,
    out: str,
    labels: str | None,
    seed: int | None,
    overwrite: bool,
    quiet: bool,
    json_target: str | None,
) -> None:
    """Draw images from the generator in RUN. They cost no epsilon, however many.

    In --labels a class name wins over a number; where all names are numbers, names alone count. One label
    asks for that class only; 0,1,2 gives 0 1 2 0 1 2 and so on. What comes from a run that is not fit for
    publication has -NOT-FOR-PUBLICATION added to the name that --out gives.

    \b
    datalens sample runs/mnist --num-samples 10000 --out samples.npz
    datalens sample runs/mnist --num-samples 30 --labels 7,8,9 --out digits/ --seed 1
    """
    from datalens.cli.fitness import run_summary, unfit_line
    from datalens.cli.targets import check_target, is_npz, marked, write_folder, write_npz

    output = Output(json_target, quiet=quiet)
    from datalens.baselines.model import load_run

    model = load_run(run)
    target = marked(Path(out), publishable=model.is_publishable)
    if json_target not in (None, STDOUT) and Path(json_target).absolute() == target.absolute():
        raise ConfigError(f"--json {json_target}: is the file of --out too; give it another name")
    num_bytes = num_samples * int(np.prod(model.facts.image_shape))
    check_target(target, overwrite=overwrite, num_bytes=num_bytes)
    _refuse_inside(target, Path(run))
    asked = None if labels is None else cycled(class_numbers(labels, model.classes), num_samples)
    warn_unfinished(model, run, output)
    images, numbers = model.sample(num_samples, asked, seed=seed)
    names: Sequence[str] = model.classes
    if is_npz(target):
        write_npz(target, images, numbers)
    else:
        drawn = None if asked is None else sorted({int(number) for number in asked})
        names = write_folder(target, images, numbers, model.classes, drawn)
        if tuple(names) != tuple(model.classes):
            output.warn(
                f"a class name cannot name a folder, so the sub-folders are numbered 0 to {len(names) - 1}"
            )
    unfit = unfit_line(model.config)
    last = None if unfit is None else f"{unfit}; it is in {shlex.quote(str(target))}"
    per_class = np.bincount(numbers, minlength=len(names)).tolist()
    output.finish(
        {
            "run": run,
            "out": str(target),
            "num_samples": num_samples,
            "seed": seed,
            "per_class": dict(zip(model.classes, per_class, strict=True)),
            "privacy": run_summary(model),
            "note": last,
        }
    )
    drawn_from = np.unique(numbers).size
    output.say(
        f"{num_samples} images of {drawn_from} class{'es' * (drawn_from != 1)} in {shlex.quote(str(target))}"
    )
    if last is not None:
        output.insist(last)


def class_numbers(text: str, classes: Sequence[str]) -> list[int]:
    """Numbers of the classes named in ``text``, in its order.

    Raises:
        ConfigError: a name that is no class; lists the classes.

    >>> class_numbers("dog,0", ["cat", "dog"])
    [1, 0]
    """
    if text in classes:
        return [classes.index(text)]
    only_names = all(name.isdecimal() for name in classes)
    numbers = []
    for item in (part.strip() for part in text.split(",")):
        if item in classes:
            numbers.append(classes.index(item))
        elif not only_names and re.fullmatch(r"[0-9]{1,6}", item) and int(item) < len(classes):
            numbers.append(int(item))
        else:
            shown = ", ".join(classes[:20]) + (", ..." if len(classes) > 20 else "")
            raise ConfigError(f"--labels: {item!r:.60} is not a class; the classes are {shown}")
    return numbers


def cycled(numbers: Sequence[int], count: int) -> np.ndarray:
    """The numbers over and over, ``count`` of them."""
    return np.resize(np.asarray(numbers, np.int64), count)


def warn_unfinished(model: object, run: str, output: Output) -> None:
    """Say that a run stopped before its last step, if it did."""
    from datalens.cli.fitness import steps_charged, steps_planned
    from datalens.training.synthesizer import DataLens

    if isinstance(model, DataLens) and steps_charged(model) < steps_planned(model):
        output.warn(
            f"{run}: took {steps_charged(model)} of {steps_planned(model)} steps so far; "
            "resume its training for better images"
        )


def _refuse_inside(target: Path, run: Path) -> None:
    """Samples are no part of a run's private side, and overwrite none of its files."""
    inside = target.resolve()
    if (run / "private").resolve() in inside.parents:
        raise RunError(
            f"--out {target}: lies in the run's private/, which is never shared; choose another place"
        )
