"""Image grids of cells: a PNG each, beside the results; Figure 4 shows them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from datalens.experiments.baseline_cells import AnyCell
from datalens.experiments.training import TrainedCell
from datalens.experiments.workplace import Workplace
from datalens.student.sampling import sample_images
from datalens.training.files import write_atomically

GRID_ROWS = 5


def write_grid(path: Path, trained: TrainedCell, seed: int) -> None:
    """A PNG of generated images: a column a class, :data:`GRID_ROWS` rows."""
    classes = trained.latent.num_classes
    labels = np.tile(np.arange(classes), GRID_ROWS)
    images, _ = sample_images(trained.generator, trained.latent, len(labels), labels=labels, seed=seed)
    _, channels, height, width = images.shape
    grid = images.reshape(GRID_ROWS, classes, channels, height, width).transpose(0, 3, 1, 4, 2)
    picture = grid.reshape(GRID_ROWS * height, classes * width, channels)
    buffer = io.BytesIO()
    Image.fromarray(picture[:, :, 0] if channels == 1 else picture).save(buffer, format="PNG")
    write_atomically(path, buffer.getvalue())


def read_grid(place: Workplace, cell: AnyCell, image_shape: tuple[int, ...]) -> np.ndarray | None:
    """The images of a cell's grid, uint8 [rows * classes, C, H, W]; None where there is none."""
    path = None if place.grids is None else place.grids / f"{cell.key}.png"
    if path is None or not path.exists():
        return None
    channels, height, width = image_shape
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("L" if channels == 1 else "RGB"))
    tiles = pixels.reshape(GRID_ROWS, height, -1, width, channels).transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(tiles.reshape(-1, channels, height, width))
