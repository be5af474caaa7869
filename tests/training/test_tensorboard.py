"""A training written down for TensorBoard: all of it under ``private/``, and the training as it would be without."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from datalens import DataLens, recipes
from datalens.baselines.model import Baseline
from datalens.baselines.registry import baseline
from datalens.data.shapes import load_shapes
from datalens.errors import MissingExtraError
from datalens.training.progress import Progress
from datalens.training.tensorboard import MOST_CLASSES, OF_EACH_CLASS, PICTURES, TensorBoard, writer_kind

STEPS = 12
needs_tensorboard = pytest.mark.skipif(
    not any((Path(place) / "tensorboard").is_dir() for place in sys.path),
    reason="the package tensorboard is not installed (extra tensorboard)",
)


def trained(run: Path, *, board: bool) -> DataLens:
    voting = {"num_teachers": 100, "top_k": 20, "num_steps": STEPS, "batch_size": 4}
    config = recipes.shapes_quick(epsilon=20).replace(voting=voting, privacy__insecure_seed=3)
    model = DataLens(config)
    if not board:
        return model.fit(load_shapes("train"), out=run)
    with TensorBoard(run) as writer:
        return model.fit(load_shapes("train"), out=run, tell=writer.tell)


def written(run: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the reader's own imports
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        found = EventAccumulator(str(run / "private" / "tensorboard"), size_guidance={"images": 0})
        found.Reload()
    return found


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("board") / "run"
    trained(run, board=True)
    return run


@needs_tensorboard
def test_scalars_are_those_of_ledger_and_private_log(watched: Path) -> None:
    found, model = written(watched), DataLens.load(watched)
    spent = found.Scalars("released/epsilon_spent")
    assert [item.step for item in spent] == list(range(1, STEPS + 1))
    assert spent[-1].value == pytest.approx(model.spent_epsilon(1e-5), rel=1e-6)
    lines = [
        json.loads(line) for line in (watched / "private" / "diagnostics.jsonl").read_text().splitlines()
    ]
    agreement = found.Scalars("private/rms_agreement")
    assert [item.value for item in agreement] == pytest.approx([line["rms_agreement"] for line in lines])
    assert {"private/max_agreement", "private/failed_teachers", "released/epsilon_left"} < {
        *found.Tags()["scalars"]
    }


@needs_tensorboard
def test_images_are_rows_of_classes_some_times(watched: Path) -> None:
    images = written(watched).Images("released/samples")
    assert PICTURES <= len(images) <= PICTURES + 3 and images[-1].step == STEPS
    assert (images[-1].height, images[-1].width) == (4 * 16, OF_EACH_CLASS * 16) and MOST_CLASSES >= 4


@needs_tensorboard
def test_nothing_of_it_is_shared_and_no_draw_is_changed(watched: Path, tmp_path: Path) -> None:
    alone = tmp_path / "run"
    trained(alone, board=False)
    (mine,), (theirs,) = (list(run.glob("release*")) for run in (watched, alone))
    assert {path.name for path in mine.iterdir()} == {path.name for path in theirs.iterdir()}
    assert (mine / "generator.safetensors").read_bytes() == (theirs / "generator.safetensors").read_bytes()
    (folder,) = (path for path in watched.rglob("*tensorboard*") if path.is_dir())
    assert folder.parent == watched / "private" and os.stat(folder).st_mode & 0o077 == 0


@needs_tensorboard
def test_methods_without_teachers_are_written_down_too(tmp_path: Path) -> None:
    settings = {
        "num_features": 64,
        "num_steps": 3,
        "images_per_class": 2,
        "latent_dim": 4,
        "hidden_units": 16,
    }
    model = Baseline(baseline("dp-merf", settings, epsilon=2.0, delta=1e-4))
    with TensorBoard(tmp_path / "run") as writer:
        model.fit(load_shapes("train"), out=tmp_path / "run", tell=writer.tell)
    tags = written(tmp_path / "run").Tags()
    assert tags["scalars"] == ["released/epsilon_spent", "released/epsilon_left"]
    assert tags["images"] == ["released/samples"]


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    for ask in (writer_kind, lambda: TensorBoard(tmp_path)):
        with pytest.raises(
            MissingExtraError, match=r"pip install 'datalens-dp\[tensorboard\]', or leave it out"
        ):
            ask()


def test_the_way_to_draw_is_no_part_of_where_a_run_stands() -> None:
    assert Progress(1, 2, 0.5, 1.0, lambda _: None) == Progress(1, 2, 0.5, 1.0)  # type: ignore[arg-type]


@needs_tensorboard
def test_a_log_without_lines_is_no_obstacle(tmp_path: Path) -> None:
    trained(tmp_path / "run", board=False)
    (tmp_path / "run" / "private" / "diagnostics.jsonl").write_bytes(b"")
    with TensorBoard(tmp_path / "run") as writer:
        writer.tell(Progress(1, 2, 0.5, 1.0))
    assert "released/epsilon_spent" in written(tmp_path / "run").Tags()["scalars"]
