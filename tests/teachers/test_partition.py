"""The partition: sizes, remedies, uniformity of the secret map, coupling of neighbours, saving (R04)."""

from __future__ import annotations

import inspect
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from scipy import stats

from datalens.errors import CheckpointError, ConfigError, DataError
from datalens.teachers import partition
from datalens.teachers.partition import Partition


def draw(num_records: Any, num_teachers: Any, **changes: Any) -> Partition:
    settings = {"num_records": num_records, "num_teachers": num_teachers, "num_present": num_records}
    return Partition.draw(**(settings | changes))


def test_103_records_and_10_teachers_r04() -> None:
    """Images carry their index; teachers touch disjoint sets, the same in every epoch and after resume."""
    images = np.zeros((103, 8, 8), np.uint8)
    images[:, 0, 0] = np.arange(103)
    partition = draw(103, 10)
    assert partition.record_of_slot.shape == (10, 10)
    assert (partition.shard_size, partition.num_leftover_slots, partition.num_slots) == (10, 3, 100)
    resumed = Partition.from_arrays(partition.to_arrays())
    for epoch in (partition, partition, partition, resumed):
        touched = [set(images[epoch.shard(teacher)][:, 0, 0].tolist()) for teacher in range(10)]
        assert all(len(indices) == 10 for indices in touched)
        assert all(not (one & other) for one, other in itertools.combinations(touched, 2))
        assert set.union(*touched) <= set(range(103))
        assert touched == [set(partition.record_of_slot[teacher].tolist()) for teacher in range(10)]
    left = [record for record in range(103) if partition.teacher_of(record) is None]
    assert len(left) == 3


def test_the_paper_size() -> None:
    partition = draw(60_000, 4000)
    assert partition.record_of_slot.shape == (4000, 15)
    assert np.array_equal(np.sort(partition.record_of_slot, axis=None), np.arange(60_000))
    assert partition.from_os_entropy


def test_fewer_records_than_slots_leave_empty_slots() -> None:
    partition = draw(100, 10, num_present=37)
    assert (partition.record_of_slot == -1).sum() == 63
    assert sorted(np.concatenate([partition.shard(t) for t in range(10)]).tolist()) == list(range(37))
    assert draw(100, 10, num_present=0).record_of_slot.max() == -1


def test_teacher_of_and_shard_agree() -> None:
    partition = draw(50, 6, shard_size=7)
    for record in range(50):
        teacher = partition.teacher_of(record)
        holders = [t for t in range(6) if record in partition.shard(t)]
        assert holders == ([] if teacher is None else [teacher])


@pytest.mark.parametrize("seeded", [False, True])
def test_the_injection_is_uniform(seeded: bool) -> None:
    """All 60 ways to send 3 records into 5 slots are equally likely (chi-square; alarm once in 10^6)."""
    ways = {way: number for number, way in enumerate(itertools.permutations(range(5), 3))}
    counts = np.zeros(len(ways))
    rng = np.random.default_rng(7) if seeded else None
    for _ in range(6000):
        partition = draw(5, 2, shard_size=2, num_present=3, rng=rng)
        counts[ways[tuple(partition.slot_of_record.tolist())]] += 1
    assert counts.sum() == 6000
    assert stats.chisquare(counts).pvalue > 1e-6


