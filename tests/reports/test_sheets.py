"""Pictures in a page hold the images' own pixels."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from datalens.reports.sheets import GAP, Row, Sheet, row_size, row_uri, shown


@pytest.mark.parametrize("channels", [1, 3])
def test_every_pixel_comes_back(channels: int) -> None:
    images = np.random.default_rng(channels).integers(0, 256, (3, channels, 5, 7), dtype=np.uint8)
    packed = base64.b64decode(row_uri(images).removeprefix("data:image/png;base64,"))
    found = np.asarray(Image.open(io.BytesIO(packed)))
    assert found.shape == (5, 3 * 7 + 2 * GAP, 4) and row_size(images) == (found.shape[1], 5)
    for number, image in enumerate(images):
        tile = found[:, number * (7 + GAP) : number * (7 + GAP) + 7]
        assert (tile[..., 3] == 255).all()
        assert np.array_equal(np.moveaxis(tile[..., :channels], 2, 0), image)
    assert (found[:, 7, 3] == 0).all()


def test_a_sheet_is_shown_row_by_row(images: np.ndarray) -> None:
    sheet = shown(Sheet("then", (Row("a", images), Row("b", images[:2])), left_out=3))
    assert [(row.name, row.num_images, row.height) for row in sheet.rows] == [("a", 4, 8), ("b", 2, 8)]
    assert (sheet.title, sheet.left_out) == ("then", 3)
