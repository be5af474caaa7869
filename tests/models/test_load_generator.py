"""The program beside a released generator draws what the package draws, and needs nothing of the package."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from small_baselines import SMALL
from small_runs import train

from datalens import DataLens, data
from datalens.baselines.model import Baseline, load_run
from datalens.baselines.registry import baseline
from datalens.data.images import LabelledImages
from datalens.models.load_generator import Generator, picture
from datalens.student.latent import LatentLaw

FINISH = {
    "jitter": 0.7,
    "contrast": 1.5,
    "lightness": 0.2,
    "lightness_spread": 0.3,
    "outside": "black",
}
BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("datalens", "numpy", "scipy", "PIL", "pydantic", "click"):
            raise ModuleNotFoundError(name + " is not here", name=name)
sys.meta_path.insert(0, Block())
import runpy
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def colour_shapes() -> LabelledImages:
    """Drawn shapes in three channels."""
    grey = data.load("shapes")
    return replace(grey, images=np.repeat(grey.images, 3, axis=1))


def agrees(run: Path) -> None:
    """The program's images are the package's, bit for bit, and its latents have their shape and range."""
    model, alone = load_run(run), Generator(run / "release")
    rng = torch.Generator().manual_seed(1)
    latents, labels = model.facts.latent.latents(40, rng), model.facts.latent.labels(40, rng)
    assert torch.equal(alone.draw(latents, labels), model.generator(latents, labels))
    mine = alone.latents(4000, rng)
    theirs = model.facts.latent.latents(4000, rng)
    assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
    assert torch.allclose(mine.std(0), theirs.std(0), rtol=0.15, atol=0.05)
    assert tuple(alone.classes) == model.classes


@pytest.mark.parametrize("law", list(LatentLaw))
@pytest.mark.parametrize("finish", [{}, FINISH], ids=["plain", "finished"])
def test_datalens(tmp_path: Path, law: LatentLaw, finish: dict[str, Any]) -> None:
    student = {"student__latent_law": law, "student__smoothing": 2 if finish else 0}
    train(tmp_path / "run", **student, **({"student__finish": finish} if finish else {}))
    agrees(tmp_path / "run")


@pytest.mark.parametrize("method", ["moments", "dp-merf", "pate-gan"])
def test_methods_in_colour(tmp_path: Path, method: str) -> None:
    settings = SMALL[method] | ({"finish": FINISH} if method == "moments" else {})
    Baseline(baseline(method, settings, epsilon=8.0)).fit(colour_shapes(), out=tmp_path / "run")
    agrees(tmp_path / "run")


def test_runs_without_this_package_and_without_numpy(tmp_path: Path) -> None:
    train(tmp_path / "run")
    program = tmp_path / "run" / "release" / "load_generator.py"
    words = [sys.executable, "-I", "-W", "ignore", "-c", BLOCK, str(program), "130", str(tmp_path / "drawn")]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    drawn = [np.asarray(Image.open(path)) for path in (tmp_path / "drawn").iterdir()]
    assert (len(drawn), {image.shape for image in drawn}) == (130, {(8, 8)})
    assert len({image.tobytes() for image in drawn}) > 100
    assert {path.stem[6:] for path in (tmp_path / "drawn").iterdir()} == {"-class-0", "-class-1"}


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_are_read_back(channels: int) -> None:
    image = torch.randint(
        256, (channels, 4, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )
    read = np.asarray(Image.open(io.BytesIO(picture(image))))
    assert np.array_equal(read.reshape(4, 6, channels), image.permute(1, 2, 0).numpy())


def test_the_block_of_that_test_blocks(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import datalens\n")
    words = [sys.executable, "-I", "-c", BLOCK, str(tmp_path / "program.py")]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert "datalens is not here" in answer.stderr


def test_labels_and_seed(tmp_path: Path) -> None:
    train(tmp_path / "run")
    alone = Generator(tmp_path / "run" / "release")
    first, labels = alone.sample(5, [1, 0, 1, 0, 1], seed=3)
    assert labels.tolist() == [1, 0, 1, 0, 1]
    assert torch.equal(first, alone.sample(5, [1, 0, 1, 0, 1], seed=3)[0])
    assert not torch.equal(first, alone.sample(5, [1, 0, 1, 0, 1])[0])


def test_says_how_it_is_used(tmp_path: Path) -> None:
    train(tmp_path / "run")
    program = tmp_path / "run" / "release" / "load_generator.py"
    answer = subprocess.run([sys.executable, program, "0", "x"], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (
        1,
        "usage: python load_generator.py NUMBER NEW_FOLDER\n",
    )


def test_the_certificate_vouches_for_it(tmp_path: Path) -> None:
    train(tmp_path / "run")
    release = tmp_path / "run" / "release"
    source = resources.files("datalens.models").joinpath("load_generator.py").read_bytes()
    assert (release / "load_generator.py").read_bytes() == source
    assert "load_generator.py" in json.loads((release / "certificate.json").read_text())["files"]
    assert DataLens.load(tmp_path / "run").sample(2)[0].shape == (2, 1, 8, 8)


def test_a_folder_that_is_there_is_one_line(tmp_path: Path) -> None:
    train(tmp_path / "run")
    program = tmp_path / "run" / "release" / "load_generator.py"
    words = [sys.executable, program, "3", tmp_path]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    assert answer.returncode == 1 and "File exists; give a new folder" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