def test_equal_halves_of_keys_are_told_apart_by_the_other_half(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.array([[5, 2], [5, 0], [1, 9], [5, 1]], np.uint64)
    monkeypatch.setattr(partition.os, "urandom", lambda count: keys.tobytes()[:count])
    assert partition._os_permutation(4).tolist() == [2, 1, 3, 0]


def test_chi_square_would_catch_the_usual_mistake() -> None:
    """Handing out slots in file order is far from uniform: the test above can fail."""
    counts = np.zeros(60)
    counts[0] = 6000
    assert stats.chisquare(counts).pvalue < 1e-6


def test_two_draws_differ_and_a_seed_repeats() -> None:
    assert not np.array_equal(draw(200, 10).slot_of_record, draw(200, 10).slot_of_record)
    one, two = (draw(200, 10, rng=np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(one.slot_of_record, two.slot_of_record)
    assert not one.from_os_entropy


def test_neither_images_nor_labels_are_an_argument() -> None:
    expected = {"num_records", "num_teachers", "num_present", "positions", "shard_size", "rng"}
    assert set(inspect.signature(Partition.draw).parameters) == expected


@pytest.mark.parametrize("removed", [0, 11, 29])
def test_removing_a_record_empties_its_slot_and_moves_no_other(removed: int) -> None:
    content = np.arange(30) * 10
    partition = draw(40, 4, num_present=30)
    neighbour, left = partition.without(removed), np.delete(content, removed)
    before = np.where(partition.record_of_slot < 0, -1, content[partition.record_of_slot])
    after = np.where(neighbour.record_of_slot < 0, -1, left[neighbour.record_of_slot])
    changed = np.argwhere(before != after)
    teacher = partition.teacher_of(removed)
    assert len(changed) == (0 if teacher is None else 1)
    for row, column in changed:
        assert (before[row, column], after[row, column], row) == (content[removed], -1, teacher)


@pytest.mark.parametrize("missing", [[], [0], [29], [3, 4, 17]])
def test_a_place_that_is_left_out_keeps_its_slot_and_moves_no_other(missing: list[int]) -> None:
    places = np.delete(np.arange(30), missing)
    whole, fewer = (
        draw(40, 4, num_present=len(there), positions=there, rng=np.random.default_rng(3))
        for there in (np.arange(30), places)
    )
    assert np.array_equal(
        whole.slot_of_record, draw(40, 4, num_present=30, rng=np.random.default_rng(3)).slot_of_record
    )
    assert np.array_equal(fewer.slot_of_record, whole.slot_of_record[places])
    by_removing = whole
    for place in sorted(missing, reverse=True):
        by_removing = by_removing.without(place)
    assert np.array_equal(fewer.record_of_slot, by_removing.record_of_slot)


@pytest.mark.parametrize("places", [[0, 0, 1], [2, 1, 0], [0, 1], [-1, 0, 1], [0, 1, 40], [[0, 1, 2]]])
def test_places_that_no_source_has_are_refused(places: list[Any]) -> None:
    with pytest.raises(DataError, match=r"positions: must be 3 numbers that rise within 0\.\.39"):
        draw(40, 4, num_present=3, positions=np.array(places))


def test_removing_a_record_that_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match=r"record 30 is not among 0\.\.29"):
        draw(40, 4, num_present=30).without(30)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_teachers": 104}, "num_teachers is 104, but each needs one of 103 records; use at most 103"),
        ({"shard_size": 11}, "shard_size is 11, but 10 teachers share 103 records; use at most 10"),
        ({"num_teachers": 0}, "num_teachers is 0"),
        ({"num_records": 0}, "num_records is 0"),
        ({"shard_size": 0}, "shard_size is 0"),
        ({"num_teachers": 2.0}, "num_teachers is 2.0"),
        ({"num_teachers": True}, "num_teachers is True"),
        ({"num_present": -1}, "num_present is -1"),
    ],
)
def test_refusals_name_the_remedy(settings: dict[str, Any], message: str) -> None:
    sizes: dict[str, Any] = {"num_records": 103, "num_teachers": 10, "num_present": 50} | settings
    with pytest.raises(ConfigError) as caught:
        Partition.draw(**sizes)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_more_records_than_declared_are_refused() -> None:
    with pytest.raises(DataError, match="num_records is 103, but the data hold 104"):
        draw(103, 10, num_present=104)


@pytest.mark.parametrize("slots", [[0, 1, 1], [0, 1, 4], [0, 1, -1]])
def test_a_map_that_is_not_an_injection_is_refused(slots: list[int]) -> None:
    with pytest.raises(DataError, match="draw the partition again"):
        Partition(np.array(slots), 4, 2, 2, from_os_entropy=True)


def test_save_and_load(tmp_path: Path) -> None:
    partition = draw(103, 10, num_present=90)
    save_file(partition.to_arrays(), tmp_path / "partition.safetensors")
    loaded = Partition.from_arrays(load_file(tmp_path / "partition.safetensors"))
    assert np.array_equal(loaded.record_of_slot, partition.record_of_slot)
    assert loaded.from_os_entropy
    assert (loaded.num_records, loaded.num_present, loaded.num_leftover_slots) == (103, 90, 3)


@pytest.mark.parametrize("damage", ["missing", "twice", "format", "short"])
def test_a_damaged_save_is_refused(damage: str) -> None:
    arrays = {name: array.copy() for name, array in draw(20, 4).to_arrays().items()}
    if damage == "missing":
        del arrays["slot_of_record"]
    elif damage == "twice":
        arrays["slot_of_record"][0] = arrays["slot_of_record"][1]
    elif damage == "format":
        arrays["partition_numbers"][0] = 99
    else:
        arrays["partition_numbers"] = arrays["partition_numbers"][:-1]
    with pytest.raises(CheckpointError, match="saved partition"):
        Partition.from_arrays(arrays)


@pytest.mark.parametrize("slots", [np.zeros((2, 1), np.int64), np.array([0, 1], np.int32)])
def test_a_map_of_another_type_or_shape_is_refused(slots: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"but must be int64 \[records\]"):
        Partition(slots, 4, 2, 2, True)
