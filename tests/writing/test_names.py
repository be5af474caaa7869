"""Names of people stay where every system can have them as names of folders; else classes are numbered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from datalens.writing import Contents, SampleFormat, write_samples
from datalens.writing.names import folder_names


def test_names_of_people_stay() -> None:
    names = ("console", "com", "com10", "aux in", "Fähre", "trains", "a.b", "x" * 100)
    assert folder_names(names) == names


@pytest.mark.parametrize(
    "names", [("../up", "a"), ("a/b", "c"), (".hidden", "a"), ("train", "test"), ("A", "a"), ("x" * 200, "y"),
              ("", "y"), ("a.", "b"), (" a", "b"), ("a\nb", "c"), ("a\\b", "c"), ("..", "c"), ("Train", "a"),
              ("a\0", "b"), ("a\x7f", "b"), ("a\u2028b", "c"), ("\udcff", "b"), ("con", "b"), ("NUL.txt", "b"),
              ("Com1", "b"), ("lpt9.a.b", "c"), ("stra\u00dfe", "STRASSE"), ("\u00e9", "e\u0301"),
              ("\u20ac" * 90, "b")]
)  # fmt: skip
def test_names_that_cannot_name_a_folder_become_numbers(tmp_path: Path, names: tuple[str, ...]) -> None:
    images = np.zeros((2, 1, 5, 4), np.uint8)
    chunks = [(images, np.array([0, 1]))]
    write_samples(tmp_path / "f", SampleFormat.FOLDER, Contents.of(images, names), chunks)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f"]
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == ["0", "1"]
