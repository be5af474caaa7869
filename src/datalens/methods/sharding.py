"""Who has which slot, drawn once and kept: shards of teachers, or one slot a record."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from datalens.errors import CheckpointError, ConfigError
from datalens.methods.method import Context, PublicSize
from datalens.teachers.partition import Partition

_SLOTS = "slots/"


def check_shards(
    num_teachers: int, shard_size: int | None, num_records: int, setting: str = "num_teachers"
) -> None:
    """Refuse more slots than there are records, before any data are touched.

    Raises:
        ConfigError: says how many would fit.
    """
    if num_teachers * (shard_size or 1) > num_records:
        asked = f"shards of {shard_size} for " if shard_size else ""
        raise ConfigError(
            f"{setting} = {num_teachers}: {asked}so many need records of their own, and there are "
            f"{num_records}; use at most {num_records // (shard_size or 1)}"
        )


def draw_shards(
    size: PublicSize, context: Context, num_teachers: int, shard_size: int | None, insecure_seed: int | None
) -> Partition:
    """Disjoint shards, by the operating system's entropy unless everything is seeded."""
    return Partition.draw(
        num_records=size.num_records,
        num_teachers=num_teachers,
        num_present=context.data.num_records,
        positions=context.data.positions,
        shard_size=shard_size,
        rng=None if insecure_seed is None else context.private.numpy("slots"),
    )


def restored_shards(state: Mapping[str, Tensor], drawn: Partition) -> Partition:
    """The shards of a run that goes on, which must fit the data and settings that ``drawn`` was made for.

    Raises:
        CheckpointError: they don't.
    """
    restored = Partition.from_arrays({name: value.cpu().numpy() for name, value in state.items()})
    names = ("num_records", "num_teachers", "shard_size", "num_present")
    for name in names:
        saved, here = getattr(restored, name), getattr(drawn, name)
        if saved != here:
            raise CheckpointError(
                f"the saved shards have {name} {saved}, but this run has {here}: use its own"
            )
    return restored


def packed_slots(partition: Partition) -> dict[str, Tensor]:
    """The slots as part of a learner's state."""
    return {_SLOTS + name: torch.from_numpy(value.copy()) for name, value in partition.to_arrays().items()}


def restored_slots(state: Mapping[str, Tensor], drawn: Partition) -> Partition:
    """The slots in a learner's state, which must fit the data and settings that ``drawn`` was made for.

    Raises:
        CheckpointError: they don't.
    """
    own = {name.removeprefix(_SLOTS): value for name, value in state.items() if name.startswith(_SLOTS)}
    return restored_shards(own, drawn)
