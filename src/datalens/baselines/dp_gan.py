"""DP-GAN: a Wasserstein GAN whose critic learns by DP-SGD; the generator learns from the critic alone.

Every critic step is one release: the noisy sum, over a Poisson-sampled lot, of the records' clipped gradients. The
critic's weights are a function of these sums, and the generator is one of the critic's, so both are post-processing.

Source: Xie, Lin, Wang, Wang and Zhou 2018; Abadi et al. 2016 for the step. What differs: ``docs/baselines.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, optim

from datalens.baselines.method import NoisedMethod
from datalens.baselines.networks import GeneratorSettings, settled
from datalens.baselines.per_record import load_opacus, per_record_gradients
from datalens.mechanisms.sampled_sum import SampledSum
from datalens.mechanisms.vector_sum import Grid, fitting_units
from datalens.methods.method import Context, Planned, PublicSize
from datalens.methods.pricing import NoiseOnPaper
from datalens.methods.sampled import Lot, check_lot, drawn_lot, sampled_noise
from datalens.methods.sharding import draw_record_slots, packed_slots, restored_slots
from datalens.methods.state import pack, unpack
from datalens.models.discriminators import ConditionalDiscriminator
from datalens.models.finish import AnyGenerator
from datalens.noise import make_noise
from datalens.noise.base import NoiseSource
from datalens.privacy.events import PoissonGaussianEvent, times
from datalens.teachers.partition import Partition
from datalens.training.repeats import refuse_groups
from datalens.training.sections import Batch, Count, Positive, Privacy, Width

WHAT = "critic gradient"
_RECORDS_AT_ONCE = 64


class DPGanSettings(GeneratorSettings):
    """DP-GAN's settings; lots, critic steps, clipping and the critic's size decide how much noise there is.

    Attributes:
        num_steps: generator steps.
        critic_steps: of the critic before each of them; each is one release.
        batch_size: expected number of records in a lot; public.
        max_grad_norm: longest gradient of one record; longer ones are cut to it.
        weight_clip: bound on every weight of the critic.
        critic_rate: RMSProp's learning rate, of the critic.
        learning_rate: Adam's, of the generator.
        generated_batch: generated images of a generator step.
        images_per_class: generated images of every class that a record is compared with.
        critic_channels: of the critic's first map.
    """

    num_steps: Count = 1000
    critic_steps: Count = 4
    batch_size: Count = 128
    max_grad_norm: Positive = 1.0
    weight_clip: Positive = 0.05
    critic_rate: Positive = 1e-3
    learning_rate: Positive = 1e-3
    generated_batch: Batch = 64
    images_per_class: Batch = 8
    critic_channels: Width = 16

    def plan(self, privacy: Privacy, size: PublicSize) -> DPGan:
        """The method with the noise that makes its critic steps cost at most ``privacy.epsilon``, add-or-remove.

        Raises:
            ConfigError: no noise that the sampler has is enough, a lot larger than the data, noise that is not proved
                under sampling, or Opacus is missing.
        """
        load_opacus()
        check_lot(self.batch_size, size.num_records)
        on_paper = DPGan(self, privacy, size, 0.0)
        if not privacy.is_private:
            return on_paper
        longest = privacy.group_size * on_paper.grid.units

        def event(noise_multiplier: float) -> PoissonGaussianEvent:
            method = DPGan(self, privacy, size, noise_multiplier * longest)
            return method.mechanism(NoiseOnPaper(privacy.noise)).event()

        remedy = "a larger epsilon, fewer num_steps, or a smaller batch_size"
        stddev = sampled_noise(privacy, event, on_paper.num_releases, longest, remedy)
        return DPGan(self, privacy, size, stddev)


@dataclass(frozen=True)
class DPGan(NoisedMethod[DPGanSettings]):
    """DP-GAN with its noise, on every coordinate of a sum, in units of the grid."""

    name: ClassVar[str] = "dp-gan"

    @property
    def num_releases(self) -> int:
        """Critic steps of a whole training."""
        return self.settings.num_steps * self.settings.critic_steps

    @property
    def grid(self) -> Grid:
        """Where a record's gradient is put."""
        dim = sum(parameter.numel() for parameter in self.critic().parameters())
        return Grid(self.settings.max_grad_norm, fitting_units(dim), dim)

    def critic(self) -> ConditionalDiscriminator:
        """The critic, all zeros."""
        return ConditionalDiscriminator(
            self.size.image_shape, self.size.num_classes, self.settings.critic_channels
        )

    def mechanism(self, noise: NoiseSource) -> SampledSum:
        """Where gradients become public."""
        rate = self.settings.batch_size / self.size.num_records
        return SampledSum(self.grid, self.noise_stddev, noise, rate, self.privacy.group_size)

    def planned(self) -> tuple[Planned, ...]:
        """The critic's steps. Replacing a record has no event of its own: it is bounded for the whole plan."""
        event = self.mechanism(make_noise(self.privacy.noise)).event()
        return (Planned(WHAT, event, None, self.num_releases),)

    def begin(self, context: Context) -> DPGanLearner:
        """Critic and generator before the first step.

        Raises:
            ConfigError: data that say which records are one person's.
        """
        refuse_groups(context.data)
        return DPGanLearner(self, context)


