"""The smallest cells of a table, on drawn shapes: forty teachers for two steps, and a baseline for three."""

from __future__ import annotations

from datalens.experiments.baseline_cells import BaselineCell
from datalens.experiments.cells import Cell

TINY = Cell(
    "shapes",
    10.0,
    changes=(
        ("voting__num_teachers", 40),
        ("voting__num_steps", 2),
        ("voting__batch_size", 4),
        ("student__hidden_units", 16),
        ("student__channels", 4),
    ),
)

MERF = (("num_features", 50), ("num_steps", 3), ("images_per_class", 4), ("hidden_units", 8), ("channels", 4))
SMALL = BaselineCell("shapes", "dp-merf", 10.0, settings=MERF)
