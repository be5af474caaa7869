"""Judged: images of a normal law a class, named by a judge whose last layer learned from the records.

Not a method of the paper. First the two releases of ``moments``, with a part of the budget. Classifiers learn from
images of the law that follows, which costs nothing, and a judge looks at what they look at. Then the judge's last
layer learns from the records themselves, by steps of gradient descent over all of them:

* a step releases the sum over all records of (the error of the judge's answer, cut to a length) x (the image's
  coordinates, at most 1 long). In it a record is one outer product of bounded length whatever it holds.

Images are mixtures of the law's, so that they lie between classes too, and their labels are the judge's answers. All
but the releases is post-processing. The argument in full: ``docs/baselines.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar

from pydantic import Field

from datalens.baselines.judged_learner import GRADIENT, JudgedLearner
from datalens.baselines.method import NoisedMethod
from datalens.baselines.moments import LawSettings, Moments, MomentsSettings
from datalens.errors import ConfigError
from datalens.mechanisms.outer_grid import OuterGrid, outer_grid
from datalens.mechanisms.vector_sum import VectorSum
from datalens.methods.method import Context, Planned, PublicSize
from datalens.methods.pricing import NoiseOnPaper, noise_that_fits
from datalens.models.classifiers import LEAST_SIDE
from datalens.models.finish import Finish
from datalens.models.gaussian import GaussianImages
from datalens.models.judge import Judge, JudgedGenerator
from datalens.models.mixed import MixedImages, latent_dim
from datalens.moments.limits import Length, Share, check_memory
from datalens.moments.measuring import MEANS, PRODUCTS, STATES
from datalens.noise import NoiseSource, make_noise
from datalens.noise.table import MAX_STDDEV, MIN_STDDEV
from datalens.privacy.events import Event, NoiseKind, times
from datalens.student.latent import LatentLaw, LatentSpace
from datalens.training.config import Finishing
from datalens.training.repeats import refuse_groups
from datalens.training.sections import Privacy

_RATE, _RATE_NOISE, _RATE_POWER = 1250.0, 0.008, 0.6
_MOST_BYTES = 2**30


class JudgedSettings(LawSettings):
    """Settings of the law's two releases and of the judge's steps, all of them public choices.

    Attributes:
        num_steps: two for the law, and the judge's.
        judge_share: of the budget (of mu squared) for the judge's steps; the law has the rest.
        judge_size: coordinates of an image that the judge knows, at most.
        judge_images: synthetic images that the judge's classifiers learn from, each.
        error_length: to which the error of an answer is cut.
        learning_rate: of the judge's steps, on errors over their length; None for the rule of :meth:`Judged.rate`.
        finish: the generator's last layer, as DataLens's.
    """

    num_steps: int = Field(default=82, ge=3, le=10_000)
    judge_share: Share = 0.6
    judge_size: int = Field(default=500, ge=1, le=3000)
    judge_images: int = Field(default=30_000, ge=1, le=1_000_000)
    error_length: Length = 0.04
    learning_rate: Annotated[float, Field(gt=0, le=1e6)] | None = None
    finish: Finishing = Finishing(jitter=0.5)

    @property
    def judge_steps(self) -> int:
        """Steps of the judge."""
        return self.num_steps - len(STATES)

    def latent(self, size: PublicSize) -> LatentSpace:
        """Normal numbers: of two images of the law, and of how they are joined."""
        dim = latent_dim(self.rank + math.prod(size.image_shape), self.rank)
        return LatentSpace(dim, size.num_classes, LatentLaw.NORMAL)

    def network(self, size: PublicSize) -> JudgedGenerator:
        """The generator's network and the judge, all zeros."""
        law = GaussianImages(self.basis(size), size.num_classes, self.rank)
        judge = Judge(size.image_shape, size.num_classes, self.judge_size)
        finish = Finish(**self.finish.model_dump())
        return JudgedGenerator(MixedImages(law, finish.jitter, finish.outside), finish, judge)

    def grid(self, size: PublicSize) -> OuterGrid:
        """Where a record's error and coordinates are put; it bounds what a record adds."""
        return outer_grid(self.error_length, size.num_classes, 1.0, self.judge_size + 1)

    def plan(self, privacy: Privacy, size: PublicSize) -> Judged:
        """The method with the noise that makes all its releases cost at most ``privacy.epsilon`` together.

        Raises:
            ConfigError: no noise that the sampler has is enough, tables that do not fit into memory, or images too
                small for the judge.
        """
        check_memory(self.basis(size), size.num_classes, self.rank)
        _, height, width = size.image_shape
        if min(height, width) < LEAST_SIDE:
            raise ConfigError(
                f"images of {height}x{width} are too small for the judge's classifiers (at least {LEAST_SIDE}x"
                f"{LEAST_SIDE}); use larger images, or the method moments"
            )

        if self.judge_images * size.dim > _MOST_BYTES:
            raise ConfigError(
                f"judge_images = {self.judge_images}: images of {size.dim} numbers each would take more than a GiB; "
                f"use {_MOST_BYTES // size.dim} or fewer"
            )

        def events_of(stddev: float) -> list[Event]:
            return [
                times(part.event, part.count)
                for part in Judged(self, privacy, size, stddev).releases(NoiseOnPaper(privacy.noise))
            ]

        remedy = f"a larger epsilon or delta, fewer num_steps than {self.num_steps}, or a larger judge_share"
        method = Judged(self, privacy, size, noise_that_fits(privacy, events_of, None, remedy))
        most = max(method.law.stddev(MEANS), method.law.stddev(PRODUCTS))
        if privacy.noise is NoiseKind.ROUNDED and most > MAX_STDDEV:
            raise ConfigError(
                f"judge_share = {self.judge_share:g}: the law would need noise of {most:.0f} units, but there are at "
                f"most {MAX_STDDEV:.0f}; use a smaller judge_share or a larger epsilon"
            )
        return method

    def note(self, privacy: Privacy, size: PublicSize) -> str | None:
        """Says where noise is larger than a class's mean can be."""
        return self.plan(privacy, size).law.note() if privacy.adds_noise else None

    @property
    def of_law(self) -> MomentsSettings:
        """The settings that ``moments`` has, too."""
        return MomentsSettings(**self.model_dump(include=set(LawSettings.model_fields) - {"num_steps"}))


