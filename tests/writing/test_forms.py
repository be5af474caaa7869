"""Every form holds the same images and labels as the .npz file, however they came in chunks."""

from __future__ import annotations

import json
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_readers import READERS, Read, read_arrow, read_npz, with_pyarrow

from datalens.data import load
from datalens.errors import ConfigError, MissingExtraError
from datalens.writing import Contents, SampleFormat, arrow, write_samples

CLASSES = ("ant", "bee", "none of these")


def images_and_labels(count: int, channels: int, seed: int = 0) -> Read:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, channels, 4, 5), dtype=np.uint8)
    return images, rng.integers(0, len(CLASSES), count)


def chunks_of(images: np.ndarray, labels: np.ndarray, chunk: int) -> Iterator[Read]:
    for start in range(0, len(labels), chunk):
        yield images[start : start + chunk], labels[start : start + chunk]


def written(folder: Path, form: SampleFormat, images: np.ndarray, labels: np.ndarray, chunk: int) -> Path:
    target = folder / f"{form}{form.suffix}"
    write_samples(target, form, Contents.of(images, CLASSES), chunks_of(images, labels, chunk))
    return target


def with_datasets() -> Any:
    datasets = pytest.importorskip("datasets", reason="datasets (extra huggingface) is not installed")
    datasets.disable_progress_bars()
    return datasets


def test_every_form_has_a_reader_here() -> None:
    assert READERS.keys() == set(SampleFormat)


@pytest.mark.parametrize("form", SampleFormat)
@settings(max_examples=15, deadline=None)
@given(count=st.integers(1, 40), chunk=st.integers(1, 41), colour=st.booleans(), seed=st.integers(0, 99))
def test_what_was_drawn_is_read_back(
    form: SampleFormat, count: int, chunk: int, colour: bool, seed: int
) -> None:
    if form in (SampleFormat.PARQUET, SampleFormat.DATASETS):
        with_pyarrow()
    channels = 3 if colour and form is not SampleFormat.IDX else 1
    images, labels = images_and_labels(count, channels, seed)
    with tempfile.TemporaryDirectory() as place:
        found = READERS[form](written(Path(place), form, images, labels, chunk), CLASSES)
        np.savez(Path(place) / "whole.npz", x=images, y=labels)
        as_npz = read_npz(Path(place) / "whole.npz", CLASSES)
    for one, other in zip(found, as_npz, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_npz_is_numpys_own_to_the_byte(tmp_path: Path) -> None:
    images, labels = images_and_labels(700, 3)
    target = written(tmp_path, SampleFormat.NPZ, images, labels, 64)
    np.savez(tmp_path / "whole.npz", x=images, y=labels)
    assert target.read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.parametrize("form", SampleFormat)
def test_equal_samples_give_equal_files(tmp_path: Path, form: SampleFormat) -> None:
    if form in (SampleFormat.PARQUET, SampleFormat.DATASETS):
        with_pyarrow()
    images, labels = images_and_labels(30, 1)
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        target = written(tmp_path / name, form, images, labels, 7)
        files = [target] if form.suffix else sorted(file for file in target.rglob("*") if file.is_file())
        found.append([(file.name, file.read_bytes()) for file in files])
    assert found[0] == found[1]


def test_our_own_loader_reads_npz_and_folder(tmp_path: Path) -> None:
    images, labels = images_and_labels(12, 3)
    labels[0] = 2
    for form in (SampleFormat.NPZ, SampleFormat.FOLDER):
        data = load(written(tmp_path, form, images, labels, 5), classes=CLASSES, any_size=True)
        order = np.arange(12) if form is SampleFormat.NPZ else np.argsort(labels, kind="stable")
        np.testing.assert_array_equal(data.images, images[order])
        np.testing.assert_array_equal(data.labels, labels[order])


def test_idx_has_the_bytes_of_mnists_files(tmp_path: Path) -> None:
    """The magic numbers 2051 and 2049, sizes with the highest byte first, then a byte a value."""
    images, labels = images_and_labels(3, 1)
    target = written(tmp_path, SampleFormat.IDX, images, labels, 2)
    expected = struct.pack(">IIII", 2051, 3, 4, 5) + images.tobytes()
    assert (target / "train-images-idx3-ubyte").read_bytes() == expected
    expected = struct.pack(">II", 2049, 3) + bytes(labels.tolist())
    assert (target / "train-labels-idx1-ubyte").read_bytes() == expected


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (Contents(1, (3, 4, 4), CLASSES), "idx holds grey images only, and these have 3 channels"),
        (Contents(1, (1, 4, 4), tuple(map(str, range(257)))), "at most 256 classes, and there are 257"),
        (Contents(2**32, (1, 4, 4), CLASSES), "at most 4294967295 images"),
    ],
)
def test_what_idx_cannot_hold_is_refused_and_nothing_made(
    tmp_path: Path, contents: Contents, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        write_samples(tmp_path / "a", SampleFormat.IDX, contents, [])
    assert list(tmp_path.iterdir()) == []


def test_parquet_says_what_its_columns_are(tmp_path: Path) -> None:
    pyarrow = with_pyarrow()
    images, labels = images_and_labels(1100, 1)
    file = pyarrow.parquet.ParquetFile(written(tmp_path, SampleFormat.PARQUET, images, labels, 1100))
    assert file.num_row_groups == 3, "what reads one image reads a row group"
    image = pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string()})
    assert file.schema_arrow.field("image").type == image
    assert file.schema_arrow.field("label").type == pyarrow.int64()
    told = json.loads(file.schema_arrow.metadata[b"huggingface"])["info"]["features"]
    assert told == {"image": {"_type": "Image"}, "label": {"names": [*CLASSES], "_type": "ClassLabel"}}


