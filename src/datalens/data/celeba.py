"""CelebA: 202,599 aligned faces of celebrities with 40 attributes each, by gender or by the colour of the hair.

From the official files, in the layout of the project's download or of torchvision. Pictures of 178x218 are cut to
the square of 178 in their middle, which holds the whole head, and scaled to 64x64.

Source of the settings: Wang et al. 2021, Section 5.1; what they leave open is chosen in docs/reproduction.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image

from datalens.data.decoded import SIDE, Conversion, FolderStore, PictureStore, ZipStore
from datalens.data.gathered import Gathered, GatheredSet, find, require
from datalens.data.groups import group_id
from datalens.errors import DataError

FOLDER = "celeba"
PICTURES = "img_align_celeba"
WIDTH, HEIGHT = 178, 218
GENDERS, HAIRS = ("female", "male"), ("black", "blond", "brown")
PARTITION = {"train": "0", "test": "2"}
"""Numbers of the official partition; its validation part, 1, is not read."""

Value = TypeVar("Value")

_MALE = "Male"
_HAIR = ("Black_Hair", "Blond_Hair", "Brown_Hair")
_ATTRIBUTES = ("list_attr_celeba.txt", "Anno/list_attr_celeba.txt")
_SPLITS = ("list_eval_partition.txt", "Eval/list_eval_partition.txt")
_PEOPLE = ("identity_CelebA.txt", "Anno/identity_CelebA.txt")
_FOLDERS = (PICTURES, f"Img/{PICTURES}")
_ARCHIVES = (f"{PICTURES}.zip", f"Img/{PICTURES}.zip")


def face(picture: Image.Image) -> Image.Image:
    """The square of 178 pixels in the middle of an aligned picture, as 64x64 (Lanczos).

    Raises:
        ValueError: a picture of another size.
    """
    if picture.size != (WIDTH, HEIGHT):
        width, height = picture.size
        raise ValueError(f"is {width}x{height} pixels, but aligned ones are {WIDTH}x{HEIGHT}")
    top = (HEIGHT - WIDTH) // 2
    box = (0, top, WIDTH, top + WIDTH)
    return picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS, box=box)


def gather_gender(folder: Path, split: str, groups: bool) -> Gathered:
    """Every picture of a split, labelled by the attribute ``Male``.

    Raises:
        DataError: a list that is not as published.
    """
    names = _names_of(folder, split)
    flags = _attributes(folder, names, (_MALE,))
    return Gathered(
        _store(folder),
        names,
        flags[:, 0].astype(np.int64),
        group_ids=_people(folder, names) if groups else None,
    )


def gather_hair(folder: Path, split: str, groups: bool) -> Gathered:
    """The pictures of a split whose hair is exactly one of black, blond and brown; a picture decides for itself.

    Raises:
        DataError: a list that is not as published.
    """
    names = _names_of(folder, split)
    flags = _attributes(folder, names, _HAIR)
    keep = np.flatnonzero(flags.sum(axis=1) == 1)
    people = _people(folder, [names[place] for place in keep]) if groups else None
    left_out = len(names) - len(keep)
    note = f"{left_out} of {len(names)} pictures left out: not exactly one of {', '.join(HAIRS)} hair"
    labels = flags[keep].argmax(axis=1).astype(np.int64)
    return Gathered(_store(folder), names, labels, keep, people, (note,) if left_out else ())


def _names_of(folder: Path, split: str) -> tuple[str, ...]:
    path = require(folder, _SPLITS)
    names, wanted = [], PARTITION[split]
    for line, fields in _lines(path):
        if len(fields) != 2 or fields[1] not in ("0", "1", "2"):
            raise DataError(f"{path}: line {line} is no picture with 0, 1 or 2; get the file again")
        if fields[1] == wanted:
            names.append(fields[0])
    return tuple(names)


def _attributes(folder: Path, names: tuple[str, ...], wanted: tuple[str, ...]) -> np.ndarray:
    """Boolean [pictures, attributes]."""
    path = require(folder, _ATTRIBUTES)
    rows = _lines(path)
    count, titles = [fields for _, (_, fields) in zip(range(2), rows, strict=False)] or ([], [])
    if len(count) != 1 or not count[0].isdigit() or not set(wanted) <= set(titles):
        raise DataError(
            f"{path}: begins with no number of pictures and names of attributes ({', '.join(wanted)}); get the "
            "file again"
        )
    columns = [titles.index(name) + 1 for name in wanted]
    flags: dict[str, list[bool]] = {}
    for line, fields in rows:
        if len(fields) != len(titles) + 1 or not {fields[column] for column in columns} <= {"1", "-1"}:
            raise DataError(
                f"{path}: line {line} is no picture with {len(titles)} of 1 and -1; get the file again"
            )
        flags[fields[0]] = [fields[column] == "1" for column in columns]
    if len(flags) != int(count[0]):
        raise DataError(f"{path}: holds {len(flags)} pictures, but says {count[0]}; get the file again")
    return np.array([_of(flags, name, path) for name in names], bool).reshape(len(names), len(wanted))


def _people(folder: Path, names: tuple[str, ...] | list[str]) -> np.ndarray:
    """Group ids by person."""
    path = find(folder, _PEOPLE)
    if path is None:
        raise DataError(
            f"{folder}: has no {_PEOPLE[0]}, which says who is on a picture; get it from the CelebA project, or "
            "leave groups out"
        )
    people: dict[str, str] = {}
    for line, fields in _lines(path):
        if len(fields) != 2:
            raise DataError(f"{path}: line {line} is no picture with a person; get the file again")
        people[fields[0]] = fields[1]
    return np.array([group_id(f"{FOLDER} {_of(people, name, path)}") for name in names], np.int64)


def _of(table: dict[str, Value], name: str, path: Path) -> Value:
    if name not in table:
        raise DataError(f"{path}: does not name {name}; get the file again")
    return table[name]


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Numbers from 1 and fields of the lines that have any."""
    try:
        with path.open(encoding="ascii") as file:
            for number, line in enumerate(file, 1):
                fields = line.split()
                if fields:
                    yield number, fields
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: can't be read as text ({error}); get the file again") from None


def _store(folder: Path) -> PictureStore:
    unpacked = find(folder, _FOLDERS)
    return ZipStore(require(folder, _ARCHIVES), PICTURES) if unpacked is None else FolderStore(unpacked)


CELEBA_GENDER = GatheredSet(
    name="celeba-gender",
    title="faces by gender, 162,770 to train and 19,962 to test, 64x64 colour, 2 classes",
    classes=GENDERS,
    folder=FOLDER,
    wanted=(_ATTRIBUTES, _SPLITS, (*_FOLDERS, *_ARCHIVES)),
    get="get img_align_celeba.zip, list_attr_celeba.txt, list_eval_partition.txt and, for groups, "
    "identity_CelebA.txt from the CelebA project of the Chinese University of Hong Kong (for research only)",
    conversion=Conversion("faces-centre178", face),
    gather=gather_gender,
)
CELEBA_HAIR = replace(
    CELEBA_GENDER,
    name="celeba-hair",
    title="the faces whose hair is black, blond or brown alone, 64x64 colour, 3 classes",
    classes=HAIRS,
    gather=gather_hair,
)
