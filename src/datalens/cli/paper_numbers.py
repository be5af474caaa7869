"""What papers print for a data set, as a table that a page shows beside a run's own score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datalens.reports.grid import Grid

_NAMES = {
    "dc-gan": "DC-GAN",
    "dp-gan": "DP-GAN",
    "pate-gan": "PATE-GAN",
    "g-pate": "G-PATE",
    "gs-wgan-as-published": "GS-WGAN",
}
_NOTE = (
    "Wang et al. 2021, Tables 1 and 2, at delta 0.00001: a classifier's best test epoch of many, and an account of "
    "their own. Such numbers stand higher than those of a last epoch, so they are not to be set in one column with "
    "the score above."
)


def printed_for(data_set: str, epsilon: float | None) -> Grid | None:
    """Accuracies of DataLens and of what it was compared with; None for a data set that is not the paper's.

    Args:
        data_set: such as ``mnist``.
        epsilon: of the run; a table of small epsilons is shown where it is below 1.
    """
    from datalens.experiments import paper, printed
    from datalens.reports.grid import Grid

    own, others = paper.TABLE_1.get(data_set), printed.TABLE_1.get(data_set)
    if own is None or others is None:
        return None
    if epsilon is not None and epsilon < 0.99 and data_set in paper.TABLE_2:
        own, others = paper.TABLE_2[data_set], {1.0: others[1.0], **printed.TABLE_2[data_set]}
    columns = sorted(own)
    rows = [("DataLens", *(f"{100 * own[level]:.2f}%" for level in columns))]
    for method, name in _NAMES.items():
        values = [others.get(level, {}).get(method) for level in columns]
        if any(value is not None for value in values):
            rows.append((name, *("" if value is None else f"{value:.2f}%" for value in values)))
    without = others.get(math.inf, {}).get("dc-gan")
    if without is not None:
        rows.append(("DC-GAN, without privacy", *(f"{without:.2f}%" for _ in columns)))
    header = ("Method", *(f"epsilon {level:g}" for level in columns))
    return Grid(f"Accuracies that the paper prints for {data_set}", header, tuple(rows), (_NOTE,))
