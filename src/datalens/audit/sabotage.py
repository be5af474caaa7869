"""The product broken on purpose, one part at a time: each of these has happened to somebody.

Every sabotage takes a sound :class:`Subject` and returns one with a single part exchanged. The checks know
nothing of them; the self-test hands the broken product to the very same audit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from datalens.audit.disguise import Disguised
from datalens.audit.subject import Subject
from datalens.data.images import LabelledImages
from datalens.mechanisms.topagg import TopAgg
from datalens.noise import SeededEntropy
from datalens.noise.rounded_gaussian import RoundedGaussian
from datalens.privacy.budget import Budget
from datalens.privacy.events import Event, GaussianEvent
from datalens.privacy.ledger import Ledger
from datalens.teachers.ensemble import TeacherEnsemble
from datalens.teachers.family import Shards, TeacherState
from datalens.teachers.shards import ShardSource
from datalens.teachers.store import MemoryStore
from datalens.training.algorithm import Parts
from datalens.training.config import Config

RANKS = 2
"""Ranks that are imagined where each of them adds noise."""


def half_noise(subject: Subject) -> Subject:
    """The noise has half the standard deviation that is charged for."""

    def broken(parts: Parts) -> Parts:
        return replace(parts, noise_for_step=lambda step: ScaledNoise(parts.noise_for_step(step), 0.5))

    return _with(subject, broken)


def noise_of_each_rank(subject: Subject) -> Subject:
    """Every rank adds noise to its own votes before they are summed, as if the others did not."""

    def broken(parts: Parts) -> Parts:
        return replace(parts, noise_for_step=lambda step: NoiseOfRanks(parts.noise_for_step(step), RANKS))

    return _with(subject, broken)


def noise_of_no_rank(subject: Subject) -> Subject:
    """Every rank takes another one for the one that adds the noise."""

    def broken(parts: Parts) -> Parts:
        return replace(parts, noise_for_step=lambda step: NoiseOfRanks(parts.noise_for_step(step), 0))

    return _with(subject, broken)


def repeated_noise(subject: Subject) -> Subject:
    """A seed set once is set again in every step, so every release has the same noise."""

    def broken(parts: Parts) -> Parts:
        return replace(parts, noise_for_step=lambda step: RoundedGaussian(SeededEntropy(b"as always")))

    return _with(subject, broken)


def single_sensitivity(subject: Subject) -> Subject:
    """The factor 2 is forgotten: a vote that turns is charged like one that is withdrawn."""

    def broken(parts: Parts) -> Parts:
        fields = {name: getattr(parts.mechanism, name) for name in TopAgg.__dataclass_fields__}
        return replace(parts, mechanism=_HalfCharged(**fields))

    return _with(subject, broken)


def ties_kept(subject: Subject) -> Subject:
    """Top-k by comparing with the k-th largest: where gradients tie, more than k votes are cast."""
    return _with(subject, lambda parts: _with_teachers(parts, _TiesKept))


def shared_shard(subject: Subject) -> Subject:
    """Every teacher learns from the first one's shard (PATE-GAN in the wild)."""
    return _with(subject, lambda parts: _with_shards(parts, _SharedShard))


def wrapped_partition(subject: Subject) -> Subject:
    """A partition that starts again when it runs out (the paper's published code): some records sit twice."""
    return _with(subject, lambda parts: _with_shards(parts, _WrappedShards))


def torn_groups(subject: Subject) -> Subject:
    """Records that come in groups are dealt out one by one, so that a group has many teachers."""
    sound = subject.begin

    def begin(config: Config, data: LabelledImages) -> Parts:
        return sound(config.replace(voting__shard_size=None), replace(data, group_ids=None))

    return replace(subject, begin=begin, of_groups=True)


def shared_optimiser(subject: Subject) -> Subject:
    """Adam's moments belong to a place in the chunk, not to a teacher (the paper's published code)."""

    def broken(parts: Parts) -> Parts:
        store = _SharedMoments(parts.teachers.num_teachers, torch.device("cpu"))
        return _with_teachers(parts, TeacherEnsemble, store=store)

    config = subject.config.replace(teachers__kind="paper")
    return _with(replace(subject, config=config), broken)


def forgetful_resume(subject: Subject) -> Subject:
    """A budget that starts at zero whenever it is opened."""
    return replace(subject, open_budget=_ForgetfulBudget)


@dataclass(frozen=True)
class ScaledNoise(Disguised):
    """A source whose noise is ``scale`` times what was asked of it, and which says nothing of it."""

    scale: float

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        """Noise of standard deviation ``scale * stddev``."""
        return self.inner.sample(shape, self.scale * stddev)


