"""Emoji: pictures of four vendors over white, an emoji a group, and no group in both splits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_colour import VENDORS, emoji_list, write_emoji

from datalens.data import check, load
from datalens.data.emoji import CLASSES, is_tested, package_name
from datalens.data.groups import group_id
from datalens.errors import DataError


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_emoji(tmp_path_factory.mktemp("root"))


def expected(split: str) -> list[tuple[str, int]]:
    """(emoji, label) of every record, by hand."""
    return [
        (emoji, CLASSES.index(entry["category"]))
        for vendor in VENDORS
        for entry in emoji_list()
        if entry["category"] != "Component"
        for emoji in [entry.get("obsoleted_by", entry["unified"])]
        for one in (entry, *entry.get("skin_variations", {}).values())
        if one[f"has_img_{vendor}"] and is_tested(emoji) == (split == "test")
    ]


@pytest.mark.parametrize("split", ["train", "test"])
def test_records_are_vendor_by_vendor_with_category_and_group(root: Path, split) -> None:
    data = load("emoji", split=split, root=root, groups=True)
    listed = expected(split)
    assert (data.classes, data.image_shape, data.public) == (CLASSES, (3, 64, 64), True)
    assert data.labels.tolist() == [label for _, label in listed]
    assert data.group_ids is not None
    assert data.group_ids.tolist() == [group_id(f"emoji {emoji}") for emoji, _ in listed]
    assert load("emoji", split=split, root=root).group_ids is None, "only where they are asked for"


def test_no_emoji_is_in_both_splits_and_a_sixth_is_tested(root: Path) -> None:
    train, test = (
        load("emoji", split=split, root=root, groups=True).group_ids for split in ("train", "test")
    )
    assert train is not None and test is not None
    assert set(train.tolist()).isdisjoint(test.tolist()) and len(test)
    codes = [f"{number:X}" for number in range(0x1F000, 0x1F000 + 6000)]
    assert 900 < sum(map(is_tested, codes)) < 1100


def test_vendors_tones_and_the_older_form_are_one_group() -> None:
    old, new = emoji_list()[0], emoji_list()[9]
    assert old["obsoleted_by"] == new["unified"] and "skin_variations" in old
    emojis = [emoji for split in ("train", "test") for emoji, _ in expected(split)]
    assert emojis.count(new["unified"]) == 4 * (3 + 1)


def test_transparent_pixels_show_white_and_half_transparent_ones_half(root: Path) -> None:
    images = load("emoji", root=root).images
    assert (images[:, :, :16] == 255).all() and (images[:, :, :, 48:] == 255).all()
    patch = images[0, :, 20]  # Apple's: half of it is half transparent
    assert (patch[0, 16:32] > patch[0, 32:48]).all() and (patch[1, 32:48] == 0).all()
    assert patch[1, 20] == 127, "alpha 128 of 255 over white"


def test_what_is_missing_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"emoji: emoji-datasource-apple/emoji.json is not in .*data fetch emoji"
    ):
        load("emoji", root=tmp_path)
    assert {found.status for found in check("emoji", tmp_path)} == {"missing"}
    root = write_emoji(tmp_path)
    assert {found.status for found in check("emoji", root)} == {"ok"}


@pytest.mark.parametrize(
    "change",
    [
        lambda listed: listed[0].pop("category"),
        lambda listed: listed[0].update(category="Novelties"),
        lambda listed: listed[0].update(image="../../secret.png"),
        lambda listed: listed[0].update(image=7),
        lambda listed: listed.insert(0, "no emoji"),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path: Path, change) -> None:
    listed = emoji_list()
    root = write_emoji(tmp_path, listed)
    change(listed)
    (root / "emoji" / package_name("google") / "emoji.json").write_text(json.dumps(listed))
    with pytest.raises(DataError, match=r"emoji.json: is no list of emoji .*data fetch emoji"):
        load("emoji", root=root)


def test_real_emoji(emoji_root: Path) -> None:
    train, test = (load("emoji", split=split, root=emoji_root, groups=True) for split in ("train", "test"))
    assert (train.num_records, test.num_records) == (12_509, 2_471)
    assert train.group_ids is not None and test.group_ids is not None
    assert (len(np.unique(train.group_ids)), len(np.unique(test.group_ids))) == (1_560, 310)
    assert np.bincount(train.labels).tolist() == [550, 7469, 523, 438, 724, 296, 885, 709, 915]
    assert all(found.status == "ok" for found in check("emoji", emoji_root))
