"""The baselines with their hindrances removed: each row keeps what the rows above it removed."""

from __future__ import annotations

from datalens.experiments.contenders import contender
from datalens.experiments.tables import TABLES
from datalens.methods.method import PublicSize


def test_hindrances_go_one_after_the_other() -> None:
    rows = {row.labels: row.cell for row in TABLES["limits"]().rows}
    assert len({cell.key for cell in rows.values()}) == len(rows)
    noisy, quiet = rows["g-pate", "nothing, epsilon 1"], rows["g-pate", "without noise"]
    alone, plain = rows["g-pate", "and one teacher"], rows["g-pate", "and no projection, 100 bins"]
    assert noisy.key == contender("g-pate", "mnist", 1.0).key, "the same cell as in Table 1"
    assert [cell.config().privacy.is_private for cell in (noisy, quiet, alone, plain)] == [True, *[False] * 3]
    teachers = [cell.config().settings.model_dump()["num_teachers"] for cell in (quiet, alone, plain)]
    assert teachers[0] > 1 and teachers[1:] == [1, 1]
    for cell in rows.values():
        config = cell.config()
        config.settings.plan(config.privacy, PublicSize(60_000, (1, 28, 28), 10))
