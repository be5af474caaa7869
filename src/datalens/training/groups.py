"""Records in groups: what their settings must hold, how the slots are drawn, and what the owner alone is told."""

from __future__ import annotations

import numpy as np

from datalens.data.images import LabelledImages
from datalens.errors import ConfigError
from datalens.randomness import Streams
from datalens.teachers.groups import GroupPartition, SlotMap, usual_slots
from datalens.teachers.partition import EMPTY, Partition
from datalens.training.config import Config


def check_groups(config: Config) -> None:
    """Refuse settings that count records where groups are protected as a whole.

    Raises:
        ConfigError: says which to leave out.
    """
    privacy = config.privacy
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


def draw_slots(config: Config, data: LabelledImages, num_records: int, private: Streams) -> SlotMap:
    """Give every record a slot, by itself or with its group.

    The key of groups is one of the private streams': from the operating system, or from an insecure seed.

    Raises:
        DataLensError: numbers that do not fit each other or the data.
    """
    voting = config.voting
    if data.group_ids is not None:
        size = slots_of_teacher(config, num_records, of_groups=True)
        return GroupPartition(
            data.group_ids, num_records, voting.num_teachers, size, private.key("groups of teachers")
        )
    return Partition.draw(
        num_records=num_records,
        num_teachers=voting.num_teachers,
        num_present=data.num_records,
        shard_size=voting.shard_size,
        rng=None if config.privacy.insecure_seed is None else private.numpy("slots"),
    )


def note_of_groups(partition: SlotMap, name: str) -> str | None:
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
