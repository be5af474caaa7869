"""Documents and commands have the same options, both ways."""

from __future__ import annotations

import re

import pytest
from command_tree import commands, option_names
from document_blocks import REPOSITORY
from scripts_here import program

NAME = re.compile(r"(?<![\w-])--[a-z][\w-]*")
OTHERS = {
    "--nproc-per-node": "torchrun",
    "--max-restarts": "torchrun",
    "--counts": "benchmarks/teachers.py",
    "--reference": "benchmarks/teachers.py",
    "--disk": "benchmarks/teachers.py",
    "--steps": "benchmarks/step.py",
    "--strip-components": "tar",
    "--logdir": "tensorboard",
}
"""Options in documents that other programs have."""
PAGES = sorted([*(REPOSITORY / "docs").glob("*.md"), REPOSITORY / "README.md"])
KNOWN = {name for _, command in commands() for name in option_names(command)} | {"--version"}


def named() -> set[str]:
    return {name for path in PAGES for name in NAME.findall(path.read_text())}


def test_the_page_of_options_is_what_help_says(monkeypatch: pytest.MonkeyPatch) -> None:
    made = program("scripts/options_page.py", monkeypatch)
    assert made.PAGE.read_text() == made.page(), "run: python scripts/options_page.py"


@pytest.mark.parametrize(("words", "command"), list(commands()), ids=lambda item: str(item)[:40])
def test_every_option_is_documented_under_its_command(words: tuple[str, ...], command) -> None:
    page = (REPOSITORY / "docs" / "options.md").read_text()
    _, _, rest = page.partition(f"## datalens {' '.join(words)}\n")
    section = rest.partition("\n## ")[0]
    shown = {
        name for line in section.splitlines() if line.startswith("* ") for name in NAME.findall(line[:60])
    }
    long_names = {name for name in option_names(command) if name.startswith("--")} - {"--help"}
    assert long_names <= shown and section


def test_every_option_in_a_document_exists() -> None:
    assert named() - KNOWN - set(OTHERS) == set()


def test_options_of_others_are_still_named() -> None:
    assert set(OTHERS) <= named() and not set(OTHERS) & KNOWN
