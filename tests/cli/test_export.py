"""``datalens export``: folders that others' readers open, with card and certificate."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datalens.data import load
from datalens.writing.export import ExportForm

CLASSES = {"disc", "square", "cross", "triangle"}
LOAD = """
import json, sys
import numpy as np
from datasets import load_dataset
rows = load_dataset(sys.argv[1], split="train")
names = rows.features["label"].names
pictures = [[names[row["label"]], np.asarray(row["image"]).tolist()] for row in rows]
print(json.dumps({"names": names, "pictures": pictures}))
"""


@pytest.fixture
def loaded(tmp_path: Path):
    """What Hugging Face's ``datasets`` makes of a folder, without a network."""

    def read(folder: Path) -> dict:
        offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")}
        words = [sys.executable, "-c", LOAD, str(folder)]
        answer = subprocess.run(
            words, capture_output=True, text=True, env={**os.environ, **offline}, timeout=240, check=False
        )
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout.splitlines()[-1])

    return read


@pytest.mark.parametrize("form", list(ExportForm))
def test_datasets_opens_it(call, trained, tmp_path, loaded, form) -> None:
    """Images and class names are those that ``sample`` draws from the same seed."""
    out = tmp_path / "set"
    answer = call("export", trained, "--to", form, "-n", 20, "--seed", 4, "--out", out)
    assert (answer.status, answer.err) == (0, "")
    assert call("sample", trained, "-n", 20, "--seed", 4, "--out", tmp_path / "s.npz").status == 0
    found = loaded(out)
    assert set(found["names"]) == CLASSES
    with np.load(tmp_path / "s.npz") as archive:
        names = load("shapes").classes
        drawn = [
            [names[label], image[0].tolist()] for image, label in zip(archive["x"], archive["y"], strict=True)
        ]
    assert sorted(found["pictures"]) == sorted(drawn)
    assert form is ExportForm.IMAGEFOLDER or found["pictures"] == drawn
    assert (out / "certificate.json").read_bytes() == (trained / "release" / "certificate.json").read_bytes()


def test_the_card(call, trained, tmp_path) -> None:
    out = tmp_path / "set"
    words = ("export", trained, "--to", "hf", "-n", 1200, "--out", out, "--license", "cc-by-4.0")
    answer = call(*words, "--json", tmp_path / "told.json")
    assert answer.status == 0, answer.err
    card = (out / "README.md").read_text()
    front, body = re.fullmatch(r"---\n(.*?)\n---\n(.*)", card, re.DOTALL).groups()
    assert "yet to name" not in card
    assert {"license: cc-by-4.0", "- 1K<n<10K", "- differential-privacy"} <= set(front.splitlines())
    guarantee = json.loads((out / "certificate.json").read_text())["guarantee"]
    assert f"delta {guarantee['delta']:g}" in body
    for heading in ("promised", "made", "public", "not covered", "Limits", "load", "cite"):
        assert re.search(f"^## .*{heading}", body, re.MULTILINE), heading
    assert json.loads((tmp_path / "told.json").read_text())["license"] == "cc-by-4.0"


def test_our_own_reader_opens_an_image_folder(call, trained, tmp_path) -> None:
    assert call("export", trained, "--to", "imagefolder", "-n", 12, "--out", tmp_path / "set").status == 0
    assert load(tmp_path / "set").num_records == 12
    assert set(load(tmp_path / "set").classes) == CLASSES


def test_what_is_there_is_left_as_it_is(call, trained, tmp_path) -> None:
    (tmp_path / "set").mkdir()
    answer = call("export", trained, "--to", "parquet", "-n", 5, "--out", tmp_path / "set")
    assert "exists already" in answer.complaint
    assert list((tmp_path / "set").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "csv", "-n", 5), "'csv'"),
        (("--to", "hf", "-n", 0), "too small"),
        (("--to", "hf", "-n", 5, "--license", "mine"), "'mine'"),
        (("--to", "hf", "-n", 10**15), "GiB"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(call, trained, tmp_path, words, said) -> None:
    assert said in call("export", trained, *words, "--out", tmp_path / "set").complaint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("generator.safetensors", lambda content: content[:-1] + bytes([content[-1] ^ 1])),
        ("certificate.json", lambda _: b'{"files": {}}'),
        ("certificate.json", lambda _: b"[]"),
        ("certificate.json", lambda _: b"no"),
    ],
)
def test_a_certificate_of_another_generator_is_no_certificate(call, trained, tmp_path, name, change) -> None:
    shutil.copytree(trained, tmp_path / "run")
    place = tmp_path / "run" / "release" / name
    place.write_bytes(change(place.read_bytes()))
    answer = call("export", tmp_path / "run", "--to", "hf", "-n", 5, "--out", tmp_path / "set")
    assert name in answer.complaint
    assert not (tmp_path / "set").exists()


def test_what_is_not_fit_for_publication_says_so_in_name_and_card(call, quick, tmp_path) -> None:
    words = ("train", "shapes", "--out", tmp_path / "run", *quick, "--insecure-seed", "3")
    assert call(*words).status == 0
    out = tmp_path / "set-NOT-FOR-PUBLICATION"
    answer = call("export", tmp_path / "run", "--to", "imagefolder", "-n", 5, "--out", tmp_path / "set")
    assert (answer.status, out.is_dir()) == (0, True)
    assert "NOT FIT FOR PUBLICATION" in answer.last + answer.err
    card = (out / "README.md").read_text()
    assert "- not-for-publication" in card
    assert "- differential-privacy" not in card
    assert "NOT FIT FOR PUBLICATION" in card


def test_a_file_for_each_image(call, trained, tmp_path) -> None:
    assert call("export", trained, "--to", "imagefolder", "-n", 7, "--out", tmp_path / "set").status == 0
    pictures = list((tmp_path / "set" / "train").glob("*/*.png"))
    assert len(pictures) == 7
    assert {np.asarray(Image.open(path)).shape for path in pictures} == {(16, 16)}


def test_one_name_is_not_folder_and_answer(call, trained, tmp_path) -> None:
    target = tmp_path / "out"
    answer = call("export", trained, "--to", "imagefolder", "-n", "2", "--out", target, "--json", target)
    assert answer.status == 2 and "is the folder of --out too" in answer.err and not target.exists()


def test_a_promise_that_the_ledger_does_not_bear_out_is_not_exported(call, trained, tmp_path) -> None:
    path = Path(shutil.copytree(trained, tmp_path / "run")) / "release" / "certificate.json"
    certificate = json.loads(path.read_text())
    certificate["guarantee"]["epsilon"] = 0.01
    path.write_text(json.dumps(certificate))
    answer = call("export", tmp_path / "run", "--to", "imagefolder", "-n", 2, "--out", tmp_path / "set")
    assert "says another epsilon than its ledger gives" in answer.complaint
    assert not (tmp_path / "set").exists()
