"""What the student is asked to draw: latents and labels, from public random streams and never from data."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from datalens.models.warp import WARP_DIM


@dataclass(frozen=True)
class LatentSpace:
    """The public distribution of what a generator is fed.

    Attributes:
        latent_dim: Z, without the six warp latents.
        num_classes: Y; labels are uniform on 0..Y-1.
        normal: standard normal latents (the paper's text) instead of uniform on [-1, 1] (its code).

    Source: paper, Algorithm 1 line 4; paper-facts "Algorithm 1" step 1.
    """

    latent_dim: int
    num_classes: int
    normal: bool = False

    def latents(self, count: int, rng: torch.Generator) -> Tensor:
        """float32 ``[count, Z + 6]``; the last six, uniform on [-1, 1], drive the warp."""
        uniform = torch.rand(count, self.latent_dim + WARP_DIM, generator=rng, device=rng.device) * 2 - 1
        if self.normal:
            shape = (count, self.latent_dim)
            uniform[:, : self.latent_dim] = torch.randn(shape, generator=rng, device=rng.device)
        return uniform

    def labels(self, count: int, rng: torch.Generator) -> Tensor:
        """int64 ``[count]``, uniform on the declared classes."""
        return torch.randint(self.num_classes, (count,), generator=rng, device=rng.device)
