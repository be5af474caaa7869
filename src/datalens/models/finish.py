"""The generator's last layer: small random changes of contrast and shape, driven by latent coordinates.

Handwriting leans, shifts and stretches, and pens are thick or thin; so it is with much that small pictures show.
A generator that has this freedom built in need not learn it from a budget of a few hundred thousand signs, and
what it draws varies as a classifier needs. The layer is a fixed public prior: nothing of it comes from data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from datalens.models.gaussian import GaussianImages
from datalens.models.generators import ConditionalGenerator
from datalens.models.mixed import MixedImages
from datalens.models.outside import Outside
from datalens.models.warp import WARP_DIM, affine_warp

FINISH_DIM = WARP_DIM + 1

_LEAST = 1e-3


@dataclass(frozen=True)
class Finish:
    """How much the last layer may change.

    Attributes:
        jitter: strength of the affine warp; 0 for none, 1 for up to 15 degrees, 12%, shear 0.2, 5% of the side.
        contrast: gain on the logit of every pixel; 1 for none.
        lightness: added to the logit before the gain; 0 for none.
        lightness_spread: largest random change of ``lightness``, the same for all pixels of an image.
        outside: what moves in from outside when an image is warped.
    """

    jitter: float = 0.0
    contrast: float = 1.0
    lightness: float = 0.0
    lightness_spread: float = 0.0
    outside: Outside = Outside.EDGE

    @property
    def changes_tone(self) -> bool:
        """Whether contrast or lightness do anything."""
        return (self.contrast, self.lightness, self.lightness_spread) != (1.0, 0.0, 0.0)


def change_tone(images_BCHW: Tensor, latents_B: Tensor, finish: Finish) -> Tensor:
    """``sigmoid(contrast * (logit(x) + lightness + lightness_spread * latent))``, pixel by pixel."""
    logits = torch.logit(images_BCHW.clamp(_LEAST, 1 - _LEAST))
    lightness_B = finish.lightness + finish.lightness_spread * latents_B
    return torch.sigmoid(finish.contrast * (logits + lightness_B[:, None, None, None]))


Inner = TypeVar("Inner", bound=ConditionalGenerator | GaussianImages | MixedImages, covariant=True)


class FinishedGenerator(nn.Module, Generic[Inner]):
    """A conditional generator and the last layer after it; the last seven latents drive that layer.

    Args:
        inner: draws the plain image from the latents before those.
        finish: how much the last layer may change.
    """

    def __init__(self, inner: Inner, finish: Finish) -> None:
        super().__init__()
        self.inner: Inner = inner
        self.finish = finish

    @property
    def num_classes(self) -> int:
        """Y."""
        return self.inner.num_classes

    def forward(self, latents_BZ: Tensor, labels_B: Tensor) -> Tensor:
        """``images_BCHW`` in [0, 1] from latents ``[B, Z + 7]`` and labels."""
        images = self.inner(latents_BZ[:, :-FINISH_DIM], labels_B)
        if self.finish.changes_tone:
            images = change_tone(images, latents_BZ[:, -1], self.finish)
        if self.finish.jitter:
            warp_BW = latents_BZ[:, -FINISH_DIM:-1]
            images = affine_warp(images, warp_BW, self.finish.jitter, self.finish.outside)
        return images


AnyGenerator: TypeAlias = FinishedGenerator[ConditionalGenerator | GaussianImages | MixedImages]
"""Whatever draws the plain image."""
