"""Which records are in a step: Opacus's lots, with coins that nobody can guess, and none left out for being empty."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import torch
from opacus.utils.uniform_sampler import (
    DistributedUniformWithReplacementSampler,
    UniformWithReplacementSampler,
)
from torch.utils.data import DataLoader

from datalens.mechanisms.sampled_sum import poisson_lot
from datalens.noise.entropy import OsEntropy


class SecretLots(UniformWithReplacementSampler):
    """Poisson lots from the operating system's entropy: a record is in with the sample rate or less, never more."""

    def __iter__(self) -> Generator[list[int], None, None]:
        for _ in range(self.steps):
            yield poisson_lot(self.num_samples, self.sample_rate, OsEntropy()).tolist()


class LotsOfAllRanks(DistributedUniformWithReplacementSampler):
    """Poisson lots of one rank; an empty one is a lot too.

    Opacus's own leaves it out. The ranks then take different numbers of steps, and wait for each other for ever.
    """

    def __iter__(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
    ) -> Generator[list[int], None, None]:
        order = torch.arange(self.total_size)
        if self.shuffle:
            public = torch.Generator().manual_seed(self.shuffle_seed + self.epoch)
            order = torch.randperm(self.total_size, generator=public)
        mine = order[self.rank : self.total_size : self.num_replicas]
        for _ in range(self.num_batches):
            yield mine[torch.rand(len(mine), generator=self.generator) < self.sample_rate].tolist()


def with_lots(
    loader: DataLoader[Any], lots: UniformWithReplacementSampler | LotsOfAllRanks
) -> DataLoader[Any]:
    """The same loader over other lots; how it loads stays."""
    return DataLoader(
        loader.dataset,
        batch_sampler=lots,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator,
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=loader.persistent_workers,
    )
