"""``datalens reproduce``: the paper's tables, each by one command."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import Output
from datalens.cli.params import Number, Once, Text, Whole
from datalens.errors import ConfigError

if TYPE_CHECKING:
    from datalens.experiments.store import ResultsStore
    from datalens.experiments.table import Table


@click.command(cls=Once, short_help="Redo the paper's tables.")
@click.argument("names", nargs=-1, type=Text(), metavar="NAME...")
@click.option(
    "--store", type=Text(), default="results/results.jsonl", show_default=True, help="Results so far."
)
@click.option(
    "--out", type=Text(), metavar="FOLDER", show_default="the store's", help="Where tables are drawn."
)
@click.option("--scratch", type=Text(), metavar="FOLDER", show_default="scratch/ beside the store")
@click.option("--data-root", type=Text(), metavar="FOLDER", help="Where published sets lie.")
@click.option("--data-set", "data_sets", type=Text(), metavar="A,B", help="Only these data sets.")
@click.option("--seeds", type=Whole(), metavar="N", help="Only the first so many seeds of a row.")
@click.option("--minutes", type=Number(0), metavar="M", help="Begin no further cell after so long.")
@click.option("--draw", is_flag=True, help="Only draw, from the results that are there.")
@click.option("--list", "only_list", is_flag=True, help="Only list the tables, and the cells that they lack.")
@quiet_option
@json_option
def reproduce(names: tuple[str, ...], **options: Any) -> None:
    """Train what the tables NAME... still lack, and draw them beside the paper's numbers.

    Results are kept in a store of JSON lines: a cell that is there is not run again, and an interrupted sweep
    goes on where it was. Cells are trained with insecure seeds on published data; nothing here is a release.

    \b
    datalens reproduce --list
    datalens reproduce table1 table12 --data-set mnist --seeds 1
    datalens reproduce table4 --draw
    """
    from datalens.experiments.store import ResultsStore
    from datalens.experiments.sweep import run, work_of

    output = Output(options["json_target"], quiet=options["quiet"])
    tables = _asked(names, only_list=options["only_list"])
    store = ResultsStore(Path(options["store"]))
    rows = [row for table in tables for row in table.rows if _wanted(row.cell.data_set, options["data_sets"])]
    work = work_of(rows, store, num_seeds=options["seeds"])
    if options["only_list"]:
        output.table(("name", "title", "rows"), [(t.name, t.title, str(len(t.rows))) for t in tables])
        for item in work:
            output.say(f"to run: {item.cell.title}: {', '.join(item.scores)}")
        output.finish({"tables": [t.name for t in tables], "cells_to_run": [w.cell.to_json() for w in work]})
        return
    absent: list[str] = []
    if not options["draw"]:
        until = None if options["minutes"] is None else time.monotonic() + 60 * options["minutes"]
        absent = run(
            work,
            store,
            _place(options, store),
            tell=lambda line: output.say(line),
            stop=lambda: until is not None and time.monotonic() > until,
        )
    for line in absent:
        output.warn(line)
    drawn = [_draw(table, store, Path(options["out"] or store.path.parent), output) for table in tables]
    left = work_of(rows, store, num_seeds=options["seeds"])
    output.say(f"{len(left)} cells left to run" if left else "every cell that can run here has run")
    output.finish({"tables": drawn, "cells_left": len(left)})


def _asked(names: tuple[str, ...], *, only_list: bool) -> list[Table]:
    from datalens.experiments.tables import TABLES

    if not names and not only_list:
        raise ConfigError(f"name a table: {', '.join(TABLES)}, or all")
    for name in names:
        if name not in TABLES and name != "all":
            raise ConfigError(f"{name!r} is not a table here; known: {', '.join(TABLES)}, all")
    chosen = (
        TABLES if not names or "all" in names else dict.fromkeys(names)
    )  # those with hours of work come last
    return [TABLES[name]() for name in chosen]


def _wanted(data_set: str, asked: str | None) -> bool:
    from datalens.experiments.cells import DATA_SETS

    if asked is None:
        return True
    names = asked.split(",")
    for name in names:
        if name not in DATA_SETS:
            raise ConfigError(f"--data-set {name!r} is unknown; known: {', '.join(DATA_SETS)}")
    return data_set in names


def _place(options: dict[str, Any], store: ResultsStore) -> Any:
    from datalens.experiments.measure import Workplace

    scratch = Path(options["scratch"]) if options["scratch"] else store.path.parent / "scratch"
    return Workplace(scratch, options["data_root"], store.path.parent / "grids")


def _draw(table: Table, store: ResultsStore, out: Path, output: Output) -> dict[str, Any]:
    from datalens.reports.grid import to_csv, to_markdown, to_text
    from datalens.training.files import write_atomically

    grid = table.draw(store)
    os.makedirs(out, exist_ok=True)
    for ending, text in (("txt", to_text(grid) + "\n"), ("md", to_markdown(grid)), ("csv", to_csv(grid))):
        write_atomically(out / f"{table.name}.{ending}", text.encode())
    output.say(to_text(grid) + "\n")
    return {"name": table.name, "header": grid.header, "rows": grid.rows, "notes": grid.notes}
