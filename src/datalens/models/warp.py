"""A small random affine warp as the last layer of a generator, driven by latent coordinates.

Handwriting leans, shifts and stretches; so do the things that small pictures show. A generator that has this
freedom built in need not learn it from a budget of a few hundred thousand signs, and what it draws varies as
a classifier needs. The warp is a fixed public prior: nothing of it comes from data.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from datalens.models.generators import ConditionalGenerator

WARP_DIM = 6
ROTATION, STRETCH, SHEAR, SHIFT = 0.26, 0.12, 0.2, 0.1
"""Largest rotation (radians, 15 degrees), stretch, shear and shift (of half the image) at strength 1."""


def affine_warp(images_BCHW: Tensor, latents_BW: Tensor, strength: float) -> Tensor:
    """Rotate, stretch, shear and shift each image by its own six latents in [-1, 1].

    Args:
        images_BCHW: images whose background is 0, which is what moves in from outside.
        latents_BW: rotation, two stretches, shear, two shifts; each in [-1, 1].
        strength: 0 leaves the images as they are; 1 is up to 15 degrees, 12%, 0.2 and 5% of the side.

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
    return functional.grid_sample(images_BCHW, grid, align_corners=False)


class WarpedGenerator(nn.Module):
    """A conditional generator followed by :func:`affine_warp`; its last six latents drive the warp.

    Args:
        inner: draws the unwarped image from the first ``latent_dim - 6`` latents.
        strength: of the warp; 0 for none.
    """

    def __init__(self, inner: ConditionalGenerator, strength: float) -> None:
        super().__init__()
        self.inner = inner
        self.strength = strength

    @property
    def num_classes(self) -> int:
        """Y."""
        return self.inner.num_classes

    def forward(self, latents_BZ: Tensor, labels_B: Tensor) -> Tensor:
        """``images_BCHW`` in [0, 1] from latents ``[B, Z + 6]`` and labels."""
        drawn = self.inner(latents_BZ[:, :-WARP_DIM], labels_B)
        return affine_warp(drawn, latents_BZ[:, -WARP_DIM:], self.strength) if self.strength else drawn
