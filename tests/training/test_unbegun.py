"""A folder in which no run has begun is cleared away, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from datalens.training.run_folder import RunFolder
from datalens.training.unbegun import clear_unbegun


@pytest.mark.parametrize("publishable", [True, False])
def test_a_death_between_both_folders_stands_in_nobodys_way(tmp_path: Path, publishable: bool) -> None:
    (tmp_path / "run" / "private").mkdir(parents=True)
    assert clear_unbegun(tmp_path / "run")
    RunFolder.create(tmp_path / "run", publishable=publishable)
    assert clear_unbegun(tmp_path / "run") and not (tmp_path / "run").exists()


@pytest.mark.parametrize("kept", ["private/mine", "private/secrets.json", "mine", "private/mine/x"])
def test_what_somebody_put_there_stays(tmp_path: Path, kept: str) -> None:
    path = tmp_path / "run" / kept
    path.parent.mkdir(parents=True)
    path.write_text("x")
    (tmp_path / "run" / "private").mkdir(exist_ok=True)
    assert not clear_unbegun(tmp_path / "run")
    assert path.read_text() == "x"


def test_nor_is_a_folder_that_is_not_there_or_empty_one(tmp_path: Path) -> None:
    assert not clear_unbegun(tmp_path / "none")
    assert not clear_unbegun(tmp_path) and tmp_path.is_dir()
