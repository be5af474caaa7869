"""Runs side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from html_pages import check_page
from small_runs import train

from datalens.reports.compared import Compared, compared_grid, compared_page, differences
from datalens.reports.facts import Score, read_release
from datalens.reports.owner_facts import Measured, PrivateFacts
from datalens.reports.sheets import Row, Sheet
from datalens.training.run_folder import RunFolder


def test_one_row_a_run(small: RunFolder, evil: RunFolder, images: np.ndarray) -> None:
    facts = read_release(small.release)
    scored = replace(facts, scores=(Score(True, 88, 100, 0.0, 0.88, "cnn"),))
    sheet = Sheet("", (Row("<b>", images),))
    runs = [Compared("<one>", scored, sheet), Compared("two", read_release(evil.release), None)]
    grid = compared_grid(runs)
    assert [row[0] for row in grid.rows] == ["<one>", "two"] and [row[-1] for row in grid.rows] == [
        "88.00%",
        "-",
    ]
    page = check_page(compared_page(runs))
    assert "<one>" in page.text and "Never to be shared" not in page.text and "different data" in page.text


def test_what_differs_is_said(small: RunFolder, tmp_path: Path) -> None:
    train(tmp_path / "run", privacy__epsilon=9.0, privacy__group_size=2)
    other = Compared("other", read_release(RunFolder.open(tmp_path / "run").release), None)
    one = Compared("one", read_release(small.release), None)
    assert differences([one, replace(one, name="again")]) == []
    assert [text.split()[-1] for text in differences([one, other])] == ["deltas", "neighbours"]


def test_private_scores_are_marked(small: RunFolder) -> None:
    rows = (("accuracy of cnn, last epoch", "70.00%", "x"), ("accuracy of cnn, best epoch", "99.00%", "x"))
    private = PrivateFacts((Measured("scans", "scores/a.json", rows, None),), ())
    facts = read_release(small.release)
    runs = [Compared("a", facts, None, private), Compared("b", facts, None)]
    page = check_page(compared_page(runs))
    assert "Never to be shared" in page.text and "70.00%" in page.text and "99.00%" not in page.text
    assert compared_grid(runs).header[-1] == "measured by the owner"
