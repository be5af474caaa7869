"""A folder of images: one sub-folder a class, or, without any, images of the one class ``image``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from datalens.data.class_names import declare_classes
from datalens.data.images import SPLITS, Split
from datalens.data.listing import Listed, Listing
from datalens.data.near import near_names
from datalens.errors import DataError

ONLY_CLASS = "image"
"""The class of images that lie in no sub-folder: the name is this rule's, and so nobody's secret."""
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")


def folder_splits(folder: Path) -> tuple[Split, ...]:
    """Which splits a folder holds: its train/ and test/ sub-folders; train alone where it has no train/."""
    if not (folder / "train").is_dir():
        return ("train",)
    return tuple(split for split in SPLITS if (folder / split).is_dir())


def list_folder(folder: Path, split: str, classes: Sequence[object] | int | None = None) -> Listing:
    """Every file of a split in order of class and name; none is opened.

    Names that begin with a dot are the system's and not looked at; any other file that isn't PNG or JPEG is
    reported as a problem.

    Args:
        folder: holds a sub-folder a class, or images and no sub-folder, or train/ and test/ that do.
        split: "train" or "test".
        classes: declared; a folder without sub-folders takes its one class's name from there.

    Raises:
        DataError: no such folder or split, or neither classes nor images in it.
    """
    top, train = _split_folder(folder, split), _split_folder(folder, "train")
    if _is_flat(train) != _is_flat(top):
        raise DataError(
            f"{folder}: train/ and {split}/ must both hold a sub-folder for each class, or neither; move the images"
        )
    if _is_flat(top):
        label = _only_class(folder, classes)
        files = _files(top, label)
        return Listing(str(folder), files, known_classes=(label,), classes_from_data=False)
    known = tuple(path.name for path in _class_folders(train))
    records = [record for path in _class_folders(top) for record in _files(path, path.name)]
    return Listing(str(folder), tuple(records), known_classes=known)


def _split_folder(folder: Path, split: str) -> Path:
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; {near_names(folder)}check the path")
    splits = folder_splits(folder)
    if split not in splits:
        raise DataError(
            f"{folder}: has no {split} split; put one sub-folder a class into train/ and {split}/"
        )
    return folder / split if (folder / "train").is_dir() else folder


def _is_flat(folder: Path) -> bool:
    """Whether a folder holds images and no sub-folder."""
    found = [path for path in folder.iterdir() if not path.name.startswith(".")]
    return any(_is_image(path) for path in found) and not any(path.is_dir() for path in found)


def _only_class(folder: Path, classes: Sequence[object] | int | None) -> str:
    if classes is None:
        return ONLY_CLASS
    declared = declare_classes(classes)
    if len(declared) != 1:
        raise DataError(
            f"{folder}: has no sub-folder, so its images are one class, but {len(declared)} classes are declared; "
            "declare one, or put the images into a sub-folder for each class"
        )
    return declared[0]


def _files(folder: Path, label: str) -> tuple[Listed, ...]:
    """The files below a folder in order of name, all of one class."""
    return tuple(
        Listed(str(path), path, label, problem=None if _is_image(path) else "neither PNG nor JPEG")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _is_hidden(path, folder)
    )


def _class_folders(folder: Path) -> list[Path]:
    found = [path for path in folder.iterdir() if not path.name.startswith(".")]
    loose = sorted(path.name for path in found if not path.is_dir() and _is_image(path))
    if loose:
        raise DataError(f"{folder}: {loose[0]} lies outside the class sub-folders; move it into one")
    folders = [path for path in found if path.is_dir()]
    if not folders:
        raise DataError(
            f"{folder}: has no sub-folder and no image; make a sub-folder for each class and put its PNG or JPEG "
            "images there, or images of one class right into it"
        )
    is_numbered = all(path.name.isdecimal() for path in folders)
    return sorted(folders, key=lambda path: (int(path.name) if is_numbered else 0, path.name))


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGE_SUFFIXES


def _is_hidden(path: Path, top: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(top).parts)
