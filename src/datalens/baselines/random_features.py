"""Random Fourier features of images: a Gaussian kernel as the inner product of vectors of length exactly 1.

The same features are needed twice. On private bytes they must be a function of one image alone, to the last bit:
a record that is removed must not change how another one is rounded. So there the phases are whole numbers: a matrix
product of whole numbers below 2^53 is exact in any order, and a phase of 16 bits is looked up in a table. On a
generator's images they must have a gradient; there they are ordinary floating point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from datalens.errors import ConfigError

_TURN_BITS = 32
_TABLE_BITS = 16
_MOST_EXACT = 2**53


def public_length_scale(image_shape: tuple[int, int, int]) -> float:
    """``sqrt(C H W / 6)``: the root mean square distance of two images of uniform noise in [0, 1].

    It needs nothing but the shape of an image. The median distance of the records, the usual choice, is private.

    >>> round(public_length_scale((1, 28, 28)), 2)
    11.43
    """
    return math.sqrt(math.prod(image_shape) / 6)


@dataclass(frozen=True, eq=False)
class RandomFeatures:
    """``phi(x) = [cos(W x), sin(W x)] / sqrt(M)`` with M rows of W normal with deviation 1 / length scale.

    ``phi(x) . phi(y)`` is ``exp(-|x - y|^2 / (2 length_scale^2))`` on average over W, and ``|phi(x)| = 1`` always.

    Attributes:
        turns_MD: whole numbers (as float64), 2^-32 turns of a phase for each step of a byte.

    Source: Rahimi and Recht 2007; the form with cosine and sine, whose length is 1. Their other form,
    ``sqrt(2 / M) cos(W x + b)``, is up to sqrt(2) long.
    """

    turns_MD: Tensor

    @classmethod
    def draw(
        cls, num_features: int, image_shape: tuple[int, int, int], length_scale: float, rng: torch.Generator
    ) -> RandomFeatures:
        """``num_features`` (2M) features of images of this shape from public draws.

        Raises:
            ConfigError: a length scale so short that phases are no longer exact.
        """
        shape = (num_features // 2, math.prod(image_shape))
        normal_MD = torch.empty(shape, dtype=torch.float64, device=rng.device).normal_(generator=rng)
        turns_MD = (normal_MD * (2**_TURN_BITS / (255 * 2 * math.pi * length_scale))).round_()
        if 255 * float(turns_MD.abs().sum(1).max()) >= _MOST_EXACT:
            raise ConfigError(
                f"length_scale is {length_scale:g}: too short for images of {shape[1]} values; the usual one is "
                f"{public_length_scale(image_shape):.3g}"
            )
        return cls(turns_MD)

    def to(self, device: torch.device) -> RandomFeatures:
        """The same features, computed there."""
        return RandomFeatures(self.turns_MD.to(device))

    @property
    def num_features(self) -> int:
        """2M."""
        return 2 * len(self.turns_MD)

    def of_bytes(self, images_RD: Tensor) -> Tensor:
        """Features float64 [R, 2M] of private images uint8 [R, D]; the same bits for an image in any company."""
        phase_RM = (images_RD.to(torch.float64) @ self.turns_MD.T).to(torch.int64)
        place_RM = (phase_RM >> (_TURN_BITS - _TABLE_BITS)) & (2**_TABLE_BITS - 1)
        cos, sin = self._tables
        return torch.cat([cos[place_RM], sin[place_RM]], 1)

    def of_images(self, images_BCHW: Tensor) -> Tensor:
        """Features float32 [B, 2M] of images in [0, 1], differentiable."""
        phase_BM = images_BCHW.flatten(1) @ self._frequencies_DM
        return torch.cat([phase_BM.cos(), phase_BM.sin()], 1) / math.sqrt(len(self.turns_MD))

    @cached_property
    def _tables(self) -> tuple[Tensor, Tensor]:
        """Cosine and sine over sqrt(M) of every phase that the table tells apart, each in its middle."""
        steps = torch.arange(2**_TABLE_BITS, dtype=torch.float64, device=self.turns_MD.device) + 0.5
        angle = steps * (2 * math.pi / 2**_TABLE_BITS)
        length = 1 / math.sqrt(len(self.turns_MD))
        return angle.cos() * length, angle.sin() * length

    @cached_property
    def _frequencies_DM(self) -> Tensor:
        return (self.turns_MD.T * (255 * 2 * math.pi / 2**_TURN_BITS)).to(torch.float32).contiguous()
