"""The generator that baselines share with DataLens: the paper's conditional network, without priors."""

from __future__ import annotations

import torch

from datalens.baselines.method import PublicSize
from datalens.models.finish import Finish, FinishedGenerator
from datalens.models.generators import ConditionalGenerator
from datalens.student.latent import LatentLaw, LatentSpace
from datalens.training.config import Section, Width


class Network(Section):
    """The generator.

    Attributes:
        latent_dim: Z.
        hidden_units: width of its dense layer.
        channels: channels of its smallest map.
    """

    latent_dim: Width = 50
    hidden_units: Width = 1024
    channels: Width = 128

    def latent(self, num_classes: int) -> LatentSpace:
        """What it is fed."""
        return LatentSpace(self.latent_dim, num_classes, LatentLaw.NORMAL)

    def generator(self, size: PublicSize, rng: torch.Generator | None = None) -> FinishedGenerator:
        """The network with weights drawn from ``rng``; zeros without one."""
        inner = ConditionalGenerator(
            self.latent_dim, size.num_classes, size.image_shape, self.hidden_units, self.channels
        )
        if rng is not None:
            inner.init_weights(rng)
        return FinishedGenerator(inner, Finish())
