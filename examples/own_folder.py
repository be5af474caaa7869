"""A folder of people's images, one sub-folder a class, to a run that can be shared.

python examples/own_folder.py                                a folder of drawn shapes is made first
python examples/own_folder.py scans/ runs/scans ill,well     your own, and its classes
"""

# ruff: noqa: T201
from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

from datalens import DataLens, data, recipes

AT_MOST = 5000
"""A bound on the number of records that everybody may know; the exact number then stays private."""


def draw_folder(folder: Path, num_records: int = 800) -> Path:
    """Write drawn shapes as PNG files, standing in for people's images."""
    shapes = data.load("shapes")
    for number in range(num_records):
        place = folder / shapes.classes[shapes.labels[number]]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(shapes.images[number, 0]).save(place / f"{number:05d}.png")
    return folder


def main(folder: Path, out: Path, classes: list[str]) -> Path:
    """Train on the folder; return what may be shared."""
    # Declared, not read off the sub-folders: the list is public, and a class may have no record at all.
    people = data.load(folder, classes=classes)

    config = recipes.shapes_quick(epsilon=8.0).replace(
        recipe="own-folder",
        privacy__num_records=AT_MOST,
        voting__num_teachers=400,
    )
    model = DataLens(config).fit(people, out=out)
    images, labels = model.sample(8, labels=[0] * 8)
    print(f"drew {len(images)} images of class {model.classes[labels[0]]}")
    print(f"to share: {out / 'release'}; never to share: {out / 'private'}")
    return out / "release"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        if len(sys.argv) == 4:
            main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3].split(","))
        else:
            drawn = ["disc", "square", "cross", "triangle"]
            main(draw_folder(Path(scratch) / "people"), Path(scratch) / "run", drawn)
