"""Every block of Python in a document runs, and the pages for beginners run as a whole, commands too.

A page's blocks share one namespace and one folder, in their order. Pages that are run without their commands find
images in ``scans/``. A block that cannot run here says why, in a mark above it.
"""

from __future__ import annotations

import doctest
import json
import re
import shlex
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
from document_blocks import DOCUMENTS, REPOSITORY, SHELL, Block, blocks, name_of
from PIL import Image

from datalens.cli.main import main
from datalens.data.shapes import draw_shapes

PYTHON = [path for path in DOCUMENTS if any(block.language == "python" for block in blocks(path))]
WHOLE = ("docs/tutorial.md", "docs/certificate.md")
"""Pages whose commands are run, too; those of other pages are parsed (``architecture/test_documents.py``)."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def draw_scans(folder: Path, count: int = 120) -> None:
    """Images of two classes."""
    shapes = draw_shapes(count)
    for number in range(count):
        name = "well" if shapes.labels[number] < 2 else "ill"
        (folder / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(shapes.images[number, 0]).save(folder / name / f"{number}.png")


def run_python(block: Block, where: str, names: dict[str, Any]) -> None:
    """A block as it stands, or as a dialogue whose answers must come."""
    if ">>> " in block.text:
        test = doctest.DocTestParser().get_doctest(block.text, names, where, None, 0)
        assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as Opacus's about the generator of its noise
        exec(compile(block.text, where, "exec"), names)


def run_shell(block: Block) -> None:
    """Each line; ours in this process, since a new one takes seconds to begin."""
    for line in block.lines:
        words = shlex.split(line, comments=True)
        if words[:1] == ["datalens"]:
            assert main(words[1:]) == 0, line
        elif words:
            subprocess.run(words, check=True, timeout=60)


def run_page(path: Path, *, commands: bool) -> dict[str, Any]:
    """All blocks of a page that are not marked; the names that they leave."""
    names: dict[str, Any] = {"__name__": "page"}
    for number, block in enumerate(blocks(path)):
        if block.not_run:
            continue
        if block.language == "python":
            run_python(block, f"{name_of(path)}, block {number}", names)
        elif commands and block.language in SHELL:
            run_shell(block)
    return names


@pytest.mark.parametrize("path", [p for p in PYTHON if name_of(p) not in WHOLE], ids=name_of)
def test_every_python_block_runs(path: Path, place: Path) -> None:
    draw_scans(place / "scans")
    run_page(path, commands=False)


def test_the_tutorial_leads_to_a_folder_that_can_be_shared(place: Path) -> None:
    names = run_page(REPOSITORY / "docs" / "tutorial.md", commands=True)
    assert names["images"].shape == (10_000, 1, 16, 16) and names["classes"].shape == (100,)
    assert 1.99 < names["model"].epsilon(1e-5) <= 2.0
    assert not (place / "runs" / "scans" / "private").exists()
    assert {path.name for path in (place / "shared").iterdir()} == {"release", "samples.npz"}
    assert len(list((place / "more").rglob("*.png"))) == 500


def test_the_page_on_certificates_says_what_one_says(place: Path) -> None:
    path = REPOSITORY / "docs" / "certificate.md"
    names = run_page(path, commands=True)
    page = " ".join((place / "runs" / "shapes" / "release" / "README.md").read_text().split())
    quoted = re.findall(r"(?:^> .*\n)+", path.read_text(), re.MULTILINE)
    pieces = [piece for quote in quoted for piece in re.sub(r"^> ", "", quote, flags=re.M).split("[...]")]
    said = [" ".join(piece.split()) for piece in pieces if piece.strip()]
    assert len(said) >= 5
    assert [piece for piece in said if piece not in page] == []
    rows = re.findall(r"^\| (`.*?) \|", path.read_text(), re.M)
    entries = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert entries == set(names["certificate"])
    assert json.loads((place / "verified.json").read_text())["agrees"]


def test_marks_give_reasons_and_stand_at_blocks() -> None:
    for path in DOCUMENTS:
        marked = [block for block in blocks(path) if block.not_run]
        assert path.read_text().count("\n<!-- not run: ") == len(marked), name_of(path)
        assert all(len(block.not_run) > 20 for block in marked)


def test_pages_have_blocks_that_run() -> None:
    assert len(PYTHON) >= 6
    assert {name_of(path) for path in PYTHON} >= set(WHOLE)
