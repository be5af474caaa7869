"""Data of experiments are published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from datalens import data
from datalens.errors import NotPrivateError
from datalens.experiments.workplace import Workplace


def test_experiments_are_for_published_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = replace(data.load("shapes"), public=False)
    monkeypatch.setattr(data, "load", lambda *_, **__: people)
    with pytest.raises(NotPrivateError, match="published data"):
        Workplace(tmp_path).data_of("shapes")
