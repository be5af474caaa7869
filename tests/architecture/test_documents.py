"""Documents speak of what exists: commands and options, dotted names, links, dependencies."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from document_blocks import DOCUMENTS, SHELL, blocks, name_of

from datalens.cli.main import cli

INLINE = re.compile(r"(?<!`)`(datalens [^`\n]+)`(?!`)")
NAMED = re.compile(r"\[`([\w.]+)`\]\(([^)\s]+\.py)\)")


def commands() -> Iterator[tuple[str, list[str]]]:
    """(document, words) of every ``datalens`` command line that a document shows."""
    for path in DOCUMENTS:
        for block in blocks(path):
            for line in block.lines if block.language in SHELL else ():
                words = shlex.split(line, comments=True)
                if words[:1] == ["datalens"]:
                    yield name_of(path), words[1:]


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
        for block in blocks(path):
            if block.language == "python":
                compile(block.text, path.name, "exec")
                imports = "\n".join(re.findall(r"^(?:from|import) .*", block.text, re.MULTILINE))
                exec(imports, {})


def test_commands_named_in_a_sentence_exist() -> None:
    """Words that stand for something (RUN, NAME) may be anything; verbs and options may not."""
    for path in DOCUMENTS:
        for text in INLINE.findall(path.read_text()):
            words = text.split()[1:]
            command, rest = leaf(words)
            known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
            asked = {word.split("=")[0] for word in rest if word.startswith("--")}
            assert asked <= known | {"--help", "--version"}, f"{name_of(path)}: {text}"


def test_links_to_a_named_definition_lead_to_its_file() -> None:
    """The site finds the line by the same name."""
    found = 0
    for path in DOCUMENTS:
        for name, target in NAMED.findall(path.read_text()):
            last = name.split(".")[-1]
            source = (path.parent / target).read_text()
            pattern = rf"^\s*(?:(?:async )?def|class) {last}\b|^\s*{last}\b.*="
            assert last == Path(target).stem or re.search(pattern, source, re.MULTILINE), (
                f"{name_of(path)}: {name}"
            )
            found += 1
    assert found > 20


def test_links_lead_somewhere() -> None:
    broken = []
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
            place = target.split("#")[0]
            if "://" not in target and place and not (path.parent / place).exists():
                broken.append(f"{path.name}: {target}")
    assert broken == []


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
