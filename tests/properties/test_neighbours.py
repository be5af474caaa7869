"""Neighbouring data sets through the whole private side: one record reaches one teacher, and no further.

What a step releases is a function of the tally. On random neighbours these tests bound how far the tally moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.compression.topk_sign import topk_sign
from datalens.randomness import Streams
from datalens.teachers.ensemble import TeacherEnsemble
from datalens.teachers.families import TeacherKind, TeacherSettings, make_family
from datalens.teachers.family import Fakes, Shards
from datalens.teachers.partition import Partition
from datalens.teachers.shards import RecordShards

SHAPE, CLASSES, TEACHERS, RECORDS, IMAGES, TOP_K = (1, 8, 8), 3, 6, 27, 5, 7
STREAMS = Streams.from_insecure_seed(1, "private")
SETTINGS = TeacherSettings(SHAPE, CLASSES, RECORDS // TEACHERS, IMAGES, 4, 1e-3, 2.0, 20.0, 0.5)
GREY = torch.full((IMAGES, *SHAPE), 0.4)


def draw_records(seed: int, count: int = RECORDS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, *SHAPE), dtype=np.uint8), rng.integers(0, CLASSES, count)


def ensemble_of(
    images: np.ndarray, labels: np.ndarray, partition: Partition, kind: TeacherKind
) -> TeacherEnsemble:
    shards = RecordShards(*(torch.from_numpy(part) for part in (images, labels, partition.record_of_slot)))
    return TeacherEnsemble(make_family(kind, SETTINGS), shards, STREAMS, chunk_size=4)


def tally_of(
    images: np.ndarray,
    labels: np.ndarray,
    partition: Partition,
    kind: TeacherKind,
    cap: int | None,
    steps: int,
) -> torch.Tensor:
    ensemble = ensemble_of(images, labels, partition, kind)
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


@dataclass(frozen=True)
class OneRecordForAll:
    """A broken source: every teacher holds the same record of class 0, beside one of its own of class 1."""

    shared_CHW: torch.Tensor
    num_teachers: int = TEACHERS

    def chunk(self, start: int, stop: int, device: torch.device) -> Shards:
        images = torch.rand(TEACHERS, 2, *SHAPE, generator=torch.Generator().manual_seed(4))
        images[:, 0] = self.shared_CHW
        count = stop - start
        return Shards(
            images[start:stop], torch.tensor([0, 1]).repeat(count, 1), torch.ones(count, 2, dtype=torch.bool)
        )


@pytest.mark.parametrize("kind", list(TeacherKind))
def test_the_test_can_see_a_record_in_several_teachers(kind: TeacherKind) -> None:
    """Where all teachers hold one record, changing it moves the tally past the bound: it is not vacuous."""
    fakes = Fakes(torch.full((IMAGES, *SHAPE), 0.5), torch.zeros(IMAGES, dtype=torch.int64))
    bright, dark = (
        TeacherEnsemble(make_family(kind, SETTINGS), OneRecordForAll(record), STREAMS, chunk_size=4)
        .tally(fakes, 0, 2, TOP_K, 1e-5)
        .tally_BD.double()
        for record in (torch.ones(SHAPE), torch.zeros(SHAPE))
    )
    assert float((bright - dark).norm(dim=1).max()) > 2 * math.sqrt(TOP_K)


def gradient_and_votes(
    images: np.ndarray, labels: np.ndarray, partition: Partition, kind: TeacherKind
) -> tuple[torch.Tensor, torch.Tensor]:
    """``grad_TBD`` and ``vote_TBD`` of all teachers in one chunk, after a training of two steps."""
    source = RecordShards(*(torch.from_numpy(part) for part in (images, labels, partition.record_of_slot)))
    family, fakes = make_family(kind, SETTINGS), Fakes(GREY, torch.arange(IMAGES) % CLASSES)
    shards = source.chunk(0, TEACHERS, torch.device("cpu"))
    state = family.init(TEACHERS, torch.Generator().manual_seed(5), torch.device("cpu"))
    grad_TBD = family.input_gradient(family.train(state, shards, fakes, 2), shards, fakes)
    return grad_TBD, topk_sign(grad_TBD, TOP_K, 1e-5, torch.Generator().manual_seed(6)).vote_TBD


def a_record_and_its_neighbours(
    teacher: int,
) -> tuple[tuple[np.ndarray, np.ndarray, Partition], list[tuple[np.ndarray, np.ndarray, Partition]]]:
    """A data set in which one of the teacher's records is nearly a fake; without it, and with another."""
    images, labels = draw_records(11)
    partition = draw_partition(11)
    record = int(partition.shard(teacher)[0])
    images[record] = 110  # close to the grey of the fakes, so that no kind of teacher overlooks it
    replaced = images.copy()
    replaced[record] = 255 - replaced[record]
    removed = np.delete(images, record, 0), np.delete(labels, record), partition.without(record)
    return (images, labels, partition), [(replaced, labels, partition), removed]


@pytest.mark.parametrize("kind", list(TeacherKind))
@pytest.mark.parametrize("teacher", [0, 2, TEACHERS - 1])
def test_a_record_changes_one_teacher_alone(kind: TeacherKind, teacher: int) -> None:
    """Teacher by teacher: gradients and votes of all others are the same bits, and its own gradient is not."""
    data, neighbours = a_record_and_its_neighbours(teacher)
    rest = [other for other in range(TEACHERS) if other != teacher]
    grad_TBD, vote_TBD = gradient_and_votes(*data, kind)
    for neighbour in neighbours:
        other_grad_TBD, other_vote_TBD = gradient_and_votes(*neighbour, kind)
        assert torch.equal(grad_TBD[rest], other_grad_TBD[rest])
        assert torch.equal(vote_TBD[rest], other_vote_TBD[rest])
        assert not torch.equal(grad_TBD[teacher], other_grad_TBD[teacher])


def test_a_record_changes_one_trained_state_alone() -> None:
    """Through the ensemble and its chunks: what a teacher keeps from step to step is its own."""
    data, neighbours = a_record_and_its_neighbours(2)
    states = []
    for images, labels, partition in (data, *neighbours):
        ensemble = ensemble_of(images, labels, partition, TeacherKind.PAPER)
        for step in range(2):
            ensemble.tally(Fakes(GREY, torch.arange(IMAGES) % CLASSES), step, 2, TOP_K, 1e-5)
        states.append(reference.teacher_states(ensemble))
    rest = [other for other in range(TEACHERS) if other != 2]
    for neighbour in states[1:]:
        for name, value in states[0].items():
            assert torch.equal(value[rest], neighbour[name][rest]), name
        assert any(not torch.equal(value[2], neighbour[name][2]) for name, value in states[0].items())
