"""One name for every source of images: a published set, the drawn shapes, a folder, or an .npz file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from datalens.data.arrays import ValueRange, load_npz, npz_splits
from datalens.data.celeba import CELEBA_GENDER, CELEBA_HAIR
from datalens.data.cifar10 import CIFAR10
from datalens.data.class_names import declare_classes
from datalens.data.emoji import EMOJI
from datalens.data.fashion_mnist import FASHION_MNIST
from datalens.data.fetch import FetchReport, fetch_published
from datalens.data.fetch_packages import fetch_gathered
from datalens.data.folder import check_image_size, folder_splits, load_folder, resize_images, scan_folder
from datalens.data.gathered import GatheredSet, check_gathered, load_gathered
from datalens.data.images import SPLITS, LabelledImages, Split
from datalens.data.mnist import MNIST
from datalens.data.near import near_names
from datalens.data.places365 import PLACES365
from datalens.data.published import (
    FileCheck,
    FileStatus,
    PublishedSet,
    check_published,
    load_published,
    resolve_root,
)
from datalens.data.shapes import CLASSES as SHAPE_CLASSES
from datalens.data.shapes import load_shapes
from datalens.errors import ConfigError, DataError

SHAPES = "shapes"
PUBLISHED: dict[str, PublishedSet] = {known.name: known for known in (MNIST, FASHION_MNIST, CIFAR10)}

GATHERED: dict[str, GatheredSet] = {
    known.name: known for known in (CELEBA_GENDER, CELEBA_HAIR, PLACES365, EMOJI)
}


@dataclass(frozen=True)
class SourceInfo:
    """A source that can be asked for by name.

    Attributes:
        name: by which it is asked for.
        title: what it holds.
        classes: in label order.
        needs_fetch: it is not drawn: its files have to be here.
        by_hand: its files are given out by their makers alone, and no fetch brings them.
    """

    name: str
    title: str
    classes: tuple[str, ...]
    needs_fetch: bool
    by_hand: bool = False


def list_sources() -> tuple[SourceInfo, ...]:
    """Every source with a name; besides these, any image folder or .npz file is a source by its path.

    >>> [source.name for source in list_sources()]
    ['mnist', 'fashion-mnist', 'cifar10', 'celeba-gender', 'celeba-hair', 'places365', 'emoji', 'shapes']
    """
    published = [SourceInfo(known.name, known.title, known.classes, True) for known in PUBLISHED.values()]
    published += [
        SourceInfo(known.name, known.title, known.classes, True, by_hand=not known.packages)
        for known in GATHERED.values()
    ]
    drawn = SourceInfo(
        SHAPES, "four drawn shapes, 16x16 grey, for tests and first tries", SHAPE_CLASSES, False
    )
    return (*published, drawn)


def load(
    source: str | os.PathLike[str],
    *,
    split: Split = "train",
    root: str | os.PathLike[str] | None = None,
    image_size: int | tuple[int, int] | None = None,
    channels: int | None = None,
    classes: Sequence[object] | int | None = None,
    value_range: ValueRange | None = None,
    layout: str | None = None,
    group_column: str | None = None,
    skip_damaged: bool = False,
    public: bool | None = None,
    groups: bool = False,
) -> LabelledImages:
    """Read one split of any source; files on this machine only, never the network.

    Args:
        source: a name of :func:`list_sources`, a folder with one sub-folder a class, or an .npz file.
        split: "train" or "test".
        root: the data root of the published sets; else DATALENS_DATA, else a cache folder of this user.
        image_size: height and width to scale to (shapes are drawn at that size).
        channels: folders only: 1 or 3 to convert every image.
        classes: the public class list (names or how many). Left out for a folder or file, it is read off the
            data, and the result says so: what is trained on it is published only where that was declared.
        value_range: .npz only: what counts as black and white where pixels aren't uint8.
        layout: .npz only: "NCHW" or "NHWC" where the shape fits both.
        group_column: .npz only: the key of an array with the name of each record's group, such as its person.
        skip_damaged: folders only: leave damaged files out instead of refusing.
        public: whether the images are published research data; by default true of named sources only.
        groups: with ``group_ids``, equal for images of one person (CelebA) or of one emoji; other sources say
            nothing of any.

    Returns:
        The images, checked.

    Raises:
        DataError: an unknown source (lists the known ones), missing or damaged data.
        ConfigError: an option that this source has no use for, or that contradicts it.

    >>> load("shapes", split="test").num_records
    1000
    """
    if split not in SPLITS:
        raise ConfigError(f"split is {split!r}, but must be 'train' or 'test'")
    kind, path = _kind_of(source)
    _refuse_unused(
        kind,
        source,
        channels=channels,
        skip_damaged=skip_damaged,
        value_range=value_range,
        layout=layout,
        group_column=group_column,
    )
    if groups and (kind != "named" or source not in GATHERED):
        raise ConfigError(f"groups=True: {source} does not say which images belong together; leave it out")
    if kind == "folder":
        return load_folder(
            path,
            split,
            image_size=image_size,
            channels=channels,
            classes=classes,
            skip_damaged=skip_damaged,
            public=bool(public),
        )
    if kind == "npz":
        data = load_npz(
            path,
            split,
            classes=classes,
            value_range=value_range,
            layout=layout,
            group_column=group_column,
            public=bool(public),
        )
        return _resized(data, image_size)
    data = _load_named(str(source), split, root, image_size, groups=groups)
    if classes is not None and declare_classes(classes) != data.classes:
        raise ConfigError(
            f"{source}: its classes are {', '.join(data.classes)}; leave out --classes (classes)"
        )
    if public is False:
        raise ConfigError(
            f"{source}: is published; leave public out, or copy it to a folder or file of your own"
        )
    return data


def available_splits(source: str | os.PathLike[str]) -> tuple[Split, ...]:
    """Which splits a source has (without reading its images)."""
    kind, path = _kind_of(source)
    if kind == "folder":
        return folder_splits(path)
    return npz_splits(path) if kind == "npz" else SPLITS


def fetch(
    name: str, root: str | os.PathLike[str] | None = None, *, tell: Callable[[str], None] | None = None
) -> FetchReport:
    """Make a named source complete under the data root; see :func:`datalens.data.fetch.fetch_published`."""
    place = resolve_root(root)
    if name in PUBLISHED:
        return fetch_published(PUBLISHED[name], place, tell=tell)
    if name in GATHERED:
        return fetch_gathered(GATHERED[name], place, tell=tell)
    if name == SHAPES:
        return FetchReport(name, place, "already there")
    raise DataError(f"{name}: can't be fetched; the names are {_known_names()}")


def check(
    source: str | os.PathLike[str], root: str | os.PathLike[str] | None = None
) -> tuple[FileCheck, ...]:
    """Look at every file of a source and say whether it is ok, missing or damaged; nothing is written.

    For an image folder every image is decoded once; of sets of very many files only whether they are there is
    looked at; shapes have no file.

    Raises:
        DataError: an unknown source, or a folder without classes.
    """
    kind, path = _kind_of(source)
    if kind == "folder":
        return tuple(
            FileCheck(
                str(file.path.relative_to(path)),
                FileStatus.OK if file.problem is None else FileStatus.DAMAGED,
                file.path,
                None,
                file.problem,
            )
            for split in folder_splits(path)
            for file in scan_folder(path, split)
        )
    if kind == "npz":
        try:
            splits = npz_splits(path)
        except DataError as error:
            return (FileCheck(path.name, FileStatus.DAMAGED, path, None, str(error)),)
        found = None if splits else "holds no x and y"
        return (FileCheck(path.name, FileStatus.OK if splits else FileStatus.DAMAGED, path, None, found),)
    if source == SHAPES:
        return ()
    if source in GATHERED:
        return check_gathered(GATHERED[str(source)], resolve_root(root))
    return check_published(PUBLISHED[str(source)], resolve_root(root))


def remedy(name: str, root: str | os.PathLike[str] | None = None) -> str:
    """What to do where files of a named source are missing or damaged, as part of a sentence.

    >>> remedy("mnist")
    'run `datalens data fetch mnist`'
    """
    known = GATHERED.get(name)
    return f"run `datalens data fetch {name}`" if known is None else known.remedy(resolve_root(root))


def _load_named(
    name: str,
    split: str,
    root: str | os.PathLike[str] | None,
    image_size: int | tuple[int, int] | None,
    *,
    groups: bool,
) -> LabelledImages:
    if name == SHAPES:
        if image_size is None:
            return load_shapes(split)
        height, width = check_image_size(image_size)
        if height != width:
            raise ConfigError(
                f"--image-size {height}x{width} (image_size): shapes are square; give one number"
            )
        return load_shapes(split, height)
    if name in GATHERED:
        data = load_gathered(GATHERED[name], split, resolve_root(root), groups=groups)
    else:
        data = load_published(PUBLISHED[name], split, resolve_root(root))
    return _resized(data, image_size)


def _kind_of(source: str | os.PathLike[str]) -> tuple[Literal["named", "folder", "npz"], Path]:
    """Names win over paths: a folder called mnist is reached as ./mnist."""
    text, path = os.fspath(source), Path(source).expanduser()
    if isinstance(source, str) and (text in PUBLISHED or text in GATHERED or text == SHAPES):
        return "named", path
    if path.is_dir():
        return "folder", path
    if path.suffix == ".npz":
        if not path.is_file():
            raise DataError(f"{text}: no such file; {near_names(path)}check the path")
        return "npz", path
    if path.exists():
        raise DataError(
            f"{text}: is neither a folder nor an .npz file; give one of these, or {_known_names()}"
        )
    if "/" in text or os.sep in text:
        raise DataError(f"{text}: no such folder; {near_names(path)}check the path")
    raise DataError(
        f"{text!r}: no source of that name; {near_names(path, _names())}give {_known_names()}, "
        "an image folder, or an .npz file"
    )


def _refuse_unused(kind: str, source: str | os.PathLike[str], **options: object) -> None:
    used = {"folder": {"channels", "skip_damaged"}, "npz": {"value_range", "layout", "group_column"}}.get(
        kind, set()
    )
    for option, value in options.items():
        if option == "group_column" and value is not None and option not in used:
            raise ConfigError(
                f"--group-column {value}: {source} has no columns; put the images into an .npz file with an array of "
                "that name, or in Python give groups=[...]"
            )
        if value is not None and value is not False and option not in used:
            raise ConfigError(
                f"{_on_the_line(option)}: {source} has no use for it; leave it out (in Python {option}={value!r})"
            )


def _resized(data: LabelledImages, image_size: int | tuple[int, int] | None) -> LabelledImages:
    if image_size is None:
        return data
    return replace(data, images=resize_images(data.images, image_size))


def _on_the_line(setting: str) -> str:
    return "--" + setting.replace("_", "-")


def _known_names() -> str:
    return ", ".join(_names())


def _names() -> list[str]:
    return [source.name for source in list_sources()]
