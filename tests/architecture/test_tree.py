"""What no file of the tree may name: a package registry, somebody's machine, an address nobody checked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ROOTS = ("src", "tests", "docs", "examples", "benchmarks", "scripts", ".ci")
KNOWN_HOSTS = {"doi.org", "arxiv.org", "www.apache.org"}
_HALVES = ("py pi", "python hosted", "npm js", "yarn pkg", "ana conda", "deb ian", "go lang", "crat es")
REGISTRY = re.compile(rf"({'|'.join(name.replace(' ', '') for name in _HALVES)})\.(org|com|io|net)\b")
MACHINE = re.compile(r"(?<![\w.$}{~*])/(work|tmp|home|root|mnt|Users|var/tmp)/[\w.]")
ADDRESS = re.compile(r"\b(?:https?|ftp|file)://([^\s/\"'<>)\]]+)")

VOCABULARY = re.compile(r"\.svg: http://(www\.w3\.org|purl\.org|creativecommons\.org)$")


def texts() -> Iterator[tuple[str, str]]:
    """(name, text) of every file that is ours; this one holds the patterns and is left out."""
    files = [path for path in REPOSITORY.iterdir() if path.is_file()]
    for root in ROOTS:
        files += [path for path in (REPOSITORY / root).rglob("*") if path.is_file()]
    for path in sorted(files):
        if "__pycache__" in path.parts or path == Path(__file__).resolve() or path.name in {".ready", ".git"}:
            continue
        try:
            yield str(path.relative_to(REPOSITORY)), path.read_text()
        except UnicodeDecodeError:
            continue


def offences(pattern: re.Pattern[str], allowed: frozenset[str] = frozenset()) -> list[str]:
    """``file: what was found`` for every hit that is not allowed."""
    return [
        f"{name}: {match.group(0)}"
        for name, text in texts()
        for match in pattern.finditer(text)
        if not (match.lastindex and match.group(1) in allowed)
    ]


def test_no_registry_is_named() -> None:
    """Clients know their registries; a name written here would tie everybody to one of them."""
    assert offences(REGISTRY) == []


def test_no_path_of_a_machine() -> None:
    assert offences(MACHINE) == []


def test_addresses_are_few_and_known() -> None:
    """In drawn figures addresses only name the vocabularies of the format."""
    found = offences(ADDRESS, frozenset(KNOWN_HOSTS))
    assert [line for line in found if not VOCABULARY.search(line)] == []


@pytest.mark.parametrize(
    ("pattern", "offence"),
    [
        (REGISTRY, "see " + "py" + "pi.org/simple"),
        (MACHINE, "open(" + '"/ho' + 'me/me/data")'),
        (ADDRESS, "htt" + "ps://example.com/x"),
    ],
)
def test_patterns_see_what_they_should(pattern: re.Pattern[str], offence: str) -> None:
    assert pattern.search(offence)


def test_the_tree_is_really_read() -> None:
    names = [name for name, _ in texts()]
    assert {"pyproject.toml", "src/datalens/version.py", "README.md", "docs/privacy.md"} <= set(names)
