"""The page for everybody: whole, honest, escaped."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from html_pages import check_page
from small_runs import train

from datalens.reports.facts import Score, read_release
from datalens.reports.grid import Grid
from datalens.reports.release_page import release_page
from datalens.reports.sheets import Row, Sheet
from datalens.reports.words import belief_percent, chance
from datalens.training.run_folder import RunFolder


def sheet(images: np.ndarray, *names: str, title: str = "") -> Sheet:
    return Sheet(title, tuple(Row(name, images) for name in names))


def test_it_says_what_the_certificate_says(small: RunFolder, images: np.ndarray) -> None:
    facts = read_release(small.release)
    page = check_page(release_page(facts, [sheet(images, "a", "b")]))
    guarantee = facts.certificate["guarantee"]
    for words in (
        f"Epsilon {guarantee['epsilon']:.4g}",
        guarantee["adjacency_means"],
        guarantee["replace_one"]["why"],
        "one record added or removed",
        "10 teachers",
        facts.run_id,
        facts.certificate["ledger"]["head"],
        *facts.certificate["not_covered"],
    ):
        assert words in page.text
    assert [image["alt"] for image in page.of("img")] == [
        "4 synthetic images of the class a",
        "4 synthetic images of the class b",
    ]
    assert "no verdict published" in page.text  # of an audit
    assert "private/report.html" in page.text  # where scores are, since none was released


def test_links_lead_to_files_beside_it(small: RunFolder) -> None:
    page = check_page(release_page(read_release(small.release)))
    targets = [link["href"] for link in page.of("a")]
    assert targets and all((small.release / str(target)).is_file() for target in targets)


def test_names_stay_text(evil: RunFolder, images: np.ndarray) -> None:
    facts = read_release(evil.release)
    page = check_page(release_page(facts, [sheet(images, *facts.classes)]))
    for name in facts.classes:
        assert name in page.text
    assert [image["alt"] for image in page.of("img")] == [
        f"4 synthetic images of the class {name}" for name in facts.classes
    ]


def test_every_text_of_files_stays_text(small: RunFolder, tmp_path: Path) -> None:
    """Also where somebody else wrote the files: every text in certificate and settings is markup here."""
    release = shutil.copytree(small.release, tmp_path / "release")
    facts = read_release(release)

    def marked(value: object) -> object:
        if isinstance(value, dict):
            return {key: marked(part) for key, part in value.items()}
        if isinstance(value, list):
            return [marked(part) for part in value]
        return f"<script>{value}</script>" if isinstance(value, str) else value

    whole = check_page(release_page(facts))
    certificate = dict(facts.certificate)
    for name in ("not_covered", "assumed_public", "environment"):
        certificate[name] = marked(certificate[name])
    certificate["guarantee"] = {
        **certificate["guarantee"], "adjacency_means": "<script>", "cautions": ["<script>"]
    }  # fmt: skip
    evil = replace(
        facts, certificate=certificate, config={**facts.config, "data": "<script>", "method": "<script>"}
    )
    page = check_page(release_page(evil))
    assert page.text.count("<script>") > 10
    assert {tag for tag, _ in page.tags} == {tag for tag, _ in whole.tags}


def test_scores_say_whether_they_are_noisy(small: RunFolder) -> None:
    facts = read_release(small.release)
    public = Score(True, 88, 100, 0.0, 0.88, "cnn")
    charged = Score(False, 77, None, 50.0, None, "mlp")
    page = check_page(release_page(replace(facts, scores=(public, charged))))
    assert (
        "88.00% right: 88 of 100 real test images, by a classifier (cnn). The test images are public."
        in page.text
    )
    assert (
        "77 right predictions, by a classifier (mlp). The count has random noise of standard deviation 50"
        in (page.text)
    )
    assert "private/report.html" not in page.text


def test_the_printed_table_is_shown_with_its_notes(small: RunFolder) -> None:
    grid = Grid("What is printed", ("Method", "epsilon 1"), (("<b>X</b>", "1%"),), ("of another protocol",))
    page = check_page(release_page(read_release(small.release), printed=grid))
    assert "<b>X</b>" in page.text and "of another protocol" in page.text


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"privacy__noise": "none"}, "no noise was added"), ({"privacy__insecure_seed": 1}, "insecure seed")],
)
def test_an_unfit_run_says_so_first(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    train(tmp_path / "run", **changes)
    facts = read_release(RunFolder.open(tmp_path / "run").release)
    page = check_page(release_page(facts))
    before = page.text[: page.text.index("What is promised to one person")]
    assert "NOT FIT FOR PUBLICATION" in before and words in before
    assert "it promises nothing" in page.text or "Nothing. It was made for experiments" in page.text


def test_a_stopped_run_says_how_far_it_came(tmp_path: Path) -> None:
    train(tmp_path / "run", steps=3)
    page = check_page(release_page(read_release(RunFolder.open(tmp_path / "run").release)))
    assert "3 of 8 steps were taken" in page.text


def test_earlier_samples_stand_in_order(small: RunFolder, images: np.ndarray) -> None:
    sheets = [sheet(images, "a", title=title) for title in ("before the first step", "after 4 steps", "")]
    page = check_page(release_page(read_release(small.release), sheets))
    assert page.text.index("before the first step") < page.text.index("after 4 steps")
    assert page.of("img")[-1]["alt"] == "4 synthetic images of the class a, after 4 steps"


@pytest.mark.parametrize(
    ("delta", "words"),
    [(1e-5, "1 in 100,000"), (1e-6, "1 in 1,000,000"), (3e-5, "1 in 33,333"), (0.25, "0.25")],
)
def test_a_chance_is_not_rounded_down(delta: float, words: str) -> None:
    assert chance(delta) == words


def test_belief_grows_from_even_odds() -> None:
    values = [belief_percent(epsilon) for epsilon in (0.0, 0.5, 1.0, 5.0, 50.0)]
    assert values[0] == 50 and values == sorted(values) and values[-1] <= 100


def test_what_was_not_done_is_not_claimed(tmp_path: Path) -> None:
    train(tmp_path / "bare", privacy__noise="none")
    bare = check_page(release_page(read_release(RunFolder.open(tmp_path / "bare").release)))
    assert "without noise" in bare.text and "random noise on every sum" not in bare.text
    train(tmp_path / "unbegun", steps=0)
    unbegun = check_page(release_page(read_release(RunFolder.open(tmp_path / "unbegun").release)))
    assert "has learned from no record" in unbegun.text and "directions.bin" not in unbegun.text
