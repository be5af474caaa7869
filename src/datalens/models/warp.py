"""Small affine changes of images, driven by latents: rotation, stretches, shear and shifts."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from datalens.models.outside import Outside

WARP_DIM = 6
ROTATION, STRETCH, SHEAR, SHIFT = 0.26, 0.12, 0.2, 0.1
"""Largest rotation (radians, 15 degrees), stretch, shear and shift (of half the image) at strength 1."""


def affine_warp(
    images_BCHW: Tensor, latents_BW: Tensor, strength: float, outside: Outside = Outside.EDGE
) -> Tensor:
    """Rotate, stretch, shear and shift each image by its own six latents in [-1, 1].

    Args:
        images_BCHW: images in [0, 1].
        latents_BW: rotation, two stretches, shear, two shifts; each in [-1, 1].
        strength: 0 leaves the images as they are; see :class:`~datalens.models.finish.Finish`.
        outside: what moves in from outside.

    Returns:
        The warped images, same shape; differentiable in the images.
    """
    angle, wide, high, lean, right, down = (strength * latents_BW).unbind(1)
    cos, sin = torch.cos(angle * ROTATION), torch.sin(angle * ROTATION)
    wide, high, lean = 1 + STRETCH * wide, 1 + STRETCH * high, SHEAR * lean
    first = torch.stack([cos * wide, (lean * cos - sin) * high, SHIFT * right], 1)
    second = torch.stack([sin * wide, (lean * sin + cos) * high, SHIFT * down], 1)
    grid = functional.affine_grid(
        torch.stack([first, second], 1), list(images_BCHW.shape), align_corners=False
    )
    padding = "border" if outside is Outside.EDGE else "zeros"
    return functional.grid_sample(images_BCHW, grid, padding_mode=padding, align_corners=False)