@dataclass(frozen=True)
class Judged(NoisedMethod[JudgedSettings]):
    """The method with its noise, on a step of the judge; that on the law's follows from the share of the budget."""

    name: ClassVar[str] = "judged"

    @cached_property
    def grid(self) -> OuterGrid:
        """Of a step of the judge."""
        return self.settings.grid(self.size)

    @cached_property
    def law(self) -> Moments:
        """The first two releases."""
        blank = Moments(self.settings.of_law, self.privacy, self.size, 0.0)
        if not self.privacy.adds_noise:
            return blank
        share = self.settings.judge_share
        of_products = (1 - share) * (1 - self.settings.mean_share)
        units = blank.grid(PRODUCTS).units / self.grid.units
        stddev = self.noise_stddev * units * math.sqrt(share / self.settings.judge_steps / of_products)
        return replace(blank, noise_stddev=max(MIN_STDDEV, stddev))

    @property
    def rate(self) -> float:
        """The learning rate asked for, or one that falls with the noise: of public numbers alone.

        Noise is measured as its L2 norm on a step's mean, over the longest product that a record can add. Steps times
        rate is how far a descent goes, and the noise that it gathers; the numbers were found as the other defaults.
        """
        if self.settings.learning_rate is not None:
            return self.settings.learning_rate
        noise = self.noise_stddev * math.sqrt(self.grid.dim) / (self.grid.units * self.size.num_records)
        return _RATE * min(1.0, (_RATE_NOISE / max(noise, 1e-300)) ** _RATE_POWER)

    def mechanism(self, noise: NoiseSource) -> VectorSum:
        """Where a step's gradient becomes public."""
        return VectorSum(self.grid, self.noise_stddev, noise, self.privacy.group_size)

    def releases(self, noise: NoiseSource) -> tuple[Planned, ...]:
        """All releases, with noise from this source."""
        found = []
        for what in STATES:
            mechanism, count = self.law.mechanism(what, noise), self.law.coordinates(what)
            found.append(Planned(what, mechanism.event(count), mechanism.replace_one_event(count), 1))
        mechanism, dim = self.mechanism(noise), self.grid.dim
        steps = self.settings.judge_steps
        found.append(Planned(GRADIENT, mechanism.event(dim), mechanism.replace_one_event(dim), steps))
        return tuple(found)

    def planned(self) -> tuple[Planned, ...]:
        """All releases, as they are drawn."""
        return self.releases(make_noise(self.privacy.noise))

    def begin(self, context: Context) -> JudgedLearner:
        """Before the first release.

        Raises:
            ConfigError: data that say which records are one person's.
        """
        refuse_groups(context.data)
        return JudgedLearner(self, context)
