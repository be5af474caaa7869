"""The ensemble: the same votes whatever the chunk, one teacher's fault its own, states that come back."""

from __future__ import annotations

import pytest
import torch
from reference import tally_loop, teacher_states

from datalens.compression.topk_sign import topk_sign
from datalens.errors import CheckpointError, ConfigError
from datalens.randomness import Streams
from datalens.teachers.ensemble import TEACHER_BLOCK, TallyResult, TeacherEnsemble
from datalens.teachers.family import Fakes, Shards, TeacherState
from datalens.teachers.paper import PaperTeachers
from datalens.teachers.parts import TeacherPart, rows_of
from datalens.teachers.shards import RecordShards

TEACHERS, SLOTS, IMAGES, TOP_K = 2 * TEACHER_BLOCK + 3, 3, 5, 16
FAMILY = PaperTeachers((1, 8, 8), 3, channels=4, hidden_units=8)


def records(seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    images = torch.randint(256, (TEACHERS * SLOTS, 1, 8, 8), generator=rng, dtype=torch.uint8)
    return images, torch.randint(3, (TEACHERS * SLOTS,), generator=rng)


def slots() -> torch.Tensor:
    order = torch.randperm(TEACHERS * SLOTS, generator=torch.Generator().manual_seed(2))
    order[5] = -1
    return order.view(TEACHERS, SLOTS)


def ensemble(chunk_size: int, images: torch.Tensor | None = None, seed: int = 0) -> TeacherEnsemble:
    default, labels = records()
    source = RecordShards(default if images is None else images, labels, slots())
    return TeacherEnsemble(FAMILY, source, Streams.from_insecure_seed(seed, "private"), chunk_size)


def fakes(seed: int = 3) -> Fakes:
    rng = torch.Generator().manual_seed(seed)
    return Fakes(torch.rand(IMAGES, 1, 8, 8, generator=rng), torch.randint(3, (IMAGES,), generator=rng))


def ask(teachers: TeacherEnsemble, step: int = 0) -> TallyResult:
    return teachers.tally(fakes(step), step, num_teacher_steps=2, top_k=TOP_K, clip_bound=1e-5)


def test_the_same_chunk_gives_the_same_bits() -> None:
    one, two = ensemble(TEACHER_BLOCK), ensemble(TEACHER_BLOCK)
    for step in range(2):
        first, second = ask(one, step), ask(two, step)
        assert torch.equal(first.tally_BD, second.tally_BD)
        assert first.diagnostics == second.diagnostics
    assert first.tally_BD.dtype == torch.int32
    assert first.tally_BD.shape == (IMAGES, 64)


@pytest.mark.parametrize("chunk_size", [1, 7, TEACHER_BLOCK + 1, 1000])
def test_the_chunk_size_changes_at_most_one_vote_in_a_thousand(chunk_size: int) -> None:
    """Rule 4 of the plan, counted on single votes: one teacher's vote moves the tally by at most 2."""
    usual, other = ask(ensemble(TEACHER_BLOCK)).tally_BD, ask(ensemble(chunk_size)).tally_BD
    moved = int((usual - other).abs().sum())
    assert moved <= 0.001 * TEACHERS * IMAGES * 64
    assert int(usual.abs().sum()) > 0


def test_the_thread_count_keeps_the_votes() -> None:
    threads = torch.get_num_threads()
    tallies = []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            tallies.append(ask(ensemble(TEACHER_BLOCK)).tally_BD)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(tallies[0], tallies[1])


@pytest.mark.parametrize("chunk_size", [7, TEACHER_BLOCK, 1000])
def test_initial_weights_do_not_depend_on_the_chunk(chunk_size: int) -> None:
    usual, other = teacher_states(ensemble(TEACHER_BLOCK)), teacher_states(ensemble(chunk_size))
    assert all(torch.equal(usual[name], other[name]) for name in usual)
    first = usual["conv0.image"]
    assert len(torch.unique(first.flatten(1), dim=0)) == TEACHERS


def test_the_tally_is_the_sum_of_the_teachers_votes() -> None:
    result = ask(ensemble(TEACHER_BLOCK)).tally_BD
    images, labels = records()
    source, streams = RecordShards(images, labels, slots()), Streams.from_insecure_seed(0, "private")
    votes = []
    for block, start in enumerate(range(0, TEACHERS, TEACHER_BLOCK)):
        stop = min(start + TEACHER_BLOCK, TEACHERS)
        shards = source.chunk(start, stop, torch.device("cpu"))
        state = FAMILY.init(stop - start, streams.torch("teacher-weights", block), torch.device("cpu"))
        grad = FAMILY.input_gradient(FAMILY.train(state, shards, fakes(0), 2), shards, fakes(0))
        votes += topk_sign(grad, TOP_K, 1e-5, streams.torch("vote-signs/0", block)).vote_TBD.tolist()
    assert result.tolist() == tally_loop(votes)


def test_one_record_moves_the_tally_by_at_most_one_teacher() -> None:
    """Replace-one: the L2 distance of an image's tallies stays within 2 * sqrt(k)."""
    images, _ = records()
    other = images.clone()
    other[int(slots()[4, 1])] = 255 - other[int(slots()[4, 1])]
    one, two = ask(ensemble(TEACHER_BLOCK)), ask(ensemble(TEACHER_BLOCK, other))
    difference = (one.tally_BD - two.tally_BD).double()
    assert float(difference.norm(dim=1).max()) <= 2 * TOP_K**0.5
    assert int(difference.abs().max()) in (1, 2)


class FailingFamily(PaperTeachers):
    """Teachers 3 and 25 give gradients that are not finite, for two images and for one."""

    def input_gradient(self, state: TeacherState, shards: Shards, fakes: Fakes) -> torch.Tensor:
        grad = super().input_gradient(state, shards, fakes)
        for teacher, images in ((3, 2), (25, 1)):
            mine = (state["conv0.image"] == self.marks[teacher]).flatten(1).all(1)
            grad[mine, :images, 7] = float("nan")
        return grad

    marks: dict[int, torch.Tensor]


@pytest.mark.parametrize("chunk_size", [6, TEACHER_BLOCK, 1000])
def test_failed_teachers_vote_zero_and_are_named(chunk_size: int) -> None:
    good = ensemble(chunk_size)
    bad = ensemble(chunk_size)
    family = FailingFamily((1, 8, 8), 3, channels=4, hidden_units=8)
    start = teacher_states(bad)["conv0.image"]
    object.__setattr__(family, "marks", {3: start[3], 25: start[25]})
    bad.family = family
    results = [
        teachers.tally(fakes(), 0, num_teacher_steps=0, top_k=TOP_K, clip_bound=1e-5)
        for teachers in (good, bad)
    ]
    assert results[0].diagnostics.failed == ()
    assert results[1].diagnostics.failed == ((3, 2), (25, 1))
    lost = (results[0].tally_BD - results[1].tally_BD).abs()
    assert lost.sum(1).tolist()[2:] == [0] * (IMAGES - 2)
    assert 0 < int(lost[0].sum()) <= 2 * TOP_K
    assert int(lost[1].sum()) == TOP_K  # one teacher's votes, all of them and no other's


class CopyingFamily(PaperTeachers):
    """Gives new tensors back instead of changing those it was given."""

    def train(self, state: TeacherState, shards: Shards, fakes: Fakes, num_steps: int) -> TeacherState:
        return super().train({name: value.clone() for name, value in state.items()}, shards, fakes, num_steps)


def test_states_are_kept_whether_a_family_works_in_place_or_not() -> None:
    in_place, copying = ensemble(TEACHER_BLOCK), ensemble(TEACHER_BLOCK)
    copying.family = CopyingFamily((1, 8, 8), 3, channels=4, hidden_units=8)
    for step in range(2):
        assert torch.equal(ask(in_place, step).tally_BD, ask(copying, step).tally_BD)
    mine, theirs = teacher_states(in_place), teacher_states(copying)
    for name, value in mine.items():
        assert torch.equal(value, theirs[name]), name
    assert theirs["adam.step"].tolist() == [4.0] * TEACHERS


def test_agreement_is_of_the_share_of_teachers() -> None:
    result = ask(ensemble(TEACHER_BLOCK))
    share = result.tally_BD.double() / TEACHERS
    assert result.diagnostics.rms_agreement == pytest.approx(float(share.pow(2).mean().sqrt()))
    assert result.diagnostics.max_agreement == pytest.approx(float(share.abs().max()))
    assert result.diagnostics.step == 0


def test_a_saved_state_goes_on_as_if_nothing_had_happened() -> None:
    straight, stopped = ensemble(TEACHER_BLOCK), ensemble(TEACHER_BLOCK)
    ask(straight, 0)
    ask(stopped, 0)
    saved = [TeacherPart(0, TEACHERS, teacher_states(stopped))]
    for chunk_size in (TEACHER_BLOCK, 7):
        resumed = ensemble(chunk_size)
        resumed.load_parts(saved)
        again = teacher_states(resumed)
        assert all(torch.equal(value, again[name]) for name, value in saved[0].tensors.items())
    resumed = ensemble(TEACHER_BLOCK)
    resumed.load_parts([rows_of(saved[0], 0, 9), rows_of(saved[0], 9, 41), rows_of(saved[0], 41, TEACHERS)])
    assert torch.equal(ask(straight, 1).tally_BD, ask(resumed, 1).tally_BD)


def test_a_state_of_other_teachers_is_refused() -> None:
    teachers = ensemble(TEACHER_BLOCK)
    whole = TeacherPart(0, TEACHERS, teacher_states(teachers))
    for parts in ([rows_of(whole, 0, 4)], [rows_of(whole, 0, 4), rows_of(whole, 5, TEACHERS)], []):
        with pytest.raises(CheckpointError, match="one kind and number of teachers"):
            teachers.load_parts(parts)
    with pytest.raises(CheckpointError, match="missing"):
        teachers.load_parts([TeacherPart(0, TEACHERS, {})])
    with pytest.raises(CheckpointError, match="restore the checkpoint"):
        teachers.load_parts([TeacherPart(0, TEACHERS, rows_of(whole, 0, 4).tensors)])


def test_chunks_of_none_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        ensemble(0)


def test_shards_hold_the_records_of_the_map_and_zeros_elsewhere() -> None:
    images, labels = records()
    shards = RecordShards(images, labels, slots()).chunk(1, 4, torch.device("cpu"))
    assert shards.num_teachers == 3
    for t in range(3):
        for r in range(SLOTS):
            record = int(slots()[1 + t, r])
            assert bool(shards.present_TR[t, r]) == (record >= 0)
            if record >= 0:
                assert torch.equal(shards.images_TRCHW[t, r], images[record].float() / 255)
                assert shards.labels_TR[t, r] == labels[record]
            else:
                assert not shards.images_TRCHW[t, r].any()
    assert not shards.present_TR.all()


@pytest.mark.parametrize(("record", "said"), [(0, "twice"), (10_000, "must hold a record"), (-2, "or -1")])
def test_slot_maps_that_break_the_partition_are_refused(record: int, said: str) -> None:
    images, labels = records()
    bad = slots()
    bad[bad == 1] = record
    with pytest.raises(ConfigError, match=said):
        RecordShards(images, labels, bad)


class LoudFamily(PaperTeachers):
    """All gradients are finite and so large that their sum is not."""

    def input_gradient(self, state: TeacherState, shards: Shards, fakes: Fakes) -> torch.Tensor:
        return torch.full_like(super().input_gradient(state, shards, fakes), 3e37)


def test_large_gradients_have_not_failed() -> None:
    loud = ensemble(TEACHER_BLOCK)
    loud.family = LoudFamily((1, 8, 8), 3, channels=4, hidden_units=8)
    result = loud.tally(fakes(), 0, num_teacher_steps=0, top_k=TOP_K, clip_bound=1e-5)
    assert result.diagnostics.failed == ()
    assert int(result.tally_BD.abs().sum()) == TEACHERS * IMAGES * TOP_K
