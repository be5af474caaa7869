"""What such a method is: settings that plan its releases without data, and a learner that makes them.

A plan reads settings and public numbers only, so that a run can be priced and refused before its data are touched.
A learner holds the private data; everything it lets out passes a mechanism's ``release``, which charges the budget
before it draws noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from datalens.data.images import LabelledImages
from datalens.noise import NoiseSource
from datalens.privacy.budget import Budget
from datalens.privacy.events import Event
from datalens.randomness import Streams
from datalens.training.sections import Privacy, Section


@dataclass(frozen=True)
class PublicSize:
    """What everybody may know of the data.

    Attributes:
        num_records: the public number of records, an upper bound unless the file's own length is public.
        image_shape: (C, H, W).
        num_classes: Y.
        of_groups: records come in groups, each protected as a whole.
    """

    num_records: int
    image_shape: tuple[int, int, int]
    num_classes: int
    of_groups: bool = False

    @property
    def dim(self) -> int:
        """Numbers of an image, D = C H W."""
        return math.prod(self.image_shape)


@dataclass(frozen=True)
class Planned:
    """Releases of one kind that a run plans.

    Attributes:
        what: one word or two, as in the certificate and in the ledger's notes.
        event: of one release, where one record is added or removed.
        replace_one: of the same release, where one record is replaced by another; None where no event says it, and
            the whole plan has a bound instead (:func:`datalens.privacy.replacing.replace_one_epsilon`).
        count: how many.
    """

    what: str
    event: Event
    replace_one: Event | None
    count: int


@dataclass(frozen=True)
class Context:
    """What a learner is given. Private.

    Attributes:
        data: the sensitive records.
        size: what may be known of them.
        budget: asked before every release.
        noise_for: from what is released and its number to a noise source; never the same draws for two of them.
        public: streams of draws that may be known, such as initial weights and latents.
        private: streams of draws that may not, such as which record a teacher holds.
        device: where to compute.
    """

    data: LabelledImages
    size: PublicSize
    budget: Budget
    noise_for: Callable[[str, int], NoiseSource]
    public: Streams
    private: Streams
    device: torch.device


class PlannedSettings(Section, ABC):
    """A method's settings, frozen and checked when made.

    Attributes:
        keeps_groups: the method has teachers, and can give all records of a group to one of them.
    """

    keeps_groups: ClassVar[bool] = False

    @abstractmethod
    def plan(self, privacy: Privacy, size: PublicSize) -> PlannedMethod:
        """The method with the noise that makes all its releases cost at most ``privacy.epsilon``.

        Raises:
            ConfigError: no noise does, or settings that contradict each other.
        """

    def note(self, privacy: Privacy, size: PublicSize) -> str | None:
        """One line for the owner about a plan that is sound and will disappoint, of public numbers alone."""
        return None


class StepLearner(Protocol):
    """A method in training. After a crash it goes on from its last checkpoint; what was charged since is lost."""

    def step(self, step: int) -> None:
        """One step, with the releases that belong to it, each charged with the note ``{"step": step}``.

        Raises:
            BudgetError: a release does not fit; nothing was released.
        """
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """All that the next step needs; private."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from :meth:`state_dict`."""
        ...


class PlannedMethod(Protocol):
    """A method with settings that fit a budget, made by :meth:`PlannedSettings.plan`."""

    name: ClassVar[str]

    @property
    def num_steps(self) -> int:
        """Steps of a whole training."""
        ...

    def planned(self) -> tuple[Planned, ...]:
        """Every release of a whole training, from settings and public numbers alone."""
        ...

    def begin(self, context: Context) -> StepLearner:
        """The learner before its first step."""
        ...


AnySettings = TypeVar("AnySettings", bound=PlannedSettings)


@dataclass(frozen=True)
class WithNoise(Generic[AnySettings]):
    """What methods have whose one unknown is how much noise there is.

    Attributes:
        settings: of the method.
        privacy: what was asked for.
        size: what may be known of the data.
        noise_stddev: on every number that is released, in its own units.
    """

    settings: AnySettings
    privacy: Privacy
    size: PublicSize
    noise_stddev: float
