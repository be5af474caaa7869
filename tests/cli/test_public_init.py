"""``datalens train --public-init``: what it says, and every mistake."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datalens.audit.verify import verify_run

TINY = (
    *("--num-records", 60, "--classes", "a,b", "--num-teachers", 10, "--top-k", 5, "--num-steps", 2),
    *("--batch-size", 4, "--epsilon", 30),
)
SETTINGS = """
[teachers]
kind = "KIND"
[student]
hidden_units = 8
channels = 4
[public_init]
steps = 3
batch_size = 8
"""


@pytest.fixture
def words(tmp_path: Path) -> list[object]:
    """``train`` on 60 images of 8x8, two classes, with kernel teachers."""
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "people.npz", x=rng.integers(0, 256, (60, 8, 8), dtype=np.uint8), y=np.arange(60) % 2)
    (tmp_path / "s.toml").write_text(SETTINGS.replace("KIND", "kernel"))
    return [
        "train",
        tmp_path / "people.npz",
        "--out",
        tmp_path / "run",
        *TINY,
        "--config",
        tmp_path / "s.toml",
    ]


def folder_of(root: Path, classes: tuple[str, ...] = ("a", "b"), size: int = 12) -> Path:
    """A folder of colour images of different sizes."""
    rng = np.random.default_rng(2)
    for number, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        for index in range(5):
            side = size + number + index
            pixels = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / name / f"{index}.png")
    return root


def test_a_published_set(call, words, tmp_path) -> None:
    answer = call(*words, "--public-init", "shapes")
    assert answer.status == 0, answer.err
    assert (
        "public start: the generator starts (kernel teachers have no weights) from 3 steps on 4000 images of shapes, "
        "each with a class by lot, as their classes are others"
    ) in answer.out
    assert verify_run(tmp_path / "run", replay=True).differences == []
    assert "public-init.safetensors" in (tmp_path / "run" / "release" / "README.md").read_text()


def test_a_folder_with_the_same_classes_and_discriminators_that_start(call, words, tmp_path) -> None:
    (tmp_path / "s.toml").write_text(SETTINGS.replace("KIND", "paper"))
    folder = folder_of(tmp_path / "pictures")
    complaint = call(*words, "--public-init", folder).complaint
    assert "--public-init-is-public" in complaint
    assert not (tmp_path / "run").exists()
    answer = call(*words, "--public-init", folder, "--public-init-is-public")
    assert answer.status == 0, answer.err
    assert "generator and discriminators start from 3 steps on 10 images" in answer.out
    assert "with their classes" in answer.out
    config = (tmp_path / "run" / "release" / "config.json").read_text()
    name = json.loads(config)["public_init"]["name"]
    assert re.fullmatch("SHA-256 [0-9a-f]{16}", name)
    certificate = (tmp_path / "run" / "release" / "certificate.json").read_text()
    assert f"public images: {name}" in certificate
    assert "pictures" not in config + certificate  # no part of a path
    assert verify_run(tmp_path / "run").agrees


def test_a_run_on_public_images(call, words, tmp_path) -> None:
    first = ["train", tmp_path / "people.npz", "--out", tmp_path / "first", *TINY[2:]]
    (tmp_path / "plain.toml").write_text(SETTINGS.replace("KIND", "kernel").partition("[public_init]")[0])
    other = np.random.default_rng(5).integers(0, 256, (60, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "other.npz", x=other, y=np.arange(60) % 2)
    first[1] = tmp_path / "other.npz"
    answer = call(*first, "--config", tmp_path / "plain.toml", "--public-data")
    assert answer.status == 0, answer.err
    again = call(*words, "--public-init", tmp_path / "first")
    assert again.status == 0, again.err
    assert "from the run in" in again.out
    needless = call(
        *[*words[:3], tmp_path / "b", *words[4:]],
        "--public-init",
        tmp_path / "first",
        "--public-init-is-public",
    )
    assert "leave it out" in needless.complaint
    private = call(*[*words[:3], tmp_path / "c", *words[4:]], "--public-init", tmp_path / "run")
    assert "learned from people's data" in private.complaint
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--public-init-is-public"], "belongs to --public-init"),
        (["--public-init", "nothere/"], "--public-init nothere/: no such folder"),
        (["--public-init", "nothere"], "--public-init 'nothere': no source of that name"),
        (["--public-init", "people"], "names the images that are to be protected"),
        (["--public-init", "copy", "--public-init-is-public"], "holds the very images"),
        (["--public-init", "more", "--public-init-is-public"], "more than half of them"),
        (["--public-init", "nowhere", "--public-init-is-public"], "no source of that name"),
        (["--public-init", "shapes", "--method", "dp-merf"], "is for the method datalens"),
        ([], "has settings of a public start, and there is none"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(call, words, tmp_path, more, complaint) -> None:
    shutil.copy(tmp_path / "people.npz", tmp_path / "copy.npz")
    with np.load(tmp_path / "people.npz") as people:
        x, y = people["x"], people["y"]
    np.savez(tmp_path / "more.npz", x=np.concatenate([x, 255 - x[:5]]), y=np.concatenate([y, y[:5]]))
    places = {name: tmp_path / "." / f"{name}.npz" for name in ("people", "copy", "more")}
    answer = call(*words, *(places.get(word, word) for word in more))
    assert complaint in answer.complaint
    assert not (tmp_path / "run").exists()


def test_a_resumed_run_keeps_its_start(call, words, tmp_path) -> None:
    assert call(*words, "--public-init", "shapes").status == 0
    resume = ["train", words[1], "--resume", tmp_path / "run"]
    assert "a resumed run keeps it" in call(*resume, "--public-init", "shapes").complaint
    assert call(*resume, "--epsilon", 60, "--num-steps", 3).status == 0
    assert verify_run(tmp_path / "run", replay=True).differences == []


def test_ctrl_c_while_it_learns(words, tmp_path) -> None:
    """The first signal ends it, and nothing is kept."""
    (tmp_path / "s.toml").write_text(
        SETTINGS.replace("KIND", "kernel").replace("steps = 3", "steps = 1000000")
    )
    program = (
        "import sys\nfrom datalens.cli.main import main\nfrom datalens.training import pretraining\n"
        "minibatch = pretraining._minibatch\n"
        "def told(*given):\n    print('learning', flush=True)\n    return minibatch(*given)\n"
        "pretraining._minibatch = told\nsys.exit(main(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", program, *map(str, words), "--public-init", "shapes", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "learning\n"
    process.send_signal(2)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors.splitlines()[-1] == "error: interrupted; nothing was kept"
    assert not (tmp_path / "run").exists()


def test_a_table_is_made_grey_and_its_damaged_files_are_left_out_as_those_of_the_source_are(
    call, words, tmp_path
) -> None:
    folder = folder_of(tmp_path / "pictures", ("a",))
    Image.new("L", (9, 9)).save(folder / "a" / "grey.png")
    (folder / "a" / "0.png").write_bytes(b"no")
    rows = [f"pictures/a/{name}.png,a" for name in (0, 1, 2, "grey")]
    table = tmp_path / "public.csv"
    table.write_text("\n".join(["path,label", *rows]))
    people = folder_of(tmp_path / "scans", size=20)
    source = ["train", people, "--channels", 1, "--image-size", 8, *words[2:], "--public-init-is-public"]
    for public in (table, folder):
        assert "0.png" in call(*source, "--public-init", public).complaint
        assert not (tmp_path / "run").exists()
    answer = call(*source, "--public-init", table, "--skip-damaged")
    assert answer.status == 0, answer.err
    assert "from 3 steps on 3 images" in answer.out
    assert verify_run(tmp_path / "run", replay=True).differences == []


def test_see_through_public_images_lie_on_the_background_of_the_others(call, words, tmp_path) -> None:
    people = folder_of(tmp_path / "scans", size=20)
    clear = folder_of(tmp_path / "clear", ("a",))
    Image.new("LA", (9, 9)).save(clear / "a" / "through.png")
    source = ["train", people, "--channels", 1, "--image-size", 8, *words[2:], "--public-init-is-public"]
    answer = call(*source, "--public-init", clear, "--background", "black")
    assert answer.status == 0, answer.err
    assert "laid over white" not in answer.err
