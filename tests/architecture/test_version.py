"""The version stands in one place, and everything else reads it there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from datalens import __version__

REPOSITORY = Path(__file__).resolve().parents[2]
HOME = REPOSITORY / "src" / "datalens" / "version.py"


def test_only_one_file_assigns_it() -> None:
    assigned = re.compile(r"^\s*(__version__|version)\s*=\s*[\"']\d", re.MULTILINE)
    files = [*(REPOSITORY / "src").rglob("*.py"), REPOSITORY / "pyproject.toml"]
    assert [path for path in files if assigned.search(path.read_text())] == [HOME]


def test_the_package_reads_it_there() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "datalens.version.__version__"}
    assert HOME.read_text().count(f'"{__version__}"') == 1


def test_the_change_log_begins_with_it() -> None:
    headings = re.findall(r"^## (\S+)", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == __version__