class DPGanLearner:
    """DP-GAN in training. Its weights are functions of released sums and public draws.

    Records lie in secret slots, and a lot is drawn among slots, empty ones too. So a record that is removed leaves
    every other record of the lot in its row, in batches of the same shape.

    Args:
        method: settings and noise.
        context: what it may use. Private.
    """

    def __init__(self, method: DPGan, context: Context) -> None:
        self._method, self._context, self._grid = method, context, method.grid
        settings, size = method.settings, method.size
        self.slots: Partition = draw_record_slots(size, context, method.privacy.insecure_seed)
        generator = settings.fresh(size, context.public.torch("generator-weights"))
        critic = method.critic()
        critic.init_weights(context.public.torch("critic-weights"))
        self._generator, self._critic = generator.to(context.device).train(), critic.to(context.device)
        self._networks = {"generator": self._generator, "critic": self._critic}
        self._optimizers: dict[str, optim.Optimizer] = {
            "generator": optim.Adam(self._generator.parameters(), settings.learning_rate, (0.5, 0.999)),
            "critic": optim.RMSprop(self._critic.parameters(), settings.critic_rate),
        }
        self._clip_weights()

    def step(self, step: int) -> None:
        """The critic's noisy steps, then one of the generator on what the critic says.

        Raises:
            BudgetError: not all critic steps fit; nothing was released and nobody learned.
        """
        settings = self._method.settings
        (planned,) = self._method.planned()
        self._context.budget.check(times(planned.event, settings.critic_steps))
        for number in range(step * settings.critic_steps, (step + 1) * settings.critic_steps):
            self._critic_step(step, number)
        self._generator_step(step)

    def lot(self, number: int) -> Lot:
        """One lot; private."""
        mechanism = self._method.mechanism(NoiseOnPaper(self._method.privacy.noise))
        return drawn_lot(mechanism, self.slots, self._context, self._method.privacy, number)

    def clipped_sum(self, lot: tuple[Tensor, Tensor, Tensor], centre_YD: Tensor) -> Tensor:
        """int64 [D]: the sum over a lot of gradients less their class's centre, each clipped alone. Private."""
        total_D = torch.zeros(self._grid.dim, dtype=torch.int64, device=centre_YD.device)
        for images, labels, present in zip(*(part.split(_RECORDS_AT_ONCE) for part in lot), strict=True):
            rows_RD = per_record_gradients(self._critic, images, labels) - centre_YD[labels]
            total_D += (self._grid.put(rows_RD) * present[:, None]).sum(0)
        return total_D

    def _critic_step(self, step: int, number: int) -> None:
        """One release, and the critic's move along it."""
        method, context = self._method, self._context
        sum_D = self.clipped_sum(self.lot(number), self._centres(number))
        mechanism = method.mechanism(context.noise_for(WHAT, number))
        noisy_D = mechanism.release(sum_D, context.budget, {"step": step, "what": WHAT}).value
        ascent_D = (noisy_D / method.settings.batch_size).to(
            torch.float32
        )  # the expected size, which is public
        start = 0
        for parameter in self._critic.parameters():
            part = ascent_D[start : start + parameter.numel()]
            parameter.grad, start = -part.view_as(parameter), start + parameter.numel()
        self._optimizers["critic"].step()
        self._clip_weights()

    def _centres(self, number: int) -> Tensor:
        """The critic's mean gradient [Y, D] on generated images of each class: public."""
        settings, num_classes = self._method.settings, self._method.size.num_classes
        device = self._context.device
        labels = torch.arange(num_classes).repeat_interleave(settings.images_per_class)
        latents = self._method.latent.latents(len(labels), self._context.public.torch("compared", number))
        with torch.no_grad():
            images = self._generator(latents.to(device), labels.to(device))
        gradients = per_record_gradients(self._critic, images, labels.to(device))
        return gradients.unflatten(0, (num_classes, -1)).mean(1)

    def _generator_step(self, step: int) -> None:
        rng, device = self._context.public.torch("latents", step), self._context.device
        latents, labels = self._method.latent.batch(self._method.settings.generated_batch, rng)
        images = self._generator(latents.to(device), labels.to(device))
        self._optimizers["generator"].zero_grad(set_to_none=True)
        (-self._critic(images, labels.to(device)).mean()).backward()
        self._optimizers["generator"].step()
        self._critic.zero_grad(set_to_none=True)

    @torch.no_grad()
    def _clip_weights(self) -> None:
        bound = self._method.settings.weight_clip
        for parameter in self._critic.parameters():
            parameter.clamp_(-bound, bound)

    def state_dict(self) -> dict[str, Tensor]:
        """Both networks with their optimisers, and who has which slot."""
        return pack(self._networks, self._optimizers) | packed_slots(self.slots)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from :meth:`state_dict`.

        Raises:
            CheckpointError: a state of another run.
        """
        self.slots = restored_slots(state, self.slots)
        unpack(state, self._networks, self._optimizers)

    def generator(self) -> AnyGenerator:
        """The generator, its batch-norm statistics settled on public latents."""
        return settled(self._generator, self._method.latent, self._context.public.torch("settling"))
