"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from datalens.cli.params import Classes, ImageSize, Number, Range, Text, Whole

F = TypeVar("F", bound=Callable[..., Any])

DATA_OPTIONS = (
    "data_root",
    "classes",
    "value_range",
    "image_size",
    "channels",
    "layout",
    "background",
    "path_column",
    "label_column",
    "group_column",
    "skip_damaged",
    "public_data",
)


def is_given(value: object) -> bool:
    """Whether an option was given: a flag that is up, or any value, zero among them."""
    return value is not None and value is not False


def json_option(function: F) -> F:
    """``--json``."""
    return click.option(
        "--json",
        "json_target",
        type=Text(paths=True),
        metavar="FILE|-",
        help="Write the answer as JSON; - for stdout alone.",
    )(function)


def quiet_option(function: F) -> F:
    """``--quiet``."""
    return click.option("--quiet", "-q", is_flag=True, help="Say only warnings and errors.")(function)


def verbose_option(function: F) -> F:
    """``--verbose``."""
    return click.option(
        "--verbose",
        "-v",
        is_flag=True,
        help="Say every setting and what it runs on, and where no terminal shows the progress, a line now and then.",
    )(function)


def tensorboard_option(function: F) -> F:
    """``--tensorboard``."""
    return click.option(
        "--tensorboard",
        is_flag=True,
        help="Write scalars and images for TensorBoard into RUN/private (extra tensorboard).",
    )(function)


def delta_option(function: F) -> F:
    """``--delta``, 1e-5 where it is left out."""
    kind = Number(0, 1, above=True, below=True)
    return click.option("--delta", type=kind, default=1e-5, show_default="1e-05")(function)


def run_options(function: F) -> F:
    """``--out`` for a new run, ``--resume`` for one that goes on."""
    return _all_of(
        function,
        click.option("--out", type=Text(paths=True), metavar="RUN", help="A new folder for the run."),
        click.option(
            "--resume",
            type=Text(paths=True),
            metavar="RUN",
            help="Go on with an interrupted run, with the same data.",
        ),
    )


def owner_options(function: F) -> F:
    """What only the owner of the records can say: who owns how many, what pays for them, what is public of them."""
    return _all_of(
        function,
        click.option("--group-size", type=Whole(), show_default="1", help="Records that one person may own."),
        click.option(
            "--budget-file", type=Text(paths=True), metavar="FILE", help="The data set's budget, charged too."
        ),
        click.option("--data-name", type=Text(), help="The name that the budget file must have."),
        click.option("--num-records", type=Whole(), help="Public upper bound on the number of records."),
        click.option(
            "--public-record-count", is_flag=True, help="The number of records in SOURCE may be known."
        ),
        click.option(
            "--labels-are-public", is_flag=True, help="The class list found in SOURCE may be known."
        ),
    )


def device_option(function: F) -> F:
    """``--device``."""
    return click.option("--device", type=Text(), show_default="cpu", help="As PyTorch names it.")(function)


def data_options(function: F) -> F:
    """How a source is read; see :func:`datalens.data.load`."""
    return _all_of(
        function,
        click.option(
            "--data-root",
            type=Text(paths=True),
            metavar="FOLDER",
            help="Where published sets lie.",
            show_default="DATALENS_DATA, else a cache folder",
        ),
        click.option(
            "--classes",
            type=Classes(),
            metavar="Y|A,B,C",
            help="The public class list of your own images: how many, or their names; declared, not looked up.",
        ),
        click.option(
            "--value-range",
            type=Range(),
            metavar="LOW..HIGH",
            help="Black and white of .npz pixels that are not uint8, such as 0..1 or -1..1.",
        ),
        click.option(
            "--image-size",
            type=ImageSize(),
            metavar="S|HxW",
            help="Scale every image to this: sides of 8 to 256.",
        ),
        click.option("--channels", type=Whole(), metavar="1|3", help="Make all images grey or colour."),
        click.option(
            "--layout", type=click.Choice(["NCHW", "NHWC"]), help="Of an .npz whose shape fits both."
        ),
        click.option(
            "--background",
            type=Text(),
            metavar="COLOUR",
            show_default="white",
            help="What see-through images are laid over, such as black or '#808080'.",
        ),
        click.option(
            "--path-column",
            type=Text(),
            metavar="NAME",
            show_default="path, file, file_name or image",
            help="Tables: the column of paths or images.",
        ),
        click.option(
            "--label-column",
            type=Text(),
            metavar="NAME",
            show_default="label or class",
            help="Tables: the column of labels.",
        ),
        click.option(
            "--group-column",
            type=Text(),
            metavar="NAME",
            help="Tables, and an array of an .npz: whose each record is; a group is protected as a whole.",
        ),
        click.option(
            "--skip-damaged",
            is_flag=True,
            help="Leave damaged images out; their places stay empty, and no other record moves.",
        ),
    )


def public_option(function: F) -> F:
    """``--public-data``: whoever runs the command says that nobody's privacy is at stake."""
    return click.option(
        "--public-data",
        is_flag=True,
        help="These images are public: their number, their name and scores on them may be known.",
    )(function)


def data_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The given data options as keyword arguments of :func:`datalens.data.load`."""
    given = {name: options[name] for name in DATA_OPTIONS if is_given(options.get(name))}
    for option, argument in (("data_root", "root"), ("public_data", "public")):
        if option in given:
            given[argument] = given.pop(option)
    return given


def data_words(options: dict[str, Any]) -> list[str]:
    """The given data options as words of a command line, to be typed again."""
    words: list[str] = []
    for name in DATA_OPTIONS:
        value: Any = options.get(name)
        if not is_given(value):
            continue
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif name == "value_range":
            words += [option, f"{value[0]:g}..{value[1]:g}"]
        elif isinstance(value, tuple):
            words += [option, ("x" if name == "image_size" else ",").join(str(item) for item in value)]
        else:
            words += [option, str(value)]
    return words


def _all_of(function: F, *options: Callable[[F], F]) -> F:
    """A command with these options, in this order."""
    for option in reversed(options):
        function = option(function)
    return function
