"""A picture of what a run draws, a column a class; it costs no epsilon, like every sample.

python examples/picture_of_samples.py runs/mnist samples     writes samples.png and samples.svg
"""

# ruff: noqa: T201
from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from datalens import data, load_run
from datalens.baselines.model import Baseline
from datalens.baselines.registry import baseline
from datalens.reports.plots import image_grid

ROWS = 4


def main(run: Path, picture: Path) -> None:
    """Draw a few images of every class and put them side by side."""
    model = load_run(run)
    num_classes = len(model.classes)
    images, _ = model.sample(ROWS * num_classes, labels=[*range(num_classes)] * ROWS)
    png, svg = image_grid(images, picture, columns=num_classes)
    print(f"{ROWS} images of each of {num_classes} classes: {png.name}, {svg.name}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            Baseline(baseline("moments", epsilon=4.0)).fit(data.load("shapes"), out=folder / "run")
            main(folder / "run", folder / "samples")
