"""Ten times as many images in a file need no more memory: what is held is a chunk, not the sample."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_runs import small_config

from datalens.data.images import LabelledImages
from datalens.writing import SampleFormat

SOURCES = Path(__file__).parents[2] / "src"
FEW, MANY, VERY_MANY = 1_000, 6_000, 20_000
SIDE = 64
MIB_AN_IMAGE = 3 * SIDE * SIDE / 2**20
SAMPLE = """
import sys
import torch
from datalens.cli.main import main
torch.set_num_threads(1)
status = main(sys.argv[1:])
for line in open("/proc/self/status"):
    if line.startswith("VmHWM:"):
        print(int(line.split()[1]) / 1024)
sys.exit(status)
"""

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="a process reads its own peak from /proc, which is Linux's"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny generator of images of 64x64 in colour."""
    from datalens import DataLens

    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (60, 3, SIDE, SIDE), dtype=np.uint8)
    labels = np.arange(60) % 2
    data = LabelledImages(pixels, labels.astype(np.int64), ("a", "b"), "colour", public=False)
    root = tmp_path_factory.mktemp("memory") / "run"
    config = small_config(student__hidden_units=2, student__channels=1, voting__num_steps=1)
    DataLens(config).fit(data, out=root)
    return root


def peak(run: Path, count: int, target: Path, form: SampleFormat) -> float:
    """MiB resident at most in a process that draws ``count`` images into a file."""
    words = ["sample", run, "-n", count, "--out", target, "--format", form, "--quiet"]
    process = subprocess.run(
        [sys.executable, "-c", SAMPLE, *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1"},
        timeout=280,
    )
    assert process.returncode == 0, process.stderr
    return float(process.stdout)


@pytest.mark.parametrize(
    ("form", "many"),
    [
        (SampleFormat.NPZ, MANY),
        *(
            pytest.param(form, VERY_MANY, marks=pytest.mark.slow)
            for form in SampleFormat
            if form is not SampleFormat.IDX  # grey only; it keeps nothing, see the loop in its twenty lines
        ),
    ],
)
def test_memory_does_not_grow_with_the_number(
    run: Path, tmp_path: Path, form: SampleFormat, many: int
) -> None:
    if form in (SampleFormat.PARQUET, SampleFormat.DATASETS):
        pytest.importorskip("pyarrow", reason="pyarrow (extra parquet) is not installed")
    peaks = [peak(run, count, tmp_path / f"{count}{form.suffix}", form) for count in (FEW, many)]
    held = (many - FEW) * MIB_AN_IMAGE
    assert peaks[1] - peaks[0] < held / 2, f"MiB for {FEW} and {many} images: {peaks}"
