"""Patches under 5x5 stride-2 convolutions, and the way back; the axis of images comes last.

So copies are long and products of matrices are wide.
"""

from __future__ import annotations

from torch import Tensor

from datalens.errors import ConfigError
from datalens.models.scratch import Scratch

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
            "scale them, such as by --image-size 64 (in Python image_size=64)"
        )
    sizes = [height, height // 2, height // 4]
    while sizes[-1] > SMALLEST_MAP and sizes[-1] % 2 == 0:
        sizes.append(sizes[-1] // 2)
    return tuple(sizes)


def take_patches(x_TCHWB: Tensor, scratch: Scratch | None = None, name: str = "patches") -> Tensor:
    """``[T, C * 25, P, B]``: what each tap of the padded 5x5 kernel sees at every second pixel (P = H/2 * W/2).

    With ``scratch`` the result is its buffer ``name``, good until the next call with that name.
    """
    scratch = scratch or Scratch()
    num_teachers, channels, size, _, num_images = x_TCHWB.shape
    half, whole = size // 2, size + 2 * PAD
    padded = scratch.zeros("padded." + name, (num_teachers, channels, whole, whole, num_images), x_TCHWB)
    padded[:, :, PAD : PAD + size, PAD : PAD + size] = x_TCHWB  # the rim stays zero
    stride_T, stride_C, stride_H, stride_W, stride_B = padded.stride()
    windows = padded.as_strided(
        (num_teachers, channels, KERNEL, KERNEL, half, half, num_images),
        (stride_T, stride_C, stride_H, stride_W, 2 * stride_H, 2 * stride_W, stride_B),
    )
    patches = scratch.empty(name, tuple(windows.shape), x_TCHWB).copy_(windows)
    return patches.view(num_teachers, channels * KERNEL * KERNEL, half * half, num_images)


def fold_patches(
    patches: Tensor, num_images: int, size: int, channels: int, scratch: Scratch | None = None
) -> Tensor:
    """The transpose of :func:`take_patches`: every patch added back where it came from, ``[T,C,H,W,B]``.

    Args:
        patches: ``[T, C * 25, P, B]``, or with P and B in one axis.
        num_images: B.
        size: H = W.
        channels: C.
        scratch: where to keep the padded map; the result is a view of it.
    """
    scratch = scratch or Scratch()
    num_teachers, half = patches.shape[0], size // 2
    taps = patches.view(num_teachers, channels, KERNEL, KERNEL, half, half, num_images)
    whole = half + PAD
    # Pixels in 2x2 cells: at stride 2, taps (2a..2a+1, 2b..2b+1) of a patch are one cell, a and b further on.
    cells = scratch.empty("cells", (num_teachers, channels, whole, 2, whole, 2, num_images), patches).zero_()
    for row in range(0, KERNEL, 2):
        for column in range(0, KERNEL, 2):
            part = taps[:, :, row : row + 2, column : column + 2].permute(0, 1, 4, 2, 5, 3, 6)
            a, b, rows, columns = row // 2, column // 2, part.shape[3], part.shape[5]
            cells[:, :, a : a + half, :rows, b : b + half, :columns] += part
    padded = cells.view(num_teachers, channels, size + 2 * PAD, size + 2 * PAD, num_images)
    return padded[:, :, PAD : PAD + size, PAD : PAD + size]
