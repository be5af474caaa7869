"""A trained run, whatever its method: what is promised, and where it is a generator, images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from datalens.errors import NotFittedError
from datalens.models.finish import AnyGenerator
from datalens.privacy.accountant import Accountant
from datalens.privacy.authorisation import authorisations
from datalens.privacy.guarantee import counted, guaranteed_epsilon
from datalens.privacy.ledger import Ledger
from datalens.student.sampling import BATCH, iter_images, sample_images
from datalens.training.facts import GeneratorFacts, RunFacts
from datalens.training.notebook import as_html, in_words
from datalens.training.parameters import Parameters
from datalens.training.sampled import SampledImages
from datalens.training.sections import RunSettings

Settings = TypeVar("Settings", bound=RunSettings)
Facts = TypeVar("Facts", bound=RunFacts)
Drawing = TypeVar("Drawing", bound=GeneratorFacts)
_Part = TypeVar("_Part")


class Certified(Parameters[Settings], Generic[Settings, Facts]):
    """What a training leaves, or a run's ``release/`` holds.

    An estimator in scikit-learn's manner: the constructor stores its settings, a training changes none of them, and
    what only a training gives is refused before one.

    Args:
        config: settings.

    Attributes:
        config: as they were given.
        was_stopped: whether the training ended early, as it was asked to.
    """

    def __init__(self, config: Settings) -> None:
        self.config: Settings = config
        self._facts: Facts | None = None
        self._ledger: Ledger | None = None
        self._made_in: dict[str, Any] = {}
        self._notes: tuple[str, ...] = ()
        self.was_stopped: bool = False

    def __repr__(self) -> str:
        return in_words(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def is_fitted(self) -> bool:
        """Whether there is something trained, by ``fit`` or from a run that was loaded."""
        return self._facts is not None

    def epsilon(self, delta: float) -> float:
        """The epsilon promised at ``delta`` under the run's accountant; infinite without noise.

        Guarantee:
            The cost of what was authorised, also after an early stop, since where a run stops may depend on the
            data; what was spent where that is more. At the run's own delta it is the certificate's epsilon.

        Raises:
            ConfigError: delta outside (0, 1).
            NotFittedError: nothing was trained or loaded.
        """
        return guaranteed_epsilon(self.ledger, delta)

    def spent_epsilon(self, delta: float) -> float:
        """Epsilon spent so far at ``delta``, for the owner: no promise, see :meth:`epsilon`.

        Infinite where nothing is promised, whatever was charged.

        Raises:
            ConfigError: delta outside (0, 1).
            NotFittedError: nothing was trained or loaded.
        """
        accountant = Accountant(self.facts.config.privacy.accountant)
        events = counted(self.ledger.events(), authorisations(self.ledger)[-1].authorisation)
        return accountant.epsilon(events, delta)

    @property
    def is_publishable(self) -> bool:
        """Whether noise and secrets are such that the guarantee may be published; of what was trained, if it was."""
        config = self.config if self._facts is None else self._facts.config
        return config.privacy.is_publishable

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for the owner of the run, such as repeated records, or checkpoints passed over on resume."""
        return self._notes

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of their numbers."""
        return self.facts.classes

    @property
    def facts(self) -> Facts:
        """What everybody may know of the run."""
        return there(self._facts)

    @property
    def ledger(self) -> Ledger:
        """The run's ledger."""
        return there(self._ledger)


class Trained(Certified[Settings, Drawing]):
    """A trained generator.

    Args:
        config: settings.
    """

    def __init__(self, config: Settings) -> None:
        super().__init__(config)
        self._generator: AnyGenerator | None = None

    def sample(
        self,
        num_samples: int,
        labels: Sequence[int] | np.ndarray | None = None,
        *,
        seed: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw images: uint8 [num_samples, C, H, W] and their int64 class numbers.

        Args:
            num_samples: 1 or more.
            labels: class numbers, one for each image; left out, uniform on the classes.
            seed: for the same images again.

        Raises:
            ConfigError: a number or label out of range.
            NotFittedError: nothing was trained or loaded.
        """
        return sample_images(self.generator, self.facts.latent, num_samples, labels=labels, seed=seed)

    def iter_samples(
        self,
        num_samples: int,
        labels: Sequence[int] | np.ndarray | None = None,
        *,
        seed: int | None = None,
        chunk: int = BATCH,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Draw images as :meth:`sample` does, a chunk at a time, so that not all are held in memory.

        Args:
            num_samples: 1 or more.
            labels: class numbers, one for each image; left out, uniform on the classes.
            seed: for the same images again: those of :meth:`sample`, whatever the chunk.
            chunk: images at a time; the last chunk holds the rest.

        Returns:
            Pairs of uint8 [chunk, C, H, W] and int64 [chunk]; see :func:`datalens.writing.write_samples` for files.

        Raises:
            ConfigError: a number or label out of range; raised at the call, before anything is drawn.
            NotFittedError: nothing was trained or loaded.
        """
        latent = self.facts.latent
        return iter_images(self.generator, latent, num_samples, labels=labels, seed=seed, chunk=chunk)

    def sample_dataset(
        self,
        num_samples: int,
        labels: Sequence[int] | np.ndarray | None = None,
        *,
        seed: int | None = None,
    ) -> SampledImages:
        """Draw images as :meth:`sample` does, as a PyTorch ``Dataset`` of float32 [C, H, W] in [0, 1] and numbers.

        Args:
            num_samples: 1 or more.
            labels: class numbers, one for each image; left out, uniform on the classes.
            seed: for the same images again.

        Raises:
            ConfigError: a number or label out of range.
            NotFittedError: nothing was trained or loaded.
        """
        return SampledImages(*self.sample(num_samples, labels, seed=seed), self.classes)

    @property
    def generator(self) -> AnyGenerator:
        """The finished network."""
        return there(self._generator)


def there(part: _Part | None) -> _Part:
    """What a training leaves, where there was one."""
    if part is None:
        raise NotFittedError("nothing was trained yet: call fit, or load a run")
    return part
