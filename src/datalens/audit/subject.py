"""What is audited: the parts of a generator step as training itself puts them together.

Every check takes a :class:`Subject` and looks at its parts from outside, so that the self-test can hand it a
product with one part broken. Records here are drawn, not anybody's: each carries its own number in its pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from datalens.data.images import LabelledImages
from datalens.mechanisms.vote_sum import VoteSum
from datalens.privacy.budget import Budget
from datalens.privacy.ledger import Ledger
from datalens.teachers.family import Fakes, Shards, TeacherFamily, TeacherState
from datalens.training.algorithm import Parts
from datalens.training.config import Config
from datalens.training.plan import plan_releases
from datalens.training.session import Session
from datalens.training.warm_settings import WarmStart

Begin = Callable[[Config, LabelledImages], Parts]
OpenBudget = Callable[[Ledger], Budget]
SHARD = 4
"""Records of a teacher in them; where groups go to teachers by hash, any may have room for all."""
GROUP = 3
"""Records of a group in them."""
TEACHERS = 5
"""Fewest teachers of the audit's own small runs."""
_NO_MATTER = 1e6
"""A ceiling that refuses nothing: cost is checked elsewhere."""


def begin_session(config: Config, data: LabelledImages) -> Parts:
    """The parts of a run in memory, wired as training wires them."""
    return Session.begin(config, data, None, signal_matters=False).parts


@dataclass(frozen=True)
class Subject:
    """The product under audit.

    Attributes:
        config: the run's settings.
        image_shape: (C, H, W).
        num_classes: Y.
        begin: makes the parts of a run from settings and data.
        open_budget: opens the budget of an existing ledger, as a resumed run does.
        of_groups: the run keeps groups of records together, and each is protected as a whole.
    """

    config: Config
    image_shape: tuple[int, int, int]
    num_classes: int
    begin: Begin = begin_session
    open_budget: OpenBudget = Budget
    of_groups: bool = False

    @classmethod
    def of(cls, config: Config, image_shape: tuple[int, int, int], num_classes: int) -> Subject:
        """The product as these settings make it, with the noise that their plan comes to."""
        if config.privacy.is_private:
            stddev = plan_releases(config, int(np.prod(image_shape))).noise_stddev
            config = config.replace(voting__noise_stddev=stddev)
        return cls(config, image_shape, num_classes)

    @property
    def dim(self) -> int:
        """D, coordinates of an image."""
        return int(np.prod(self.image_shape))

    @property
    def num_teachers(self) -> int:
        """Teachers of the audit's own small runs: more than one chunk, and more than one person's."""
        return max(TEACHERS, self.config.privacy.group_size + 1)

    def parts(self) -> Parts:
        """The run's mechanism, noise and budget with a handful of teachers and a small student."""
        return self.begin(self._small(), numbered_records(2 * self.num_teachers, self))

    def repeatable(self, data: LabelledImages) -> Parts:
        """A small run on a fixed seed: two calls differ in nothing but their data."""
        seeded = {"privacy__insecure_seed": 1, "privacy__noise": "rounded-gaussian"}
        if not self.config.privacy.is_private:
            seeded["voting__noise_stddev"] = 100.0
        config = self._small().replace(performance__device="cpu", performance__chunk_size=2, **seeded)
        return self.begin(config, data)

    def _small(self) -> Config:
        """The settings with few teachers, a small student and one step; the release stays as it is."""
        room = SHARD * self.num_teachers
        return self.config.replace(
            privacy__epsilon=_NO_MATTER,
            privacy__num_records=room if self.of_groups else None,
            privacy__score_noise=None,
            warm_start=WarmStart().model_dump(),
            voting__num_teachers=self.num_teachers,
            voting__shard_size=room if self.of_groups else None,
            voting__num_steps=1,
            student__hidden_units=8,
            student__channels=4,
            student__latent_dim=4,
        )


def mechanism_at(parts: Parts, step: int, **changes: object) -> VoteSum:
    """The mechanism of one step, as :func:`datalens.training.algorithm.generator_step` makes it."""
    return replace(parts.mechanism, noise=parts.noise_for_step(step), **changes)


def numbered_records(count: int, subject: Subject, *, odd_one: int | None = None) -> LabelledImages:
    """Drawn public records; record r is recognised by its pixels alone, through :func:`number_of`.

    Args:
        count: how many.
        subject: gives size and classes.
        odd_one: this record alone looks different (its negative), for comparing two neighbouring data sets.
    """
    rng = np.random.default_rng(20211115)
    images = rng.integers(0, 256, (count, *subject.image_shape), dtype=np.uint8)
    labels = np.arange(count, dtype=np.int64) % subject.num_classes
    if odd_one is not None:
        images[odd_one] = 255 - images[odd_one]
        labels[odd_one] = (labels[odd_one] + 1) % subject.num_classes
    classes = tuple(f"class {number}" for number in range(subject.num_classes))
    groups = np.arange(count, dtype=np.int64) // GROUP if subject.of_groups else None
    return LabelledImages(images, labels, classes, "numbered", public=True, group_ids=groups)


