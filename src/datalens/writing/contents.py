"""What a writer is told before the first image comes, and what every writer is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np

from datalens.errors import ConfigError


@dataclass(frozen=True)
class Contents:
    """What the images of a file will be.

    Attributes:
        num_images: N, how many will come.
        image_shape: (C, H, W); grey (C = 1) or colour (C = 3).
        classes: names, in the order of their numbers.
        asked: numbers of the classes that get a sub-folder of their own; None for all, also one without images.

    >>> Contents(10, (3, 8, 8), ("cat", "dog")).num_bytes
    1920
    """

    num_images: int
    image_shape: tuple[int, int, int]
    classes: tuple[str, ...]
    asked: tuple[int, ...] | None = None

    @classmethod
    def of(cls, images: np.ndarray, classes: Sequence[str]) -> Contents:
        """What an array uint8 [N, C, H, W] holds."""
        count, channels, height, width = images.shape
        return cls(count, (channels, height, width), tuple(classes))

    @property
    def num_bytes(self) -> int:
        """Bytes of all pixels."""
        return self.num_images * prod(self.image_shape)

    def check_count(self, found: int) -> None:
        """Refuse images that are more or fewer than were announced.

        Raises:
            ConfigError: says both numbers.
        """
        if found != self.num_images:
            raise ConfigError(
                f"{found} images came, but {self.num_images} were announced; announce what you write"
            )


class AddImages(Protocol):
    """Takes the next images."""

    def __call__(self, images: np.ndarray, labels: np.ndarray) -> None:
        """Write uint8 [B, C, H, W] and class numbers [B] behind what came before."""
        ...


class Writer(Protocol):
    """One form of samples: opens a file or folder, takes images as they come, and ends it."""

    def __call__(self, path: Path, contents: Contents) -> AbstractContextManager[AddImages]:
        """Begin at ``path``, where nothing is yet.

        Leaving without an error makes the file whole and flushes it; leaving with one closes what is open.
        """
        ...


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that was not there, flushed to disk at the end."""
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_file(path: Path, content: bytes) -> None:
    """A small new file, flushed to disk."""
    with new_file(path) as file:
        file.write(content)
