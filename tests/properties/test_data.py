"""Whatever arrays or files come in: they are read into what the package promises, or refused with one line."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from datalens.data import LabelledImages, load
from datalens.data.arrays import labelled_images
from datalens.errors import ConfigError, DataError

EXAMPLES = settings(max_examples=300, deadline=None)
CORNERS = [0.0, 1.0, -1.0, 255.0, 1e308, -1e308, 1.7e308, 5e-324, float("inf"), float("nan")]
KINDS = st.one_of(
    arrays.scalar_dtypes(),
    arrays.unicode_string_dtypes(max_len=4),
    arrays.byte_string_dtypes(max_len=4),
    st.just(np.dtype(object)),
    st.just(np.dtype(np.longdouble)),
)
TEXT = st.text(st.characters(), max_size=4)


def _array(shapes: Any) -> st.SearchStrategy[np.ndarray]:
    def filled(kind: np.dtype[Any]) -> st.SearchStrategy[np.ndarray]:
        if kind.kind == "O":
            return arrays.arrays(
                kind, shapes, elements=st.one_of(TEXT, st.none(), st.integers()), fill=st.nothing()
            )
        return arrays.arrays(kind, shapes)

    return KINDS.flatmap(filled)


SHAPES = arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)
ROWS = st.integers(0, 4)
IMAGES = st.one_of(
    _array(SHAPES),
    ROWS.flatmap(lambda rows: _array(st.sampled_from([(rows, 4, 4), (rows, 1, 4, 4), (rows, 2, 4, 3)]))),
    ROWS.flatmap(lambda rows: arrays.arrays(np.uint8, (rows, 1, 2, 2))),
)
LABELS = st.one_of(
    _array(SHAPES),
    ROWS.flatmap(lambda rows: _array(st.sampled_from([(rows,), (rows, 1), (rows, 3)]))),
    st.lists(st.integers(-(2**70), 2**70), max_size=4),
    st.lists(st.sampled_from([0, 1, 2, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]), max_size=4),
    st.lists(st.sampled_from([*CORNERS, 2.0**63, -(2.0**63), 1e300]), max_size=4),
    st.lists(TEXT, max_size=4),
)
CLASSES = st.one_of(st.none(), st.integers(-1, 5), st.lists(TEXT, max_size=4), st.just(["a", "b"]))
RANGES = st.one_of(st.none(), st.tuples(st.sampled_from(CORNERS), st.sampled_from(CORNERS)))


def check(data: LabelledImages) -> None:
    """The promises of the class, looked at from outside."""
    assert data.images.dtype == np.uint8
    assert data.images.ndim == 4
    assert data.images.size
    assert data.labels.dtype == np.int64
    assert data.labels.shape == (len(data.images),)
    assert data.labels.min() >= 0
    assert data.labels.max() < len(data.classes)
    assert len(set(data.classes)) == len(data.classes)
    assert all(name and name.isprintable() and len(name) <= 100 for name in data.classes)


def loads_or_says_why(call: Any) -> None:
    try:
        check(call())
    except (DataError, ConfigError) as error:
        said = str(error)
        assert said.isprintable(), said
        assert 0 < len(said) < 1000


@EXAMPLES
@given(IMAGES, LABELS, CLASSES, RANGES, st.sampled_from([None, "NCHW", "NHWC"]))
def test_arrays_are_read_or_refused_in_one_line(
    images: Any, labels: Any, classes: Any, value_range: Any, layout: str | None
) -> None:
    loads_or_says_why(
        lambda: labelled_images(images, labels, classes=classes, value_range=value_range, layout=layout)
    )


@settings(max_examples=60, deadline=None)
@given(IMAGES, LABELS, CLASSES, RANGES)
def test_files_of_arrays_are_read_or_refused_in_one_line(
    images: Any, labels: Any, classes: Any, value_range: Any
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "own.npz"
        try:
            np.savez(path, x=images, y=np.asarray(labels))
        except (UnicodeEncodeError, ValueError):
            return  # no such file can be made
        loads_or_says_why(lambda: load(path, classes=classes, value_range=value_range))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400), st.integers(0, 600), st.integers(0, 255))
def test_damaged_files_of_arrays_are_refused_in_one_line(tail: bytes, place: int, byte: int) -> None:
    whole = io.BytesIO()
    np.savez(whole, x=np.zeros((2, 4, 4), np.uint8), y=[0, 1])
    content = bytearray(whole.getvalue())
    content[place % len(content)] = byte
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "own.npz"
        for damaged in (bytes(content), bytes(content[:place]), bytes(content) + tail, tail):
            path.write_bytes(damaged)
            loads_or_says_why(lambda path=path: load(path, classes=2))


def _png(mode: str, width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new(mode, (width, height)).save(file, "PNG")
    return file.getvalue()


FILE_NAMES = st.text(
    st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=5
)
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.builds(
        _png,
        st.sampled_from(["1", "L", "LA", "P", "RGB", "RGBA", "I;16"]),
        st.integers(1, 4),
        st.integers(1, 4),
    ),
    st.builds(lambda cut: _png("L", 3, 3)[:cut], st.integers(0, 80)),
)


@settings(max_examples=120, deadline=None)
@given(
    st.dictionaries(FILE_NAMES, st.dictionaries(FILE_NAMES, CONTENTS, max_size=3), max_size=4),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([None, 4, (2, 3)]),
    st.booleans(),
)
def test_folders_are_read_or_refused_in_one_line(
    tree: dict[str, dict[str, bytes]], channels: int | None, size: Any, skip_damaged: bool
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "people"
        folder.mkdir()
        for class_name, files in tree.items():
            if class_name in (".", ".."):
                continue
            (folder / class_name).mkdir()
            for name, content in files.items():
                (folder / class_name / f"{name}.png").write_bytes(content)
        loads_or_says_why(lambda: load(folder, channels=channels, image_size=size, skip_damaged=skip_damaged))


@pytest.mark.parametrize(
    "value_range", [(-1e308, 1e308), (-1.7e308, 1.7e308), (0, float("inf")), (1, 1), (float("nan"), 1)]
)
def test_a_range_without_a_finite_span_is_refused(value_range: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="value_range is"):
        labelled_images(np.zeros((2, 4, 4)), [0, 1], value_range=value_range)


def test_ranges_close_to_the_largest_and_smallest_numbers_are_exact() -> None:
    for low, high in ((0.0, 1.7e308), (-8e307, 8e307), (0.0, 5e-324), (1e308, 1.1e308)):
        images = np.array([low, high]).reshape(2, 1, 1)
        assert labelled_images(images, [0, 1], value_range=(low, high)).images.ravel().tolist() == [0, 255]


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 2**63], np.uint64),
        np.array([0, 2**64 - 1], np.uint64),
        np.array([0.0, 2.0**63]),
        np.array([0.0, 1e300]),
        np.array([0.0, -1e300]),
        [0, 2**63],
        [0, 2**70],
    ],
    ids=str,
)
@pytest.mark.parametrize("classes", [None, 2, ["a", "b"]])
def test_labels_beyond_what_a_class_number_can_be_are_refused(labels: Any, classes: Any) -> None:
    with pytest.raises(DataError, match=r"y holds|y mixes types"):
        labelled_images(np.zeros((2, 4, 4), np.uint8), labels, classes=classes)


@pytest.mark.parametrize(
    ("labels", "classes"), [([0, 3], 3), ([0, 2], ["a", "b"]), (np.eye(3)[[0, 1]], 2), (np.eye(2), 3)]
)
def test_labels_beyond_the_declared_classes_are_refused(labels: Any, classes: Any) -> None:
    with pytest.raises(DataError, match="declared"):
        labelled_images(np.zeros((2, 4, 4), np.uint8), labels, classes=classes)
