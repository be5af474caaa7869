"""What ``reproduce`` and ``benchmark`` share: where results lie, how what is missing is run, how tables are drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from datalens.cli.output import Output
from datalens.cli.params import Number, Text
from datalens.errors import RunError

if TYPE_CHECKING:
    from datalens.experiments.store import ResultsStore
    from datalens.experiments.sweep import Work
    from datalens.experiments.workplace import Workplace
    from datalens.reports.grid import Grid

Command = TypeVar("Command", bound=Callable[..., Any])


def results_options(command: Command) -> Command:
    """The options of a command that fills a results store and draws from it."""
    options = (
        click.option(
            "--store",
            type=Text(paths=True),
            metavar="FILE",
            default="results/results.jsonl",
            show_default=True,
            help="Results so far, of any earlier sweep too; image grids lie in grids/ beside it.",
        ),
        click.option(
            "--out",
            type=Text(paths=True),
            metavar="FOLDER",
            show_default="the store's",
            help="Where tables are drawn.",
        ),
        click.option(
            "--scratch",
            type=Text(paths=True),
            metavar="FOLDER",
            show_default="scratch/ beside the store",
            help="Trained generators and feature classifiers, so that a sweep goes on.",
        ),
        click.option(
            "--data-root", type=Text(paths=True), metavar="FOLDER", help="Where published sets lie."
        ),
        click.option("--minutes", type=Number(0), metavar="M", help="Begin no further cell after so long."),
        click.option("--draw", is_flag=True, help="Only draw, from the results that are there."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def open_store(path: Path, *, only_draw: bool) -> ResultsStore:
    """The results; where they are only to be drawn, there must be a file of them.

    Raises:
        RunError: there is none, or it cannot be read.
    """
    from datalens.experiments.store import ResultsStore

    if only_draw and not path.exists():
        raise RunError(
            f"--store {path}: no such file, so nothing to draw; give another, or leave out --draw to run it"
        )
    return ResultsStore(path, read_only=only_draw)


def place_of(options: dict[str, Any], store: ResultsStore) -> Workplace:
    """Where data are read, and kept what is not a result."""
    from datalens.experiments.workplace import Workplace

    scratch = Path(options["scratch"]) if options["scratch"] else store.path.parent / "scratch"
    return Workplace(scratch, options["data_root"], store.path.parent / "grids", apart=True)


def run_missing(
    work: Sequence[Work], store: ResultsStore, place: Workplace, options: dict[str, Any], output: Output
) -> None:
    """Run what is missing, unless tables are only to be drawn; data sets without files get a warning each.

    Raises:
        RunError: results could not be written.
    """
    from datalens.experiments.sweep import run

    if options["draw"]:
        return
    store.require_writable()
    until = None if options["minutes"] is None else time.monotonic() + 60 * options["minutes"]
    for line in run(
        work, store, place, tell=output.say, stop=lambda: until is not None and time.monotonic() > until
    ):
        output.warn(line)


def drawing_folder(options: dict[str, Any], store: ResultsStore) -> Path:
    """The folder for what is drawn, made where it is missing.

    Raises:
        RunError: it cannot be made.
    """
    folder = Path(options["out"] or store.path.parent)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"--out {folder}: cannot be made ({error.strerror}); give another folder") from None
    return folder


def write_table(name: str, grid: Grid, out: Path, output: Output) -> dict[str, Any]:
    """A table as text, Markdown and CSV, and on the screen; what is said of it to machines."""
    from datalens.reports.grid import to_csv, to_markdown, to_text
    from datalens.training.files import write_atomically

    for ending, text in (("txt", to_text(grid) + "\n"), ("md", to_markdown(grid)), ("csv", to_csv(grid))):
        write_atomically(out / f"{name}.{ending}", text.encode())
    output.say(to_text(grid) + "\n")
    return {"name": name, "header": grid.header, "rows": grid.rows, "notes": grid.notes}
