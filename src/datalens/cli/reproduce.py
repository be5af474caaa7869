"""``datalens reproduce``: the paper's tables, figures and claims, each by one command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import Output
from datalens.cli.params import Once, Text, Whole
from datalens.cli.results import (
    drawing_folder,
    open_store,
    place_of,
    results_options,
    run_missing,
    write_table,
)
from datalens.errors import ConfigError

if TYPE_CHECKING:
    from datalens.experiments.table import Table


@click.command(cls=Once, short_help="Redo the paper's tables and figures.")
@click.argument("names", nargs=-1, type=Text(), metavar="NAME...")
@results_options
@click.option("--data-set", "data_sets", type=Text(), metavar="A,B", help="Only these data sets.")
@click.option("--seeds", type=Whole(), metavar="N", help="Only the first so many seeds of a row.")
@click.option(
    "--resnet18",
    type=Text(paths=True),
    metavar="FILE",
    help="torchvision's weights, for CIFAR-10's features in place of EfficientNet-Lite0's.",
)
@click.option(
    "--list",
    "only_list",
    is_flag=True,
    help="Only list names, and the cells that tables lack.",
)
@quiet_option
@json_option
def reproduce(names: tuple[str, ...], **options: Any) -> None:
    """Run what the tables and figures NAME... still lack, and draw them beside the paper's numbers.

    Results are kept in a store of JSON lines: a cell (a training with its scores) that is there is not run again,
    and an interrupted sweep goes on where it was. Most cells take minutes, those of the paper's networks hours.
    Cells are trained with insecure seeds on published data; nothing here is a release.

    \b
    datalens reproduce --list
    datalens reproduce table1 table12 --data-set mnist --seeds 1
    datalens reproduce table4 --draw
    """
    from datalens.data import remedy
    from datalens.experiments.figures import FIGURES
    from datalens.experiments.study import NotRun
    from datalens.experiments.sweep import work_of

    output = Output(options["json_target"], quiet=options["quiet"])
    resnet18 = None if options["resnet18"] is None else Path(options["resnet18"])
    tables, figures = _asked(names, only_list=options["only_list"], by_resnet18=resnet18 is not None)
    only = _data_sets(options["data_sets"])
    store = open_store(Path(options["store"]), only_draw=options["draw"])
    rows = [row for table in tables for row in table.rows if row.cell.data_set in only]
    place = replace(place_of(options, store), resnet18=resnet18, tell=output.say)
    absent = place.absent(row.cell.data_set for row in rows)
    work = work_of(rows, store, num_seeds=options["seeds"])
    here = [item for item in work if item.cell.data_set not in absent]
    if options["only_list"]:
        listed = [*((t.name, t.title) for t in tables), *((name, FIGURES[name][0]) for name in figures)]
        output.table(("name", "title"), listed)
        for item in work:
            state = "to run" if item in here else "no files"
            output.say(f"{state}: {item.cell.title}: {', '.join(item.scores)}")
        for name in sorted(absent):
            output.say(f"for {name}: {remedy(name, options['data_root'])}")
        output.finish(
            {
                "names": [name for name, _ in listed],
                "cells_to_run": [item.cell.to_json() for item in here],
                "no_files": sorted(absent),
            }
        )
        return
    run_missing(work, store, place, options, output)
    out = drawing_folder(options, store)
    drawn = [write_table(table.name, table.draw(store, absent), out, output) for table in tables]
    for name in figures:
        try:
            drawn.append(write_table(name, FIGURES[name][1](store, place, out), out, output))
        except NotRun as error:
            output.warn(f"{error}; leave out --draw to run it")
    left = [
        item for item in work_of(rows, store, num_seeds=options["seeds"]) if item.cell.data_set not in absent
    ]
    if tables:
        output.say(f"{len(left)} cells left to run" if left else "every cell that can run here has run")
    output.finish({"drawn": drawn, "cells_left": len(left)})


def _asked(names: tuple[str, ...], *, only_list: bool, by_resnet18: bool) -> tuple[list[Table], list[str]]:
    from datalens.experiments import dpsgd_tables
    from datalens.experiments.figures import FIGURES
    from datalens.experiments.tables import TABLES

    built = {**TABLES, **dpsgd_tables.by_resnet18()} if by_resnet18 else TABLES
    known = [*TABLES, *FIGURES]
    if not names and not only_list:
        raise ConfigError(f"name what to reproduce: {', '.join(known)}, or all")
    for name in names:
        if name not in known and name != "all":
            raise ConfigError(f"{name!r} is no table or figure here; known: {', '.join(known)}, all")
    chosen = known if not names or "all" in names else list(dict.fromkeys(names))
    return [built[name]() for name in chosen if name in built], [name for name in chosen if name in FIGURES]


def _data_sets(asked: str | None) -> set[str]:
    """The data sets whose cells are wanted, whatever tables need them."""
    from datalens.experiments.cells import DATA_SETS

    names = set(DATA_SETS) if asked is None else set(asked.split(","))
    for name in sorted(names):
        if name not in DATA_SETS:
            raise ConfigError(f"--data-set {name!r} is unknown; known: {', '.join(DATA_SETS)}")
    return names
