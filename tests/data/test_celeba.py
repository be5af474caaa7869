"""CelebA from its official files: labels from the attributes, the official partition, one picture a record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_colour import HAIR, face_flags, face_part, write_celeba

from datalens.data import check, fetch, load
from datalens.errors import ConfigError, DataError

COUNT = 48


def numbers(part: int) -> list[int]:
    return [number for number in range(COUNT) if face_part(number) == part]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_celeba(tmp_path_factory.mktemp("root"), COUNT)


@pytest.mark.parametrize(("split", "part"), [("train", 0), ("test", 2)])
def test_gender_is_the_attribute_and_the_split_the_official_one(root: Path, split, part: int) -> None:
    data = load("celeba-gender", split=split, root=root)
    assert (data.classes, data.public, data.name) == (("female", "male"), True, f"celeba-gender ({split})")
    assert data.image_shape == (3, 64, 64) and data.group_ids is None and not data.notes
    assert data.labels.tolist() == ["Male" in face_flags(number) for number in numbers(part)]


@pytest.mark.parametrize(("split", "part"), [("train", 0), ("test", 2)])
def test_hair_is_exactly_one_of_three_colours(root: Path, split, part: int) -> None:
    data = load("celeba-hair", split=split, root=root)
    colours = [[place for place, hair in enumerate(HAIR) if hair in face_flags(n)] for n in numbers(part)]
    kept = [found[0] for found in colours if len(found) == 1]
    assert data.classes == ("black", "blond", "brown") and data.labels.tolist() == kept
    assert data.notes == (f"{len(colours) - len(kept)} of {len(colours)} pictures left out: "
                          "not exactly one of black, blond, brown hair",)  # fmt: skip
    means = [data.images[data.labels == label][:, :, 4:22].mean(axis=(0, 2, 3)) for label in range(3)]
    assert np.allclose(means, [(30, 30, 30), (230, 200, 120), (120, 70, 30)], atol=8), "each with its picture"


def test_a_picture_is_the_middle_square_and_no_more(root: Path) -> None:
    images = load("celeba-gender", root=root).images.astype(int)
    green = (images[:, 1] > 220) & (images[:, 0] < 60) & (images[:, 2] < 60)
    assert not green.any(), "the 20 rows above and below are cut off"


def test_people_are_groups_where_they_are_asked_for(root: Path) -> None:
    for name in ("celeba-gender", "celeba-hair"):
        ids = load(name, root=root, groups=True).group_ids
        assert ids is not None and ids.dtype == np.int64
        listed = [n for n in numbers(0) if name == "celeba-gender" or len(face_flags(n) & set(HAIR)) == 1]
        same = np.equal.outer([n // 3 for n in listed], [n // 3 for n in listed])
        assert np.array_equal(np.equal.outer(ids, ids), same)


def test_groups_need_the_file_of_people(tmp_path: Path) -> None:
    root = write_celeba(tmp_path, 8, people=False)
    assert load("celeba-gender", root=root).num_records == 4
    with pytest.raises(DataError, match=r"has no identity_CelebA.txt.*get it from the CelebA project"):
        load("celeba-gender", root=root, groups=True)
    for name in ("mnist", "shapes", "places365", str(tmp_path)):
        with pytest.raises(ConfigError, match=r"groups=True: .*does not say which images belong together"):
            load(name, root=root, groups=True)


def test_the_archive_and_the_projects_own_folders_serve_as_well(root: Path, tmp_path: Path) -> None:
    expected = load("celeba-gender", root=root)
    zipped = load("celeba-gender", root=write_celeba(tmp_path / "zipped", COUNT, zipped=True))
    assert np.array_equal(zipped.images, expected.images)
    own = write_celeba(tmp_path / "own", COUNT) / "celeba"
    for part, names in {
        "Anno": ("list_attr_celeba.txt", "identity_CelebA.txt"),
        "Eval": ("list_eval_partition.txt",),
        "Img": ("img_align_celeba",),
    }.items():
        (own / part).mkdir()
        for name in names:
            (own / name).rename(own / part / name)
    again = load("celeba-gender", root=tmp_path / "own", groups=True)
    assert np.array_equal(again.images, expected.images)


def test_the_miniature_has_the_form_of_the_official_list(root: Path) -> None:
    """A number, 40 names, and a row a picture, parted by whitespace."""
    lines = (root / "celeba" / "list_attr_celeba.txt").read_text().splitlines()
    assert int(lines[0]) == COUNT and len(lines[1].split()) == 40
    assert {len(line.split()) for line in lines[2:]} == {41}


@pytest.mark.parametrize("name", ["celeba-gender", "celeba-hair"])
def test_what_is_missing_is_said_in_one_line(tmp_path: Path, name: str) -> None:
    line = rf"{name}: .*get img_align_celeba.zip.*CelebA project.*put them into {tmp_path}/celeba$"
    with pytest.raises(DataError, match=rf"{name}: list_attr_celeba.txt is not in {tmp_path}/celeba; get"):
        load(name, root=tmp_path)
    with pytest.raises(DataError, match=line):
        load(name, root=tmp_path)
    with pytest.raises(DataError, match=line.replace(f"{name}: ", f"{name}: can't be fetched")):
        fetch(name, tmp_path)
    assert {found.status for found in check(name, tmp_path)} == {"missing"}
    assert not list(tmp_path.iterdir()), "nothing is written"


def test_a_whole_set_is_left_alone(root: Path) -> None:
    assert fetch("celeba-hair", root).way == "already there"
    assert {found.status for found in check("celeba-hair", root)} == {"ok"}


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("list_attr_celeba.txt", "12\n", "13\n", "holds 12 pictures, but says 13"),
        ("list_attr_celeba.txt", "Male", "Mail", "names of attributes"),
        ("list_attr_celeba.txt", "000003.jpg  1", "000003.jpg  1  1", "line 5 is no picture with 40"),
        ("list_attr_celeba.txt", "000001.jpg", "900001.jpg", "does not name 000001.jpg"),
        ("list_attr_celeba.txt", "Young", "\xfc", "can't be read as text"),
        ("list_eval_partition.txt", "000002.jpg 0", "000002.jpg 7", "line 2 is no picture with 0, 1 or 2"),
        ("identity_CelebA.txt", "000002.jpg 2880", "000002.jpg", "line 2 is no picture with a person"),
    ],
)
def test_a_damaged_list_is_refused(tmp_path: Path, file: str, old: str, new: str, message: str) -> None:
    path = write_celeba(tmp_path, 12) / "celeba" / file
    text = path.read_text().replace("-1", " 1") if "  1" in old else path.read_text()
    assert old in text
    path.write_bytes(text.replace(old, new, 1).encode("latin-1"))
    with pytest.raises(DataError, match=rf"{file}: .*{message}.*get the file again"):
        load("celeba-gender", root=tmp_path, groups=True)


def test_a_picture_that_is_missing_damaged_or_of_another_size_is_named(tmp_path: Path) -> None:
    pictures = write_celeba(tmp_path, 12) / "celeba" / "img_align_celeba"
    whole = (pictures / "000001.jpg").read_bytes()
    (pictures / "000002.jpg").unlink()
    with pytest.raises(DataError, match=r"1 of 6 listed pictures are not there, the first 000002.jpg"):
        load("celeba-gender", root=tmp_path)
    (found,) = [found for found in check("celeba-gender", tmp_path) if found.status != "ok"]
    assert (found.status, found.file) == ("damaged", "pictures (train)") and "000002.jpg" in (
        found.found or ""
    )
    for content, reason in ((whole[:300], "can't be used"), (b"no", "no picture")):
        (pictures / "000002.jpg").write_bytes(content)
        with pytest.raises(DataError, match=rf"000002.jpg: .*{reason}.*get the file again"):
            load("celeba-gender", root=tmp_path)
    from PIL import Image

    Image.new("RGB", (64, 64)).save(pictures / "000002.jpg")
    with pytest.raises(DataError, match=r"000002.jpg: .*is 64x64 pixels, but aligned ones are 178x218"):
        load("celeba-gender", root=tmp_path)


def test_no_archive_is_refused(tmp_path: Path) -> None:
    folder = write_celeba(tmp_path, 8, zipped=True) / "celeba"
    (folder / "img_align_celeba.zip").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"is no .zip file, or only a part of one"):
        load("celeba-gender", root=tmp_path)
