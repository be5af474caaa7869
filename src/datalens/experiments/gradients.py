"""Gradients and tallies of teachers on published images, for experiments that look behind the mechanism.

What is returned is what a run keeps private. It may be looked at only where the images are public.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from dataclasses import replace as with_changes

import numpy as np
import torch
from torch import Tensor

from datalens.data.images import LabelledImages
from datalens.errors import ConfigError, NotPrivateError
from datalens.mechanisms.base import Release
from datalens.mechanisms.topagg import TopAgg
from datalens.privacy.budget import Budget
from datalens.randomness import Streams
from datalens.teachers.families import TeacherKind, TeacherSettings, make_family
from datalens.teachers.family import Fakes
from datalens.teachers.partition import Partition
from datalens.teachers.shards import RecordShards
from datalens.training.config import Config
from datalens.training.session import Session

TEACHER_STEPS = 10
"""Optimiser steps of teachers that train, as the paper's take at the first generator step."""


def require_public(images: LabelledImages, what: str) -> None:
    """Refuse people's own data: what is looked at here is paid for by nobody.

    Raises:
        NotPrivateError: the images are not marked as public.
    """
    if not images.public:
        raise NotPrivateError(
            f"{images.name}: {what} shows votes without noise, so it may only be made from published images"
        )


@dataclass(frozen=True)
class Scene:
    """Some teachers and the generated images that they are asked about.

    Attributes:
        num_teachers: T.
        shard_size: records of each.
        num_images: B, the images asked about; classes in turn.
        progress: how far the generator has come, from 0 (grey with a little noise) to 1 (class means).
        seed: of shards, images, weights and draws.

    Raises:
        ConfigError: a value out of range.
    """

    num_teachers: int = 100
    shard_size: int = 15
    num_images: int = 10
    progress: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.num_teachers, self.shard_size, self.num_images) < 1 or not 0 <= self.progress <= 1:
            raise ConfigError(f"{self}: counts must be 1 or more and progress from 0 to 1; correct it")


def teacher_gradients(images: LabelledImages, kind: TeacherKind, scene: Scene) -> np.ndarray:
    """Gradients of teachers that have just been trained.

    Args:
        images: published images, at least ``num_teachers * shard_size``.
        kind: which discriminators.
        scene: how many, and what they are asked about.

    Returns:
        float64 [T, B, D]; the same for the same arguments.

    Raises:
        NotPrivateError: the images are not public.
        ConfigError: too few images.
    """
    require_public(images, "a teacher's gradient")
    streams = Streams.from_insecure_seed(scene.seed, "experiment")
    partition = Partition.draw(
        num_records=images.num_listed,
        num_teachers=scene.num_teachers,
        num_present=images.num_records,
        positions=images.positions,
        shard_size=scene.shard_size,
        rng=streams.numpy("slots"),
    )
    slots_TR = torch.from_numpy(partition.record_of_slot)
    source = RecordShards(torch.from_numpy(images.images), torch.from_numpy(images.labels), slots_TR)
    shards = source.chunk(0, scene.num_teachers, torch.device("cpu"))
    fakes = _fakes(images, scene, streams)
    family = make_family(
        kind,
        TeacherSettings(
            image_shape=images.image_shape,
            num_classes=images.num_classes,
            shard_size=scene.shard_size,
            batch_size=scene.num_images,
            num_steps=1,
            learning_rate=1e-3,
            bandwidth=5.0,
            first_bandwidth=100.0,
            annealing=0.6,
        ),
    )
    state = family.init(scene.num_teachers, streams.torch("weights"), torch.device("cpu"))
    state = family.train(state, shards, fakes, TEACHER_STEPS)
    return family.input_gradient(state, shards, fakes).double().numpy()


def recorded_tallies(config: Config, images: LabelledImages) -> list[np.ndarray]:
    """Train on published images in memory, and keep what a run forgets: every step's votes without noise.

    Args:
        config: of the run; its whole number of steps is taken.
        images: published images.

    Returns:
        For each step int64 [B, D], the tally before noise.

    Raises:
        NotPrivateError: the images are not public.
        DataLensError: settings and images that do not fit.
    """
    require_public(images, "a tally")
    tallies: list[np.ndarray] = []
    session = Session.begin(config, images, None)
    try:
        known = session.parts.mechanism
        settings = {field.name: getattr(known, field.name) for field in fields(known)}
        session.parts = with_changes(session.parts, mechanism=_Tapped(**settings, see=tallies.append))
        session.run()
    finally:
        session.close()
    return tallies


def _ignore(tally_BD: np.ndarray) -> None:
    """See nothing."""


@dataclass(frozen=True)
class _Tapped(TopAgg):
    """The mechanism of a run, with a window on what goes in."""

    see: Callable[[np.ndarray], None] = _ignore

    def release(self, tally_BD: Tensor, budget: Budget, note: dict[str, object]) -> Release[Tensor]:
        """As TopAgg releases, after the tally was seen."""
        self.see(tally_BD.numpy().astype(np.int64))
        return super().release(tally_BD, budget, note)


def _fakes(images: LabelledImages, scene: Scene, streams: Streams) -> Fakes:
    """Images on the way from grey to the mean of their class, with a little noise."""
    labels_B = np.arange(scene.num_images) % images.num_classes
    grey = np.full(images.image_shape, 0.5)
    means = [
        images.images[images.labels == label].mean(axis=0) / 255 if (images.labels == label).any() else grey
        for label in range(images.num_classes)
    ]
    aim_BCHW = np.stack([means[label] for label in labels_B])
    noise = streams.numpy("fakes").normal(0, 0.02, aim_BCHW.shape)
    fakes_BCHW = np.clip((1 - scene.progress) * grey + scene.progress * aim_BCHW + noise, 0, 1)
    return Fakes(torch.from_numpy(fakes_BCHW).float(), torch.from_numpy(labels_B.astype(np.int64)))
