"""What a training of a cell leaves in the scratch folder, and what becomes of it when it is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_cell import SMALL

from datalens import data
from datalens.experiments import training
from datalens.experiments.cells import Cell
from datalens.experiments.measure import measure
from datalens.experiments.store import ResultsStore
from datalens.experiments.training import train
from datalens.experiments.workplace import Workplace
from datalens.training.run_folder import RunFolder


@pytest.mark.parametrize(
    ("ending", "content"),
    [("safetensors", b"\x08"), ("safetensors", b""), ("json", b"{"), ("json", b"[]"), ("json", b"{}")],
)
def test_a_damaged_generator_is_trained_again(tmp_path: Path, ending: str, content: bytes) -> None:
    store, place = ResultsStore(tmp_path / "results.jsonl"), Workplace(tmp_path / "scratch")
    train(SMALL, place.data_of("shapes")[0], place.scratch)
    (place.scratch / f"{SMALL.key}.{ending}").write_bytes(content)
    told: list[str] = []
    measure(SMALL, ["logistic-20"], store, place, told.append)
    assert told[0].startswith("what was kept is of no use") and told[1:] == ["training", "logistic-20"]
    assert store.score(SMALL, "logistic-20") is not None


def test_a_training_killed_before_it_began_does_not_stand_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunFolder.create(tmp_path / "run", publishable=False)
    begun: list[Path] = []
    monkeypatch.setattr(training.Session, "begin", lambda config, data, folder: begun.append(folder))
    training._begin(Cell("mnist", 1.0, paper_networks=True), data.load("shapes"), tmp_path / "run")
    assert begun == [tmp_path / "run"] and not begun[0].exists()
