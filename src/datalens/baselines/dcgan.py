"""DC-GAN (Radford et al. 2016), conditional: no privacy at all, the ceiling of the tables.

The paper's generator against one of the paper's discriminators. That one has batch norm, which methods that clip each
record cannot have. With half the batch the two often collapse to one image a class (``docs/results``).

Nothing is released through a mechanism, so nothing is charged: the generator is a function of the records, and
everything that is written says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from datalens.baselines.networks import GeneratorSettings, settled
from datalens.errors import CheckpointError, ConfigError
from datalens.methods.method import Context, Planned, PublicSize
from datalens.methods.state import pack, unpack
from datalens.models.finish import FinishedGenerator
from datalens.models.generators import ConditionalGenerator
from datalens.teachers.family import Shards
from datalens.teachers.paper import PaperTeachers
from datalens.training.ordinary_gan import BETA1, as_shard, gan_step, generator_adam
from datalens.training.sections import Batch, Count, Positive, Privacy, Width


class DcganSettings(GeneratorSettings):
    """How the two networks learn.

    Attributes:
        num_steps: one update of each network a step.
        batch_size: records, and generated images, of a step.
        learning_rate: Adam's, of both.
        critic_channels: of the discriminator's second map, before a plane a class.

    Batch, latents and learning rate are those of Radford et al.
    """

    num_steps: Count = 2000
    latent_dim: Width = 100
    batch_size: Batch = 128
    learning_rate: Positive = 2e-4
    critic_channels: Width = 64

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
        settings, size, device = method.settings, method.size, context.device
        self._settings, self._context, self._latent = settings, context, settings.latent(size)
        self._generator = settings.fresh(size, context.public.torch("generator-weights")).to(device)
        self._adam = generator_adam(self._generator, settings.learning_rate)
        self._family = PaperTeachers(
            size.image_shape,
            size.num_classes,
            settings.critic_channels,
            learning_rate=settings.learning_rate,
            beta1=BETA1,
        )
        self._discriminator = self._family.init(1, context.private.torch("discriminator"), device)

    def step(self, step: int) -> None:
        """The discriminator learns to tell records from generated images, then the generator to pass for real."""
        self._generator.train()
        rng = self._context.public.torch("fakes", step)
        latents, labels = self._latent.batch(self._settings.batch_size, rng)
        self._discriminator = gan_step(
            self._generator,
            self._adam,
            self._family,
            self._discriminator,
            self._records(step),
            latents.to(self._context.device),
            labels,
        )

    def _records(self, step: int) -> Shards:
        data, device = self._context.data, self._context.device
        rng = self._context.private.numpy("records", step)
        chosen = rng.integers(0, data.num_records, self._settings.batch_size)
        return as_shard(*(torch.from_numpy(part[chosen]).to(device) for part in (data.images, data.labels)))

    def state_dict(self) -> dict[str, Tensor]:
        """Both networks with their optimisers."""
        packed = pack({"generator": self._generator}, {"generator": self._adam})
        return packed | {f"module/discriminator/{k}": v.clone() for k, v in self._discriminator.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from :meth:`state_dict`.

        Raises:
            CheckpointError: a state of other networks.
        """
        unpack(state, {"generator": self._generator}, {"generator": self._adam})
        for name, value in self._discriminator.items():
            found = state.get(f"module/discriminator/{name}")
            if found is None or found.shape != value.shape:
                raise CheckpointError(
                    f"the checkpoint is of other networks (discriminator, {name}): use the settings it was made with"
                )
            self._discriminator[name] = found.to(value.device).clone()

    def generator(self) -> FinishedGenerator[ConditionalGenerator]:
        """The generator as it is: not private."""
        return settled(self._generator, self._latent, self._context.public.torch("settling"))
