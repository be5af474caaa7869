"""``datalens compare``: runs side by side, in a table and on a page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import Output, check_file_target, refuse_released
from datalens.cli.params import Once, Text
from datalens.errors import ConfigError

if TYPE_CHECKING:
    from datalens.reports.compared import Compared

_FEW_IMAGES = 6


@click.command(cls=Once, short_help="Set runs side by side.")
@click.argument("runs", type=Text(), nargs=-1, metavar="RUN RUN ...")
@click.option("--out", type=Text(), metavar="FILE.html", help="Also write a page with samples.")
@click.option(
    "--private", "is_private", is_flag=True, help="Also what `evaluate` kept in private/; not to be shared."
)
@quiet_option
@json_option
def compare(
    runs: tuple[str, ...], out: str | None, is_private: bool, quiet: bool, json_target: str | None
) -> None:
    """Set two or more runs side by side: promise, method, data, steps, and scores that were released.

    With --private also scores that only the owner knows. What they were measured with stands in each run's own
    private/report.html.

    \b
    datalens compare runs/mnist runs/moments
    datalens compare runs/mnist runs/moments --out compare.html
    """  # fmt: skip
    from datalens.reports.compared import compared_grid, compared_page
    from datalens.training.files import PRIVATE, SHARED, write_atomically

    if len(runs) < 2:
        raise ConfigError(f"compare: takes two runs or more, and got {len(runs)}; name two at least")
    if len({os.path.realpath(run) for run in runs}) < len(runs):
        raise ConfigError("compare: names one run twice; name each once")
    for option, target in (("--out", out), ("--json", json_target)):
        if is_private:
            refuse_released(option, target, runs)
    if out is not None and json_target is not None and os.path.realpath(out) == os.path.realpath(json_target):
        raise ConfigError(f"--json {json_target}: is the file of --out too; give it another name")
    output = Output(json_target, quiet=quiet)
    if out is not None:
        check_file_target(Path(out), "--out")
    compared = [
        _compared(run, name, is_private=is_private, draws=out is not None)
        for run, name in zip(runs, _names(runs), strict=True)
    ]
    output.finish({"runs": [run.to_json() for run in compared], "page": out})
    grid = compared_grid(compared)
    output.table(grid.header, grid.rows)
    for run in compared:
        for caution in run.cautions:
            output.insist(f"{run.name}: take care: {caution}")
    if out is not None:
        mode = PRIVATE if is_private else SHARED
        write_atomically(Path(out), compared_page(compared).encode(), mode=mode)
        output.say(f"page: {out}")
    if is_private:
        output.insist("scores on people's data: not to be published")


def _names(runs: Sequence[str]) -> list[str]:
    """Their folders' own names, with as many of those above as tell them apart.

    A page that is passed on need not say where they lay.
    """
    parts = [Path(os.path.realpath(run)).parts for run in runs]
    for count in range(1, max(map(len, parts))):
        names = [Path(*of_run[-count:]).as_posix() for of_run in parts]
        if len(set(names)) == len(names):
            return names
    return list(runs)


def _compared(run: str, name: str, *, is_private: bool, draws: bool) -> Compared:
    from datalens.cli.reporting import sheets_of
    from datalens.reports.compared import Compared
    from datalens.reports.facts import read_release, understood
    from datalens.reports.owner_facts import read_private
    from datalens.training.run_folder import RunFolder

    folder = RunFolder.open(Path(run))
    facts = read_release(folder.release)
    sheet = sheets_of(folder, each=_FEW_IMAGES)[-1] if draws and not facts.is_classifier else None
    compared = Compared(name, facts, sheet, read_private(folder.private) if is_private else None)
    with understood(folder.release):
        _ = compared.pairs(), compared.to_json()
    return compared
