"""The page for the owner: scores, agreement, failures, copies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from html_pages import check_page

from datalens.errors import RunError
from datalens.reports.facts import read_release
from datalens.reports.owner_facts import read_private
from datalens.reports.owner_page import owner_page
from datalens.training.run_folder import RunFolder

ANSWER = {
    "data": "<i>scans</i>",
    "utility": {
        "cnn": {
            "num_train": 4000,
            "num_test": 500,
            "epochs": 4,
            "last_accuracy": 0.875,
            "best_epoch_accuracy": 0.9,
            "best_epoch": 2,
        }
    },
    "features": {
        "network": "classifier",
        "synthetic": {
            "num_images": 100,
            "inception_score": {"mean": 2.5},
            "fid": {"value": 30.25},
            "kid": {"mean": 0.5},
        },
        "real_test": None,
    },
    "copies": {"num_exact_copies": 1, "num_samples": 100, "share_closer_to_train": 0.5125, "z_score": 0.25},
}


@pytest.fixture
def private(small: RunFolder, tmp_path: Path) -> Path:
    """A copy of a run's private side, with a score in it."""
    place = shutil.copytree(small.private, tmp_path / "private")
    (place / "scores").mkdir()
    (place / "scores" / "one.json").write_text(json.dumps(ANSWER))
    return place


def test_scores_and_copies_are_shown(small: RunFolder, private: Path) -> None:
    page = check_page(owner_page(read_release(small.release), read_private(private)))
    for words in (
        "Never to be shared",
        "<i>scans</i>",
        "87.50%",
        "90.00%",
        "2.5",
        "30.25",
        "1 of 100 samples",
    ):
        assert words in page.text
    assert "51.25%" in page.text and "None: every teacher's gradients were finite in all 8 steps" in page.text


def test_failed_teachers_are_counted(small: RunFolder, private: Path) -> None:
    lines = [
        {"step": 0, "failed": [[7, 3]], "rms_agreement": 0.2, "max_agreement": 0.5},
        {"step": 1, "failed": [[7, 2], [1, 1]], "rms_agreement": 0.1, "max_agreement": 0.5},
    ]
    (private / "diagnostics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    facts = read_private(private)
    assert facts.failures == ((7, 2, 5), (1, 1, 1))
    page = check_page(owner_page(read_release(small.release), facts))
    assert "Gradients that were not finite" in page.text
    (chart,) = page.of("svg")
    assert (
        chart["aria-label"]
        == "Agreement of the votes over 2 steps: root mean square 0.2 at first, 0.1 at last"
    )


def test_what_is_not_there_is_said(small: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    page = check_page(owner_page(read_release(small.release), read_private(tmp_path / "private")))
    for words in ("Nothing was measured yet", "No copy check was made yet", "keeps no diagnostics"):
        assert words in page.text


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"data": "x", "utility": {"cnn": {}}}', '{"data": "x", "utility": 3}']
)
def test_a_damaged_score_is_one_line(private: Path, content: str) -> None:
    (private / "scores" / "one.json").write_text(content)
    with pytest.raises(RunError) as caught:
        read_private(private)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", ["{", "{}\n", '{"step": 0, "failed": 3, "rms_agreement": 0, "max_agreement": 0}\n']
)
def test_damaged_diagnostics_are_one_line(private: Path, content: str) -> None:
    (private / "diagnostics.jsonl").write_text(content)
    with pytest.raises(RunError, match="cannot be understood"):
        read_private(private)
