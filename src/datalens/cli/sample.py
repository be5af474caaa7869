"""``datalens sample``: synthetic images from a run's ``release/`` alone."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import STDOUT, Output
from datalens.cli.params import Kind, Once, Text, Whole
from datalens.cli.stopping import termination_interrupts
from datalens.cli.targets import check_target, format_of, marked
from datalens.errors import ConfigError, RunError
from datalens.training.run_folder import real_path
from datalens.writing import Contents, SampleFormat, write_samples
from datalens.writing.names import folder_names
from datalens.writing.whole import check_format, room_needed


@click.command(cls=Once, short_help="Draw synthetic images from a run.")
@click.argument("run", type=Text(paths=True))
@click.option("--num-samples", "-n", type=Whole(), required=True, help="How many images.")
@click.option(
    "--out",
    type=Text(paths=True),
    required=True,
    metavar="FILE.npz|FILE.parquet|FOLDER",
    help="The ending says what it is; a folder has a sub-folder a class, unless --format says otherwise.",
)
@click.option(
    "--format",
    "asked_format",
    type=Kind(SampleFormat),
    show_default="told by --out",
    help="What to write; see above.",
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
    asked_format: SampleFormat | None,
    labels: str | None,
    seed: int | None,
    overwrite: bool,
    quiet: bool,
    json_target: str | None,
) -> None:
    """Draw images from the generator in RUN. They cost no epsilon, however many.

    They are written as they are drawn, so that memory does not limit how many. The forms: npz has x (uint8,
    N x C x H x W) and y; folder PNGs in a sub-folder a class; parquet PNGs in one file, with the class names
    (extra parquet); idx a folder with the two files of MNIST's training set, grey only; datasets a folder that
    Hugging Face's datasets.load_from_disk opens (extra huggingface).

    In --labels a class name wins over a number; where all names are numbers, names alone count. One label
    asks for that class only; 0,1,2 gives 0 1 2 0 1 2 and so on. What comes from a run that is not fit for
    publication has -NOT-FOR-PUBLICATION added to the name that --out gives.

    \b
    datalens sample runs/mnist --num-samples 10000 --out samples.npz
    datalens sample runs/mnist --num-samples 30 --labels 7,8,9 --out digits/ --seed 1
    datalens sample runs/mnist --num-samples 100000 --out samples.parquet
    datalens sample runs/mnist --num-samples 60000 --out like-mnist/ --format idx
    """
    from datalens.cli.fitness import run_summary, unfit_line

    output = Output(json_target, quiet=quiet)
    form = format_of(Path(out), asked_format)
    from datalens.baselines.model import load_run

    model = load_run(run)
    target = marked(Path(out), publishable=model.is_publishable)
    if json_target not in (None, STDOUT) and Path(json_target).absolute() == target.absolute():
        raise ConfigError(f"--json {json_target}: is the file of --out too; give it another name")
    contents = Contents(num_samples, model.facts.image_shape, tuple(model.classes))
    check_format(form, contents)
    check_target(target, form, overwrite=overwrite, num_bytes=room_needed(form, contents))
    refuse_inside(target, Path(run))
    asked = None if labels is None else cycled(class_numbers(labels, model.classes), num_samples)
    warn_unfinished(model, run, output)
    if form is SampleFormat.FOLDER and folder_names(model.classes) != contents.classes:
        last_number = len(model.classes) - 1
        output.warn(f"a class name cannot name a folder, so the sub-folders are numbered 0 to {last_number}")
    if asked is not None:
        contents = replace(contents, asked=tuple(sorted({int(number) for number in asked})))
    per_class = np.zeros(len(model.classes), np.int64)
    drawn = counted(model.iter_samples(num_samples, asked, seed=seed), per_class)
    with termination_interrupts():
        write_samples(target, form, contents, drawn, overwrite=overwrite)
    unfit = unfit_line(model.config)
    last = None if unfit is None else f"{unfit}; it is in {shlex.quote(str(target))}"
    output.finish(
        {
            "run": run,
            "out": str(target),
            "format": form,
            "num_samples": num_samples,
            "seed": seed,
            "per_class": dict(zip(model.classes, per_class.tolist(), strict=True)),
            "privacy": run_summary(model),
            "note": last,
        }
    )
    drawn_from = int(np.count_nonzero(per_class))
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


def counted(
    chunks: Iterable[tuple[np.ndarray, np.ndarray]], per_class: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The chunks as they are, while ``per_class`` int64 [Y] counts their labels."""
    for images, labels in chunks:
        per_class += np.bincount(labels, minlength=len(per_class))
        yield images, labels


def warn_unfinished(model: object, run: str, output: Output) -> None:
    """Say that a run stopped before its last step, if it did."""
    from datalens.cli.fitness import steps_charged, steps_planned
    from datalens.training.synthesizer import DataLens

    if isinstance(model, DataLens) and steps_charged(model) < steps_planned(model):
        output.warn(
            f"{run}: took {steps_charged(model)} of {steps_planned(model)} steps so far; "
            "resume its training for better images"
        )


def refuse_inside(target: Path, run: Path) -> None:
    """Samples are no part of a run's private side, and overwrite none of its files.

    Raises:
        RunError: the target lies there.
    """
    if real_path(run / "private") in real_path(target).parents:
        raise RunError(
            f"--out {target}: lies in the run's private/, which is never shared; choose another place"
        )
