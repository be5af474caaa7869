"""Patches under 5x5 stride-2 convolutions, and the way back; channels last, so that copies are long."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from datalens.errors import ConfigError

KERNEL = 5
PAD = 2
SMALLEST_MAP = 8


def map_sizes(image_shape: tuple[int, int, int]) -> tuple[int, ...]:
    """Widths of the maps from the image down: halved at least twice, then until at most 8 wide (or odd).

    Raises:
        ConfigError: an image that is not square, or whose side is not divisible by 4.

    >>> map_sizes((1, 28, 28)), map_sizes((3, 64, 64))
    ((28, 14, 7), (64, 32, 16, 8))
    """
    channels, height, width = image_shape
    if channels < 1 or height != width or height < 4 or height % 4:
        raise ConfigError(
            f"image shape {channels}x{height}x{width}: images must be square with a side divisible by 4; "
            "pad or resize them"
        )
    sizes = [height, height // 2, height // 4]
    while sizes[-1] > SMALLEST_MAP and sizes[-1] % 2 == 0:
        sizes.append(sizes[-1] // 2)
    return tuple(sizes)


def take_patches(x_TBHWC: Tensor) -> Tensor:
    """``[T, B * P, 25 * C]``: the padded 5x5 neighbourhoods at every second pixel (P = H/2 * W/2)."""
    num_teachers, num_images, size, _, channels = x_TBHWC.shape
    padded = functional.pad(x_TBHWC, (0, 0, PAD, PAD, PAD, PAD))
    half = size // 2
    stride_T, stride_B, stride_H, stride_W, stride_C = padded.stride()
    windows = padded.as_strided(
        (num_teachers, num_images, half, half, KERNEL, KERNEL, channels),
        (stride_T, stride_B, 2 * stride_H, 2 * stride_W, stride_H, stride_W, stride_C),
    )
    return windows.reshape(num_teachers, num_images * half * half, KERNEL * KERNEL * channels)


def fold_patches(patches_TNK: Tensor, num_images: int, size: int, channels: int) -> Tensor:
    """The transpose of :func:`take_patches`: every patch added back where it came from, ``[T,B,H,W,C]``."""
    num_teachers, half = patches_TNK.shape[0], size // 2
    patches = patches_TNK.view(num_teachers, num_images, half, half, KERNEL, KERNEL * channels)
    whole = half + PAD
    # Pixels in 2x2 cells: at stride 2, taps (2a..2a+1, 2b..2b+1) of a patch are one cell, a and b further on.
    cells = patches.new_zeros(num_teachers, num_images, whole, 2, whole, 2 * channels)
    for row in range(0, KERNEL, 2):
        rows = min(2, KERNEL - row)
        for column in range(0, KERNEL, 2):
            columns = min(2, KERNEL - column) * channels
            a, b = row // 2, column // 2
            taps = patches[..., row : row + rows, column * channels : column * channels + columns]
            cells[:, :, a : a + half, :rows, b : b + half, :columns] += taps.transpose(3, 4)
    padded = cells.view(num_teachers, num_images, size + 2 * PAD, size + 2 * PAD, channels)
    return padded[:, :, PAD : PAD + size, PAD : PAD + size]
