"""Who teaches whom where records come in groups: all records of a group with one teacher, whoever else is there.

A group's teacher is a keyed hash of the group's own number, so that taking a whole group out, or putting one in,
moves no other group. A teacher has a public number of slots. Where more records come to it, the records of that
teacher are put into an order by a keyed hash of their group and their place in it, and the first ones stay. So what
every other teacher holds, in which slots and in which order, does not depend on a group that is not its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from datalens.errors import CheckpointError, ConfigError, DataError
from datalens.privacy.promises import ADD_OR_REMOVE_GROUP
from datalens.teachers.partition import EMPTY, Partition

KEY_BYTES = 32
FORMAT = 2
"""In the first number of a saved partition; a partition by records has 1."""


@dataclass(frozen=True, eq=False)
class GroupPartition:
    """Groups of records with one teacher each. Private: it never leaves ``private/``.

    Guarantee: for every key, two data sets of which one lacks all records of a group (the others in the same
    order) give the same slots to all teachers but that group's.

    Attributes:
        group_ids: int64 [R], each a function of its group's own name; see :func:`datalens.data.group_ids_of`.
        num_records: the public bound on the records.
        num_teachers: public.
        shard_size: slots of each teacher, public; how many are filled is not.
        key: 32 bytes of the hashes; secret, so that nobody can choose names that crowd one teacher.
        slot_of_record: int64 [R], the slot of each record, -1 for one that found its teacher full.
        record_of_slot: int64 [T, shard_size], the record in each teacher's slot, -1 for an empty one.

    Raises:
        ConfigError: numbers below 1, more slots than records, or a key of another size.
        DataError: more records than ``num_records``, or ids of another kind.

    >>> ids = np.array([5, 9, 5, 5], np.int64)
    >>> groups = GroupPartition(ids, num_records=4, num_teachers=2, shard_size=4, key=bytes(32))
    >>> groups.teacher_of(0) == groups.teacher_of(2) == groups.teacher_of(3)
    True
    """

    group_ids: np.ndarray
    num_records: int
    num_teachers: int
    shard_size: int
    key: bytes = field(repr=False)
    slot_of_record: np.ndarray = field(init=False, repr=False)
    record_of_slot: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("num_records", "num_teachers", "shard_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, but must be a whole number from 1")
        if len(self.key) != KEY_BYTES:
            raise ConfigError(f"the key of the groups has {len(self.key)} bytes, but must have {KEY_BYTES}")
        ids = self.group_ids
        if ids.ndim != 1 or ids.dtype != np.int64:
            raise DataError(f"group_ids are {ids.dtype} {ids.shape}, but must be int64 [records]")
        if len(ids) > self.num_records:
            raise DataError(
                f"num_records is {self.num_records}, but the data hold {len(ids)}; "
                "declare at least as many, or leave records out before training"
            )
        if self.shard_size > self.num_records:
            raise ConfigError(
                f"shard_size is {self.shard_size}, but no teacher can have more than all {self.num_records} records; "
                f"use at most {self.num_records}"
            )
        slots = self._slots()
        shards = np.full(self.num_teachers * self.shard_size, EMPTY, np.int64)
        kept = np.flatnonzero(slots != EMPTY)
        shards[slots[kept]] = kept
        object.__setattr__(self, "slot_of_record", slots)
        object.__setattr__(self, "record_of_slot", shards.reshape(self.num_teachers, self.shard_size))

    @property
    def adjacency(self) -> str:
        """The neighbouring relation: it holds for every key, so also for one from a seed."""
        return ADD_OR_REMOVE_GROUP

    @property
    def num_present(self) -> int:
        """Records that are there (private unless declared)."""
        return len(self.group_ids)

    @property
    def num_left_out(self) -> int:
        """Records that no teacher sees, as theirs was full. Private."""
        return int(np.count_nonzero(self.slot_of_record == EMPTY))

    def shard(self, teacher: int) -> np.ndarray:
        """int64: the records of one teacher, in slot order, without its empty slots."""
        slots = self.record_of_slot[teacher]
        return slots[slots != EMPTY]

    def teacher_of(self, record: int) -> int | None:
        """The one teacher that sees a record, or None where it is left out."""
        slot = int(self.slot_of_record[record])
        return None if slot == EMPTY else slot // self.shard_size

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The partition as plain arrays, for a file under ``private/``."""
        numbers = [FORMAT, self.num_records, self.num_teachers, self.shard_size]
        return {
            "slot_of_record": self.slot_of_record,
            "partition_numbers": np.array(numbers, np.int64),
            "group_ids": self.group_ids,
            "group_key": np.frombuffer(self.key, np.uint8),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> GroupPartition:
        """The partition that :meth:`to_arrays` wrote, worked out again and compared.

        Raises:
            CheckpointError: arrays that no partition of groups wrote.
        """
        try:
            version, num_records, num_teachers, shard_size = arrays["partition_numbers"].tolist()
            ids, key = np.array(arrays["group_ids"]), arrays["group_key"].tobytes()
            slots = arrays["slot_of_record"]
            if version != FORMAT:
                raise ValueError(f"its format is {version} and not {FORMAT}")
            found = cls(ids, num_records, num_teachers, shard_size, key)
        except (KeyError, ValueError, TypeError, ConfigError, DataError) as error:
            raise CheckpointError(f"saved partition is damaged ({error}); use an older checkpoint") from error
        if not np.array_equal(found.slot_of_record, slots):
            raise CheckpointError(
                "saved partition is damaged (slots that its key does not give); use an older checkpoint"
            )
        return found

    def _slots(self) -> np.ndarray:
        """The slot of each record: by teacher, then by the keyed order, as far as there are slots."""
        ids = self.group_ids
        distinct, group_R = np.unique(ids, return_inverse=True)
        of_group = [_word(self.key, b"teacher", value) % self.num_teachers for value in distinct.tolist()]
        teacher_R = np.array(of_group, np.int64)[group_R]
        place_R = _places(group_R)
        pairs = zip(ids.tolist(), place_R.tolist(), strict=True)
        turn_R = np.array([_word(self.key, b"order", *pair) for pair in pairs], np.uint64)
        order = np.lexsort((place_R, ids, turn_R, teacher_R))
        place_R[order] = _places(teacher_R[order])
        return np.where(place_R < self.shard_size, teacher_R * self.shard_size + place_R, EMPTY)


SlotMap: TypeAlias = Partition | GroupPartition
"""Who has which slot, by records or by groups."""


def slot_map_from_arrays(arrays: Mapping[str, np.ndarray]) -> SlotMap:
    """The partition that either kind's ``to_arrays`` wrote, checked again.

    Raises:
        CheckpointError: arrays that no partition wrote.
    """
    return (GroupPartition if "group_key" in arrays else Partition).from_arrays(arrays)


def usual_slots(num_records: int, num_teachers: int) -> int:
    """Slots of a teacher where groups go to teachers by hash, from public numbers: twice an even share, at most all.

    >>> usual_slots(60, 10), usual_slots(7, 2), usual_slots(5, 1)
    (12, 7, 5)
    """
    return min(num_records, 2 * -(-num_records // num_teachers))


def _places(kind_R: np.ndarray) -> np.ndarray:
    """For each element, how many equal ones stand before it.

    >>> _places(np.array([3, 1, 3, 3])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(kind_R, kind="stable")
    kinds = kind_R[order]
    first = np.searchsorted(kinds, kinds, side="left")
    places = np.empty(len(kind_R), np.int64)
    places[order] = np.arange(len(kind_R)) - first
    return places


def _word(key: bytes, purpose: bytes, *numbers: int) -> int:
    """64 bits of BLAKE2b under a key."""
    message = b"".join(number.to_bytes(8, "big", signed=True) for number in numbers)
    digest = hashlib.blake2b(message, digest_size=8, key=key, person=purpose).digest()
    return int.from_bytes(digest, "big")
