"""Data of experiments are published, and those of a trial are parted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from datalens import data
from datalens.errors import NotPrivateError
from datalens.experiments.workplace import Workplace, without_last_sixth


def test_experiments_are_for_published_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = replace(data.load("shapes"), public=False)
    monkeypatch.setattr(data, "load", lambda *_, **__: people)
    with pytest.raises(NotPrivateError, match="published data"):
        Workplace(tmp_path).data_of("shapes")


def test_a_trial_learns_on_no_image_that_it_is_scored_on(tmp_path: Path) -> None:
    whole = data.load("shapes")
    records, _ = Workplace(tmp_path).data_of("shapes", held_out=True)
    kept = without_last_sixth(whole)[0].num_records
    assert records.num_records == kept < whole.num_records
    assert (records.images == whole.images[:kept]).all()
