"""The smallest cell of a table: two steps of forty teachers on drawn shapes."""

from __future__ import annotations

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
