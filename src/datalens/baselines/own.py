"""Everything that a method of your own is written with, under one name.

>>> from datalens.baselines import own
>>> own.GaussianEvent(sensitivity=2.0, noise_stddev=4.0, coordinates=1).mu
0.5

A method is three small classes: settings that plan without data (:class:`MethodSettings`), the plan with its noise
(:class:`OwnMethod`), and a learner that holds the data and lets nothing out but by a mechanism's ``release``
(:class:`Learner`). ``docs/extending.md`` goes through one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from datalens.baselines.method import Learner, MethodSettings, NoisedMethod, Settings
from datalens.baselines.model import Baseline
from datalens.baselines.registry import baseline, register
from datalens.mechanisms.base import Release
from datalens.mechanisms.vector_sum import Grid, VectorSum, fitting_units
from datalens.methods.method import Context, Planned, PublicSize
from datalens.methods.pricing import NoiseOnPaper, noise_that_fits
from datalens.models.finish import AnyGenerator, Finish, FinishedGenerator
from datalens.models.frequencies import Frequencies
from datalens.models.gaussian import GaussianImages
from datalens.noise import NoiseSource, make_noise
from datalens.privacy.budget import Budget
from datalens.privacy.events import Event, GaussianEvent, NoiseKind, PoissonGaussianEvent, times
from datalens.student.latent import LatentLaw, LatentSpace
from datalens.training.sections import Privacy

__all__ = [
    "AnyGenerator",
    "Baseline",
    "Budget",
    "Context",
    "Event",
    "Finish",
    "FinishedGenerator",
    "Frequencies",
    "GaussianEvent",
    "GaussianImages",
    "Grid",
    "LatentLaw",
    "LatentSpace",
    "Learner",
    "MethodSettings",
    "NoiseKind",
    "NoiseOnPaper",
    "NoiseSource",
    "OwnMethod",
    "Planned",
    "PoissonGaussianEvent",
    "Privacy",
    "PublicSize",
    "Release",
    "VectorSum",
    "baseline",
    "fitting_units",
    "make_noise",
    "noise_that_fits",
    "register",
]


@dataclass(frozen=True)
class OwnMethod(NoisedMethod[Settings]):
    """A method of your own, with one standard deviation on every number that is released.

    Attributes:
        name: that it is registered under.
    """

    name: ClassVar[str]

    @classmethod
    def fitting(cls, settings: Settings, privacy: Privacy, size: PublicSize) -> Self:
        """The method with the least noise under which all its releases cost at most ``privacy.epsilon``.

        Raises:
            ConfigError: no noise that can be drawn is enough.
        """

        def events_of(stddev: float) -> Iterator[Event]:
            for one in cls(settings, privacy, size, stddev).releases(NoiseOnPaper(privacy.noise)):
                yield times(one.event, one.count)

        remedy = "a larger epsilon or delta, or fewer releases"
        return cls(settings, privacy, size, noise_that_fits(privacy, events_of, None, remedy))

    @abstractmethod
    def releases(self, noise: NoiseSource) -> tuple[Planned, ...]:
        """Every release of a whole training, from settings and public numbers alone, with noise from this source."""

    def planned(self) -> tuple[Planned, ...]:
        """The same, as it is drawn."""
        return self.releases(make_noise(self.privacy.noise))
