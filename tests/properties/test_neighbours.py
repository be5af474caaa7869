"""Neighbouring data sets through the whole private side: one record reaches one teacher, and no further.

What a step releases is a function of the tally. On random neighbours these tests bound how far the tally moves.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.randomness import Streams
from datalens.teachers.ensemble import TeacherEnsemble
from datalens.teachers.families import TeacherKind, TeacherSettings, make_family
from datalens.teachers.family import Fakes
from datalens.teachers.partition import Partition
from datalens.teachers.shards import RecordShards

SHAPE, CLASSES, TEACHERS, RECORDS, IMAGES, TOP_K = (1, 8, 8), 3, 6, 27, 5, 7
STREAMS = Streams.from_insecure_seed(1, "private")
SETTINGS = TeacherSettings(SHAPE, CLASSES, RECORDS // TEACHERS, IMAGES, 4, 1e-3, 2.0, 20.0, 0.5)


def draw_records(seed: int, count: int = RECORDS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, *SHAPE), dtype=np.uint8), rng.integers(0, CLASSES, count)


def tally_of(
    images: np.ndarray,
    labels: np.ndarray,
    partition: Partition,
    kind: TeacherKind,
    cap: int | None,
    steps: int,
) -> torch.Tensor:
    shards = RecordShards(*(torch.from_numpy(part) for part in (images, labels, partition.record_of_slot)))
    ensemble = TeacherEnsemble(make_family(kind, SETTINGS), shards, STREAMS, chunk_size=4)
    rng = torch.Generator().manual_seed(8)
    for step in range(steps):
        fakes = Fakes(torch.rand(IMAGES, *SHAPE, generator=rng), torch.arange(IMAGES) % CLASSES)
        result = ensemble.tally(fakes, step, 2, TOP_K, 1e-5, cap)
    return result.tally_BD.double()


def draw_partition(seed: int, present: int = RECORDS) -> Partition:
    return Partition.draw(
        num_records=RECORDS, num_teachers=TEACHERS, num_present=present, rng=np.random.default_rng(seed)
    )


@pytest.mark.parametrize("kind", list(TeacherKind))
@pytest.mark.parametrize("cap", [None, 2])
@settings(max_examples=6, deadline=None)
@given(record=st.integers(0, RECORDS - 1), seed=st.integers(0, 1000), removed=st.booleans())
def test_a_neighbour_moves_the_tally_by_no_more_than_the_stated_sensitivity(
    kind: TeacherKind, cap: int | None, record: int, seed: int, removed: bool
) -> None:
    """Also after several steps, when the teacher's whole state has learned from the record."""
    images, labels = draw_records(seed)
    partition = draw_partition(seed)
    before = tally_of(images, labels, partition, kind, cap, steps=3)
    if removed:
        other = np.delete(images, record, 0), np.delete(labels, record)
        after = tally_of(*other, partition.without(record), kind, cap, steps=3)
    else:
        new_images, new_labels = draw_records(seed + 5000)
        images[record], labels[record] = 255 - new_images[0], (new_labels[0] + 1) % CLASSES
        after = tally_of(images, labels, partition, kind, cap, steps=3)
    moved = (before - after).norm(dim=1)
    assert float(moved.max()) <= 2 * math.sqrt(TOP_K) + 1e-9
    assert float(moved.square().sum().sqrt()) <= 2 * math.sqrt(TOP_K * (cap or IMAGES)) + 1e-9
    if partition.teacher_of(record) is None:
        assert float(moved.max()) == 0.0


def test_the_test_can_see_a_record_in_two_teachers() -> None:
    """A record that two teachers hold can move the tally further: the bound above is not vacuous."""
    images, labels = draw_records(3)
    images[:] = 0
    labels[:] = 0
    partition = draw_partition(3)
    shared = np.array(partition.record_of_slot)
    shared[:] = -1
    slots = torch.from_numpy(shared)
    slots[:, 0] = 0  # every teacher holds record 0 alone, which RecordShards refuses
    with pytest.raises(Exception, match="twice"):
        RecordShards(torch.from_numpy(images), torch.from_numpy(labels), slots)


@pytest.mark.parametrize("kind", list(TeacherKind))
def test_a_record_changes_one_teacher_alone(kind: TeacherKind) -> None:
    """Teacher by teacher: the states and votes of all others are the same bits."""
    images, labels = draw_records(11)
    partition = draw_partition(11)
    record = int(partition.shard(2)[0])
    other = images.copy()
    other[record] = 255 - other[record]
    states = []
    for data in (images, other):
        shards = RecordShards(*(torch.from_numpy(part) for part in (data, labels, partition.record_of_slot)))
        ensemble = TeacherEnsemble(make_family(kind, SETTINGS), shards, STREAMS, chunk_size=TEACHERS)
        ensemble.tally(
            Fakes(torch.full((IMAGES, *SHAPE), 0.4), torch.arange(IMAGES) % CLASSES), 0, 2, TOP_K, 1e-5
        )
        states.append({name: value.clone() for name, value in ensemble.state_dict().items()})
    rest = [teacher for teacher in range(TEACHERS) if teacher != 2]
    for name in states[0]:
        assert torch.equal(states[0][name][rest], states[1][name][rest]), name


def test_settings_of_teachers_carry_no_data() -> None:
    assert replace(SETTINGS) == SETTINGS
    assert not any(isinstance(value, np.ndarray | torch.Tensor) for value in vars(SETTINGS).values())
