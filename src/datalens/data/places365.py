"""Places365: 120,000 scenes of three level-2 classes, from the official lists and small pictures of 256x256.

The classes are the first three of level 2 below "outdoor, natural" in the hierarchy of the Places project. The
hierarchy is not among the files, so each class is a list of categories here: those that by their name belong to it
alone. Of each class 40,000 training pictures are taken, evenly from its categories in the order of the official list;
the test pictures are the official validation ones of the same categories, 100 a category.

Source of the settings: Wang et al. 2021, Section 5.1, which names neither classes nor the choice of pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from datalens.data.decoded import SIDE, Conversion, FolderStore
from datalens.data.gathered import Gathered, GatheredSet, require
from datalens.errors import DataError

FOLDER = "places365"
FULL_SIDE = 256
A_CLASS = 40_000
"""Training pictures of a class, at most."""

MEMBERS: dict[str, tuple[str, ...]] = {
    "water, ice, snow": (
        "beach", "coast", "creek", "ice_floe", "ice_shelf", "iceberg", "lagoon", "lake/natural", "ocean", "pond",
        "river", "waterfall", "wave",
    ),
    "mountains, hills, desert, sky": (
        "badlands", "butte", "canyon", "cliff", "desert/sand", "desert/vegetation", "mountain", "mountain_path",
        "rock_arch", "sky", "valley", "volcano",
    ),
    "forest, field, jungle": (
        "bamboo_forest", "corn_field", "field/cultivated", "field/wild", "forest/broadleaf", "forest_path",
        "hayfield", "pasture", "rainforest", "rice_paddy", "tree_farm", "wheat_field",
    ),
}  # fmt: skip
"""Categories of each class by their official names, without the letter before them."""

CLASSES = ("water", "mountains", "forest")
"""The classes' short names, in the order of :data:`MEMBERS`."""

_CATEGORIES = ("categories_places365.txt",)
_LISTS = {"train": ("places365_train_standard.txt",), "test": ("places365_val.txt",)}
_PICTURES = {"train": ("data_256_standard", "data_256"), "test": ("val_256",)}


def scene(picture: Image.Image) -> Image.Image:
    """A small picture as 64x64 (Lanczos).

    Raises:
        ValueError: a picture of another size.
    """
    if picture.size != (FULL_SIDE, FULL_SIDE):
        width, height = picture.size
        raise ValueError(f"is {width}x{height} pixels, but small ones are {FULL_SIDE}x{FULL_SIDE}")
    return picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def gather(folder: Path, split: str, groups: bool) -> Gathered:
    """The pictures of a split that belong to one of the three classes.

    Raises:
        DataError: a list that is not as published.
    """
    path = require(folder, _CATEGORIES)
    number_of = {name: number for _, name, number in _lines(path)}
    class_of: dict[int, int] = {}
    for label, members in enumerate(MEMBERS.values()):
        for member in members:
            name = f"/{member[0]}/{member}"
            if name not in number_of:
                raise DataError(f"{path}: does not name {name}; get the file again")
            class_of[number_of[name]] = label
    listed = require(folder, _LISTS[split])
    found = [(name, number) for _, name, number in _lines(listed) if number in class_of]
    categories = np.array([number for _, number in found], np.int64)
    labels = np.array([class_of[number] for number in categories.tolist()], np.int64)
    taken = np.arange(len(found)) if split == "test" else evenly(categories, labels, A_CLASS)
    names = tuple(found[place][0].lstrip("/") for place in taken)
    return Gathered(FolderStore(require(folder, _PICTURES[split])), names, labels[taken])


def evenly(categories: np.ndarray, labels: np.ndarray, most: int) -> np.ndarray:
    """Places of the records taken: of each class at most so many, as evenly from its categories as these allow.

    Of every category the first come first: all the first ones, then all the second ones, and so on.

    Args:
        categories: int64 [R].
        labels: int64 [R], the class of each.
        most: of a class.

    >>> evenly(np.array([5, 5, 5, 7, 8]), np.array([0, 0, 0, 0, 1]), 2).tolist()
    [0, 3, 4]
    """
    rank = np.zeros(len(categories), np.int64)
    for category in np.unique(categories):
        places = np.flatnonzero(categories == category)
        rank[places] = np.arange(len(places))
    order = np.lexsort((np.arange(len(categories)), rank))
    taken = [order[labels[order] == label][:most] for label in np.unique(labels)]
    return np.sort(np.concatenate(taken)) if taken else np.zeros(0, np.int64)


def _lines(path: Path) -> Iterator[tuple[int, str, int]]:
    """(number of the line, what it names, its number)."""
    try:
        with path.open(encoding="ascii") as file:
            for line, text in enumerate(file, 1):
                name, _, number = text.strip().rpartition(" ")
                if not name or not number.isdigit():
                    raise DataError(f"{path}: line {line} is no name with a number; get the file again")
                yield line, name, int(number)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: can't be read as text ({error}); get the file again") from None


PLACES365 = GatheredSet(
    name="places365",
    title="natural scenes, 120,000 to train and 3,700 to test, 64x64 colour, 3 classes",
    classes=CLASSES,
    folder=FOLDER,
    wanted=(_CATEGORIES, *_LISTS.values(), *_PICTURES.values()),
    get="get filelist_places365-standard.tar, train_256_places365standard.tar and val_256.tar from the Places "
    "project of MIT CSAIL (for research and education), unpack the three",
    conversion=Conversion("scenes", scene),
    gather=gather,
    has_groups=False,
)
