"""Faults that others reported in their programs, at the sizes they were reported with, through whole runs of ours."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import crash_after, resume, same_weights, small_config, small_data, stop_after, train

from datalens import DataLens
from datalens.data.images import LabelledImages
from datalens.errors import ConfigError
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import GaussianEvent
from datalens.teachers.kernel import KernelTeachers
from datalens.teachers.shards import RecordShards
from datalens.training.checkpoint import latest_checkpoint, read_parts
from datalens.training.run_folder import RunFolder


def numbered(count: int) -> LabelledImages:
    """Records of which each holds its own number in its first pixel."""
    images = np.zeros((count, 1, 8, 8), np.uint8)
    images[:, 0, 0, 0] = np.arange(count)
    return LabelledImages(images, np.arange(count) % 2, ("a", "b"), "numbered", public=False)


@pytest.mark.parametrize(("count", "leftover"), [(100, 0), (103, 3)])
def test_r04_teachers_see_disjoint_records_the_same_in_every_step_and_after_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, leftover: int
) -> None:
    seen: dict[int, list[frozenset[int]]] = {}
    chunk = RecordShards.chunk

    def spy(shards: RecordShards, start: int, stop: int, device: torch.device) -> Any:
        found = chunk(shards, start, stop, device)
        for place, teacher in enumerate(range(start, stop)):
            pixels = found.images_TRCHW[place, :, 0, 0, 0][found.present_TR[place]]
            seen.setdefault(teacher, []).append(frozenset((pixels * 255).round().int().tolist()))
        return found

    monkeypatch.setattr(RecordShards, "chunk", spy)
    config = small_config(privacy__num_records=count)
    DataLens(config).fit(numbered(count), out=tmp_path / "run", stop=stop_after(3))
    before = {teacher: set(sets) for teacher, sets in seen.items()}
    seen.clear()
    DataLens.resume(tmp_path / "run", numbered(count))
    assert sorted(seen) == list(range(10))
    for teacher, sets in seen.items():
        assert len(sets) >= 5
        assert set(sets) == before[teacher]
        assert [len(touched) for touched in set(sets)] == [10]
    touched = [sets[0] for sets in seen.values()]
    assert not any(one & other for one, other in itertools.combinations(touched, 2))
    assert len(set().union(*touched) & set(range(count))) == count - leftover


def test_r04_records_that_no_teacher_sees_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from datalens.cli.main import main

    np.savez(tmp_path / "own.npz", x=numbered(103).images, y=numbered(103).labels)
    words = [
        "train",
        str(tmp_path / "own.npz"),
        "--out",
        str(tmp_path / "run"),
        "--num-steps",
        "1",
        "--epsilon",
        "90",
    ]
    words += [
        "--classes",
        "2",
        "--public-record-count",
        "--num-teachers",
        "10",
        "--top-k",
        "5",
        "--batch-size",
        "2",
    ]
    assert main(words) == 0
    assert "3 of 103 slots are left over" in capsys.readouterr().out


def test_r16_teachers_without_a_finite_gradient_vote_zero_and_are_named_and_the_step_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = KernelTeachers.input_gradient

    def spoilt(family: KernelTeachers, *args: Any) -> torch.Tensor:
        grad = honest(family, *args).clone()
        grad[2].view(-1)[5], grad[3].view(-1)[7] = math.nan, math.inf
        return grad

    monkeypatch.setattr(KernelTeachers, "input_gradient", spoilt)
    model = train(tmp_path / "run", steps=3)
    assert sum(event.count for event in model.ledger.events()) == 3
    assert all(bool(torch.isfinite(value).all()) for value in model.generator.state_dict().values())
    lines = (tmp_path / "run" / "private" / "diagnostics.jsonl").read_text().splitlines()
    for step, line in enumerate(map(json.loads, lines)):  # teachers come in chunks of five
        assert line["step"] == step
        assert [teacher for teacher, _ in line["failed"]] == [2, 3, 7, 8]


@pytest.mark.parametrize("bound", [math.inf, 0.0, -1.0, math.nan])
def test_r16_a_clip_bound_that_bounds_nothing_is_refused(bound: float) -> None:
    with pytest.raises(ConfigError, match=r"voting\.clip_bound"):
        small_config(voting__clip_bound=bound)


@pytest.mark.parametrize("kind", ["kernel", "matching", "paper"])
def test_r43_ten_and_ten_steps_are_twenty_bit_for_bit(tmp_path: Path, kind: str) -> None:
    """Weights, samples, and all that a checkpoint holds: teachers, optimisers, student."""
    changes: dict[str, Any] = {"privacy__insecure_seed": 0, "voting__num_steps": 20, "teachers__kind": kind}
    straight = train(tmp_path / "straight", **changes)
    train(tmp_path / "stopped", steps=10, **changes)
    crash_after(tmp_path / "crashed", 13, **changes)  # between two checkpoints
    for name in ("stopped", "crashed"):
        resumed = resume(tmp_path / name)
        assert same_weights(resumed, straight)
        assert (resumed.sample(20, seed=1)[0] == straight.sample(20, seed=1)[0]).all()
        if name == "stopped":
            mine, theirs = (
                latest_checkpoint(RunFolder.open(tmp_path / run).checkpoints) for run in ("straight", name)
            )
            assert mine is not None
            assert theirs is not None
            assert mine.step == theirs.step == 20
            assert mine.tensors.keys() == theirs.tensors.keys()
            assert all(torch.equal(value, theirs.tensors[key]) for key, value in mine.tensors.items())
            for part, other in zip(read_parts(mine.path), read_parts(theirs.path), strict=True):
                assert (part.start, part.stop) == (other.start, other.stop)
                assert all(torch.equal(value, other.tensors[key]) for key, value in part.tensors.items())


def test_r51_copies_with_two_teachers_cost_four_times_as_much_in_renyis_terms() -> None:
    """Ten releases at k 10 and noise 200: epsilon 0.375 becomes 0.794."""
    rdp = Accountant(AccountantKind.RDP)
    once, twice = (GaussianEvent(size * 2 * math.sqrt(10), 200, 784, count=10) for size in (1, 2))
    assert twice.mu**2 == pytest.approx(4 * once.mu**2)
    assert rdp.epsilon(once, 1e-5) == pytest.approx(0.375, abs=1e-3)
    assert rdp.epsilon(twice, 1e-5) == pytest.approx(0.794, abs=1e-3)


def test_r51_repeating_the_records_of_a_rare_class_is_reported() -> None:
    """120 records of which 2 are of a class of their own, and these repeated 9 times."""
    labels = np.repeat([0, 1, 2], [100, 18, 2])
    images = small_data(count=120).images
    order = np.concatenate([np.arange(118), np.repeat([118, 119], 9)])
    data = LabelledImages(images[order], labels[order], ("a", "b", "c"), "FX-B", public=False)
    config = small_config(privacy__num_records=136, voting__num_steps=1)
    [note] = DataLens(config).fit(data).notes
    assert "16 of 136 images" in note
    assert "2 different ones, the most frequent 9 times" in note
    assert "--group-size 9" in note
