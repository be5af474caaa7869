"""A class name is printed, typed and put into a certificate: what cannot be is refused, wherever it comes from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datalens.data import LabelledImages, load
from datalens.data.arrays import labelled_images
from datalens.data.class_names import MOST_CHARACTERS, declare_classes
from datalens.errors import DataError

UNREADABLE = {
    "a\nb": "cannot be printed",
    "a\r": "cannot be printed",
    "a\tb": "cannot be printed",
    "\x1b[31mred": "cannot be printed",
    "a\x7f": "cannot be printed",
    "a\u2028b": "cannot be printed",
    "a\u202eb": "cannot be printed",
    "a\udcffb": "cannot be printed",
    "a\u00a0b": "cannot be printed",
    " a": "begins or ends with a space",
    "a ": "begins or ends with a space",
    "x" * (MOST_CHARACTERS + 1): "101 characters; use at most 100",
    "x" * 100_000: "100000 characters; use at most 100",
}
IMAGES = np.zeros((2, 1, 4, 4), np.uint8)


def complaint(call) -> str:
    """The one line of a refusal, in plain characters."""
    with pytest.raises(DataError) as caught:
        call()
    said = str(caught.value)
    assert said.isprintable()
    assert len(said) < 400
    return said


@pytest.mark.parametrize(("name", "rule"), UNREADABLE.items(), ids=lambda value: ascii(value)[:20])
def test_refused_with_the_name_and_the_rule_wherever_it_comes_from(name: str, rule: str) -> None:
    ways = {
        "found": lambda: labelled_images(IMAGES, [name, "b"]),
        "declared": lambda: labelled_images(IMAGES, ["b", "b"], classes=[name, "b"]),
        "declaration": lambda: declare_classes(["b", name]),
        "made": lambda: LabelledImages(IMAGES, np.array([0, 1]), ("b", name), "mine", public=False),
    }
    for call in ways.values():
        said = complaint(call)
        assert rule in said
        assert ascii(name)[:15] in said


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "x" * 101, "a "])
def test_a_folder_of_that_name_is_refused_before_its_images_are_read(tmp_path: Path, name: str) -> None:
    for place in (name, "b"):
        (tmp_path / place).mkdir()
        Image.fromarray(IMAGES[0, 0]).save(tmp_path / place / "1.png")
    (tmp_path / "b" / "1.png").write_bytes(b"damaged, which would be said later")
    assert ascii(name)[:15] in complaint(lambda: load(tmp_path))
    with pytest.raises(DataError, match="not a declared class") as caught:
        load(tmp_path, classes=["b"])
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "name", ["0", "-1", "Fähre", "ärztlich", "猫", "a/b", "../up", ".hidden", "CON", "a b", "<b>", "😀"]
)
def test_names_of_people_are_kept(name: str) -> None:
    assert labelled_images(IMAGES, [name, "b"], classes=[name, "b"]).classes == (name, "b")


def test_one_line_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from datalens.cli.main import main

    np.savez(tmp_path / "own.npz", x=IMAGES, y=np.array(["a\nb", "c"]))
    words = ["train", str(tmp_path / "own.npz"), "--out", str(tmp_path / "run"), "--num-records", "10"]
    for more in ([], ["--classes", "a\nb,c"]):
        assert main([*words, *more]) == 2
        said = capsys.readouterr().err
        assert len(said.splitlines()) == 1
        assert r"'a\nb'" in said
    assert not (tmp_path / "run").exists()
