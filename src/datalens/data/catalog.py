"""One name for every source of images: a published set, the drawn shapes, or whatever of one's own lies at a path."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from datalens.data.arrays import ValueRange, load_npz
from datalens.data.class_names import declare_classes
from datalens.data.fetch import FetchReport, fetch_published
from datalens.data.fetch_packages import fetch_gathered
from datalens.data.gathered import check_gathered, load_gathered
from datalens.data.images import SPLITS, LabelledImages, Split
from datalens.data.listing import problem_of, read_listing
from datalens.data.names import GATHERED, PUBLISHED, SHAPES, known_names, names
from datalens.data.near import near_names
from datalens.data.own import OWN_OPTIONS, OwnKind, kind_at, list_own, own_splits
from datalens.data.pixels import Form, check_image_size, check_sides, resize_images
from datalens.data.published import (
    FileCheck,
    FileStatus,
    check_published,
    load_published,
    resolve_root,
)
from datalens.data.shapes import load_shapes
from datalens.data.table import Columns
from datalens.errors import ConfigError, DataError


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
    background: str | None = None,
    path_column: str | None = None,
    label_column: str | None = None,
    group_column: str | None = None,
    skip_damaged: bool = False,
    any_size: bool = False,
    groups: bool = False,
    public: bool | None = None,
) -> LabelledImages:
    """Read one split of any source; files on this machine only, never the network.

    Args:
        source: a name of :func:`list_sources`, or a path: a folder of images, a CSV or Parquet
            table, an .npz file, or a folder that `datasets` saved.
        split: "train" or "test".
        root: the data root of the published sets; else DATALENS_DATA, else a cache folder of this user.
        image_size: height and width to scale to, 8 to 256 (shapes are drawn at that size).
        channels: files of images only: 1 or 3 to convert every one.
        classes: the public class list (names or how many). Left out for data of one's own, it is read off them,
            and the result says so: what is trained on it is published only where that was declared.
        value_range: .npz only: what counts as black and white where pixels aren't uint8.
        layout: .npz only: "NCHW" or "NHWC" where the shape fits both.
        background: files of images only: the colour that see-through images are laid over; white if left out.
        path_column: tables only: the column of paths or images.
        label_column: tables only: the column of labels.
        group_column: tables, and the key of an array of an .npz: whose a record is; left out, there are no groups.
        skip_damaged: files of images only: leave damaged ones out, their places empty, instead of refusing.
        any_size: allow sides that are not 8 to 256 pixels, of images that nothing is to be trained on.
        groups: named sources only: with ``group_ids``, equal for images of one person (CelebA) or of one emoji.
        public: whether the images are published research data; by default true of named sources only.

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
    given = {
        "channels": channels,
        "background": background,
        "value_range": value_range,
        "layout": layout,
        "path_column": path_column,
        "label_column": label_column,
        "group_column": group_column,
        "skip_damaged": skip_damaged,
    }
    _refuse_unused(kind, source, given)
    if groups and (kind is not None or source not in GATHERED):
        raise ConfigError(f"groups=True: {source} does not say which images belong together; leave it out")
    if kind is OwnKind.NPZ:
        data = load_npz(
            path,
            split,
            classes=classes,
            value_range=value_range,
            layout=layout,
            group_column=group_column,
            public=bool(public),
        )
        data = _resized(data, image_size)
        if not any_size:
            check_sides(data.image_shape, str(path))
        return data
    if kind is not None:
        return read_listing(
            list_own(kind, path, split, Columns(path_column, label_column, group_column), classes),
            replace(Form.of(image_size, channels, background), any_size=any_size),
            classes=classes,
            skip_damaged=skip_damaged,
            public=bool(public),
            says_background=background is None,
        )
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
    return SPLITS if kind is None else own_splits(kind, path)


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
    raise DataError(f"{name}: can't be fetched; the names are {known_names()}")


def check(
    source: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    *,
    columns: Columns | None = None,
) -> tuple[FileCheck, ...]:
    """Look at every file of a source and say whether it is ok, missing or damaged; nothing is written.

    Every image of one's own is decoded once; of sets of very many files only whether they are there is looked at;
    shapes have no file.

    Args:
        source: as for :func:`load`.
        root: as for :func:`load`.
        columns: of a table, where they have other than the usual names.

    Raises:
        DataError: an unknown source, or one that can't be listed.
        ConfigError: columns that a table does not have.
    """
    kind, path = _kind_of(source)
    if kind is OwnKind.NPZ:
        try:
            splits = own_splits(kind, path)
        except DataError as error:
            return (FileCheck(path.name, FileStatus.DAMAGED, path, None, str(error)),)
        found = None if splits else "holds no x and y"
        return (FileCheck(path.name, FileStatus.OK if splits else FileStatus.DAMAGED, path, None, found),)
    if kind is not None:
        found = []
        for split in own_splits(kind, path):
            for record in list_own(kind, path, split, columns).records:
                problem = problem_of(record)
                status = FileStatus.OK if problem is None else FileStatus.DAMAGED
                file = record.content if isinstance(record.content, Path) else path
                found.append(
                    FileCheck(record.name.removeprefix(f"{path}{os.sep}"), status, file, None, problem)
                )
        return tuple(found)
    if source == SHAPES:
        return ()
    if source in GATHERED:
        return check_gathered(GATHERED[str(source)], resolve_root(root))
    return check_published(PUBLISHED[str(source)], resolve_root(root))


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


def _kind_of(source: str | os.PathLike[str]) -> tuple[OwnKind | None, Path]:
    """The kind of a source of one's own, None for a name; names win over paths: a folder mnist is ./mnist."""
    text, path = os.fspath(source), Path(source).expanduser()
    if isinstance(source, str) and (text in PUBLISHED or text in GATHERED or text == SHAPES):
        return None, path
    kind = kind_at(path)
    if kind is not None:
        if not path.exists():
            raise DataError(f"{text}: no such file; {near_names(path)}check the path")
        return kind, path
    if path.exists():
        raise DataError(
            f"{text}: is neither a folder nor an .npz, .csv or .parquet file; give one of these, or {known_names()}"
        )
    if "/" in text or os.sep in text:
        raise DataError(f"{text}: no such folder; {near_names(path)}check the path")
    raise DataError(
        f"{text!r}: no source of that name; {near_names(path, names())}give {known_names()}, "
        "an image folder, or an .npz, .csv or .parquet file"
    )


def _refuse_unused(kind: OwnKind | None, source: str | os.PathLike[str], given: dict[str, object]) -> None:
    used = frozenset[str]() if kind is None else OWN_OPTIONS[kind]
    for option, value in given.items():
        if option == "group_column" and value is not None and option not in used:
            raise ConfigError(
                f"--group-column {value}: {source} has no columns; give a table or an .npz file with that column, "
                "or in Python groups=[...]"
            )
        if value is not None and value is not False and option not in used:
            raise ConfigError(
                f"{_on_the_line(option)}: {source} has no use for it; leave it out (in Python {option}={value!r})"
            )


def _resized(data: LabelledImages, image_size: int | tuple[int, int] | None) -> LabelledImages:
    if image_size is None:
        return data
    return replace(data, images=resize_images(data.images, check_image_size(image_size)))


def _on_the_line(setting: str) -> str:
    return "--" + setting.replace("_", "-")
