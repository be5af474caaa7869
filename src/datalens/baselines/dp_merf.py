"""DP-MERF: release one noisy mean embedding of images and labels, then fit a generator to it at leisure.

The joint feature of a record is its image's random Fourier features, in the row of its class: a vector of length 1.
The *sum* of these is released once. What one record moves is then 1 (2 where it is replaced) whatever the number of
records is, and no class is counted. The sum is divided by the public number of records afterwards.

How much of the sum is due to a class's number of records is in the sum itself, so nothing has to be known of it: the
generator draws as many images of every class, and the weight of each class is the one with which its images come
closest to the class's row (:func:`merf_loss`).

Source: Harder, Adamczewski and Park, AISTATS 2021. What differs from their code: ``docs/baselines.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from datalens.baselines.networks import GeneratorSettings, settled
from datalens.baselines.random_features import RandomFeatures, public_length_scale
from datalens.data.images import LabelledImages
from datalens.errors import CheckpointError, ConfigError
from datalens.mechanisms.vector_sum import Grid, VectorSum, fitting_units
from datalens.methods.method import Context, Planned, PublicSize
from datalens.methods.state import pack, unpack
from datalens.models.finish import AnyGenerator
from datalens.noise import NoiseSource, make_noise
from datalens.noise.table import MAX_STDDEV, MIN_STDDEV, SLACK_BOUND
from datalens.privacy.accountant import Accountant
from datalens.privacy.calibration import noise_for, tidy
from datalens.privacy.events import GaussianEvent, NoiseKind, SamplerSlack
from datalens.privacy.wording import rounded_up
from datalens.training.repeats import refuse_groups
from datalens.training.sections import Count, Fraction, Positive, Privacy, Width

WHAT = "mean embedding"
_RECORDS_AT_ONCE = 256


class MerfSettings(GeneratorSettings):
    """DP-MERF's settings; all but the number of features is post-processing.

    Attributes:
        num_features: random Fourier features of an image, 2M; even.
        length_scale: of the Gaussian kernel, for pixels in [0, 1]; None for the public rule, see
            :func:`~datalens.baselines.random_features.public_length_scale`.
        num_steps: generator steps, all on the one release.
        images_per_class: generated images of every class in a step.
        learning_rate: Adam's, at the first step.
        final_learning_rate: fraction of it left at the last step; the decay is linear.
    """

    num_features: int = Field(default=10_000, ge=2, le=2**17, multiple_of=2)
    length_scale: Positive | None = None
    num_steps: Count = 600
    images_per_class: int = Field(default=50, ge=2, le=2**12)
    learning_rate: Positive = 1e-2
    final_learning_rate: Fraction = 0.1
    latent_dim: Width = 5
    hidden_units: Width = 200
    channels: Width = 32

    def plan(self, privacy: Privacy, size: PublicSize) -> DPMerf:
        """The method with the noise that makes its one release cost at most ``privacy.epsilon``.

        The cost is that of one record (of ``privacy.group_size`` records) added or removed.

        Raises:
            ConfigError: no noise that the sampler has is enough.
        """
        units = fitting_units(self.num_features)
        coordinates = size.num_classes * self.num_features

        def event(stddev: float) -> GaussianEvent:
            """On paper, with the slack that holds for every noise: no table is built on the way."""
            slack = SLACK_BOUND if privacy.noise is NoiseKind.ROUNDED else SamplerSlack()
            return GaussianEvent(float(privacy.group_size * units), stddev, coordinates, privacy.noise, slack)

        stddev = 0.0
        if privacy.is_private:
            stddev = tidy(noise_for(event, 1, privacy.epsilon, privacy.delta, privacy.accountant))
        if privacy.noise is NoiseKind.ROUNDED:
            stddev = max(stddev, MIN_STDDEV)
            if stddev > MAX_STDDEV:
                most = 0.999 * MAX_STDDEV  # noise is rounded up to four digits and must still fit
                least = Accountant(privacy.accountant).epsilon([event(most)], privacy.delta)
                raise ConfigError(
                    f"epsilon = {privacy.epsilon:g}: one release needs noise of {stddev:g} units, but there are at "
                    f"most {MAX_STDDEV:.0f}; use a larger epsilon, {rounded_up(least)} or more"
                )
        grid = Grid(1.0, units, self.num_features)
        mechanism = VectorSum(grid, stddev, make_noise(privacy.noise), privacy.group_size)
        planned = Planned(WHAT, mechanism.event(coordinates), mechanism.replace_one_event(coordinates), 1)
        return DPMerf(self, size, units, stddev, privacy.group_size, planned)


@dataclass(frozen=True)
class DPMerf:
    """DP-MERF with settings that fit a budget: see :meth:`MerfSettings.plan`.

    Attributes:
        settings: as given.
        size: what may be known of the data.
        units: length of a record's vector on the grid of whole numbers.
        noise_stddev: on every coordinate of the sum, in the same units.
        group_size: records that one person may own.
        release: the one release.
    """

    name: ClassVar[str] = "dp-merf"
    settings: MerfSettings
    size: PublicSize
    units: int
    noise_stddev: float
    group_size: int
    release: Planned

    @property
    def num_steps(self) -> int:
        """Generator steps."""
        return self.settings.num_steps

    @property
    def grid(self) -> Grid:
        """Where every record's features are put."""
        return Grid(1.0, self.units, self.settings.num_features)

    def mechanism(self, noise: NoiseSource) -> VectorSum:
        """Where the table becomes public."""
        return VectorSum(self.grid, self.noise_stddev, noise, self.group_size)

    def planned(self) -> tuple[Planned, ...]:
        """The one release."""
        return (self.release,)

    def begin(self, context: Context) -> MerfLearner:
        """The learner before its first step.

        Raises:
            ConfigError: data that say which records are one person's.
        """
        refuse_groups(context.data)
        return MerfLearner(self, context)


