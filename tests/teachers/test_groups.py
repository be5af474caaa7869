"""Groups go to teachers by their own name alone: nothing that one group does moves another."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.data import group_ids_of
from datalens.errors import CheckpointError, ConfigError, DataError
from datalens.privacy.promises import ADD_OR_REMOVE_GROUP
from datalens.teachers.groups import GroupPartition, slot_map_from_arrays, usual_slots
from datalens.teachers.partition import EMPTY, Partition

KEY = bytes(range(32))


def partition_of(ids: list[int] | np.ndarray, num_teachers: int = 5, shard_size: int = 4) -> GroupPartition:
    ids = np.asarray(ids, np.int64)
    return GroupPartition(ids, max(shard_size, len(ids)), num_teachers, shard_size, KEY)


@st.composite
def groupings(draw: st.DrawFn) -> tuple[np.ndarray, int, int, bytes]:
    """Uneven groups in any order, teachers, slots and a key."""
    names = draw(st.lists(st.integers(-3, 12), min_size=1, max_size=60))
    return (
        np.array(names, np.int64),
        draw(st.integers(1, 9)),
        draw(st.integers(1, 12)),
        draw(st.binary(min_size=32, max_size=32)),
    )


@given(groupings())
@settings(max_examples=80, deadline=None)
def test_a_group_sits_with_one_teacher_and_every_record_in_one_slot_or_none(
    grouping: tuple[np.ndarray, int, int, bytes],
) -> None:
    ids, num_teachers, shard_size, key = grouping
    partition = GroupPartition(ids, 60, num_teachers, shard_size, key)
    held = partition.record_of_slot[partition.record_of_slot != EMPTY]
    left = [record for record in range(len(ids)) if partition.teacher_of(record) is None]
    assert sorted([*held.tolist(), *left]) == list(range(len(ids)))
    assert len(left) == partition.num_left_out
    for group in set(ids.tolist()):
        own = {partition.teacher_of(record) for record in np.flatnonzero(ids == group).tolist()} - {None}
        assert len(own) <= 1
    for record in left:  # only a full teacher leaves out
        mates = {partition.teacher_of(int(other)) for other in np.flatnonzero(ids == ids[record])}
        full = (partition.record_of_slot != EMPTY).all(1)
        assert all(full[teacher] for teacher in mates - {None})
        assert full.any()


@given(groupings(), st.data())
@settings(max_examples=120, deadline=None)
def test_taking_a_whole_group_out_changes_no_slot_of_another_teacher(
    grouping: tuple[np.ndarray, int, int, bytes], data: st.DataObject
) -> None:
    """Slot by slot the same record, compared by its place in the data before."""
    ids, num_teachers, shard_size, key = grouping
    gone = data.draw(st.sampled_from(sorted(set(ids.tolist()))))
    before = GroupPartition(ids, 60, num_teachers, shard_size, key)
    stays = np.flatnonzero(ids != gone)
    after = GroupPartition(ids[stays], 60, num_teachers, shard_size, key)
    slots = after.record_of_slot.copy()
    is_full = slots != EMPTY
    slots[is_full] = stays[slots[is_full]]
    changed = np.flatnonzero((slots != before.record_of_slot).any(1))
    own = {before.teacher_of(int(record)) for record in np.flatnonzero(ids == gone)} - {None}
    assert len(changed) <= 1
    assert set(changed.tolist()) <= own or not own
    if own:
        assert set(changed.tolist()) == own


def test_the_order_of_the_data_moves_no_group_and_no_choice_of_records_looks_at_others() -> None:
    ids = group_ids_of([f"person {number % 11}" for number in range(66)])
    order = np.random.default_rng(3).permutation(66)
    one, two = partition_of(ids), partition_of(ids[order])
    for record in range(66):
        teachers = [
            {partition.teacher_of(int(i)) for i in np.flatnonzero(group == ids[record])} - {None}
            for partition, group in ((one, ids), (two, ids[order]))
        ]
        assert len(teachers[0] | teachers[1]) <= 1


def test_a_full_teacher_chooses_by_lot_among_all_its_records_and_not_by_their_order() -> None:
    """One teacher, one large group in front of a small one: both keep about their share."""
    ids = np.repeat(np.array([1, 2], np.int64), [900, 100])
    kept = partition_of(ids, num_teachers=1, shard_size=200).record_of_slot.ravel()
    assert 8 < np.count_nonzero(kept >= 900) < 35
    assert np.count_nonzero(kept < 450) > 60


def test_keys_spread_groups_evenly_and_each_in_another_way() -> None:
    ids = np.arange(4000, dtype=np.int64)
    of = [partition_of(ids, 8, 4000)]
    of.append(GroupPartition(ids, 4000, 8, 4000, bytes(32)))
    for partition in of:
        shares = np.count_nonzero(partition.record_of_slot != EMPTY, 1)
        assert abs(shares - 500).max() < 110  # more than five standard deviations
    same = of[0].slot_of_record // 4000 == of[1].slot_of_record // 4000
    assert abs(np.count_nonzero(same) - 500) < 110


def test_arrays_keep_a_partition_and_a_slot_that_the_key_does_not_give_is_found() -> None:
    partition = partition_of(np.arange(30) % 7)
    arrays = partition.to_arrays()
    again = slot_map_from_arrays(arrays)
    assert isinstance(again, GroupPartition)
    np.testing.assert_array_equal(again.record_of_slot, partition.record_of_slot)
    assert again.adjacency == ADD_OR_REMOVE_GROUP
    changed = {**arrays, "slot_of_record": arrays["slot_of_record"][::-1].copy()}
    with pytest.raises(CheckpointError, match="key does not give"):
        slot_map_from_arrays(changed)
    for name in ("group_ids", "partition_numbers"):
        with pytest.raises(CheckpointError, match="damaged"):
            slot_map_from_arrays({key: value for key, value in arrays.items() if key != name})
    with pytest.raises(CheckpointError, match="format"):
        Partition.from_arrays({**arrays, "partition_numbers": np.array([2, 30, 5, 4, 1])})


def test_numbers_that_do_not_fit_are_refused() -> None:
    ids = np.zeros(3, np.int64)
    with pytest.raises(DataError, match="data hold 3"):
        GroupPartition(ids, 2, 1, 1, KEY)
    with pytest.raises(ConfigError, match="shard_size is 0"):
        GroupPartition(ids, 3, 1, 0, KEY)
    with pytest.raises(ConfigError, match=r"shard_size is 4.*at most 3"):
        GroupPartition(ids, 3, 1, 4, KEY)
    with pytest.raises(ConfigError, match="5 bytes"):
        GroupPartition(ids, 3, 1, 1, b"short")
    with pytest.raises(DataError, match="int64"):
        GroupPartition(ids.astype(np.int32), 3, 1, 1, KEY)
    assert "key" not in repr(dataclasses.replace(partition_of([1, 2])))


def test_usual_slots_is_twice_an_even_share() -> None:
    assert usual_slots(60_000, 4000) == 30
    assert usual_slots(7, 7) == 2
    assert usual_slots(1, 1) == 1
