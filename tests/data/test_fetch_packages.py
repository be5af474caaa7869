"""Emoji through a stand-in npm: what comes is checked before it takes its place, and what fails says why."""

from __future__ import annotations

import io
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_colour import VENDORS, emoji_list, emoji_package

from datalens.data import load
from datalens.data.emoji import EMOJI, package_name
from datalens.data.fetch_packages import digest_of, fetch_gathered
from datalens.data.gathered import GatheredSet
from datalens.errors import DataError


def pack(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GatheredSet:
    """The set with the digests of small packages, which a stand-in npm brings from a folder."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    packages = []
    for package, vendor in zip(EMOJI.packages, VENDORS, strict=True):
        files = emoji_package(vendor, emoji_list())
        more = {"img/sheet.png": b"large", "index.js": b"throw 1"}
        inside = {f"package/{name}": content for name, content in {**files, **more}.items()}
        pack(shelf / f"{package.name}@{package.version}", inside | {"package/../img/x/64/out.png": b"out"})
        packages.append(replace(package, digest=digest_of(files)))
    clients = tmp_path / "clients"
    clients.mkdir()
    script = clients / "npm"
    script.write_text(
        f"#!{sys.executable}\nimport shutil, sys\n"
        f"open({str(tmp_path / 'calls')!r}, 'a').write(sys.argv[2] + '\\n')\n"
        f"shutil.copy({str(shelf)!r} + '/' + sys.argv[2], 'brought-1.0.0.tgz')\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(clients))
    return replace(EMOJI, packages=tuple(packages))


def test_every_package_is_brought_and_only_what_is_wanted_is_kept(tiny: GatheredSet, tmp_path: Path) -> None:
    told: list[str] = []
    report = fetch_gathered(tiny, tmp_path / "root", tell=told.append)
    assert (report.way, report.folder) == ("npm", tmp_path / "root" / "emoji")
    assert told == [f"emoji: trying npm, {package.name}" for package in tiny.packages]
    for vendor in VENDORS:
        folder = report.folder / package_name(vendor)
        found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert found == set(emoji_package(vendor, emoji_list()))
    assert not list(report.folder.glob(".fetch-*"))
    assert load("emoji", root=tmp_path / "root").num_records > 0
    assert fetch_gathered(tiny, tmp_path / "root").way == "already there"
    asked = (tmp_path / "calls").read_text().splitlines()
    assert asked == [f"{package_name(vendor)}@16.0.0" for vendor in VENDORS]


def test_another_content_is_refused_and_nothing_of_it_stays(tiny: GatheredSet, tmp_path: Path) -> None:
    first = replace(tiny.packages[0], digest="0" * 32)
    with pytest.raises(
        DataError, match=r"npm: brought \d+ files with digest .* instead of 0{32}.*unpack the npm"
    ):
        fetch_gathered(replace(tiny, packages=(first, *tiny.packages[1:])), tmp_path / "root")
    assert [path.name for path in (tmp_path / "root" / "emoji").iterdir()] == [".lock"]


def test_a_lost_picture_is_brought_again(tiny: GatheredSet, tmp_path: Path) -> None:
    folder = fetch_gathered(tiny, tmp_path / "root").folder
    lost = folder / package_name("twitter") / "img" / "twitter" / "64" / "1f005.png"
    lost.unlink()
    assert fetch_gathered(tiny, tmp_path / "root").way == "npm" and lost.exists()


def test_without_npm_the_line_says_what_to_do(
    tiny: GatheredSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        DataError, match=r"emoji: no way to fetch it worked \(npm: npm is not on this machine\)"
    ):
        fetch_gathered(tiny, tmp_path / "root")


def test_a_damaged_package_file_is_refused(tiny: GatheredSet, tmp_path: Path) -> None:
    for path in (tmp_path / "shelf").iterdir():
        path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match="its package file is damaged"):
        fetch_gathered(tiny, tmp_path / "root")


def test_many_fetch_every_package_once_r63(tiny: GatheredSet, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        reports = list(threads.map(lambda _: fetch_gathered(tiny, tmp_path / "root"), range(4)))
    assert len({report.folder for report in reports}) == 1
    asked = (tmp_path / "calls").read_text().splitlines()
    assert asked == [f"{package_name(vendor)}@16.0.0" for vendor in VENDORS]
    assert not list(reports[0].folder.glob(".fetch-*"))
    assert load("emoji", root=tmp_path / "root").num_records > 0
