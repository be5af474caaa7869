"""Images that a judge is to name: drawn from a normal law a class, joined with another one, in another tone.

Whoever learns from a judge's answers learns them where images are, so images should lie where real ones may: also
between classes, without grain, with harder edges. What they are called is the judge's business, not theirs.
"""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor, nn

from datalens.models.gaussian import GaussianImages
from datalens.models.outside import Outside
from datalens.models.warp import WARP_DIM, affine_warp

EXTRA = 7 + WARP_DIM
"""Latents besides the law's: kind, class of the other image, share, side and place of a cut, gain, lightness, and the
other image's warp."""
GAIN, LIGHTNESS = 2.0, 0.75
"""Most that the gain on a pixel's logit is above 1, and standard deviation of what is added to it."""
_LEAST = 1e-3
_LEAST_CUT, _MOST_CUT = 2 / 7, 5 / 7


class Kind(IntEnum):
    """What becomes of a drawn image; all are equally likely."""

    PLAIN = 0
    MIXED = 1
    CUT = 2
    TONED = 3
    MIXED_AND_TONED = 4


class MixedImages(nn.Module):
    """A law's images, and mixtures of two of them.

    Args:
        law: draws the images; its parameters are this network's.
        jitter: strength of the other image's warp; both are warped by the last layer besides.
        outside: what moves in from outside when it is warped.
    """

    def __init__(self, law: GaussianImages, jitter: float = 0.0, outside: Outside = Outside.EDGE) -> None:
        super().__init__()
        self.law: GaussianImages = law
        self.jitter: float = jitter
        self.outside: Outside = outside
        self.num_classes: int = law.num_classes
        self.image_shape: tuple[int, int, int] = law.image_shape

    @property
    def latent_dim(self) -> int:
        """Normal numbers of an image: the law's, the directions of the other image, and the rest."""
        return self.law.latent_dim + self.law.rank + EXTRA

    def forward(self, latents_BZ: Tensor, labels_B: Tensor) -> Tensor:
        """``images_BCHW`` in [0, 1] from normal latents and labels of the first image.

        Plain: as the law draws it. Mixed: a random share of it and the rest of another image, of any class and
        without grain.
        Cut: rows or columns past a random place are the other image's. Toned: a random gain and lightness.
        """
        law, own = self.law, self.law.latent_dim
        first_BZ, along_BK = latents_BZ[:, :own], latents_BZ[:, own : own + law.rank]
        extra_BE = torch.special.ndtr(latents_BZ[:, own + law.rank :]).clamp(max=1 - 1e-6)
        kind_B = (extra_BE[:, 0] * len(Kind)).to(torch.int64)
        smooth_BZ = torch.cat([along_BK, torch.zeros_like(latents_BZ[:, law.rank : own])], 1)
        second = law(smooth_BZ, (extra_BE[:, 1] * self.num_classes).to(torch.int64))
        if self.jitter:
            second = affine_warp(second, 2 * extra_BE[:, 7:] - 1, self.jitter, self.outside)
        grainless_B1 = (kind_B == Kind.TONED)[:, None]
        grain_BD = first_BZ[:, law.rank :].masked_fill(grainless_B1, 0.0)
        image = law(torch.cat([first_BZ[:, : law.rank], grain_BD], 1), labels_B)
        mixed = (kind_B == Kind.MIXED) | (kind_B == Kind.MIXED_AND_TONED)
        share = torch.where(mixed, extra_BE[:, 2], 1.0)[:, None, None, None]
        image = share * image + (1 - share) * second
        image = torch.where(self._kept(kind_B, extra_BE), image, second)
        toned = (kind_B == Kind.TONED) | (kind_B == Kind.MIXED_AND_TONED)
        gain = (1 + GAIN * extra_BE[:, 5])[:, None, None, None]
        lightness = (LIGHTNESS * latents_BZ[:, own + law.rank + 6])[:, None, None, None]
        other = torch.sigmoid(gain * (torch.logit(image.clamp(_LEAST, 1 - _LEAST)) + lightness))
        return torch.where(toned[:, None, None, None], other, image)

    def _kept(self, kind_B: Tensor, extra_BE: Tensor) -> Tensor:
        """Pixels that stay the first image's where it is cut; bool [B, 1, H, W]."""
        _, height, width = self.image_shape
        place_B = _LEAST_CUT + (_MOST_CUT - _LEAST_CUT) * extra_BE[:, 4]
        by_rows = (extra_BE[:, 3] < 0.5)[:, None, None]
        row_H1 = torch.arange(height, device=kind_B.device)[:, None] / height
        column_1W = torch.arange(width, device=kind_B.device)[None] / width
        at_BHW = torch.where(by_rows, row_H1, column_1W)
        whole = (kind_B != Kind.CUT)[:, None, None]
        return (whole | (at_BHW < place_B[:, None, None]))[:, None]


def latent_dim(law_latents: int, rank: int) -> int:
    """Latents of :class:`MixedImages` over a law with so many.

    >>> latent_dim(64 + 784, 64) == 64 + 784 + 64 + EXTRA
    True
    """
    return law_latents + rank + EXTRA
