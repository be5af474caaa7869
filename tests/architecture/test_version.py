"""The version comes from git's tags through the build; one fallback stands where there are none."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from datalens import __version__
from datalens.version import UNBUILT

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "src" / "datalens"
BUILT = "_version.py"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
NUMBER = re.compile(r"(\d+\.\d+\.\d+|\d+\.\d+)(a\d+|b\d+|rc\d+)?(\.post\d+)?(\.dev\d+)?(\+[\w.]+)?")


def test_only_one_file_names_a_number() -> None:
    assigned = re.compile(r"^\s*(__version__|version|UNBUILT)\s*=\s*[\"']\d", re.MULTILINE)
    files = [path for path in PACKAGE.rglob("*.py") if path.name != BUILT]
    assert [path.name for path in files if assigned.search(path.read_text())] == ["version.py"]


def test_the_build_has_the_same_fallback() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"] == {"source": "vcs", "fallback-version": UNBUILT}
    assert PROJECT["tool"]["hatch"]["build"]["hooks"]["vcs"]["version-file"] == f"src/datalens/{BUILT}"
    assert f"src/datalens/{BUILT}" in (REPOSITORY / ".gitignore").read_text().splitlines()


def test_the_version_is_one() -> None:
    assert NUMBER.fullmatch(__version__)
    if not (PACKAGE / BUILT).is_file():
        assert __version__ == UNBUILT


def test_the_change_log_begins_with_the_version_that_comes() -> None:
    headings = re.findall(r"^## (\S+)", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == UNBUILT.partition(".dev")[0]
