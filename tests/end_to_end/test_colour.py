"""A run on colour images of 64x64 from the command line: the paper's networks and compact ones, then samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_colour import write_celeba, write_emoji, write_places

from datalens.cli.main import main
from datalens.student import update

SMALL = """
[voting]
num_teachers = 3
num_steps = 2
batch_size = 4
top_k = 20
noise_stddev = 4.0
vote_threshold = 0.3
[teachers]
steps = 1
first_steps = 1
[student]
hidden_units = 8
channels = 4
smoothing = 1
"""


@pytest.mark.parametrize(
    ("source", "recipe"),
    [
        ("celeba-gender", "celeba-gender-paper"),
        ("celeba-hair", "colour-quick"),
        ("places365", "places365-paper"),
        ("emoji", "emoji-paper"),
        ("emoji", "emoji-quick"),
    ],
)
def test_a_run_goes_from_the_makers_files_to_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, recipe: str
) -> None:
    monkeypatch.setattr(update, "SETTLING_IMAGES", 12)
    root, run = tmp_path / "root", tmp_path / "run"
    {"celeba": write_celeba, "places365": write_places, "emoji": write_emoji}[source.partition("-")[0]](root)
    settings = tmp_path / "small.toml"
    settings.write_text(SMALL)
    words = ["train", source, "--data-root", root, "--recipe", recipe, "--config", settings, "--out", run]
    words += ["--epsilon", "1000", "--insecure-seed", "0", "--quiet"]
    assert main([str(word) for word in words]) == 0
    out = tmp_path / "samples.npz"
    assert main(["sample", str(run), "--num-samples", "6", "--out", str(out), "--quiet"]) == 0
    (found,) = tmp_path.glob("samples*.npz")
    with np.load(found) as samples:
        images = next(samples[name] for name in samples.files if samples[name].ndim == 4)
        assert images.shape[0] == 6 and images.size == 6 * 3 * 64 * 64 and images.dtype == np.uint8
    assert len(list(run.glob("release*/certificate.json"))) == 1
