"""``datalens list``: the runs under a folder, one a line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import Output
from datalens.cli.params import Once, Text
from datalens.errors import RunError

if TYPE_CHECKING:
    from datalens.reports.status import RunStatus

_COLUMNS = ("run", "status", "epsilon", "delta", "method", "recipe", "data")


@click.command("list", cls=Once, short_help="List the runs under a folder.")
@click.argument("folder", type=Text(), default="runs")
@quiet_option
@json_option
def list_runs(folder: str, quiet: bool, json_target: str | None) -> None:
    """List the runs under FOLDER (runs, where it is left out): status, epsilon, method and what they learned from.

    Everything that is no run is passed over. Nothing is changed, and a run that cannot be read says so in its line.

    \b
    datalens list
    datalens list runs --json -
    """  # fmt: skip
    from datalens.reports.status import run_status

    output = Output(json_target, quiet=quiet)
    root = Path(folder)
    if not root.is_dir():
        raise RunError(f"{folder}: is no folder; give the one that holds your runs, or `datalens train` one")
    found = [run_status(name, *sides) for name, sides in _runs(root)]
    for status in found:
        if status.problem is not None:
            output.warn(status.problem)
    output.finish({"folder": folder, "runs": [status.to_json() for status in found]})
    if not found:
        output.say(f"{folder}: holds no runs")
        return
    rows = [
        [
            status.name,
            status.status + ("" if status.is_fit or not status.method else "; not for publication"),
            _epsilon(status),
            "" if status.delta is None else f"{status.delta:g}",
            status.method,
            status.recipe,
            status.data,
        ]
        for status in found
    ]
    output.table(_COLUMNS, rows)


def _epsilon(status: RunStatus) -> str:
    from datalens.privacy.card_words import epsilon_words

    if status.delta is None:
        return ""
    return "none" if status.epsilon is None else epsilon_words(status.epsilon)


def _runs(root: Path) -> Iterator[tuple[str, tuple[Path, Path]]]:
    """Name and sides of every run below, by name; folders of runs are not looked into further."""
    from datalens.training.run_folder import RunFolder

    for place, folders, _ in os.walk(root):
        here = Path(place)
        if RunFolder.holds_run(here):
            folders.clear()
            name = root.resolve().name if here == root else here.relative_to(root).as_posix()
            folder = next(side for side in (RunFolder(here), RunFolder(here, False)) if side.config.is_file())
            yield name, (folder.release, folder.private)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
