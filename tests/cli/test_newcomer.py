"""What a newcomer mistypes first: each mistake is refused before anything else is said, with what to type instead."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def scans(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("ill", "well"):
        folder = tmp_path / "scans" / name
        folder.mkdir(parents=True)
        for number in range(30):
            Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8)).save(folder / f"{number}.png")
    return tmp_path / "scans"


DECLARED = ("--num-records", 3000, "--classes", "ill,well", "--top-k", 20)


def test_more_teachers_than_records_names_a_number_that_suits(call, scans, tmp_path) -> None:
    answer = call("train", scans, "--out", tmp_path / "run", *DECLARED)
    assert answer.status == 2
    assert "--num-teachers 4000" in answer.complaint and "use about 200" in answer.complaint
    assert answer.out == "" and not (tmp_path / "run").exists()


def test_a_folder_that_is_nearly_there_is_named(call, scans, tmp_path) -> None:
    answer = call("train", tmp_path / "scan", "--out", tmp_path / "run", *DECLARED)
    assert answer.status == 2
    assert f"did you mean {str(scans)!r}" in answer.complaint and "no such folder" in answer.complaint


def test_mixed_sizes_name_the_option(call, scans, tmp_path) -> None:
    Image.new("L", (9, 9)).save(scans / "ill" / "odd.png")
    answer = call("train", scans, "--out", tmp_path / "run", *DECLARED, "--num-teachers", 10)
    assert answer.status == 2 and "--image-size 8" in answer.complaint


def test_a_damaged_file_names_the_option(call, scans, tmp_path) -> None:
    (scans / "ill" / "note.png").write_text("not a picture")
    answer = call("train", scans, "--out", tmp_path / "run", *DECLARED, "--num-teachers", 10)
    assert answer.status == 2 and "--skip-damaged" in answer.complaint


def test_a_mistyped_budget_file_is_called_one(call, tmp_path) -> None:
    words = ("train", "shapes", "--out", tmp_path / "run", "--num-teachers", 200, "--num-steps", 1)
    answer = call(*words, "--budget-file", tmp_path / "clinc.budget")
    assert answer.status == 2
    assert "no such budget file" in answer.complaint and "datalens budget create" in answer.complaint
    assert not (tmp_path / "run").exists()


def test_a_budget_is_not_made_over_another(call, tmp_path) -> None:
    words = ("budget", "create", tmp_path / "a.budget", "--data-name", "a", "--epsilon", 1)
    assert call(*words).status == 0
    answer = call(*words)
    assert answer.status == 2
    assert "a file of that name exists" in answer.complaint and "resume" not in answer.complaint


def test_purging_asks_nobody_who_is_not_there(call, tmp_path) -> None:
    run = tmp_path / "run"
    assert call("train", "shapes", "--out", run, "--num-teachers", 200, "--num-steps", 1).status == 0
    answer = call("purge", run)
    assert answer.status == 2 and "give --yes" in answer.complaint
    assert (run / "private").is_dir()
