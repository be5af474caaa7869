"""GS-WGAN: many critics on shards of their own; the generator learns from their sanitised gradients.

A step is one round: every critic in turn, in public order, learns on its own records and says, with noise, where each
generated image should move; the generator follows at once. The order is public, so nothing is amplified by sampling:
a record pays for the turns of its own critic, once a round (:mod:`datalens.mechanisms.critic_round`).

The published form draws a secret critic each time and charges each image as if it were sampled by itself. That is not
proved, see ``docs/baselines.md``; it runs with ``privacy.as_published`` (``--as-published``) and has no guarantee.

Source: Chen, Orekondy and Fritz, NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, optim

from datalens.baselines.method import NoisedMethod
from datalens.baselines.networks import GeneratorSettings, settled
from datalens.mechanisms.critic_round import CriticRound
from datalens.mechanisms.vector_sum import Grid, fitting_units
from datalens.methods.method import Context, Planned, PublicSize
from datalens.methods.pricing import NoiseOnPaper, drawable, noise_that_fits
from datalens.methods.sharding import check_shards, draw_shards, packed_slots, restored_slots
from datalens.methods.state import pack, unpack
from datalens.models.discriminators import ConditionalDiscriminator
from datalens.models.finish import AnyGenerator
from datalens.noise import make_noise
from datalens.privacy.events import Event, times
from datalens.training.sections import Batch, Count, Positive, Privacy, Slots, Width

WHAT = "critics' gradients"
PUBLISHED_NOISE = 1.07
_BETAS = (0.5, 0.9)


class GSWganSettings(GeneratorSettings):
    """GS-WGAN's settings; the first four decide how much noise there is.

    Attributes:
        num_steps: rounds; in each, every critic is asked once and the generator learns as often.
        batch_size: generated images that a critic is asked about.
        max_grad_norm: longest gradient for one image, C; longer ones are cut to it. 1, as the penalty wants it.
        noise_multiplier: noise over C, on every coordinate; None for the least that fits (as published, 1.07).
        num_critics: each with records of its own.
        shard_size: slots of each critic; None for all that fit, with groups for twice an even share.
        critic_steps: of a critic in its turn.
        records_per_step: records that it draws for each.
        gradient_penalty: weight of the penalty on the length of the critic's gradient.
        learning_rate: Adam's, of all networks.
        critic_channels: of a critic's first map.
    """

    num_steps: Count = 100
    batch_size: Batch = 32
    max_grad_norm: Positive = 1.0
    noise_multiplier: Positive | None = None
    num_critics: Slots = 20
    shard_size: Slots | None = None
    critic_steps: Count = 5
    records_per_step: Annotated[int, Field(ge=1, le=2**16)] = 32
    gradient_penalty: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 10.0
    learning_rate: Positive = 1e-3
    critic_channels: Width = 8

    has_published_form: ClassVar[bool] = True
    keeps_groups: ClassVar[bool] = True

    def plan(self, privacy: Privacy, size: PublicSize) -> GSWgan:
        """The method with the noise that makes its rounds cost at most ``privacy.epsilon``.

        Raises:
            ConfigError: no noise does, or there are more critics than records.
        """
        check_shards(self.num_critics, self.shard_size, size, "num_critics")
        units = fitting_units(math.prod(size.image_shape))
        setting = ("noise_multiplier", float(units))
        if privacy.as_published and privacy.adds_noise:  # what it costs is not known: nothing is promised
            multiplier = self.noise_multiplier or PUBLISHED_NOISE
            return GSWgan(self, privacy, size, drawable(privacy, multiplier * units, setting))
        on_paper = NoiseOnPaper(privacy.noise)

        def events_of(stddev: float) -> list[Event]:
            return [times(GSWgan(self, privacy, size, stddev).mechanism().event(on_paper), self.num_steps)]

        asked = None if self.noise_multiplier is None else self.noise_multiplier * units
        remedy = "a larger epsilon or delta, fewer num_steps, or a smaller batch_size"
        return GSWgan(self, privacy, size, noise_that_fits(privacy, events_of, asked, remedy, setting))


@dataclass(frozen=True)
class GSWgan(NoisedMethod[GSWganSettings]):
    """GS-WGAN with its noise, on every coordinate of a gradient, in units of the grid."""

    name: ClassVar[str] = "gs-wgan"

    @property
    def grid(self) -> Grid:
        """Where an image's gradient is put."""
        dim = math.prod(self.size.image_shape)
        return Grid(self.settings.max_grad_norm, fitting_units(dim), dim)

    def mechanism(self) -> CriticRound:
        """Where gradients become public."""
        settings = self.settings
        return CriticRound(
            self.grid, settings.batch_size, settings.num_critics, self.noise_stddev, self.privacy.group_size
        )

    def planned(self) -> tuple[Planned, ...]:
        """The rounds, at one cost under both relations; nothing in the published form, which has no guarantee."""
        if self.privacy.as_published:
            return ()
        event = self.mechanism().event(make_noise(self.privacy.noise))
        return (Planned(WHAT, event, event, self.num_steps),)

    def begin(self, context: Context) -> GSWganLearner:
        """Critics and generator before the first round."""
        return GSWganLearner(self, context)


