"""The wheel holds the package and nothing else; its version is git's tag, or the fallback where there is none."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from datalens.version import UNBUILT

pytest.importorskip("hatchling", reason="hatchling (extra dev) is not installed")
pytest.importorskip("hatch_vcs", reason="hatch-vcs (extra dev) is not installed")

REPOSITORY = Path(__file__).resolve().parents[2]
PARTS = ("pyproject.toml", "README.md", "LICENSE", ".gitignore", "CHANGELOG.md")


def copied(place: Path) -> Path:
    """What a build needs of the tree, as a download without git has it; and a file that has no place in a wheel."""
    shutil.copytree(
        REPOSITORY / "src",
        place / "src",
        ignore=shutil.ignore_patterns("__pycache__", "_version.py", "*.egg-info"),
    )
    for name in PARTS:
        shutil.copy(REPOSITORY / name, place / name)
    (place / "tests").mkdir()
    (place / "tests" / "test_it.py").write_text("")
    return place


def built(place: Path, kind: str = "wheel") -> Path:
    """The one file that a build of the folder makes."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(place / "dist")]
    answer = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=240, check=False)
    assert answer.returncode == 0, answer.stderr
    [found] = (place / "dist").iterdir()
    return found


def version_in(wheel: Path) -> str:
    """The version that the package in a wheel will say it has; the metadata say the same."""
    with zipfile.ZipFile(wheel) as archive:
        [said] = re.findall(
            r'^__version__ = "(.*)"$', archive.read("datalens/_version.py").decode(), re.MULTILINE
        )
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        assert f"\nVersion: {said}\n" in archive.read(metadata).decode()
    return said


def git(place: Path, *words: str) -> None:
    """One command of git, with an identity of its own."""
    identity = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "init.defaultBranch=main",
        "-c",
        "tag.gpgsign=false",
    ]
    subprocess.run(["git", *identity, *words], cwd=place, check=True, capture_output=True, timeout=60)


def test_a_wheel_without_git_has_the_package_and_the_fallback(tmp_path: Path) -> None:
    wheel = built(copied(tmp_path))
    assert version_in(wheel) == UNBUILT
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
        [points] = [name for name in names if name.endswith("entry_points.txt")]
        assert "datalens = datalens.cli.main:main" in archive.read(points).decode()
    sources = {path.relative_to(REPOSITORY / "src").as_posix() for path in (REPOSITORY / "src").rglob("*.py")}
    pages = {
        f"datalens/reports/templates/{path.name}"
        for path in (REPOSITORY / "src/datalens/reports/templates").iterdir()
    }
    package = {name for name in names if ".dist-info/" not in name}
    assert pages and package == (sources | pages | {"datalens/_version.py", "datalens/py.typed"})
    assert {"datalens/models/load_generator.py", "datalens/recipes/mnist.py"} <= package
    for extra in ("dpsgd", "report", "parquet", "huggingface"):
        assert f"Provides-Extra: {extra}\n" in text


def test_a_tag_is_the_version(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    place = copied(tmp_path)
    git(place, "init")
    git(place, "add", "-A")
    git(place, "commit", "-m", "all")
    first = version_in(built(place))
    assert re.fullmatch(re.escape(UNBUILT.rstrip("0")) + r"\d+\+g[0-9a-f]+", first), "no tag yet"
    shutil.rmtree(place / "dist")
    git(place, "tag", "v0.2.0")
    assert version_in(built(place)) == "0.2.0"


def test_an_sdist_builds_the_same_version_without_git(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    archive = built(copied(tmp_path / "first"), "sdist")
    shutil.unpack_archive(archive, tmp_path / "second", filter="data")
    [inner] = (tmp_path / "second").iterdir()
    assert (inner / "tests" / "test_it.py").is_file()
    assert version_in(built(inner)) == UNBUILT
