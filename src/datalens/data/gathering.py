"""Images one by one into one array: all of one shape, and those that can't be used named, never dropped unasked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datalens.data.pixels import DEFAULT_BACKGROUND, Pixels, check_sides
from datalens.errors import DataError

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Gathered:
    """The images that can be used.

    Attributes:
        images: uint8 [R, C, H, W].
        places: int64 [R]: which of all that were listed each is.
        positions: the same, or None where none was left out; as in :class:`datalens.data.images.LabelledImages`.
        listed: how many were listed, or None where none was left out.
        notes: what happened.
    """

    images: np.ndarray
    places: np.ndarray
    positions: np.ndarray | None
    listed: int | None
    notes: tuple[str, ...]


class Gathering:
    """Takes images in the order in which a source lists them.

    >>> gathering = Gathering("pets", 2, "files")
    >>> gathering.add("cat.png", "empty")
    >>> gathering.add("dog.png", Pixels(np.zeros((1, 8, 8), np.uint8), False))
    >>> gathering.finish(skip_damaged=True).positions.tolist()
    [1]
    """

    def __init__(self, name: str, count: int, unit: str, *, any_size: bool = False) -> None:
        self._name = name
        self._count = count
        self._unit = unit
        self._any_size = any_size
        self._images = np.empty((0, 0, 0, 0), np.uint8)
        self._first = ""
        self._places: list[int] = []
        self._damaged: list[str] = []
        self._mismatch = ""
        self._laid_over = 0
        self._seen = 0

    def add(self, where: str, pixels: Pixels | str) -> None:
        """The next image, or why it can't be used.

        Raises:
            DataError: its sides are none that a source may have.
        """
        place, self._seen = self._seen, self._seen + 1
        if isinstance(pixels, str):
            self._damaged.append(f"{where} ({pixels})")
            return
        shape = pixels.array.shape
        if not self._first:
            if not self._any_size:
                check_sides(shape, where)
            self._images = np.empty((self._count, *shape), np.uint8)
            self._first = where
        if shape != self._images.shape[1:]:
            self._mismatch = (
                self._mismatch or f"{where}: {_differs(shape, self._first, self._images.shape[1:])}"
            )
            return
        self._images[len(self._places)] = pixels.array
        self._places.append(place)
        self._laid_over += pixels.showed_through

    def finish(self, *, skip_damaged: bool, all_named_by: str = "", says_background: bool = True) -> Gathered:
        """What came together.

        Args:
            skip_damaged: leave out what can't be used; its places stay empty.
            all_named_by: a command that names everything that can't be used.
            says_background: a note says how many images were laid over the background, since nobody chose it.

        Raises:
            DataError: some can't be used, or they differ, or there is none; says what to do.
        """
        num_damaged = len(self._damaged)
        more = num_damaged - _SHOWN
        shown = ", ".join(self._damaged[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        if num_damaged and not skip_damaged:
            where_all = f"; `{all_named_by}` names all" if more > 0 and all_named_by else ""
            raise DataError(
                f"{self._name}: {num_damaged} of {self._count} {self._unit} can't be used: {shown}; mend or remove "
                f"them, or leave them out with --skip-damaged (in Python skip_damaged=True){where_all}"
            )
        if self._mismatch:
            raise DataError(self._mismatch)
        if not self._places:
            raise DataError(f"{self._name}: holds no image that can be used; put PNG or JPEG images there")
        notes = []
        if num_damaged:
            notes.append(f"{num_damaged} damaged {self._unit} left out, their places stay empty: {shown}")
        if self._laid_over and says_background:
            notes.append(
                f"{self._laid_over} see-through images laid over {DEFAULT_BACKGROUND}; choose with --background "
                "(background)"
            )
        places = np.array(self._places, np.int64)
        if not num_damaged:
            return Gathered(self._images, places, None, None, tuple(notes))
        return Gathered(self._images[: len(places)].copy(), places, places, self._count, tuple(notes))


def _differs(shape: tuple[int, ...], first: str, wanted: tuple[int, ...]) -> str:
    """How an image differs from the first one, and what to do."""
    (c, h, w), (c0, h0, w0) = shape, wanted
    size = (
        f"{h0} (in Python image_size={h0})" if h0 == w0 else f"{h0}x{w0} (in Python image_size=({h0}, {w0}))"
    )
    remedy = f"scale all images, such as by --image-size {size}"
    if c != c0:
        remedy = "make all images one kind by --channels 1 (grey) or 3 (in Python channels=1)"
    return f"is {w}x{h}, {c} channels, but {first} is {w0}x{h0}, {c0}; {remedy}"
