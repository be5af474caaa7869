"""Every example in a docstring gives what it says (``pytest --doctest-modules src`` runs the same)."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
WITH_EXAMPLES = sorted(path for path in (SOURCE / "datalens").rglob("*.py") if ">>> " in path.read_text())


def name_of(path: Path) -> str:
    """``datalens.x.y`` for a file."""
    dotted = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    return dotted.removesuffix(".__init__")


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=name_of)
def test_docstring_examples(path: Path) -> None:
    found = doctest.testmod(importlib.import_module(name_of(path)))
    assert found.attempted > 0
    assert found.failed == 0


def test_most_rooms_show_an_example() -> None:
    assert len(WITH_EXAMPLES) > 30
