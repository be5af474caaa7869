"""A learner's surroundings on drawn shapes, for tests."""

from __future__ import annotations

import numpy as np
import torch

from datalens import data
from datalens.data.images import LabelledImages
from datalens.methods.method import Context, Planned, PublicSize
from datalens.noise import NoiseSource, make_noise
from datalens.privacy.accountant import AccountantKind
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind, SamplerSlack, times
from datalens.privacy.ledger import Ledger
from datalens.randomness import Streams
from datalens.training.sections import Privacy


def shapes(count: int = 400) -> LabelledImages:
    found = data.load("shapes")
    return LabelledImages(found.images[:count], found.labels[:count], found.classes, "shapes", public=True)


def size_of(records: LabelledImages) -> PublicSize:
    return PublicSize(records.num_records, records.image_shape, records.num_classes)


def context_for(records: LabelledImages, privacy: Privacy, planned: tuple[Planned, ...]) -> Context:
    """A context whose budget allows exactly what was planned; everything is drawn from fixed seeds."""
    streams = {name: Streams.from_insecure_seed(0, name) for name in ("public", "private", "noise")}
    if privacy.is_private:
        authorisation = Authorisation(privacy.epsilon, privacy.delta, privacy.accountant)
    else:
        authorisation = Authorisation.not_private(privacy.delta)
    return Context(
        data=records,
        size=size_of(records),
        budget=Budget(Ledger.in_memory(), authorisation),
        noise_for=lambda what, number: make_noise(
            privacy.noise, None if privacy.noise is NoiseKind.NONE else streams["noise"].key(what, number)
        ),
        public=streams["public"],
        private=streams["private"],
        device=torch.device("cpu"),
    )


def total_epsilon(planned: tuple[Planned, ...], delta: float, kind: AccountantKind) -> float:
    from datalens.privacy.accountant import Accountant

    return Accountant(kind).epsilon([times(one.event, one.count) for one in planned], delta)


def same_state(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        np.array_equal(first[name].numpy(), second[name].numpy()) for name in first
    )


class SpyNoise:
    """Known noise that remembers what it was asked for."""

    kind = NoiseKind.ROUNDED
    secure = False

    def __init__(self, value: int = 0) -> None:
        self.value = value
        self.calls: list[tuple[tuple[int, ...], float]] = []

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        self.calls.append((shape, stddev))
        return np.full(shape, self.value, dtype=np.int64)

    def slack(self, stddev: float) -> SamplerSlack:
        return SamplerSlack()


def budget_of(epsilon: float = 1.0) -> Budget:
    return Budget(Ledger.in_memory(), Authorisation(epsilon, 1e-5))


def context_of(
    records: LabelledImages,
    size: PublicSize,
    *,
    noise: NoiseSource | None = None,
    budget: Budget | None = None,
) -> Context:
    """A context with one known source of noise for everything."""
    source = noise or SpyNoise()
    return Context(
        data=records,
        size=size,
        budget=budget or budget_of(),
        noise_for=lambda what, number: source,
        public=Streams.from_insecure_seed(3, "public"),
        private=Streams.from_insecure_seed(3, "private"),
        device=torch.device("cpu"),
    )
