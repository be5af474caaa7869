"""The generator that baselines share with DataLens: the paper's conditional network, without priors."""

from __future__ import annotations

import copy

import torch

from datalens.baselines.method import MethodSettings
from datalens.methods.method import PublicSize
from datalens.models.finish import Finish, FinishedGenerator
from datalens.models.generators import ConditionalGenerator
from datalens.student.latent import LatentLaw, LatentSpace
from datalens.training.sections import Width

SETTLING_IMAGES = 4000


class GeneratorSettings(MethodSettings):
    """A method's settings; these are the generator's.

    Attributes:
        latent_dim: Z; latents are normal.
        hidden_units: width of its dense layer.
        channels: channels of its smallest map.
    """

    latent_dim: Width = 50
    hidden_units: Width = 1024
    channels: Width = 128

    def latent(self, size: PublicSize) -> LatentSpace:
        """What the generator is fed."""
        return LatentSpace(self.latent_dim, size.num_classes, LatentLaw.NORMAL)

    def network(self, size: PublicSize) -> FinishedGenerator[ConditionalGenerator]:
        """The generator's network, its weights all zero."""
        inner = ConditionalGenerator(
            self.latent_dim, size.num_classes, size.image_shape, self.hidden_units, self.channels
        )
        return FinishedGenerator(inner, Finish())

    def fresh(self, size: PublicSize, rng: torch.Generator) -> FinishedGenerator[ConditionalGenerator]:
        """The network with weights drawn from ``rng``."""
        generator = self.network(size)
        generator.inner.init_weights(rng)
        return generator

    @property
    def least_numbers(self) -> int:
        """Its largest two layers."""
        return self.hidden_units * max(self.latent_dim, self.channels)


def settled(
    generator: FinishedGenerator[ConditionalGenerator], latent: LatentSpace, rng: torch.Generator
) -> FinishedGenerator[ConditionalGenerator]:
    """A frozen copy whose batch-norm statistics are measured on public latents, for its weights as they are."""
    finished = copy.deepcopy(generator)
    device = next(finished.parameters()).device
    latents_BZ = latent.latents(SETTLING_IMAGES, rng)[:, : latent.latent_dim].to(device)
    labels_B = latent.labels(SETTLING_IMAGES, rng).to(device)
    finished.inner.settle_statistics(latents_BZ, labels_B)
    return finished.eval().requires_grad_(False)
