"""Images as sums of cosines: a public basis in which few numbers hold most of what an image shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from datalens.errors import ConfigError

BANDS = 30
"""Of frequencies, from the mean of a channel to the finest checks."""
MAX_SIDE = 4096
"""Of an image: then sums of 255 times whole cosines stay below 255 (2^16 sqrt(2 side))^2 < 2^53."""
_SCALE = 2**16


@dataclass(frozen=True)
class Frequencies:
    """The orthonormal cosine transform (DCT-II) of every channel of an image, and which of its numbers are low.

    Attributes:
        image_shape: (C, H, W).
        num_low: frequencies a direction that count as low; at most the side.

    Raises:
        ConfigError: an image of a longer side than :data:`MAX_SIDE`.

    >>> Frequencies((1, 28, 28), 14).num_low_coordinates
    196
    """

    image_shape: tuple[int, int, int]
    num_low: int

    def __post_init__(self) -> None:
        if max(self.image_shape[1:]) > MAX_SIDE:
            raise ConfigError(
                f"images of {self.image_shape[1]}x{self.image_shape[2]}: cosines are exact for sides of at most "
                f"{MAX_SIDE}; use smaller images"
            )

    @property
    def dim(self) -> int:
        """D = C H W."""
        return math.prod(self.image_shape)

    @property
    def num_low_coordinates(self) -> int:
        """L: low frequencies of all channels."""
        return len(self.low_L)

    @property
    def num_bins(self) -> int:
        """Bands of frequencies, those of low ones and of others apart."""
        return 2 * BANDS

    @cached_property
    def low_L(self) -> Tensor:
        """int64: where the low frequencies are among the D."""
        return torch.nonzero(self._is_low_CHW.flatten()).squeeze(1)

    @cached_property
    def bin_D(self) -> Tensor:
        """int64: the bin of each of the D numbers."""
        _, height, width = self.image_shape
        fine_HW = torch.arange(height)[:, None] / height + torch.arange(width)[None] / width
        band_HW = (fine_HW * (BANDS / 2)).to(torch.int64)
        return (2 * band_HW + self._is_low_CHW).flatten()

    @property
    def bin_sizes(self) -> Tensor:
        """int64: how many of the D numbers are in each bin; 0 for some."""
        return self.bin_D.bincount(minlength=self.num_bins)

    def of_bytes(self, images_RCHW: Tensor) -> Tensor:
        """float64 [R, D] of private images uint8; the same bits for an image in any company.

        The basis is rounded to whole numbers, so that all sums are of whole numbers below 2^53, exact in any order.
        """
        _, height, width = self.image_shape
        rows = images_RCHW.to(torch.float64) @ _whole(width).T
        whole_RCHW = _whole(height) @ rows
        return whole_RCHW.flatten(1) / (255.0 * _SCALE**2)

    def to_images(self, numbers_BD: Tensor) -> Tensor:
        """Images [B, C, H, W] of the cosines' weights, in the type of these; not cut to [0, 1]."""
        channels, height, width = self.image_shape
        numbers = numbers_BD.view(-1, channels, height, width)
        return _cosines(height).to(numbers).T @ numbers @ _cosines(width).to(numbers)

    @property
    def _is_low_CHW(self) -> Tensor:
        channels, height, width = self.image_shape
        low_HW = (torch.arange(height) < self.num_low)[:, None] & (torch.arange(width) < self.num_low)
        return low_HW.expand(channels, -1, -1)


def _cosines(side: int) -> Tensor:
    """The orthonormal basis, float64 [frequency, place]."""
    place = torch.arange(side, dtype=torch.float64) + 0.5
    frequency = torch.arange(side, dtype=torch.float64)
    basis = torch.cos(math.pi / side * frequency[:, None] * place) * math.sqrt(2 / side)
    basis[0] /= math.sqrt(2)
    return basis


def _whole(side: int) -> Tensor:
    return (_cosines(side) * _SCALE).round()
