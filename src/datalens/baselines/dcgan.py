"""DC-GAN (Radford et al. 2016), conditional: no privacy at all, the ceiling of the tables.

Nothing is released through a mechanism, so nothing is charged: the generator is a function of the records, and
everything that is written says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, optim
from torch.nn import functional

from datalens.baselines.networks import GeneratorSettings, settled
from datalens.errors import ConfigError
from datalens.methods.method import Context, Planned, PublicSize
from datalens.methods.state import pack, unpack
from datalens.models.discriminators import ConditionalDiscriminator
from datalens.models.finish import FinishedGenerator
from datalens.training.sections import Batch, Count, Positive, Privacy, Width

BETAS = (0.5, 0.999)


class DcganSettings(GeneratorSettings):
    """How the two networks learn.

    Attributes:
        num_steps: one update of each network a step.
        batch_size: records, and generated images, of a step.
        learning_rate: Adam's, of both.
        critic_channels: of the discriminator's first map.
    """

    num_steps: Count = 4000
    batch_size: Batch = 64
    learning_rate: Positive = 2e-4
    critic_channels: Width = 32

    def plan(self, privacy: Privacy, size: PublicSize) -> Dcgan:
        """The method, where no privacy is asked for.

        Raises:
            ConfigError: noise is asked for, which this method cannot give.
        """
        if privacy.is_private:
            raise ConfigError(
                f"method {Dcgan.name!r} has no privacy: say so with --noise none, or choose another method"
            )
        return Dcgan(self, size)


@dataclass(frozen=True)
class Dcgan:
    """DC-GAN with its settings; plans no release.

    Attributes:
        settings: as given.
        size: of the data.
    """

    name: ClassVar[str] = "dc-gan"
    settings: DcganSettings
    size: PublicSize

    @property
    def num_steps(self) -> int:
        """Steps of a whole training."""
        return self.settings.num_steps

    def planned(self) -> tuple[Planned, ...]:
        """None: there is no guarantee."""
        return ()

    def begin(self, context: Context) -> DcganLearner:
        """Both networks, freshly drawn."""
        return DcganLearner(self, context)


class DcganLearner:
    """Generator and discriminator in training on the records themselves. Private."""

    def __init__(self, method: Dcgan, context: Context) -> None:
        self._settings, self._context, self._latent = (
            method.settings,
            context,
            method.settings.latent(method.size),
        )
        size, device = method.size, context.device
        self._generator = method.settings.fresh(size, context.public.torch("generator-weights")).to(device)
        self._critic = ConditionalDiscriminator(
            size.image_shape, size.num_classes, method.settings.critic_channels
        )
        self._critic.init_weights(context.private.torch("discriminator"))
        self._critic.to(device)
        self._networks = {"generator": self._generator, "discriminator": self._critic}
        rate = method.settings.learning_rate
        self._optimizers = {
            name: optim.Adam(network.parameters(), rate, BETAS) for name, network in self._networks.items()
        }

    def step(self, step: int) -> None:
        """The discriminator learns to tell records from generated images, then the generator to pass for real."""
        images, labels = self._records(step)
        self._generator.train()
        fakes, asked = self._fakes(step, 0)
        real = functional.softplus(-self._critic(images, labels)).mean()
        fake = functional.softplus(self._critic(fakes.detach(), asked)).mean()
        self._learn("discriminator", real + fake)
        fakes, asked = self._fakes(step, 1)
        self._learn("generator", functional.softplus(-self._critic(fakes, asked)).mean())

    def _learn(self, who: str, loss: Tensor) -> None:
        self._optimizers[who].zero_grad(set_to_none=True)
        loss.backward()
        self._optimizers[who].step()

    def _records(self, step: int) -> tuple[Tensor, Tensor]:
        data, device = self._context.data, self._context.device
        rng = self._context.private.numpy("records", step)
        chosen = rng.integers(0, data.num_records, self._settings.batch_size)
        images = torch.from_numpy(data.images[chosen]).to(device).float() / 255
        return images, torch.from_numpy(data.labels[chosen]).to(device)

    def _fakes(self, step: int, turn: int) -> tuple[Tensor, Tensor]:
        rng = self._context.public.torch("fakes", 2 * step + turn)
        latents, labels = self._latent.batch(self._settings.batch_size, rng)
        labels = labels.to(self._context.device)
        return self._generator(latents.to(self._context.device), labels), labels

    def state_dict(self) -> dict[str, Tensor]:
        """Both networks with their optimisers."""
        return pack(self._networks, self._optimizers)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from :meth:`state_dict`."""
        unpack(state, self._networks, self._optimizers)

    def generator(self) -> FinishedGenerator:
        """The generator as it is: not private."""
        return settled(self._generator, self._latent, self._context.public.torch("settling"))
