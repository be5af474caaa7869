"""``datalens benchmark``: methods side by side on published data, so that one can be chosen on evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from datalens.cli.known import SOURCES
from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import Output
from datalens.cli.params import Number, Once, Text, Whole
from datalens.cli.results import (
    drawing_folder,
    open_store,
    place_of,
    results_options,
    run_missing,
    write_table,
)
from datalens.errors import ConfigError

MOST_SEEDS = 1000


@click.command(cls=Once, short_help="Compare methods on published data.")
@click.argument("source", type=Text(*SOURCES))
@click.option(
    "--methods",
    type=Text(),
    metavar="A,B",
    show_default="all",
    help="Methods, as in train --method; gs-wgan-as-published has no guarantee.",
)
@click.option(
    "--epsilon",
    "epsilons",
    type=Text(),
    metavar="E,F",
    default="1",
    show_default=True,
    help="The most that a training may spend, for each.",
)
@click.option(
    "--seeds", type=Whole(), default=1, show_default=True, help="Trainings of each, with seeds 0 and up."
)
@results_options
@quiet_option
@json_option
def benchmark(source: str, methods: str | None, epsilons: str, seeds: int, **options: Any) -> None:
    """Train every method on SOURCE at every epsilon, score its images, and draw one table.

    SOURCE is mnist, fashion-mnist, celeba-gender, celeba-hair, places365, emoji or shapes: seeds are insecure, so
    that anyone gets the same, and that is for published data only. Results go to the store; what is there is not run
    again, and an interrupted benchmark goes on. Most trainings take 1 to 8 minutes on one core, dc-gan some 15, those
    on colour images hours; the scores of each 5 to 10 minutes more.

    \b
    datalens benchmark mnist --methods datalens,dp-merf --epsilon 1,10
    datalens benchmark fashion-mnist --epsilon 1 --seeds 3 --minutes 120
    datalens benchmark mnist --draw
    """
    from datalens.experiments.benchmark import benchmark_table
    from datalens.experiments.cells import DATA_SETS
    from datalens.experiments.contenders import CONTENDERS
    from datalens.experiments.sweep import work_of

    output = Output(options["json_target"], quiet=options["quiet"])
    known = [name for name, data_set in DATA_SETS.items() if data_set.quick is not None]
    if source not in known:
        raise ConfigError(
            f"source {source!r} is unknown to benchmark; known: {', '.join(known)} (on data of your own, use train)"
        )
    if seeds > MOST_SEEDS:
        raise ConfigError(f"--seeds {seeds}: is more than anyone can run; give at most {MOST_SEEDS}")
    names = CONTENDERS if methods is None else tuple(dict.fromkeys(methods.split(",")))
    table = benchmark_table(source, names, _numbers(epsilons), seeds)
    store = open_store(Path(options["store"]), only_draw=options["draw"])
    place = place_of(options, store)
    run_missing(work_of(table.rows, store), store, place, options, output)
    answer = write_table(
        table.name, table.draw(store, place.absent([source])), drawing_folder(options, store), output
    )
    left = len(work_of(table.rows, store))
    output.say(f"{left} cells left to run" if left else "every cell has run")
    output.finish({**answer, "cells_left": left})


def _numbers(text: str) -> tuple[float, ...]:
    """Epsilons from a list with commas."""
    try:
        found = tuple(
            dict.fromkeys(Number(0, above=True).convert(part, None, None) for part in text.split(","))
        )
    except click.BadParameter as error:
        raise ConfigError(f"--epsilon {text!r:.60}: {error.message}") from None
    return found
