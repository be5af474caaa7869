"""Who teaches whom: every record in exactly one slot of at most one teacher, whatever the record holds.

There are ``num_records`` slots, a public number. Records enter them by a uniform random injection; slot s
belongs to teacher s // shard_size, and the slots past the last teacher's are left over. A record's slot does
not depend on any record's content or label: none of them is an argument here, only how many there are and, where
some were left out, the places of the others among all.

Removing a record leaves its slot empty and every other record where it was. With the map drawn from the
operating system and kept secret, that coupling makes the guarantee add-or-remove on unordered data; with a
known or seeded map it is only about blanking one record (``from_os_entropy`` says which).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from datalens.errors import CheckpointError, ConfigError, DataError
from datalens.privacy.promises import ADD_OR_REMOVE, BLANKED

EMPTY = -1
_FORMAT = 1
_KEY_BYTES = 16


@dataclass(frozen=True, eq=False)
class Partition:
    """A disjoint assignment of records to teachers. Private: it never leaves ``private/``.

    Attributes:
        slot_of_record: int64 [R], the slot in 0..num_records-1 of each record present; no slot occurs twice.
        num_records: the public number of slots; records present may be fewer.
        num_teachers: public.
        shard_size: slots of each teacher, public.
        from_os_entropy: the map was drawn from the operating system, not from a seed.
        record_of_slot: int64 [T, shard_size], the record in each teacher's slot, -1 for an empty one.

    Raises:
        ConfigError: public numbers that don't fit each other.
        DataError: more records than slots, or a slot that is taken twice.

    >>> partition = Partition.draw(num_records=103, num_teachers=10, num_present=103)
    >>> partition.record_of_slot.shape, partition.num_leftover_slots
    ((10, 10), 3)
    """

    slot_of_record: np.ndarray
    num_records: int
    num_teachers: int
    shard_size: int
    from_os_entropy: bool
    record_of_slot: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_sizes(self.num_records, self.num_teachers, self.shard_size)
        slots = self.slot_of_record
        _check_present(len(slots), self.num_records)
        if slots.ndim != 1 or slots.dtype != np.int64:
            raise DataError(f"slot_of_record is {slots.dtype} {slots.shape}, but must be int64 [records]")
        if slots.size and (slots.min() < 0 or slots.max() >= self.num_records):
            raise DataError(f"slot_of_record leaves 0..{self.num_records - 1}; draw the partition again")
        record_of_any = np.full(self.num_records, EMPTY, np.int64)
        record_of_any[slots] = np.arange(len(slots))
        if np.count_nonzero(record_of_any != EMPTY) != len(slots):
            raise DataError("slot_of_record names one slot twice; draw the partition again")
        shards = record_of_any[: self.num_slots].reshape(self.num_teachers, self.shard_size)
        object.__setattr__(self, "record_of_slot", shards)

    @classmethod
    def draw(
        cls,
        *,
        num_records: int,
        num_teachers: int,
        num_present: int,
        positions: np.ndarray | None = None,
        shard_size: int | None = None,
        rng: np.random.Generator | None = None,
    ) -> Partition:
        """Send the records present into the slots by a uniform random injection.

        Args:
            num_records: the public number of records, hence of slots; at least ``num_present``.
            num_teachers: how many teachers.
            num_present: records really there, numbered 0..num_present-1. Private unless declared.
            positions: int64 [num_present], strictly increasing below ``num_records``: the place of each record
                among all that were listed. A place that is missing keeps its slot, empty, and no other record
                moves. None for 0..num_present-1.
            shard_size: slots a teacher; left out, ``num_records // num_teachers``.
            rng: a seeded stream for repeatable experiments. Left out, the operating system decides, which the
                add-or-remove guarantee needs.

        Raises:
            ConfigError: numbers that don't fit each other; says which to change.
            DataError: more records than ``num_records``, or positions that are not as said.
        """
        if shard_size is None:
            _check_sizes(num_records, num_teachers, 1)
            shard_size = num_records // num_teachers
        _check_sizes(num_records, num_teachers, shard_size)
        _check_present(num_present, num_records)
        permutation = _os_permutation(num_records) if rng is None else rng.permutation(num_records)
        places = np.arange(num_present) if positions is None else positions
        _check_places(places, num_present, num_records)
        slots = permutation[places].astype(np.int64)
        return cls(slots, num_records, num_teachers, shard_size, from_os_entropy=rng is None)

    @property
    def adjacency(self) -> str:
        """The neighbouring relation that the map supports, as a ledger's first line names it."""
        return ADD_OR_REMOVE if self.from_os_entropy else BLANKED

    @property
    def num_slots(self) -> int:
        """Slots that belong to a teacher (public)."""
        return self.num_teachers * self.shard_size

    @property
    def num_leftover_slots(self) -> int:
        """Slots past the last teacher's, whose records no teacher sees (public)."""
        return self.num_records - self.num_slots

    @property
    def num_present(self) -> int:
        """Records that are there, with a teacher or left over (private unless declared)."""
        return len(self.slot_of_record)

    def shard(self, teacher: int) -> np.ndarray:
        """int64: the records of one teacher, in slot order, without its empty slots."""
        slots = self.record_of_slot[teacher]
        return slots[slots != EMPTY]

    def teacher_of(self, record: int) -> int | None:
        """The one teacher that sees a record, or None where it is left over."""
        slot = int(self.slot_of_record[record])
        return slot // self.shard_size if slot < self.num_slots else None

    def without(self, record: int) -> Partition:
        """The coupled partition of the same data with one record taken out (later records move up by one).

        Its slot is empty; what every other slot holds is the same image as before.
        """
        if not 0 <= record < self.num_present:
            raise DataError(f"record {record} is not among 0..{self.num_present - 1}; name one that is there")
        slots = np.delete(self.slot_of_record, record)
        return Partition(slots, self.num_records, self.num_teachers, self.shard_size, self.from_os_entropy)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The partition as plain arrays, for a file under ``private/``."""
        numbers = [_FORMAT, self.num_records, self.num_teachers, self.shard_size, int(self.from_os_entropy)]
        return {"slot_of_record": self.slot_of_record, "partition_numbers": np.array(numbers, np.int64)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Partition:
        """The partition that :meth:`to_arrays` wrote, checked again.

        Raises:
            CheckpointError: arrays that no partition wrote.
        """
        try:
            version, num_records, num_teachers, shard_size, from_os = arrays["partition_numbers"].tolist()
            slots = np.array(arrays["slot_of_record"])
        except (KeyError, ValueError, TypeError) as error:
            raise CheckpointError(
                f"saved partition is incomplete ({error}); use an older checkpoint"
            ) from error
        if version != _FORMAT:
            raise CheckpointError(
                f"saved partition has format {version}, but {_FORMAT} is known; update datalens"
            )
        try:
            return cls(slots, num_records, num_teachers, shard_size, bool(from_os))
        except (ConfigError, DataError) as error:
            raise CheckpointError(f"saved partition is damaged ({error}); use an older checkpoint") from error


def _os_permutation(length: int) -> np.ndarray:
    """A uniform permutation from the operating system's entropy: the order of 128-bit random keys.

    Two keys are equal with chance below length**2 / 2**129: the whole deviation from uniform.
    """
    keys = np.frombuffer(os.urandom(_KEY_BYTES * length), np.uint64).reshape(length, 2)
    return np.lexsort((keys[:, 1], keys[:, 0]))


def _check_sizes(num_records: int, num_teachers: int, shard_size: int) -> None:
    for name, value in (
        ("num_records", num_records),
        ("num_teachers", num_teachers),
        ("shard_size", shard_size),
    ):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ConfigError(f"{name} is {value!r}, but must be a whole number from 1")
    if num_teachers > num_records:
        raise ConfigError(
            f"num_teachers is {num_teachers}, but each needs one of {num_records} records; "
            f"use at most {num_records} teachers"
        )
    if shard_size * num_teachers > num_records:
        raise ConfigError(
            f"shard_size is {shard_size}, but {num_teachers} teachers share {num_records} records; "
            f"use at most {num_records // num_teachers}, or fewer teachers"
        )


def _check_present(num_present: int, num_records: int) -> None:
    if num_present < 0:
        raise ConfigError(f"num_present is {num_present}, but can't be negative")
    if num_present > num_records:
        raise DataError(
            f"num_records is {num_records}, but the data hold {num_present}; "
            "declare at least as many, or leave records out before training"
        )


def _check_places(places: np.ndarray, num_present: int, num_records: int) -> None:
    is_rising = places.shape == (num_present,) and bool(np.all(np.diff(places) > 0))
    if not is_rising or (num_present and not 0 <= places[0] <= places[-1] < num_records):
        raise DataError(
            f"positions: must be {num_present} numbers that rise within 0..{num_records - 1}; take those of the data"
        )
