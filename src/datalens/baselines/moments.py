"""Moments: the mean and the covariance of each class, released once each, and images drawn from that normal law.

Not a method of the paper. Two releases:

* the classes' sums of (an image's cosines, cut to a length, and a constant): means, and about how many records there
  are of each class;
* the classes' sums of (products of pairs of the residuals' low cosines, energies of residuals in bands of
  frequencies), the residuals from the means of the first release, which are public by then.

In both a record is one vector in the row of its class, of bounded length whatever it holds; sums go through
:class:`~datalens.mechanisms.vector_sum.VectorSum`. All the rest is post-processing (``datalens.moments``), and takes
no training. The argument in full: ``docs/baselines.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from datalens.baselines.method import MethodSettings, NoisedMethod
from datalens.baselines.moments_limits import note_of_noise
from datalens.errors import CheckpointError, ConfigError, RunError
from datalens.mechanisms.vector_sum import Grid, VectorSum
from datalens.methods.method import Context, Planned, PublicSize
from datalens.methods.pricing import NoiseOnPaper, noise_that_fits
from datalens.models.finish import Finish, FinishedGenerator
from datalens.models.frequencies import Frequencies
from datalens.models.gaussian import GaussianImages
from datalens.moments.law import Centres
from datalens.moments.limits import Length, Share, Weight, check_memory
from datalens.moments.measuring import MEANS, PRODUCTS, STATES, Measures
from datalens.noise import NoiseSource, make_noise
from datalens.noise.table import MAX_STDDEV, MIN_STDDEV
from datalens.privacy.events import Event, NoiseKind
from datalens.student.latent import LatentLaw, LatentSpace
from datalens.training.config import Finishing
from datalens.training.repeats import refuse_groups
from datalens.training.sections import Privacy


class LawSettings(MethodSettings):
    """Settings of the two releases, all of them public choices; lengths are root mean squares of a pixel in [0, 1].

    Attributes:
        low_frequencies: cosines a direction and channel whose products are measured; None for as many as make 200 of
            all channels.
        rank: most directions in which images of a class vary.
        mean_share: of the budget (of mu squared) for the means.
        mean_length: to which an image is cut for its class's mean.
        product_length: to which a residual's low cosines are cut for their products.
        energy_length: to which a residual is cut for its energies.
        count_weight: of the constant that counts records, over the longest image's length.
        energy_weight: of energies beside products.
    """

    low_frequencies: Annotated[int, Field(ge=1, le=64)] | None = None
    rank: int = Field(default=64, ge=1, le=1024)
    mean_share: Share = 0.15
    mean_length: Length = 0.45
    product_length: Length = 0.2
    energy_length: Length = 0.29
    count_weight: Weight = 0.2
    energy_weight: Weight = 0.3

    def measures(self, size: PublicSize) -> Measures:
        """What every record adds to the two tables."""
        return Measures(
            size.image_shape,
            size.num_classes,
            self.low_frequencies,
            self.mean_length,
            self.product_length,
            self.energy_length,
            self.count_weight,
            self.energy_weight,
        )

    def basis(self, size: PublicSize) -> Frequencies:
        """The cosines, and which of them are low."""
        return self.measures(size).basis

    @property
    def least_numbers(self) -> int:
        """Its directions of one class."""
        return self.rank


class MomentsSettings(LawSettings):
    """Settings of the method that draws from the law alone.

    Attributes:
        num_steps: two, one for each release.
        finish: the generator's last layer, as DataLens's.
    """

    num_steps: int = Field(default=2, ge=2, le=2)
    finish: Finishing = Finishing(jitter=0.25)

    def latent(self, size: PublicSize) -> LatentSpace:
        """Normal numbers: of the directions, then of the grain."""
        return LatentSpace(self.rank + math.prod(size.image_shape), size.num_classes, LatentLaw.NORMAL)

    def network(self, size: PublicSize) -> FinishedGenerator[GaussianImages]:
        """The generator's network, its law all zeros."""
        inner = GaussianImages(self.basis(size), size.num_classes, self.rank)
        return FinishedGenerator(inner, Finish(**self.finish.model_dump()))

    def note(self, privacy: Privacy, size: PublicSize) -> str | None:
        """Says where noise is larger than a class's mean can be."""
        return self.plan(privacy, size).note()

    def plan(self, privacy: Privacy, size: PublicSize) -> Moments:
        """The method with the noise that makes its two releases cost at most ``privacy.epsilon`` together.

        Raises:
            ConfigError: no noise that the sampler has is enough, or the tables do not fit into memory.
        """
        check_memory(self.basis(size), size.num_classes, self.rank)

        def events_of(stddev: float) -> list[Event]:
            on_paper, noise = Moments(self, privacy, size, stddev), NoiseOnPaper(privacy.noise)
            return [on_paper.mechanism(what, noise).event(on_paper.coordinates(what)) for what in STATES]

        remedy = f"a larger epsilon or delta, fewer low_frequencies, or another mean_share than {self.mean_share:g}"
        method = Moments(self, privacy, size, noise_that_fits(privacy, events_of, None, remedy))
        if privacy.noise is NoiseKind.ROUNDED and method.stddev(MEANS) > MAX_STDDEV:
            raise ConfigError(
                f"mean_share = {self.mean_share:g}: the means would need noise of {method.stddev(MEANS):.0f} units, "
                f"but there are at most {MAX_STDDEV:.0f}; use a larger mean_share or a larger epsilon"
            )
        return method


