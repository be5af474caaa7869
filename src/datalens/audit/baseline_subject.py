"""A baseline under audit: its method with the run's noise, and small learners of it on drawn records.

Learners are small where size costs time and no privacy: few teachers, small networks, one step. What decides a
charge stays as it is in the run, and noise is the run's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch

from datalens.audit.baseline_doors import DOORS, Door
from datalens.audit.sum_doors import SILENT, free_budget
from datalens.audit.tap import Tap
from datalens.baselines.judged import Judged
from datalens.baselines.method import Learner, Method, MethodSettings
from datalens.data.images import LabelledImages
from datalens.methods.method import Context, PublicSize
from datalens.methods.opening import noise_for
from datalens.moments.measuring import STATES
from datalens.noise import NoiseSource
from datalens.privacy.budget import Budget
from datalens.privacy.events import GaussianEvent, NoisyEvent
from datalens.randomness import Streams
from datalens.training.sections import Privacy

NoiseFor = Callable[[str, int], NoiseSource]
SHARD = 2
"""Records of a teacher or critic."""
TEACHERS = 22
"""More than one block of G-PATE's."""
CRITICS = 5
RECORDS = 12
"""Where nobody has a shard."""
_NETWORK = {"latent_dim": 4, "hidden_units": 8, "channels": 4}
_SMALL = {**_NETWORK, "images_per_class": 2, "generated_batch": 4, "teacher_units": 8, "student_units": 8}
_SMALL |= {"judge_images": 20}
_STEPS = {Judged.name: len(STATES) + 2}
_SHARDED = {"num_teachers": TEACHERS, "num_critics": CRITICS}


@dataclass(frozen=True)
class BaselineSubject:
    """The product under audit.

    Attributes:
        method: planned for the run, with its noise.
        privacy: of the run.
        size: what may be known of the run's data.
        noise_for: from what is released and its number to a noise source.
        open_budget: opens the budget of a ledger.
    """

    method: Method
    privacy: Privacy
    size: PublicSize
    noise_for: NoiseFor
    open_budget: Callable[..., Budget] = Budget

    @classmethod
    def of(cls, settings: MethodSettings, privacy: Privacy, size: PublicSize) -> BaselineSubject:
        """The product as these settings make it."""
        return cls(settings.plan(privacy, size), privacy, size, noise_for(privacy))

    @property
    def doors(self) -> tuple[Door, ...]:
        """One for each kind of release, at the run's own sizes."""
        return DOORS[self.method.name](self.method)

    @property
    def num_shards(self) -> int:
        """Teachers or critics of the small learners: more than one person's; 0 where a method has none."""
        settings: Any = self.method
        for name, count in _SHARDED.items():
            if name in type(settings.settings).model_fields:
                return max(count, self.privacy.group_size + 1)
        return 0

    @property
    def steps(self) -> int:
        """Of a small run: two, or as many as show each kind of release, the last kind twice."""
        return _STEPS.get(self.method.name, 2)

    def small(self) -> Method:
        """The method with small networks and few steps, repeatable but for its noise."""
        whole: Any = self.method
        settings = whole.settings
        known = type(settings).model_fields
        smaller: dict[str, object] = {
            "num_steps": self.steps,
            **_SMALL,
            **dict.fromkeys(_SHARDED, self.num_shards),
        }
        smaller |= {"shard_size": None, "generator": None}
        if "generator" in known:
            smaller["generator"] = settings.generator.model_copy(update=_NETWORK)
        updated = settings.model_copy(update={name: v for name, v in smaller.items() if name in known})
        parts: dict[str, Any] = {"settings": updated}
        if self.num_shards:
            parts["size"] = replace(self.size, num_records=SHARD * self.num_shards)
        if "privacy" in {part.name for part in fields(whole)}:
            parts["privacy"] = self.privacy.model_copy(update={"insecure_seed": 1})
        return replace(whole, **parts)

    def records(self, seed: int = 0, *, fewer: int = 0) -> LabelledImages:
        """Drawn public records that fill the small learners' shards, less so many."""
        rng = np.random.default_rng([20211115, seed])
        count = (SHARD * self.num_shards or min(RECORDS, self.size.num_records)) - fewer
        images = rng.integers(0, 256, (count, *self.size.image_shape), dtype=np.uint8)
        labels = rng.permutation(np.arange(count, dtype=np.int64) % self.size.num_classes)
        classes = tuple(f"class {number}" for number in range(self.size.num_classes))
        groups = np.arange(count, dtype=np.int64) // SHARD if self.size.of_groups else None
        return LabelledImages(images, labels, classes, "drawn", public=True, group_ids=groups)

    def context(
        self,
        method: Method,
        data: LabelledImages,
        *,
        noise: NoiseFor = lambda what, number: SILENT,
        budget: Budget | None = None,
        private: str = "private",
    ) -> Context:
        """What a small learner is given; two calls differ in what differs in their arguments.

        Args:
            method: from :meth:`small`.
            data: from :meth:`records`, or neighbours of it.
            noise: none, unless it is what is looked at.
            budget: one that pays for everything, unless it is what is looked at.
            private: name of the private streams.
        """
        small: Any = method
        return Context(
            data=data,
            size=small.size,
            budget=budget or free_budget(),
            noise_for=noise,
            public=Streams.from_insecure_seed(1, "public"),
            private=Streams.from_insecure_seed(1, private),
            device=torch.device("cpu"),
        )

    def learner(self, tap: Tap, data: LabelledImages) -> Learner:
        """A small learner without noise behind a tap."""
        method = self.small()
        return tap.begin(method, self.context(method, data))


def charged(event: NoisyEvent, stddev: float) -> float:
    """How far one record may move the whole numbers of a release, by its event."""
    return event.sensitivity if isinstance(event, GaussianEvent) else stddev / event.noise_multiplier


def events(method: Method) -> Mapping[str, NoisyEvent]:
    """The event of one release of each kind that a method plans."""
    found: dict[str, Any] = {planned.what: planned.event for planned in method.planned()}
    return found
