"""What verify works out again of moments and judged: sizes and how the budget is split, from the settings alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from baseline_scene import shapes
from small_baselines import SMALL

from datalens.audit.verify import verify_run
from datalens.baselines.model import Baseline
from datalens.baselines.registry import baseline
from datalens.data.images import LabelledImages


def run_of(method: str, out: Path, **privacy: Any) -> Path:
    Baseline(baseline(method, SMALL[method], **privacy)).fit(shapes(60), out=out)
    return out


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("mean_share", 0.5, "class means has 0.15 of the budget, the settings give 0.5"),
        ("low_frequencies", 4, "class moments is charged"),
        ("low_frequencies", None, "class moments is charged"),
        ("low_frequencies", 0, "class moments is charged"),
    ],
)
def test_changed_settings_of_moments_are_found_by_their_charges(
    tmp_path: Path, name: str, value: Any, words: str
) -> None:
    path = run_of("moments", tmp_path / "run", epsilon=2.0) / "release" / "config.json"
    config = json.loads(path.read_text())
    config["config"]["settings"][name] = value
    path.write_text(json.dumps(config))
    assert any(words in difference for difference in verify_run(tmp_path / "run").differences)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("judge_share", 0.5, "class means has 0.06 of the budget, the settings give 0.075"),
        ("mean_share", 0.5, "class means has 0.06 of the budget, the settings give 0.2"),
        ("judge_size", 13, "judge gradient is charged"),
        ("judge_size", 0, "judge gradient is charged"),
        ("low_frequencies", 4, "class moments is charged"),
        ("num_steps", 6, "judge gradient"),
        ("num_steps", 2, "judge gradient"),
    ],
)
def test_changed_settings_of_judged_are_found(tmp_path: Path, name: str, value: Any, words: str) -> None:
    path = run_of("judged", tmp_path / "run", epsilon=2.0) / "release" / "config.json"
    config = json.loads(path.read_text())
    config["config"]["settings"][name] = value
    path.write_text(json.dumps(config))
    differences = verify_run(tmp_path / "run").differences
    assert any(words in difference for difference in differences), differences


@pytest.mark.parametrize("method", ["moments", "judged", "dp-merf"])
@pytest.mark.parametrize("epsilon", [50.0, 100.0, 1e4])
def test_an_honest_run_agrees_where_the_samplers_slack_decides(
    tmp_path: Path, method: str, epsilon: float
) -> None:
    assert not verify_run(run_of(method, tmp_path / "run", epsilon=epsilon)).differences


def test_an_honest_run_of_flat_images_agrees(tmp_path: Path) -> None:
    """Lower than the usual number of low frequencies, which is one number for both directions."""
    images = np.random.default_rng(0).integers(0, 256, (60, 1, 8, 20), dtype=np.uint8)
    data = LabelledImages(images, np.arange(60) % 2, ("a", "b"), "flat", public=True)
    Baseline(baseline("moments", epsilon=3.0)).fit(data, out=tmp_path / "run")
    assert verify_run(tmp_path / "run").differences == []