@pytest.mark.parametrize("form", [SampleFormat.PARQUET, SampleFormat.DATASETS])
@pytest.mark.filterwarnings("ignore")
def test_datasets_itself_opens_it_with_images_and_class_names(
    tmp_path: Path, form: SampleFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = with_datasets()
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    images, labels = images_and_labels(25, 3)
    target = written(tmp_path, form, images, labels, 10)
    if form is SampleFormat.DATASETS:
        data = datasets.load_from_disk(str(target))
    else:
        cache = str(tmp_path / "cache")
        data = datasets.load_dataset("parquet", data_files=str(target), split="train", cache_dir=cache)
    expected = datasets.Features(image=datasets.Image(), label=datasets.ClassLabel(names=[*CLASSES]))
    assert data.features == expected
    assert data.features.arrow_schema == arrow.schema(with_pyarrow(), Contents.of(images, CLASSES))
    found = np.stack([np.moveaxis(np.asarray(row["image"]), 2, 0) for row in data])
    np.testing.assert_array_equal(found, images)
    assert data["label"][:] == labels.tolist()
    assert data.features["label"].int2str(2) == "none of these"
    doubled = data.map(lambda row: {"twice": 2 * row["label"]})
    assert doubled["twice"][:] == (2 * labels).tolist()


@pytest.mark.filterwarnings("ignore")
def test_the_folder_of_datasets_is_what_datasets_would_save(tmp_path: Path) -> None:
    """State and rows are those of ``save_to_disk``, which says more of itself only where we have nothing to say."""
    datasets = with_datasets()
    images, labels = images_and_labels(9, 3)
    ours = written(tmp_path, SampleFormat.DATASETS, images, labels, 4)
    datasets.load_from_disk(str(ours)).save_to_disk(str(tmp_path / "theirs"))
    for name in ("state.json", "dataset_info.json"):
        mine, other = (json.loads((folder / name).read_text()) for folder in (ours, tmp_path / "theirs"))
        assert mine.keys() <= other.keys()
        given_anew = {"_fingerprint"}
        assert all(mine[key] == other[key] for key in mine.keys() - given_anew)
    for one, other in zip(read_arrow(ours, CLASSES), read_arrow(tmp_path / "theirs", CLASSES), strict=True):
        np.testing.assert_array_equal(one, other)


def test_other_images_have_another_fingerprint(tmp_path: Path) -> None:
    """By it ``datasets`` knows what it has computed already."""
    with_pyarrow()
    prints = set()
    images, labels = images_and_labels(4, 1)
    brighter, others = images ^ np.uint8(1), (labels + 1) % len(CLASSES)
    for number, (x, y) in enumerate([(images, labels), (brighter, labels), (images, others)]):
        (tmp_path / str(number)).mkdir()
        target = written(tmp_path / str(number), SampleFormat.DATASETS, x, y, 3)
        prints.add(json.loads((target / "state.json").read_text())["_fingerprint"])
    assert len(prints) == 3


@pytest.mark.parametrize(
    ("form", "extra"), [(SampleFormat.PARQUET, "parquet"), (SampleFormat.DATASETS, "huggingface")]
)
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: SampleFormat, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    images, labels = images_and_labels(2, 1)
    with pytest.raises(MissingExtraError, match=rf"pip install 'datalens-dp\[{extra}\]'"):
        written(tmp_path, form, images, labels, 2)
    assert list(tmp_path.iterdir()) == []
