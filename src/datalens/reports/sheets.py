"""Samples as pictures inside a page: one PNG a class, embedded."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np

SHOWN_CLASSES = 20
"""Classes that a page shows; more make it long and say nothing more."""
GAP = 1
"""Pixels between two images of a row, see-through."""


@dataclass(frozen=True, eq=False)
class Row:
    """Images of one class.

    Attributes:
        name: of the class.
        images: uint8 [N, C, H, W].
    """

    name: str
    images: np.ndarray


@dataclass(frozen=True, eq=False)
class Sheet:
    """Images of several classes, drawn at one time of a training.

    Attributes:
        title: when, such as ``after 60 steps``.
        rows: one a class.
        left_out: classes that are not shown.
    """

    title: str
    rows: tuple[Row, ...]
    left_out: int = 0


def row_uri(images: np.ndarray) -> str:
    """The images side by side as one PNG in a ``data:`` address.

    Args:
        images: uint8 [N, C, H, W], grey or colour.

    >>> row_uri(np.zeros((2, 1, 8, 8), np.uint8))[:22]
    'data:image/png;base64,'
    """
    from PIL import Image

    count, _, height, width = images.shape
    rgb = np.repeat(images, 3, axis=1) if images.shape[1] == 1 else images
    canvas = np.zeros((height, count * (width + GAP) - GAP, 4), np.uint8)
    for number, image in enumerate(rgb):
        left = number * (width + GAP)
        canvas[:, left : left + width, :3] = np.moveaxis(image, 0, 2)
        canvas[:, left : left + width, 3] = 255
    packed = io.BytesIO()
    Image.fromarray(canvas).save(packed, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(packed.getvalue()).decode()


def row_size(images: np.ndarray) -> tuple[int, int]:
    """(width, height) of that picture, in its own pixels."""
    count, _, height, width = images.shape
    return count * (width + GAP) - GAP, height


@dataclass(frozen=True)
class ShownRow:
    """A row as a template shows it: name, picture, its size and how many images it holds."""

    name: str
    uri: str
    width: int
    height: int
    num_images: int


@dataclass(frozen=True)
class ShownSheet:
    """A sheet as a template shows it."""

    title: str
    rows: tuple[ShownRow, ...]
    left_out: int


def shown(sheet: Sheet) -> ShownSheet:
    """The sheet with its pictures."""
    rows = (
        ShownRow(row.name, row_uri(row.images), *row_size(row.images), len(row.images)) for row in sheet.rows
    )
    return ShownSheet(sheet.title, tuple(rows), sheet.left_out)
