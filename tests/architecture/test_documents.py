"""Documents speak of what exists: commands and options, dotted names, links, dependencies."""

from __future__ import annotations

import importlib
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from datalens.cli.main import cli

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands() -> Iterator[tuple[str, list[str]]]:
    """(document, words) of every ``datalens`` command line that a document shows."""
    for path in DOCUMENTS:
        for language, block in BLOCK.findall(path.read_text()):
            if language not in ("bash", "sh", "console"):
                continue
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line.strip().removeprefix("$ "), comments=True)
                if words[:1] == ["datalens"]:
                    yield path.name, words[1:]


def leaf(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the first words name, and the words that are left for it."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, f"no command {words[0]!r}"
        command, words = found, words[1:]
    return command, words


@pytest.mark.parametrize(("document", "words"), list(commands()), ids=lambda item: str(item)[:60])
def test_command_lines_are_ones_that_exist(document: str, words: list[str]) -> None:
    command, rest = leaf(words)
    assert rest or not isinstance(command, click.Group), f"{document}: {words} ends before its verb"
    if rest not in (["--help"], ["--version"]):
        command.make_context("datalens", list(rest))  # parses and converts; nothing is run


def test_documents_show_command_lines() -> None:
    assert len(list(commands())) >= 8


def test_dotted_names_exist() -> None:
    missing = []
    for path in DOCUMENTS:
        for name in sorted(set(re.findall(r"`(datalens(?:\.\w+)+)(?:\(\))?`", path.read_text()))):
            if not exists(name):
                missing.append(f"{path.name}: {name}")
    assert missing == []


def test_python_blocks_compile_and_import_what_exists() -> None:
    for path in DOCUMENTS:
        for language, block in BLOCK.findall(path.read_text()):
            if language == "python":
                compile(block, path.name, "exec")
                imports = "\n".join(re.findall(r"^(?:from|import) .*", block, re.MULTILINE))
                exec(imports, {})


def test_links_lead_somewhere() -> None:
    broken = []
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
            place = target.split("#")[0]
            if "://" not in target and place and not (path.parent / place).exists():
                broken.append(f"{path.name}: {target}")
    assert broken == []


def test_every_dependency_is_explained() -> None:
    """docs/design.md says of each what it is for and under which licence; no other is in its tables."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        wanted += extra
    names = {re.split(r"[<>=!~ \[;]", each)[0].lower() for each in wanted}
    text = (REPOSITORY / "docs" / "design.md").read_text()
    rows = dict(re.findall(r"^\| `([\w-]+)` \|(.*)$", text, re.MULTILINE))
    assert set(rows) == names
    assert all(len([cell for cell in row.split("|") if cell.strip()]) >= 2 for row in rows.values())


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute chain inside one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if hasattr(found, part):
                found = getattr(found, part)
            else:  # a field of a dataclass or a pydantic model without a default
                return part in getattr(found, "__annotations__", {})
        return True
    return False
