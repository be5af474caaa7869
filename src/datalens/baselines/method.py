"""What every baseline is: a method whose learner has a generator to show for it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

from datalens.methods.method import (
    Context,
    PlannedMethod,
    PlannedSettings,
    PublicSize,
    StepLearner,
    WithNoise,
)
from datalens.models.finish import AnyGenerator
from datalens.student.latent import LatentSpace
from datalens.training.sections import Count, Privacy


class MethodSettings(PlannedSettings):
    """A baseline's settings, frozen and checked when made.

    Attributes:
        num_steps: of a whole training; a method gives its own default.
        has_published_form: whether ``privacy.as_published`` means something: a form that is not sound.
    """

    num_steps: Count
    has_published_form: ClassVar[bool] = False

    @abstractmethod
    def plan(self, privacy: Privacy, size: PublicSize) -> Method:
        """As in :class:`PlannedSettings`."""

    @abstractmethod
    def latent(self, size: PublicSize) -> LatentSpace:
        """What the generator is fed."""

    @abstractmethod
    def network(self, size: PublicSize) -> AnyGenerator:
        """The generator's network, its weights all zero."""

    @property
    def least_numbers(self) -> int:
        """Fewest numbers that its weights can be, against settings that ask for more than a file holds."""
        return 1


class Learner(StepLearner, Protocol):
    """A baseline in training."""

    def generator(self) -> AnyGenerator:
        """The network that may be shared: a function of what was released."""
        ...


class Method(PlannedMethod, Protocol):
    """A baseline with settings that fit a budget."""

    def begin(self, context: Context) -> Learner:
        """The learner before its first step."""
        ...


Settings = TypeVar("Settings", bound=MethodSettings)


@dataclass(frozen=True)
class NoisedMethod(WithNoise[Settings]):
    """A baseline whose one unknown is how much noise there is."""

    @property
    def num_steps(self) -> int:
        """Steps of a whole training."""
        return self.settings.num_steps

    @property
    def latent(self) -> LatentSpace:
        """What the generator is fed."""
        return self.settings.latent(self.size)
