"""For any sizes: no record in two slots, no record lost, neighbours one slot apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.teachers.partition import Partition


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    num_records = draw(st.integers(1, 120))
    num_teachers = draw(st.integers(1, num_records))
    shard_size = draw(st.one_of(st.none(), st.integers(1, num_records // num_teachers)))
    seed = draw(st.one_of(st.none(), st.integers(0, 2**32)))
    return Partition.draw(
        num_records=num_records,
        num_teachers=num_teachers,
        num_present=draw(st.integers(0, num_records)),
        shard_size=shard_size,
        rng=None if seed is None else np.random.default_rng(seed),
    )


@given(partitions())
@settings(max_examples=60, deadline=None)
def test_disjoint_and_complete(partition: Partition) -> None:
    held = partition.record_of_slot[partition.record_of_slot >= 0]
    left = [record for record in range(partition.num_present) if partition.teacher_of(record) is None]
    assert sorted([*held.tolist(), *left]) == list(range(partition.num_present))
    assert len(left) <= partition.num_leftover_slots
    assert partition.num_slots + partition.num_leftover_slots == partition.num_records
    again = Partition.from_arrays(partition.to_arrays())
    np.testing.assert_array_equal(again.record_of_slot, partition.record_of_slot)


@given(partitions(), st.data())
@settings(max_examples=60, deadline=None)
def test_neighbours_differ_in_one_slot_of_one_teacher(partition: Partition, data: st.DataObject) -> None:
    if partition.num_present == 0:
        return
    removed = data.draw(st.integers(0, partition.num_present - 1))
    neighbour = partition.without(removed)
    original = np.delete(np.arange(partition.num_present), removed)
    after = np.full_like(neighbour.record_of_slot, -1)
    is_full = neighbour.record_of_slot >= 0
    after[is_full] = original[neighbour.record_of_slot[is_full]]
    changed = np.argwhere(after != partition.record_of_slot)
    assert len(changed) == (partition.teacher_of(removed) is not None)
    assert all(partition.record_of_slot[tuple(place)] == removed for place in changed)