@dataclass(frozen=True)
class Moments(NoisedMethod[MomentsSettings]):
    """The method with its noise, on the second release; the first one's follows from the share of the budget."""

    name: ClassVar[str] = "moments"

    @cached_property
    def measures(self) -> Measures:
        """What every record adds to the two tables."""
        return self.settings.measures(self.size)

    def grid(self, what: str) -> Grid:
        """Where a record's vector of a release is put; it bounds what a record adds."""
        return self.measures.grid(what)

    def coordinates(self, what: str) -> int:
        """Numbers of a release."""
        return self.measures.coordinates(what)

    def stddev(self, what: str) -> float:
        """Standard deviation of a release's noise, in units of its grid; more than its share where none is so low."""
        if what == PRODUCTS or not self.privacy.adds_noise:
            return self.noise_stddev
        share = self.settings.mean_share
        units = self.grid(MEANS).units / self.grid(PRODUCTS).units
        return max(MIN_STDDEV, self.noise_stddev * units * math.sqrt((1 - share) / share))

    def real_stddev(self, what: str) -> float:
        """The same for the real sums that come out."""
        return self.stddev(what) / self.grid(what).scale

    def note(self) -> str | None:
        """One line where noise is larger than a class's mean can be; None where it is not, or there is none."""
        noise = self.real_stddev(MEANS) if self.privacy.adds_noise else 0.0
        return note_of_noise(self.size, self.privacy.epsilon, noise / self.settings.mean_length)

    def mechanism(self, what: str, noise: NoiseSource) -> VectorSum:
        """Where sums become public."""
        return VectorSum(self.grid(what), self.stddev(what), noise, self.privacy.group_size)

    def planned(self) -> tuple[Planned, ...]:
        """Both releases."""
        found = []
        for what in STATES:
            mechanism, count = self.mechanism(what, make_noise(self.privacy.noise)), self.coordinates(what)
            found.append(Planned(what, mechanism.event(count), mechanism.replace_one_event(count), 1))
        return tuple(found)

    def begin(self, context: Context) -> MomentsLearner:
        """Before the first release.

        Raises:
            ConfigError: data that say which records are one person's.
        """
        refuse_groups(context.data)
        return MomentsLearner(self, context)


class MomentsLearner:
    """Two releases, and the law that follows from them.

    Args:
        method: settings and noise.
        context: what it may use. Private.
    """

    def __init__(self, method: Moments, context: Context) -> None:
        self._method, self._context = method, context
        self._released: dict[str, Tensor] = {}

    def step(self, step: int) -> None:
        """The means, then the products.

        Raises:
            RunError: a crash lost the means; nothing was charged for what would follow them.
        """
        what = tuple(STATES)[step]
        method, context = self._method, self._context
        if step:
            self.require_means()
        sums_YS = self._sums(what)
        mechanism = method.mechanism(what, context.noise_for(what, 0))
        self._released[what] = mechanism.release(sums_YS, context.budget, {"step": step, "what": what}).value

    def require_means(self) -> None:
        """Before anything that follows them is charged.

        Raises:
            RunError: they were charged and a crash lost them.
        """
        if MEANS not in self._released:
            raise RunError("the class means were charged and lost, and nothing can follow: begin another run")

    def _sums(self, what: str) -> Tensor:
        """Whole numbers int64 [Y, S]: each record's vector, in the row of its class. Private."""
        mean_YD = self._centres().mean_YD if what == PRODUCTS else None
        return self._method.measures.sums(what, self._context.data.tensors(), mean_YD)

    def _centres(self) -> Centres:
        method = self._method
        return method.measures.centres(self._released[MEANS], method.real_stddev(MEANS))

    def state_dict(self) -> dict[str, Tensor]:
        """What was released, so that it is never released again."""
        return {STATES[what]: value.clone() for what, value in self._released.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from :meth:`state_dict`.

        Raises:
            CheckpointError: a state of another run.
        """
        if sorted(state) != sorted(list(STATES.values())[: len(state)]):
            raise CheckpointError(f"the checkpoint holds {', '.join(state):.80}: use one of this method")
        released = {what: state[name].clone() for what, name in STATES.items() if name in state}
        for what, table_YS in released.items():
            expected = (self._method.size.num_classes, self._method.grid(what).dim)
            if tuple(table_YS.shape) != expected or table_YS.dtype != torch.float64:
                raise CheckpointError(
                    f"the {STATES[what]} in the checkpoint have shape {tuple(table_YS.shape)} and type "
                    f"{table_YS.dtype}, this run's {expected} and float64: use the settings it was made with"
                )
            if not bool(table_YS.isfinite().all()):
                raise CheckpointError(f"the {STATES[what]} in the checkpoint are not finite: restore it")
        self._released = released

    def generator(self) -> FinishedGenerator[GaussianImages]:
        """The law of what was released; after the first release the means alone."""
        method = self._method
        generator = method.settings.network(method.size)
        if MEANS in self._released:
            stddev, rank = method.real_stddev(PRODUCTS), method.settings.rank
            law = method.measures.law(self._centres(), self._released.get(PRODUCTS), stddev, rank)
            generator.inner.set_law(law.mean_YD, law.factor_YKL, law.grain_YG)
        return generator.eval().requires_grad_(False)