def number_of(images_RCHW: Tensor, data: LabelledImages) -> list[int]:
    """Which record each image is, -1 for none of them."""
    known = {image.tobytes(): number for number, image in enumerate(data.images)}
    pixels = images_RCHW.mul(255).round().to(torch.uint8).cpu().numpy()
    return [known.get(image.tobytes(), -1) for image in pixels]


@dataclass(frozen=True)
class Seen:
    """What the teachers were shown and answered in one step.

    Attributes:
        shown: for each teacher, the images of its shard, from every call in turn (training, then the question).
        grad_TBD: the answers.
    """

    shown: tuple[tuple[Tensor, ...], ...]
    grad_TBD: Tensor


class Watcher:
    """A family that does what another one does and remembers what every teacher was shown and answered."""

    def __init__(self, inner: TeacherFamily) -> None:
        self._inner = inner
        self._trained: dict[int, Tensor] = {}
        self._asked: dict[int, Tensor] = {}
        self._answers: dict[int, Tensor] = {}

    def init(self, num_teachers: int, rng: torch.Generator, device: torch.device) -> TeacherState:
        """What the other family begins with."""
        return self._inner.init(num_teachers, rng, device)

    def train(self, state: TeacherState, shards: Shards, fakes: Fakes, num_steps: int) -> TeacherState:
        """Training as the other family does it; the records it was shown are remembered."""
        self._trained |= _present(shards)
        return self._inner.train(state, shards, fakes, num_steps)

    def input_gradient(self, state: TeacherState, shards: Shards, fakes: Fakes) -> Tensor:
        """The other family's ``grad_TBD``; it and the records it was asked with are remembered."""
        self._asked |= _present(shards)
        grad_TBD = self._inner.input_gradient(state, shards, fakes)
        self._answers |= {shards.first + t: grad_BD.clone() for t, grad_BD in enumerate(grad_TBD.detach())}
        return grad_TBD

    def take(self) -> Seen:
        """What was seen since the last call, teacher by teacher."""
        order = sorted(self._answers)
        shown = tuple((self._trained[teacher], self._asked[teacher]) for teacher in order)
        seen = Seen(shown, torch.stack([self._answers[teacher] for teacher in order]))
        self._trained, self._asked, self._answers = {}, {}, {}
        return seen


def _present(shards: Shards) -> dict[int, Tensor]:
    pairs = zip(shards.images_TRCHW, shards.present_TR, strict=True)
    return {shards.first + t: images[present].clone() for t, (images, present) in enumerate(pairs)}


class Puppets:
    """Teachers whose gradients the attacker chooses: the worst that any data could make of them."""

    def __init__(self, grad_TBD: Tensor) -> None:
        self._grad_TBD = grad_TBD

    def init(self, num_teachers: int, rng: torch.Generator, device: torch.device) -> TeacherState:
        """A state that holds nothing."""
        return {"none": torch.zeros(num_teachers, 0, device=device)}

    def train(self, state: TeacherState, shards: Shards, fakes: Fakes, num_steps: int) -> TeacherState:
        """The state as it is: puppets learn nothing."""
        return state

    def input_gradient(self, state: TeacherState, shards: Shards, fakes: Fakes) -> Tensor:
        """``grad_TBD`` as chosen, of these teachers."""
        rows = slice(shards.first, shards.first + shards.num_teachers)
        return self._grad_TBD[rows].to(fakes.images_BCHW.device)


def puppet_tally(parts: Parts, grad_TBD: Tensor, top_k: int) -> Tensor:
    """``tally_BD`` that training's own ensemble makes of chosen gradients, for any number of coordinates."""
    teachers, batch_size, dim = parts.teachers, *grad_TBD.shape[1:]
    real = teachers.family
    teachers.family = Puppets(grad_TBD)
    try:
        fakes = Fakes(torch.zeros(batch_size, 1, 1, dim), torch.zeros(batch_size, dtype=torch.int64))
        result = teachers.tally(
            fakes,
            0,
            num_teacher_steps=1,
            top_k=top_k,
            clip_bound=parts.config.voting.clip_bound,
            images_per_teacher=parts.config.voting.images_per_teacher,
        )
        return result.tally_BD
    finally:
        teachers.family = real
