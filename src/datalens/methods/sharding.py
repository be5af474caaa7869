"""Who has which slot, drawn once and kept: shards of teachers, or one slot a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import Tensor

from datalens.errors import CheckpointError, ConfigError
from datalens.methods.method import Context, PublicSize
from datalens.teachers.groups import SlotMap, slot_map_from_arrays
from datalens.teachers.partition import Partition
from datalens.training.groups import draw_slots
from datalens.training.repeats import refuse_groups

_SLOTS = "slots/"
Slots = TypeVar("Slots", bound=SlotMap)


def check_shards(
    num_teachers: int, shard_size: int | None, size: PublicSize, setting: str = "num_teachers"
) -> None:
    """Refuse more slots than there are records, before any data are touched; those of groups need not be filled.

    Raises:
        ConfigError: says how many would fit.
    """
    each = 1 if size.of_groups else shard_size or 1
    if num_teachers * each > size.num_records:
        asked = f"shards of {each} for " if each > 1 else ""
        raise ConfigError(
            f"{setting} = {num_teachers}: {asked}so many need records of their own, and there are "
            f"{size.num_records}; use at most {size.num_records // each}"
        )


def draw_shards(
    size: PublicSize, context: Context, num_teachers: int, shard_size: int | None, insecure_seed: int | None
) -> SlotMap:
    """Disjoint shards of records, or of whole groups where they come in groups."""
    seeded = insecure_seed is not None
    return draw_slots(
        context.data, size.num_records, num_teachers, shard_size, context.private, seeded=seeded
    )


def draw_record_slots(size: PublicSize, context: Context, insecure_seed: int | None) -> Partition:
    """One slot for each record, of nobody in particular, for methods that draw lots of slots.

    By the operating system's entropy unless everything is seeded.

    Raises:
        ConfigError: records that come in groups.
    """
    refuse_groups(context.data)
    return Partition.draw(
        num_records=size.num_records,
        num_teachers=1,
        num_present=context.data.num_records,
        positions=context.data.positions,
        rng=None if insecure_seed is None else context.private.numpy("slots"),
    )


def restored_shards(state: Mapping[str, Tensor], drawn: Slots) -> Slots:
    """The shards of a run that goes on, which must fit the data and settings that ``drawn`` was made for.

    Raises:
        CheckpointError: they don't.
    """
    restored = slot_map_from_arrays({name: value.cpu().numpy() for name, value in state.items()})
    if not isinstance(restored, type(drawn)):
        raise CheckpointError("the saved shards are of another unit (records or groups): use the run's own")
    names = ("num_records", "num_teachers", "shard_size", "num_present")
    for name in names:
        saved, here = getattr(restored, name), getattr(drawn, name)
        if saved != here:
            raise CheckpointError(
                f"the saved shards have {name} {saved}, but this run has {here}: use its own"
            )
    return restored


def packed_slots(partition: SlotMap) -> dict[str, Tensor]:
    """The slots as part of a learner's state."""
    return {_SLOTS + name: torch.from_numpy(value.copy()) for name, value in partition.to_arrays().items()}


def restored_slots(state: Mapping[str, Tensor], drawn: Slots) -> Slots:
    """The slots in a learner's state, which must fit the data and settings that ``drawn`` was made for.

    Raises:
        CheckpointError: they don't.
    """
    own = {name.removeprefix(_SLOTS): value for name, value in state.items() if name.startswith(_SLOTS)}
    return restored_shards(own, drawn)
