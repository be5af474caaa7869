"""What the student is asked to draw: latents and labels, from public random streams and never from data."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from datalens.models.finish import FINISH_DIM
from datalens.student.latent_law import LatentLaw

CODE_SCALE = 4.0


@dataclass(frozen=True)
class LatentSpace:
    """The public distribution of what a generator is fed.

    Attributes:
        latent_dim: Z, without the seven latents of the last layer; the number of kinds where these are codes.
        num_classes: Y; labels are uniform on 0..Y-1.
        law: how latents are drawn.

    Source: paper, Algorithm 1 line 4; docs/algorithm.md.
    """

    latent_dim: int
    num_classes: int
    law: LatentLaw = LatentLaw.UNIFORM

    def latents(self, count: int, rng: torch.Generator) -> Tensor:
        """float32 ``[count, Z + 7]``; the last seven, uniform on [-1, 1], drive the last layer."""
        drawn = torch.rand(count, self.latent_dim + FINISH_DIM, generator=rng, device=rng.device) * 2 - 1
        shape = (count, self.latent_dim)
        if self.law is LatentLaw.NORMAL:
            drawn[:, : self.latent_dim] = torch.randn(shape, generator=rng, device=rng.device)
        elif self.law is LatentLaw.CODES:
            codes = torch.randint(self.latent_dim, (count,), generator=rng, device=rng.device)
            drawn[:, : self.latent_dim] = self._one_hot(codes)
        return drawn

    def labels(self, count: int, rng: torch.Generator) -> Tensor:
        """int64 ``[count]``, uniform on the declared classes."""
        return torch.randint(self.num_classes, (count,), generator=rng, device=rng.device)

    def batch(self, count: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Latents and labels of one training step.

        Independent draws; but where latents are codes every pair of class and code comes equally often (as
        nearly as ``count`` allows, the odd ones at random), in random order. Every label stays uniform.
        """
        latents_BZ = self.latents(count, rng)
        if self.law is not LatentLaw.CODES:
            return latents_BZ, self.labels(count, rng)
        cells = self.num_classes * self.latent_dim
        rounds = [torch.randperm(cells, generator=rng, device=rng.device) for _ in range(-(-count // cells))]
        cell_B = torch.cat(rounds)[:count]
        latents_BZ[:, : self.latent_dim] = self._one_hot(cell_B % self.latent_dim)
        return latents_BZ, cell_B // self.latent_dim

    def _one_hot(self, codes: Tensor) -> Tensor:
        return CODE_SCALE * functional.one_hot(codes, self.latent_dim).to(torch.float32)
