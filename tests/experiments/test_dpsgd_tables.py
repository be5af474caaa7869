"""Tables 8 to 11 and Figure 3: what is printed beside the cells of DP-SGD, what is run, and how it is drawn."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from tiny_dpsgd import records_like

from datalens.cli.main import main
from datalens.data.images import LabelledImages
from datalens.errors import DataError
from datalens.experiments import dpsgd_figures, dpsgd_paper, dpsgd_records, extractors, sweep
from datalens.experiments.dpsgd_alike import table_alike
from datalens.experiments.dpsgd_cells import ACCURACY, DpsgdCell
from datalens.experiments.dpsgd_figures import draw_features, draw_figure_3
from datalens.experiments.dpsgd_records import records_of
from datalens.experiments.dpsgd_tables import (
    DPSGD_TABLES,
    by_resnet18,
    cell_of,
    table_8,
    table_9,
    table_10,
    table_11,
)
from datalens.experiments.extractors import RESNET18
from datalens.experiments.store import ResultsStore
from datalens.experiments.study import NotRun
from datalens.experiments.sweep import run, work_of
from datalens.experiments.workplace import Workplace

FACTS = {
    "privacy": {"spent_epsilon": {"rdp-classic": 0.05, "pld": 0.028}, "replace_one_epsilon": 0.11},
    "steps": 1268,
    "training_seconds": 100.0,
}


def put(store: ResultsStore, cell: DpsgdCell, *accuracies: float) -> None:
    facts = FACTS if cell.is_private else {**FACTS, "privacy": None}
    for seed, accuracy in enumerate(accuracies):
        store.add(cell.with_seed(seed), {ACCURACY: {"last_accuracy": accuracy}}, facts)


def test_the_papers_numbers_stand_in_their_places() -> None:
    printed = {row.labels: row.printed for row in table_8().rows}
    assert printed["MNIST", "0.05", "0.6"] == "73.87 ± 4.77"
    assert printed["MNIST", "inf", "1, GM-DP"] == "99.08 ± 0.04"
    assert printed["CIFAR-10", "0.025", "0.8"] == "45.87 ± 0.97"
    assert len(printed) == 4 * (8 + 13)
    assert {row.labels[1:]: row.printed for row in table_9().rows}[
        "0.05", "dimension", "0.4"
    ] == "78.45 ± 2.89"
    tens = {row.labels[1:3]: row.printed for row in table_10().rows}
    assert tens["0.1", "gm-dp"] == "85.05 ± 1.85" and tens["1", "gm-dp"] == ""
    row = next(row for row in table_11().rows if row.labels[:3] == ("CIFAR-10", "8", "0.8"))
    assert row.labels[3:] == ("0.5", "3", "2048", "0.2") and row.printed == "85.62 ± 0.04"


def test_tables_share_cells() -> None:
    """What the paper prints twice is trained once: TopAgg of Table 10, all of Table 11, norm of Table 9."""
    keys = {name: {row.cell.key for row in table().rows} for name, table in DPSGD_TABLES.items()}
    assert keys["table11"] < keys["table8"]
    assert len(keys["table9"] & keys["table8"]) == 12 and len(keys["table9"]) == 21
    assert len(keys["table10"] & keys["table8"]) == 3, (
        "TopAgg twice, and TopK-SGD, which is Table 8's without noise"
    )


def test_controls_have_one_setting_and_one_number_of_steps() -> None:
    for epsilon in ("0.1", "1"):
        cells = [row.cell for row in table_10().rows if row.labels[1] == epsilon]
        assert len({(c.settings, c.num_steps()) for c in cells if isinstance(c, DpsgdCell)}) == 1
        assert [c.method for c in cells if isinstance(c, DpsgdCell)] == [
            "topk-gm-dp", "topagg", "topk-sgd", "gm-dp", "clipped-sgd",
        ]  # fmt: skip


def test_by_dimension_has_the_settings_of_gm_dp() -> None:
    row = next(row for row in table_9().rows if row.labels[1:] == ("0.2", "dimension", "0.4"))
    assert isinstance(row.cell, DpsgdCell) and row.cell.select_by == "dimension"
    assert row.cell.settings == dpsgd_paper.TABLE_11["mnist"][0.2][1.0]


def test_resnet18_takes_the_place_of_the_extractor_in_cifar10_alone() -> None:
    usual, other = table_8(), by_resnet18()["table8"]()
    for row, instead in zip(usual.rows, other.rows, strict=True):
        assert (row.cell.key == instead.cell.key) == (row.labels[0] == "MNIST")
    assert any("ResNet-18 of ImageNet" in note for note in other.notes)


def test_a_row_has_both_accountants_and_a_cell_without_noise_none(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    put(store, cell_of("mnist", 0.05, 0.8), 0.76, 0.78)
    put(store, cell_of("mnist", math.inf, 0.8), 0.98)
    grid = table_8().draw(store)
    drawn = {row[:3]: row[3:] for row in grid.rows}
    assert grid.header[3:] == (
        "accuracy", "steps", "seconds", "seeds", "epsilon, paper's accountant", "epsilon, tightest",
        "epsilon, replacing one", "paper",
    )  # fmt: skip
    assert drawn["MNIST", "0.05", "0.8"] == (
        "77.00 ± 1.41", "1268 ± 0", "100 ± 0", "2 of 3", "0.05", "0.028", "0.11", "77.15 ± 2.89",
    )  # fmt: skip
    assert drawn["MNIST", "inf", "0.8"][4:7] == ("inf", "inf", "inf")
    assert drawn["MNIST", "0.05", "0.7"][0] == "not run"


def test_a_sweep_trains_what_is_missing_and_passes_over_what_has_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DpsgdCell, "num_steps", lambda cell: 1)
    monkeypatch.setattr(sweep, "records_of", records := Records())
    store = ResultsStore(tmp_path / "results.jsonl")
    work = work_of(table_11().rows[10:14], store, num_seeds=1)
    told: list[str] = []
    absent = run(work, store, Workplace(tmp_path), tell=told.append)
    assert absent == ["cifar10: no files (none here)"]
    assert [item.cell.data_set for item in work_of(table_11().rows[10:14], store, num_seeds=1)] == [
        "cifar10"
    ] * 2
    assert len(told) == 2 and told[0].endswith("training, 1 steps") and records.asked == 3


class Records:
    """Drawn records for MNIST, and no files for CIFAR-10."""

    asked = 0

    def __call__(self, cell: DpsgdCell, place: Workplace, tell: object = None):
        if tell is not None:
            self.asked += 1
        if cell.data_set == "cifar10":
            raise DataError("none here")
        return records_like(cell)


def test_figure_3_is_drawn_from_what_is_there(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    store = ResultsStore(tmp_path / "results.jsonl", read_only=False)
    put(store, cell_of("mnist", 0.5, 0.7), 0.9, 0.92)
    grid = draw_figure_3(store, Workplace(tmp_path), tmp_path)
    rows = {row[:4]: row[4:] for row in grid.rows}
    assert rows["a", "MNIST", "0.5", "keep 0.7"] == ("91.00 ± 1.41", "93.50 ± 0.75")
    assert rows["a", "MNIST", "0.5", "keep 0.8"][0] == "not run"
    assert rows["a", "MNIST", "0.5", "DPDL"] == ("", "90")
    assert rows["c", "CIFAR-10", "8", "DPDL"] == ("", "73")
    assert ("b", "CIFAR-10", "0.025", "keep 1, GM-DP") in rows and ("b", "CIFAR-10", "2", "DPDL") not in rows
    for panel in dpsgd_figures.PANELS:
        assert (tmp_path / f"figure3-{panel}.svg").stat().st_size > 1000
    svg = (tmp_path / "figure3-a-mnist.svg").read_text()
    assert "ours, keep 0.7" in svg and "ours, keep 0.8" not in svg and "DPDL, as published" in svg


@pytest.fixture
def tiny_cifar10(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """Ten pictures each, an extractor with weights as drawn."""
    rng = np.random.default_rng(0)

    def load(name: str, *, split: str, root: str | None) -> LabelledImages:
        images = rng.integers(0, 256, (10, 3, 8, 8), dtype=np.uint8) if split == "train" else held
        return LabelledImages(images, np.arange(10), tuple("abcdefghij"), f"{name} ({split})", public=True)

    held = rng.integers(0, 256, (10, 3, 8, 8), dtype=np.uint8)
    monkeypatch.setattr(dpsgd_records.data, "load", load)
    monkeypatch.setattr(extractors, "INPUT_SIZE", 32)
    path = tmp_path / "resnet18.safetensors"
    safetensors.torch.save_file(RESNET18.build().state_dict(), path)
    return Workplace(tmp_path / "scratch", resnet18=path)


def test_records_are_features_and_are_kept(tiny_cifar10: Workplace) -> None:
    cell = cell_of("cifar10", 0.4, 0.8, RESNET18)
    told: list[str] = []
    records = records_of(cell, tiny_cifar10, told.append)
    assert records.inputs.shape == records.test_inputs.shape == (10, 512)
    assert records.inputs.dtype == torch.float32 and records.labels.tolist() == list(range(10))
    assert [line.partition(":")[0] for line in told] == ["cifar10 (train)", "cifar10 (test)"]
    assert records_of(cell, tiny_cifar10) is records, "no file is read again"


def test_the_page_of_features_says_what_they_are(tmp_path: Path, tiny_cifar10: Workplace) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    first = draw_features(store, tiny_cifar10, tmp_path)
    assert first.rows[0][0] == "resnet18" and first.rows[0][3:5] == ("512", "512")
    kept = ResultsStore(store.path, read_only=True)
    assert draw_features(kept, Workplace(tmp_path / "other", resnet18=tmp_path), tmp_path) == first
    with pytest.raises(NotRun):
        draw_features(ResultsStore(tmp_path / "none", read_only=True), tiny_cifar10, tmp_path)


def test_features_without_files_say_so(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    grid = draw_features(store, Workplace(tmp_path, resnet18=tmp_path / "none.pth"), tmp_path)
    assert grid.rows[0][1] == "no files" and "give torchvision's resnet18" in grid.notes[0]


def test_all_of_it_is_drawn_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    store = tmp_path / "results.jsonl"
    store.touch()
    names = [*DPSGD_TABLES, "figure3"]
    assert main(["reproduce", *names, "--draw", "--store", str(store), "--resnet18", "given.pth"]) == 0
    said = capsys.readouterr().out
    assert all((tmp_path / f"{name}.md").exists() for name in names)
    assert "not run" in said and "ResNet-18 of ImageNet" in said


def test_alike_rows_differ_in_what_is_kept_alone() -> None:
    rows = table_alike().rows
    for share, whole, _ in zip(*(rows[place::3] for place in range(3)), strict=True):
        assert isinstance(share.cell, DpsgdCell) and isinstance(whole.cell, DpsgdCell)
        assert (share.cell.keep, whole.cell.keep) == (0.7, 1.0)
        assert whole.cell == replace(share.cell, keep=1.0)
        assert whole.cell.num_steps() == share.cell.num_steps()
