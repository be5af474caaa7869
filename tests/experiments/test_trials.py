"""The settings that baselines were tried with: each once, never on test images, and one of them in use."""

from __future__ import annotations

import pytest

from datalens.experiments import trials
from datalens.experiments.contenders import contender


@pytest.mark.parametrize("name", trials.TRIALS)
def test_four_different_settings_were_tried_without_test_images(name: str) -> None:
    cells = trials.trial_cells(name)
    assert len({cell.key for cell in cells}) == len(cells) == 4
    assert all(cell.held_out for cell in cells)


def test_the_chosen_settings_are_marked_and_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trials.CHOSEN, "g-pate", 2)
    marks = {row.cell.key: row.labels[2] for row in trials.table_trials().rows if row.labels[0] == "g-pate"}
    assert list(marks.values()) == ["", "", "chosen", ""]
    cell = contender("g-pate", "fashion-mnist", 10.0)
    assert dict(cell.to_json()["settings"]) == {"num_teachers": 4000, "num_steps": 50}
    assert not cell.held_out
