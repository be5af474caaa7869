"""What people's data had a part in never lands under what a run shares, whichever command says it."""

from __future__ import annotations

from pathlib import Path

import pytest

WORDS = {
    "train": ("train", "shapes", "--out"),
    "another method": ("train", "shapes", "--method", "moments", "--epsilon", 1, "--out"),
    "resume": ("train", "shapes", "--resume"),
    "dpsgd": ("dpsgd", "shapes", "--epsilon", 1, "--out"),
    "quickstart": ("quickstart", "shapes", "--out"),
    "tune": ("tune", "shapes", "--epsilon", 2, "--candidates", "c.toml", "--out"),
}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_no_answer_of_a_training_goes_into_the_release_of_any_run(call, trained, tmp_path, words) -> None:
    run = trained if "--resume" in words else tmp_path / "run"
    target = trained / "release" / "answer.json"
    answer = call(*words, run, "--json", target)
    assert answer.status == 2 and "does not go under release/" in answer.complaint
    assert not target.exists() and not (tmp_path / "run").exists()


def test_nor_does_what_is_found_in_a_source(call, trained) -> None:
    target: Path = trained / "release" / "found.json"
    assert "does not go under release/" in call("data", "check", "shapes", "--json", target).complaint
    assert not target.exists()


def test_links_in_a_circle_are_no_place_for_an_answer(call, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    answer = call("train", "shapes", "--out", tmp_path / "run", "--json", tmp_path / "a")
    assert answer.status == 2 and "is a link that leads nowhere" in answer.complaint
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}
