"""``datalens data``: what is there, what is whole, and what is not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from tiny_colour import write_celeba, write_emoji, write_places
from tiny_set import TINY, write_tiny

from datalens.data import catalog


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog.PUBLISHED, "tiny", TINY)


def test_list(call, tmp_path) -> None:
    answer = call("data", "list", "--data-root", tmp_path, "--json", tmp_path / "j")
    assert answer.status == 0
    assert "mnist" in answer.out
    states = {row["name"]: row["state"] for row in json.loads((tmp_path / "j").read_text())["sources"]}
    assert states["shapes"] == "drawn"
    assert states["tiny"] == "to be fetched"
    write_tiny(tmp_path / "tiny", packed=True)
    again = json.loads(call("data", "list", "--data-root", tmp_path, "--json", "-").out)
    assert {row["name"]: row["state"] for row in again["sources"]}["tiny"] == "here"


def test_fetch_leaves_a_complete_set_alone(call, tmp_path) -> None:
    write_tiny(tmp_path / "tiny", packed=False)
    answer = call("data", "fetch", "tiny", "--data-root", tmp_path)
    assert answer.status == 0
    assert "already there" in answer.out


def test_fetch_of_what_nobody_knows(call) -> None:
    assert "can't be fetched; the names are mnist" in call("data", "fetch", "imagenet").complaint


def test_check_of_a_published_set(call, tmp_path) -> None:
    missing = call("data", "check", "tiny", "--data-root", tmp_path)
    assert "4 of 4 files are missing or damaged" in missing.complaint
    write_tiny(tmp_path / "tiny", packed=False)
    whole = call("data", "check", "tiny", "--data-root", tmp_path, "--json", tmp_path / "j")
    assert whole.status == 0
    found = json.loads((tmp_path / "j").read_text())
    assert found["ok"] is True
    assert [split["records"] for split in found["splits"]] == [6, 3]
    path = tmp_path / "tiny" / "train-labels-idx1-ubyte"
    path.write_bytes(path.read_bytes()[:-1] + b"\7")
    damaged = call("data", "check", "tiny", "--data-root", tmp_path, "--json", tmp_path / "j")
    assert (
        "1 of 4 files are missing or damaged, the first train-labels-idx1-ubyte (damaged)"
        in damaged.complaint
    )
    assert json.loads((tmp_path / "j").read_text())["ok"] is False


def test_check_of_ones_own_folder(call, tmp_path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for number in range(2):
            Image.fromarray(np.full((8, 8), 9, np.uint8)).save(tmp_path / "pets" / name / f"{number}.png")
    answer = call("data", "check", tmp_path / "pets")
    assert answer.status == 0
    assert "4 images of 1x8x8, 2 classes, 3 exact repeats" in answer.out
    assert "test: none" in answer.out and "test/ beside train/" in answer.out
    (tmp_path / "pets" / "cat" / "bad.png").write_bytes(b"no")
    complaint = call("data", "check", tmp_path / "pets").complaint
    assert "1 of 5 files" in complaint
    assert "--skip-damaged" in complaint
    assert "fetch" not in complaint
    skipped = call("data", "check", tmp_path / "pets", "--skip-damaged")
    assert skipped.status == 0
    assert skipped.err.count("bad.png") == 1 and len(skipped.err.splitlines()) == 1, "said once"
    assert "4 images of 1x8x8" in skipped.out


def test_a_mistyped_path_is_told_what_lies_beside_it(call, tmp_path) -> None:
    (tmp_path / "scans").mkdir()
    (tmp_path / "faces.npz").write_bytes(b"")
    complaint = call("data", "check", f"{tmp_path}/scan/").complaint
    assert "no such folder" in complaint
    assert f"did you mean '{tmp_path}/scans'?" in complaint
    assert "faces.npz" in call("data", "check", tmp_path / "face.npz").complaint
    assert "did you mean 'mnist'?" in call("data", "check", "minst").complaint
    assert "did you mean" not in call("data", "check", tmp_path / "deep" / "er").complaint


def test_check_of_shapes_and_of_npz(call, tmp_path) -> None:
    shapes = call("data", "check", "shapes")
    assert shapes.status == 0 and "test: none" not in shapes.out
    np.savez(tmp_path / "f.npz", x=np.zeros((2, 8, 8)), y=np.arange(2))
    assert "give --value-range" in call("data", "check", tmp_path / "f.npz").complaint
    assert call("data", "check", tmp_path / "f.npz", "--value-range", "0..1").status == 0
    (tmp_path / "g.npz").write_bytes(b"PK")
    assert "g.npz" in call("data", "check", tmp_path / "g.npz").complaint


def test_sets_of_very_many_files(call, tmp_path) -> None:
    absent = json.loads(call("data", "list", "--data-root", tmp_path, "--json", "-").out)["sources"]
    states = {row["name"]: row["state"] for row in absent}
    assert states["celeba-hair"] == states["places365"] == "to be got by hand"
    assert states["emoji"] == "to be fetched"
    for name, maker in (("celeba-gender", "CelebA project"), ("places365", "Places project")):
        for verb in ("fetch", "check"):
            complaint = call("data", verb, name, "--data-root", tmp_path).complaint
            assert f"from the {maker}" in complaint.replace("Places project of", "Places project")
            assert "and put them into" in complaint
    write_emoji(write_places(write_celeba(tmp_path, 16)))
    for name, shown in (
        ("celeba-gender", "train: 8 images of 3x64x64, 2 classes"),
        ("celeba-hair", "test: 3 images of 3x64x64, 3 classes"),
        ("places365", "test: 37 images of 3x64x64, 3 classes"),
        ("emoji", "images of 3x64x64, 9 classes"),
    ):
        answer = call("data", "check", name, "--data-root", tmp_path)
        assert answer.status == 0 and shown in answer.out, answer
        assert "already there" in call("data", "fetch", name, "--data-root", tmp_path).out
    (tmp_path / "celeba" / "img_align_celeba" / "000002.jpg").unlink()
    assert (
        "pictures (train) (damaged)"
        in call("data", "check", "celeba-hair", "--data-root", tmp_path).complaint
    )


@pytest.mark.parametrize("source", ["", "nowhere", "x.npz"])
def test_sources_that_are_not_there(call, source) -> None:
    assert call("data", "check", source).complaint


def test_check_of_a_table_names_columns_repeats_and_what_was_laid_over(call, tmp_path) -> None:
    clear, black = Image.new("RGBA", (8, 8), (0, 0, 0, 0)), Image.new("RGB", (8, 8))
    for number, image in enumerate([clear, clear, black, black, black]):
        image.save(tmp_path / f"{number}.png")
    rows = [
        "scan,finding,who",
        *(f"{number}.png,{'ill' if number else 'well'},p{number}" for number in range(5)),
    ]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    words = ("data", "check", tmp_path / "t.csv", "--path-column", "scan", "--label-column", "finding")
    assert "give --path-column" not in call(*words).err
    assert "give --label-column" in call("data", "check", tmp_path / "t.csv").complaint
    answer = call(*words, "--group-column", "who", "--json", tmp_path / "j")
    assert answer.status == 0
    assert (
        "5 images of 3x8x8, 2 classes, 3 exact repeats (2 different images, the most frequent 3 times)"
        in answer.out
    )
    assert "2 see-through images laid over white; choose with --background" in answer.err
    [split] = json.loads((tmp_path / "j").read_text())["splits"]
    assert (split["listed"], split["repeated"], split["copied"], split["most_copies"]) == (5, 3, 2, 3)
    on_black = call(*words, "--background", "black")
    assert "4 exact repeats (1 different images, the most frequent 5 times)" in on_black.out
    assert "see-through" not in on_black.err
    assert "is no colour" in call(*words, "--background", "colourless").complaint


def test_check_says_how_many_groups_there_are_and_how_large_they_get(call, tmp_path) -> None:
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    rows = [f"a.png,ill,{person}" for person in ("ann", "bob", "ann", "cy", "ann")]
    (tmp_path / "t.csv").write_text("\n".join(["path,label,person", *rows]))
    answer = call("data", "check", tmp_path / "t.csv", "--group-column", "person", "--json", tmp_path / "j")
    assert answer.status == 0, answer.err
    assert "5 times), 3 groups of at most 3" in answer.out
    (split,) = json.loads((tmp_path / "j").read_text())["splits"]
    assert (split["groups"], split["largest_group"]) == (3, 3)
    assert "groups" not in call("data", "check", tmp_path / "t.csv").out
