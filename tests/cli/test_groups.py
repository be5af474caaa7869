"""``datalens train --group-column``: what it says, writes and refuses, and how such a run goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from datalens.teachers.groups import usual_slots

TINY = ("--num-teachers", "60", "--top-k", "10", "--num-steps", "2", "--batch-size", "4", "--epsilon", "20")
DECLARED = ("--num-records", "120", "--classes", "3", *TINY)
GROUPS = ("--group-column", "patient")


@pytest.fixture(scope="module")
def scans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An .npz of 120 images of thirty patients."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("patients") / "scans.npz"
    images = rng.integers(0, 256, (120, 8, 8), dtype=np.uint8)
    names = np.array([f"patient {number % 30}" for number in range(120)])
    np.savez(path, x=images, y=np.arange(120) % 3, patient=names)
    return path


@pytest.fixture(scope="module")
def trained(call, scans: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("grouped") / "run"
    answer = call("train", scans, "--out", run, *DECLARED, *GROUPS)
    assert answer.status == 0, answer.err
    assert f"a teacher has {usual_slots(120, 60)} slots" in answer.out
    assert "30 groups over 60 teachers" in answer.err + answer.out
    assert "left over" not in answer.out
    return run


def test_a_run_with_groups_verifies_and_its_page_says_what_is_protected(call, trained: Path) -> None:
    assert call("verify", trained).status == 0
    assert "adding or removing one group" in (trained / "release" / "README.md").read_text()
    assert json.loads((trained / "release" / "config.json").read_text())["unit"] == "group"


def test_a_run_with_groups_goes_on_with_its_groups_alone(call, scans: Path, trained: Path) -> None:
    more = ("--num-steps", "3", "--epsilon", "40")
    complaint = call("train", scans, "--resume", trained, *more).complaint
    assert "--group-column" in complaint
    with np.load(scans) as archive:
        turned = scans.with_name("turned.npz")
        np.savez(turned, x=archive["x"], y=archive["y"], patient=archive["patient"][::-1])
    assert "not the data of this run" in call("train", turned, "--resume", trained, *more, *GROUPS).complaint
    assert call("train", scans, "--resume", trained, *more, *GROUPS).status == 0
    assert call("verify", trained).status == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--group-column", "doctor"), "--group-column doctor"),
        ((*GROUPS, "--group-size", "2"), "--group-size 2"),
        ((*GROUPS, "--score-noise", "9"), "--score-noise 9"),
    ],
)
def test_what_does_not_go_with_groups_is_refused(call, scans: Path, tmp_path: Path, words, said) -> None:
    complaint = call("train", scans, "--out", tmp_path / "r", *DECLARED, *words).complaint
    assert said in complaint
    assert not (tmp_path / "r").exists()


def test_sources_without_columns_say_so(call, tmp_path: Path) -> None:
    complaint = call("train", "shapes", "--out", tmp_path / "r", *TINY, *GROUPS).complaint
    assert "--group-column patient: shapes has no columns" in complaint


@pytest.mark.parametrize("method", ["dc-gan", "dp-merf", "dp-gan", "moments", "judged"])
def test_methods_that_look_at_single_records_refuse_groups(
    call, scans: Path, tmp_path: Path, method: str
) -> None:
    words = ("--num-records", "120", "--classes", "3", "--noise", "none") if method == "dc-gan" else ()
    declared = words or ("--num-records", "120", "--classes", "3", "--epsilon", "5")
    complaint = call(
        "train", scans, "--out", tmp_path / "r", "--method", method, *declared, *GROUPS
    ).complaint
    assert "DataLens, pate-gan, g-pate and gs-wgan protect as a whole" in complaint
    assert "--group-size" in complaint
    assert not (tmp_path / "r").exists()


def test_dpsgd_refuses_groups_before_it_says_its_plan(call, scans: Path, tmp_path: Path) -> None:
    words = ("--model", "linear", "--num-steps", "2", "--batch-size", "20", "--epsilon", "5")
    answer = call(
        "dpsgd", scans, "--out", tmp_path / "r", "--num-records", "120", "--classes", "3", *words, *GROUPS
    )
    assert "DataLens, pate-gan, g-pate and gs-wgan protect as a whole" in answer.complaint
    assert answer.out == "" and not (tmp_path / "r").exists()


def test_how_groups_lie_is_said_before_the_training(call, scans: Path, tmp_path: Path) -> None:
    answer = call("train", scans, "--out", tmp_path / "r", *DECLARED, *GROUPS, "--verbose")
    lines = answer.err.splitlines()
    assert answer.status == 0 and answer.err.count("30 groups over 60 teachers") == 1
    (said,) = (number for number, line in enumerate(lines) if "30 groups over 60 teachers" in line)
    assert said < min(number for number, line in enumerate(lines) if line.startswith("step "))


def test_the_page_of_a_run_with_groups_speaks_plainly(
    call, scans: Path, trained: Path, tmp_path: Path
) -> None:
    """Also where the plan was changed on the way, so that no number can be given for an exchange."""
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    assert call("train", scans, "--resume", run, "--num-steps", "5", "--epsilon", "80", *GROUPS).status == 0
    page = (run / "release" / "README.md").read_text()
    assert "no epsilon can be named for that (the new group may sit with another teacher" in page
    assert "infinite" not in page and "group_size" not in page
