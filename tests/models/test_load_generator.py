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
from safetensors.torch import load_file, save_file
from small_baselines import SMALL
from small_runs import train

from datalens import DataLens, data
from datalens.baselines.model import Baseline, load_run
from datalens.baselines.registry import baseline
from datalens.data.images import LabelledImages
from datalens.models.judge import JudgedGenerator
from datalens.models.load_generator import TRIES, Generator, picture
from datalens.student.latent import LatentLaw

FINISH = {
    "jitter": 0.7,
    "contrast": 1.5,
    "lightness": 0.2,
    "lightness_spread": 0.3,
    "outside": "black",
}
JUDGED = {"num_steps": 5, "judge_images": 300, "judge_size": 20, "rank": 4, "low_frequencies": 3}
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


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose judge names images."""
    run = tmp_path_factory.mktemp("judged") / "run"
    Baseline(baseline("judged", JUDGED, epsilon=8.0)).fit(colour_shapes(), out=run)
    return run


def judge_of(run: Path) -> JudgedGenerator:
    """The package's generator, with its judge."""
    generator = load_run(run).generator
    assert isinstance(generator, JudgedGenerator) and generator.judge.knows
    return generator


def names(generator: JudgedGenerator, images: torch.Tensor) -> torch.Tensor:
    """What the package's judge calls images uint8."""
    return generator.judge(images.float() / 255).argmax(1)


def tampered(run: Path, folder: Path, **changes: torch.Tensor) -> Path:
    """The two files of a run's release in another folder, with tensors of its judge changed."""
    folder.mkdir()
    tensors = load_file(run / "release" / "generator.safetensors")
    changed = {f"judge.{name}": tensor for name, tensor in changes.items()}
    assert changed.keys() <= tensors.keys()
    save_file(tensors | changed, folder / "generator.safetensors")
    told = json.loads((run / "release" / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(told))
    return folder


def test_judged(judged: Path) -> None:
    agrees(judged)


def test_judged_with_another_finish(tmp_path: Path) -> None:
    """In one channel, too."""
    settings = JUDGED | {"finish": FINISH}
    Baseline(baseline("judged", settings, epsilon=8.0)).fit(data.load("shapes"), out=tmp_path / "run")
    agrees(tmp_path / "run")
    images, labels = Generator(tmp_path / "run" / "release").sample(50, seed=1)
    assert torch.equal(labels, names(judge_of(tmp_path / "run"), images))


def test_judged_whatever_it_is_called(judged: Path, tmp_path: Path) -> None:
    folder = tampered(judged, tmp_path / "copy")
    told = json.loads((folder / "config.json").read_text())
    told["config"] = {"settings": {"finish": told["config"]["settings"]["finish"]}}
    (folder / "config.json").write_text(json.dumps(told))
    mine, theirs = (Generator(path).sample(30, seed=2) for path in (folder, judged / "release"))
    assert torch.equal(mine[0], theirs[0]) and torch.equal(mine[1], theirs[1])


def test_labels_are_the_judges_names(judged: Path) -> None:
    images, labels = Generator(judged / "release").sample(250, seed=3)
    assert (images.shape[0], labels.shape, labels.dtype) == (250, (250,), torch.int64)
    assert torch.equal(labels, names(judge_of(judged), images))
    assert len(labels.unique()) > 1


def test_labels_asked_for_are_drawn_until_the_judge_agrees(judged: Path, tmp_path: Path) -> None:
    generator, asked = judge_of(judged), [0, 1] * 75
    silent = Generator(tampered(judged, tmp_path / "silent", length=torch.tensor(0.0)))
    first, _ = silent.sample(150, asked, seed=4)
    alone = Generator(judged / "release")
    images, labels = alone.sample(150, asked, seed=4)
    assert labels.tolist() == asked
    agreed = names(generator, first) == labels
    assert 0 < int(agreed.sum()) < 150
    assert torch.equal(images[agreed], first[agreed])
    assert all(not torch.equal(*pair) for pair in zip(images[~agreed], first[~agreed], strict=True))
    assert int((names(generator, images) == labels).sum()) > int(agreed.sum())
    assert torch.equal(images, alone.sample(150, asked, seed=4)[0])


def test_a_judge_of_length_zero_names_what_was_asked(judged: Path, tmp_path: Path) -> None:
    blanks = {name: torch.zeros_like(tensor) for name, tensor in judge_of(judged).judge.state_dict().items()}
    alone = Generator(tampered(judged, tmp_path / "blank", **blanks))
    images, labels = alone.sample(120, seed=5)
    assert torch.equal(
        labels, torch.randint(len(alone.classes), (120,), generator=torch.Generator().manual_seed(5))
    )
    again, asked = alone.sample(120, labels.tolist(), seed=5)
    assert torch.equal(again, images) and torch.equal(asked, labels)


def test_a_stubborn_judge_is_asked_so_often(
    judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its head knows class 1 alone."""
    head_YK = torch.zeros_like(judge_of(judged).judge.head_YK)
    head_YK[1, -1] = 1.0
    alone = Generator(tampered(judged, tmp_path / "stubborn", head_YK=head_YK))
    assert alone.sample(20)[1].tolist() == [1] * 20
    drawn, draw = [], alone.draw

    def counted(latents_BZ: torch.Tensor, labels_B: torch.Tensor) -> torch.Tensor:
        drawn.append(draw(latents_BZ, labels_B))
        return drawn[-1]

    monkeypatch.setattr(alone, "draw", counted)
    images, labels = alone.sample(4, [0, 1, 0, 1])
    assert [len(few) for few in drawn] == [4] + [2] * (TRIES - 1)
    assert labels.tolist() == [0, 1, 0, 1]
    last = (drawn[-1] * 255).round().to(torch.uint8)
    assert torch.equal(images[[0, 2]], last)


def test_a_judged_run_without_this_package_and_without_numpy(judged: Path, tmp_path: Path) -> None:
    program, drawn = judged / "release" / "load_generator.py", tmp_path / "drawn"
    words = [sys.executable, "-I", "-W", "ignore", "-c", BLOCK, str(program), "30", str(drawn)]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    paths = sorted(drawn.iterdir())
    images = torch.from_numpy(np.stack([np.asarray(Image.open(path)) for path in paths])).permute(0, 3, 1, 2)
    told = [int(path.stem.split("-")[-1]) for path in paths]
    assert names(judge_of(judged), images).tolist() == told


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