@dataclass(frozen=True)
class NoiseOfRanks(Disguised):
    """What is summed over ranks of which so many add noise: a variance so many times as large as was asked for."""

    adding: int

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        """The sum of ``adding`` draws, none of them for 0."""
        zeros = np.zeros(shape, np.int64)
        return sum((self.inner.sample(shape, stddev) for _ in range(self.adding)), zeros)


SABOTAGES: dict[str, Callable[[Subject], Subject]] = {
    "half the noise": half_noise,
    "noise added on every rank": noise_of_each_rank,
    "noise added on no rank": noise_of_no_rank,
    "a repeated noise stream": repeated_noise,
    "sensitivity without its factor 2": single_sensitivity,
    "top-k by threshold with ties": ties_kept,
    "a shared shard": shared_shard,
    "wrapped partitions": wrapped_partition,
    "groups dealt out by record": torn_groups,
    "shared optimiser state": shared_optimiser,
    "resume that resets the budget": forgetful_resume,
}
"""What the self-test breaks, by the name it is reported under."""


def _with(subject: Subject, broken: Callable[[Parts], Parts]) -> Subject:
    sound = subject.begin

    def begin(config: Config, data: LabelledImages) -> Parts:
        return broken(sound(config, data))

    return replace(subject, begin=begin)


def _with_teachers(parts: Parts, kind: type[TeacherEnsemble], **changes: object) -> Parts:
    teachers = parts.teachers
    options = {"chunk_size": teachers.chunk_size, "device": teachers.device, **changes}
    return replace(parts, teachers=kind(teachers.family, teachers._shards, teachers._streams, **options))


def _with_shards(parts: Parts, kind: Callable[[ShardSource], ShardSource]) -> Parts:
    teachers = parts.teachers
    shards = kind(teachers._shards)
    ensemble = TeacherEnsemble(
        teachers.family, shards, teachers._streams, chunk_size=teachers.chunk_size, device=teachers.device
    )
    return replace(parts, teachers=ensemble)


class _HalfCharged(TopAgg):
    def event(self, batch_size: int, dim: int) -> GaussianEvent:
        event = super().event(batch_size, dim)
        return replace(event, sensitivity=event.sensitivity / 2)


class _TiesKept(TeacherEnsemble):
    def _votes(
        self, grad_TBD: Tensor, block: int, first: int, step: int, top_k: int, clip_bound: float
    ) -> Tensor:
        magnitude = grad_TBD.abs()
        cut = magnitude.topk(top_k, dim=-1).values[..., -1:]
        return torch.where(magnitude >= cut, grad_TBD.sign(), 0).nan_to_num().to(torch.int8)


@dataclass(frozen=True)
class _SharedShard:
    inner: ShardSource

    @property
    def num_teachers(self) -> int:
        return self.inner.num_teachers

    def chunk(self, start: int, stop: int, device: torch.device) -> Shards:
        first = self.inner.chunk(0, 1, device)
        many = [part.repeat(stop - start, *[1] * (part.ndim - 1)) for part in _fields(first)]
        return Shards(*many, first=start)


@dataclass(frozen=True)
class _WrappedShards:
    """The last teacher's last slot holds the first record of the first teacher."""

    inner: ShardSource

    @property
    def num_teachers(self) -> int:
        return self.inner.num_teachers

    def chunk(self, start: int, stop: int, device: torch.device) -> Shards:
        own = _fields(self.inner.chunk(start, stop, device))
        shards = Shards(*[part.clone() for part in own], first=start)
        if stop == self.num_teachers:
            for part, first in zip(_fields(shards), _fields(self.inner.chunk(0, 1, device)), strict=True):
                part[-1, -1] = first[0, 0]
        return shards


class _SharedMoments(MemoryStore):
    """Everything that belongs to the optimiser is handed on from chunk to chunk."""

    def load(self, start: int, stop: int) -> TeacherState:
        own = super().load(start, stop)
        shared = super().load(0, stop - start)
        return {
            name: shared[name] if name.startswith("adam.") and not name.endswith("step") else value
            for name, value in own.items()
        }

    def save(self, start: int, stop: int, state: TeacherState) -> None:
        super().save(start, stop, state)
        moments = {name: value for name, value in state.items() if name.startswith("adam.")}
        super().save(0, stop - start, moments)


class _ForgetfulBudget(Budget):
    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._forgotten = len(ledger.events())

    def _events(self) -> tuple[Event, ...]:
        return self._ledger.events()[self._forgotten :]


def _fields(shards: Shards) -> tuple[Tensor, Tensor, Tensor]:
    return shards.images_TRCHW, shards.labels_TR, shards.present_TR