class MerfLearner:
    """A generator that learns from one released embedding.

    Args:
        method: settings and noise.
        context: what it may use. Private.
    """

    def __init__(self, method: DPMerf, context: Context) -> None:
        self._method, self._context = method, context
        self._latent = method.settings.latent(method.size)
        settings, shape = method.settings, method.size.image_shape
        rng = context.public.torch("random-features")
        scale = settings.length_scale or public_length_scale(shape)
        self._features = RandomFeatures.draw(settings.num_features, shape, scale, rng).to(context.device)
        self._generator = settings.fresh(method.size, context.public.torch("generator-weights"))
        self._generator.to(context.device).train()
        self._adam = torch.optim.Adam(self._generator.parameters(), settings.learning_rate)
        self._embedding_YF: Tensor | None = None

    def step(self, step: int) -> None:
        """One generator step; before the first one the one release."""
        if self._embedding_YF is None:
            self._embedding_YF = self._release(step)
        method, device = self._method, self._context.device
        for group in self._adam.param_groups:
            group["lr"] = self._learning_rate(step)
        labels_B = torch.arange(method.size.num_classes).repeat_interleave(method.settings.images_per_class)
        latents_BZ = self._latent.latents(len(labels_B), self._context.public.torch("latents", step))
        images_BCHW = self._generator(latents_BZ.to(device), labels_B.to(device))
        features_BF = self._features.of_images(images_BCHW)
        loss = merf_loss(features_BF.unflatten(0, (method.size.num_classes, -1)), self._embedding_YF)
        self._adam.zero_grad(set_to_none=True)
        loss.backward()
        self._adam.step()

    def state_dict(self) -> dict[str, Tensor]:
        """Weights, moments and, once it is there, the released embedding, so that it is never released again."""
        tensors = pack({"generator": self._generator}, {"generator": self._adam})
        if self._embedding_YF is not None:
            tensors["embedding"] = self._embedding_YF.clone()
        return tensors

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from :meth:`state_dict`.

        Raises:
            CheckpointError: a state of another run.
        """
        embedding_YF = state.get("embedding")
        expected = (self._method.size.num_classes, self._method.settings.num_features)
        if embedding_YF is not None and tuple(embedding_YF.shape) != expected:
            raise CheckpointError(
                f"the embedding in the checkpoint has shape {tuple(embedding_YF.shape)}, this run's {expected}: "
                "use the settings it was made with"
            )
        unpack(state, {"generator": self._generator}, {"generator": self._adam})
        self._embedding_YF = None if embedding_YF is None else embedding_YF.to(self._context.device)

    def generator(self) -> AnyGenerator:
        """The generator, its batch-norm statistics settled on public latents."""
        return settled(self._generator, self._latent, self._context.public.torch("settling"))

    def _release(self, step: int) -> Tensor:
        """The noisy mean embedding, float32 [Y, 2M]; a public number of records divides it."""
        method, context = self._method, self._context
        mechanism = method.mechanism(context.noise_for(WHAT, 0))
        sums_YF = embedding_sums(context.data, self._features, method.grid, method.size.num_classes)
        noisy_YF = mechanism.release(sums_YF, context.budget, {"step": step, "what": WHAT}).value
        return (noisy_YF / method.size.num_records).to(torch.float32)

    def _learning_rate(self, step: int) -> float:
        settings = self._method.settings
        done = min(1.0, step / settings.num_steps)
        return settings.learning_rate * (1 - (1 - settings.final_learning_rate) * done)


def embedding_sums(data: LabelledImages, features: RandomFeatures, grid: Grid, num_classes: int) -> Tensor:
    """The sum of all records' joint features, int64 [Y, 2M] in units of the grid. Private.

    One record adds one row of :meth:`Grid.put` to one row of the sum, and what it adds does not depend on others.
    """
    device = features.turns_MD.device
    images_RCHW, labels_R = data.tensors()
    images_RD = images_RCHW.flatten(1)
    sums_YF = torch.zeros(num_classes, features.num_features, dtype=torch.int64, device=device)
    for images, labels in zip(
        images_RD.split(_RECORDS_AT_ONCE), labels_R.split(_RECORDS_AT_ONCE), strict=True
    ):
        sums_YF.index_add_(0, labels.to(device), grid.put(features.of_bytes(images.to(device))))
    return sums_YF


def merf_loss(features_YKF: Tensor, embedding_YF: Tensor) -> Tensor:
    """Squared distance of the embedding from the generated one, up to a constant, with the best weight a class.

    With ``g`` the mean feature of a class's images and ``m`` the class's row, the distance is
    ``|m|^2 - 2 a (m . g) + a^2 |g|^2``, least at ``a = (m . g) / |g|^2``. There the derivative in ``a`` is 0, so
    ``a`` is held fixed. ``|g|^2`` is estimated without the pairs of an image with itself: those are 1, whatever the
    generator draws, and would reward images that are all alike. The noise is the same on all coordinates, so this is
    the most likely generator under Gaussian noise with the classes' weights unknown.

    Args:
        features_YKF: K generated images of every class, K at least 2, each of length 1.
        embedding_YF: released, divided by the public number of records.
    """
    num_classes, per_class, _ = features_YKF.shape
    target_YF = embedding_YF * num_classes  # rows of length about 1 where classes are even
    mean_YF = features_YKF.mean(1)
    match_Y = (target_YF * mean_YF).sum(1)
    square_Y = (per_class * mean_YF.square().sum(1) - 1) / (per_class - 1)
    weight_Y = (match_Y / square_Y.clamp(min=1 / per_class)).detach().clamp(0, num_classes)
    return (weight_Y.square() * square_Y - 2 * weight_Y * match_Y).sum()
