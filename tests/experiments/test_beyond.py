"""Our methods beside what others print."""

from __future__ import annotations

from datalens.experiments.contenders import contender
from datalens.experiments.tables import TABLES


def test_rows_are_the_contenders_cells_with_what_others_print() -> None:
    rows = {row.labels: row for row in TABLES["beyond"]().rows}
    assert len(rows) == 2 * 3 * 3
    for name in ("judged", "moments"):
        ours = rows["MNIST", "1", name]
        assert ours.cell.key == contender(name, "mnist", 1.0).key and len(ours.seeds) == 3
    ours = rows["MNIST", "1", "judged"]
    assert ours.printed.startswith("DPDM 95.3") and rows["MNIST", "1", "datalens"].printed == ""
    assert len({row.cell.key for row in rows.values()}) == len(rows)
