"""The rows of the methods that DataLens is compared with, for the tables that the paper prints them in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from datalens.experiments.cells import DATA_SETS
from datalens.experiments.contenders import CONTENDERS, DATALENS, contender
from datalens.experiments.table import Row

Printed = Mapping[str, Mapping[float, Mapping[str, Any]]]
OTHERS = tuple(name for name in CONTENDERS if name != DATALENS)


def rows_of_others(
    data_sets: Iterable[str],
    epsilons: Iterable[float],
    printed: Printed,
    scores: tuple[str, ...],
    write: Callable[[Any], str],
) -> list[Row]:
    """A row for every other method on every data set at every epsilon, seed 0; without privacy one a data set.

    Labels are data set, epsilon asked and method.

    Args:
        data_sets: those of the product.
        epsilons: asked for.
        printed: what the paper has, by data set, epsilon and method.
        scores: what is measured.
        write: one of those as text.
    """
    rows: dict[str, Row] = {}
    for data_set in data_sets:
        for name in OTHERS:
            for epsilon in epsilons:
                cell = contender(name, data_set, epsilon)
                said = printed.get(data_set, {}).get(cell.epsilon, {}).get(name)
                labels = (DATA_SETS[data_set].title, f"{cell.epsilon:g}", name)
                rows.setdefault(
                    cell.key, Row(labels, cell, (0,), "" if said is None else write(said), scores)
                )
    return list(rows.values())
