"""``datalens train --warm-start``: what it says, what it leaves, and every mistake."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from datalens.audit.verify import verify_run
from datalens.training.facts import read_facts
from datalens.training.run_folder import RunFolder

TINY = (
    *("--num-records", 60, "--classes", "a,b", "--num-teachers", 10, "--top-k", 5, "--num-steps", 2),
    *("--batch-size", 4, "--epsilon", 30, "--insecure-seed", 4),
)
SETTINGS = """
[student]
hidden_units = 8
channels = 4
"""


@pytest.fixture
def words(tmp_path: Path) -> list[object]:
    """``train`` on 60 images of 8x8 of two classes."""
    rng = np.random.default_rng(1)
    people = tmp_path / "people.npz"
    np.savez(people, x=rng.integers(0, 256, (60, 8, 8), dtype=np.uint8), y=np.arange(60) % 2)
    (tmp_path / "s.toml").write_text(SETTINGS)
    return ["train", people, "--out", tmp_path / "run", *TINY, "--config", tmp_path / "s.toml"]


def test_a_run_with_it_says_so_and_is_verified(call, words, tmp_path) -> None:
    answer = call(*words, "--warm-start")
    assert answer.status == 0, answer.err
    assert (
        "warm start: two noisy sums of the records before the first vote, with 0.2 of the budget"
        in answer.out
    )
    facts = read_facts(RunFolder.open(tmp_path / "run"))
    assert facts.config.warm_start.enabled and facts.config.warm_start.share == 0.2
    assert verify_run(tmp_path / "run", replay=True).differences == []
    assert call("verify", tmp_path / "run", "--replay").status == 0
    assert call("train", words[1], "--resume", tmp_path / "run").status == 0
    assert call("sample", tmp_path / "run", "--num-samples", 5, "--out", tmp_path / "s.npz").status == 0
    assert call("report", tmp_path / "run").status == 0


def test_a_file_of_settings_may_ask_for_it(call, words, tmp_path) -> None:
    (tmp_path / "s.toml").write_text(SETTINGS + "[warm_start]\nenabled = true\nshare = 0.4\nsteps = 3\n")
    assert call(*words).status == 0
    said = json.loads((RunFolder.open(tmp_path / "run").release / "config.json").read_text())
    assert said["config"]["warm_start"]["share"] == 0.4


def test_its_settings_come_with_the_flag_too(call, words, tmp_path) -> None:
    (tmp_path / "s.toml").write_text(SETTINGS + "[warm_start]\nsteps = 3\n")
    assert "there is none; give --warm-start" in call(*words).complaint
    assert not (tmp_path / "run").exists()
    assert call(*words, "--warm-start").status == 0


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (("--public-init", "shapes"), "--public-init (public_init) with others; give one of the two"),
        (("--method", "moments"), "--warm-start"),
        (("--as-published", "--mechanism", "fetchsgd"), "has a guarantee, and as_published has none"),
        (("--epsilon", 0.02), "epsilon"),
    ],
)
def test_mistakes_are_one_line(call, words, tmp_path, more, complaint) -> None:
    given = [*words]
    if more[0] == "--epsilon":
        given[given.index("--epsilon") + 1] = more[1]
        more = ()
    if "--method" in more:
        given = given[: given.index("--config")]
    assert complaint in call(*given, "--warm-start", *more).complaint
    assert not (tmp_path / "run").exists()


def test_groups_and_it_are_refused(call, tmp_path) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    from PIL import Image

    rows = ["path,label,person"]
    rng = np.random.default_rng(0)
    for number in range(60):
        Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8)).save(folder / f"{number}.png")
        rows.append(f"scans/{number}.png,{'ab'[number % 2]},{number // 3}")
    (tmp_path / "table.csv").write_text("\n".join(rows))
    words = ["train", tmp_path / "table.csv", "--group-column", "person", "--out", tmp_path / "run", *TINY]
    assert "a group may have any number of records" in call(*words, "--channels", 1, "--warm-start").complaint
    assert not (tmp_path / "run").exists()


def test_a_resumed_run_keeps_it(call, words, tmp_path) -> None:
    assert call(*words).status == 0
    answer = call("train", words[1], "--resume", tmp_path / "run", "--warm-start")
    assert "a resumed run keeps it" in answer.complaint