class GSWganLearner:
    """GS-WGAN in training. The generator is a function of released gradients and public draws.

    Guarantee: a critic learns in its own turn, on its own shard, and shares nothing with others.

    Args:
        method: settings and noise.
        context: what it may use. Private.
    """

    def __init__(self, method: GSWgan, context: Context) -> None:
        settings, size, device = method.settings, method.size, context.device
        self._method, self._context = method, context
        self.partition = draw_shards(
            size, context, settings.num_critics, settings.shard_size, method.privacy.insecure_seed
        )
        generator = settings.fresh(size, context.public.torch("generator-weights"))
        self._networks: dict[str, torch.nn.Module] = {"generator": generator.to(device)}
        self._generator = generator
        self.critics: list[ConditionalDiscriminator] = []
        for number in range(settings.num_critics):
            critic = ConditionalDiscriminator(size.image_shape, size.num_classes, settings.critic_channels)
            critic.init_weights(context.private.torch("critic-weights", number))
            self.critics.append(critic.to(device))
            self._networks[f"critic-{number}"] = critic
        self._optimizers = {
            name: optim.Adam(network.parameters(), settings.learning_rate, _BETAS)
            for name, network in self._networks.items()
        }

    def step(self, step: int) -> None:
        """One round, charged as a whole before the first critic is asked.

        Raises:
            BudgetError: the round does not fit; nothing was released and nobody learned.
        """
        if self._method.privacy.as_published:
            return self._published_round(step)
        noise = self._context.noise_for(WHAT, step)
        paid = self._method.mechanism().charge(noise, self._context.budget, {"step": step, "what": WHAT})
        for critic in range(len(self.critics)):
            images, labels = self._turn(step, critic, critic)
            released_BD = paid.release(critic, self._gradients(critic, images, labels)).value
            self._follow(images, released_BD)
        return None

    def _published_round(self, step: int) -> None:
        """As many turns, each of a critic drawn in secret; nothing is charged. No guarantee."""
        drawn = self._context.private.numpy("critics", step).integers(0, len(self.critics), len(self.critics))
        noise, grid = self._context.noise_for(WHAT, step), self._method.grid
        for turn, critic in enumerate(drawn.tolist()):
            images, labels = self._turn(step, turn, critic)
            whole_BD = grid.put(self._gradients(critic, images, labels))
            noise_BD = torch.from_numpy(noise.sample(tuple(whole_BD.shape), self._method.noise_stddev))
            self._follow(images, grid.back(whole_BD + noise_BD.to(whole_BD.device)))

    def _turn(self, step: int, turn: int, critic: int) -> tuple[Tensor, Tensor]:
        """A critic learns; then the images that it is asked about, with the generator's graph behind them."""
        number = step * len(self.critics) + turn
        self._teach(critic, number)
        self._generator.train()
        rng = self._context.public.torch("latents", number)
        latents, labels = self._method.latent.batch(self._method.settings.batch_size, rng)
        labels = labels.to(self._context.device)
        return self._generator(latents.to(self._context.device), labels), labels

    def _teach(self, critic: int, number: int) -> None:
        """Wasserstein loss with gradient penalty on the critic's own records; none there, nothing to learn."""
        settings, context = self._method.settings, self._context
        shard = self.partition.shard(critic)
        if not len(shard):
            return
        rng = context.private.numpy("records", number)
        coins = context.private.torch("fakes", number)
        self._generator.eval()  # private labels go in: batch statistics must not take note of them
        for _ in range(settings.critic_steps):
            chosen = shard[rng.integers(0, len(shard), settings.records_per_step)]
            real = torch.from_numpy(context.data.images[chosen]).to(context.device).float() / 255
            labels = torch.from_numpy(context.data.labels[chosen]).to(context.device)
            with torch.no_grad():
                latents = self._method.latent.latents(len(chosen), coins).to(context.device)
                fake = self._generator(latents, labels)
            mix = torch.rand(len(chosen), 1, 1, 1, generator=coins).to(context.device)
            loss = self._critic_loss(self.critics[critic], real, fake, mix, labels)
            optimizer = self._optimizers[f"critic-{critic}"]
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    def _critic_loss(
        self, critic: ConditionalDiscriminator, real: Tensor, fake: Tensor, mix: Tensor, labels: Tensor
    ) -> Tensor:
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between, labels).sum(), between, create_graph=True)
        penalty = (slope.flatten(1).norm(dim=1) - 1).square().mean()
        gap = critic(fake, labels).mean() - critic(real, labels).mean()
        return gap + self._method.settings.gradient_penalty * penalty

    def _gradients(self, critic: int, images: Tensor, labels: Tensor) -> Tensor:
        """Where a critic would move each image, [B, D]. Private."""
        leaf = images.detach().requires_grad_()
        (gradients,) = torch.autograd.grad(self.critics[critic](leaf, labels).sum(), leaf)
        return gradients.flatten(1)

    def _follow(self, images: Tensor, released_BD: Tensor) -> None:
        optimizer = self._optimizers["generator"]
        optimizer.zero_grad(set_to_none=True)
        images.backward(-released_BD.to(images.dtype).view_as(images) / len(images))
        optimizer.step()

    def state_dict(self) -> dict[str, Tensor]:
        """All networks with their optimisers, and who has which slot."""
        return pack(self._networks, self._optimizers) | packed_slots(self.partition)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from :meth:`state_dict`.

        Raises:
            CheckpointError: a state of another run.
        """
        self.partition = restored_slots(state, self.partition)
        unpack(state, self._networks, self._optimizers)

    def generator(self) -> AnyGenerator:
        """The generator, its batch-norm statistics settled on public latents."""
        return settled(self._generator, self._method.latent, self._context.public.torch("settling"))
