"""Emoji: some 15,000 pictures of four vendors from npm packages, 64x64 colour over white, labelled by category.

Real pictures in colour that anybody can have. The four packages hold the same emoji drawn by Apple, Google, Twitter
and Facebook, many of them in five tones of skin. All pictures of one emoji are a group: its vendors, its tones of
skin, and the older form that it replaced. A public hash of the group decides whether it is trained or tested on, so
no emoji is in both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from datalens.data.decoded import SIDE, Conversion, FolderStore
from datalens.data.gathered import Gathered, GatheredSet, NpmPackage
from datalens.data.groups import group_id
from datalens.errors import DataError

FOLDER = "emoji"
CLASSES = (
    "Smileys & Emotion",
    "People & Body",
    "Animals & Nature",
    "Food & Drink",
    "Travel & Places",
    "Activities",
    "Objects",
    "Symbols",
    "Flags",
)
"""Unicode's categories of emoji but for "Component", the five patches of skin colour."""

TESTED = 6
"""One group in so many is tested on."""

_LEFT_OUT = "Component"
_VERSION = "16.0.0"
_TAKES = ("emoji.json", "LICENSE", "README.md", "img/*/64/*.png")
_DIGESTS = {
    "apple": "dd2e61e3e0335a2c2153b50db92c60ee",
    "google": "043c663f25b229bae8f51cb0b229ff77",
    "twitter": "d25dfc631465e36954dd95e82c2cd179",
    "facebook": "8a295ccca0abd042079324fc37ab7080",
}
"""By vendor, in the order of their records; see :class:`~datalens.data.gathered.NpmPackage`."""


def over_white(picture: Image.Image) -> Image.Image:
    """A picture of 64x64 in RGB; what is transparent shows white.

    Raises:
        ValueError: a picture of another size.
    """
    if picture.size != (SIDE, SIDE):
        width, height = picture.size
        raise ValueError(f"is {width}x{height} pixels, but {SIDE}x{SIDE} were published")
    white = Image.new("RGBA", picture.size, "white")
    return Image.alpha_composite(white, picture.convert("RGBA")).convert("RGB")


def gather(folder: Path, split: str, groups: bool) -> Gathered:
    """The pictures of a split, vendor by vendor, each in the order of its list.

    Raises:
        DataError: a list that is not as published.
    """
    names, labels, ids = [], [], []
    for vendor in _DIGESTS:
        package = package_name(vendor)
        for emoji, image, label in _pictures(folder / package / "emoji.json", vendor):
            if is_tested(emoji) == (split == "test"):
                names.append(f"{package}/img/{vendor}/64/{image}")
                labels.append(label)
                ids.append(group_id(f"emoji {emoji}"))
    group_ids = np.array(ids, np.int64) if groups else None
    return Gathered(FolderStore(folder), tuple(names), np.array(labels, np.int64), group_ids=group_ids)


def is_tested(emoji: str) -> bool:
    """Whether an emoji, by its code points as ``1F600``, is in the test split: a public hash says so.

    >>> is_tested("1F603"), is_tested("1F601")
    (True, False)
    """
    return group_id(f"emoji split {emoji}") % TESTED == 0


def package_name(vendor: str) -> str:
    """The npm package of a vendor's pictures.

    >>> package_name("apple")
    'emoji-datasource-apple'
    """
    return f"emoji-datasource-{vendor}"


def _pictures(path: Path, vendor: str) -> Iterator[tuple[str, str, int]]:
    """(the emoji that stands for the group, file, label) of every picture that a vendor has."""
    try:
        for entry in json.loads(path.read_bytes()):
            if entry["category"] == _LEFT_OUT:
                continue
            label = CLASSES.index(entry["category"])
            emoji = entry.get("obsoleted_by") or entry["unified"]
            for drawn in (entry, *entry.get("skin_variations", {}).values()):
                if drawn[f"has_img_{vendor}"]:
                    yield emoji, _plain(drawn["image"]), label
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: is no list of emoji ({type(error).__name__}: {error}); run `datalens data fetch emoji`"
        ) from None


def _plain(image: Any) -> str:
    """A file's name that leads nowhere else."""
    if not isinstance(image, str) or Path(image).name != image:
        raise ValueError(f"image {image!r:.60} is no file's name")
    return image


EMOJI = GatheredSet(
    name="emoji",
    title="emoji of four vendors by category, 64x64 colour, 9 classes",
    classes=CLASSES,
    folder=FOLDER,
    wanted=tuple(
        (f"{package_name(vendor)}/{part}",)
        for vendor in _DIGESTS
        for part in ("emoji.json", f"img/{vendor}/64")
    ),
    get="",
    conversion=Conversion("emoji-white", over_white),
    gather=gather,
    packages=tuple(
        NpmPackage(package_name(vendor), _VERSION, _TAKES, digest) for vendor, digest in _DIGESTS.items()
    ),
)
