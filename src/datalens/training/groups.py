"""Records in groups: what their settings must hold, how the slots are drawn, and what the owner alone is told."""

from __future__ import annotations

import numpy as np

from datalens.data.images import LabelledImages
from datalens.errors import ConfigError
from datalens.randomness import Streams
from datalens.teachers.groups import GroupPartition, SlotMap, usual_slots
from datalens.teachers.partition import EMPTY, Partition
from datalens.training.config import Config
from datalens.training.sections import Privacy


def check_groups(privacy: Privacy) -> None:
    """Refuse settings that count records where groups are protected as a whole.

    Raises:
        ConfigError: says which to leave out.
    """
    if privacy.group_size != 1:
        raise ConfigError(
            f"--group-size {privacy.group_size} (privacy.group_size): is for records whose persons are not known, "
            "and these come in groups of any size; leave it out"
        )
    if privacy.score_noise is not None:
        raise ConfigError(
            f"--score-noise {privacy.score_noise:g} (privacy.score_noise): a score counts records, and a group may "
            "have any number of them; leave it out where records come in groups"
        )


def slots_of_teacher(config: Config, num_records: int, *, of_groups: bool) -> int:
    """Slots of each teacher, from public numbers alone."""
    voting = config.voting
    if voting.shard_size is not None:
        return voting.shard_size
    if of_groups:
        return usual_slots(num_records, voting.num_teachers)
    return num_records // voting.num_teachers


def draw_slots(
    data: LabelledImages,
    num_records: int,
    num_teachers: int,
    shard_size: int | None,
    private: Streams,
    *,
    seeded: bool,
) -> SlotMap:
    """Give every record a slot, by itself or with its group.

    Args:
        data: the sensitive records.
        num_records: the public bound on them.
        num_teachers: how many teachers.
        shard_size: slots of each; None for the usual number.
        private: streams, one of which is the key of groups.
        seeded: everything is; without it slots of single records come from the operating system.

    Raises:
        DataLensError: numbers that do not fit each other or the data.
    """
    if data.group_ids is not None:
        slots = shard_size or usual_slots(num_records, num_teachers)
        key = private.key("groups of teachers")
        return GroupPartition(data.group_ids, num_records, num_teachers, slots, key)
    return Partition.draw(
        num_records=num_records,
        num_teachers=num_teachers,
        num_present=data.num_records,
        positions=data.positions,
        shard_size=shard_size,
        rng=private.numpy("slots") if seeded else None,
    )


def note_of_groups(partition: SlotMap | None, name: str) -> str | None:
    """One line on how groups came to lie, or None where there are none. Private: it counts records."""
    if not isinstance(partition, GroupPartition):
        return None
    empty = int(np.count_nonzero((partition.record_of_slot == EMPTY).all(1)))
    line = (
        f"{name}: {len(np.unique(partition.group_ids))} groups over {partition.num_teachers} teachers, of whom "
        f"{empty} have no record; {partition.num_left_out} of {partition.num_present} records are left out"
    )
    if partition.num_left_out:
        line += f", as their teachers' {partition.shard_size} slots are full (voting.shard_size)"
    return line
