"""Arrays in memory or in an .npz file: any sensible layout, range and labels, or a refusal that says why."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from datalens.data.class_names import check_class_names, declare_classes
from datalens.data.images import CHANNEL_COUNTS, SPLITS, LabelledImages, Split
from datalens.errors import ConfigError, DataError

ValueRange = tuple[float, float]
SHOWN_VALUES = 5
_ROWS_AT_ONCE = 4096
_LABEL_LIMIT = 2.0**63
_NPZ_KEYS: dict[str, tuple[tuple[str, str], ...]] = {
    "train": (("x", "y"), ("x_train", "y_train")),
    "test": (("x_test", "y_test"),),
}


def labelled_images(
    images: Any,
    labels: Any,
    *,
    classes: Sequence[object] | int | None = None,
    value_range: ValueRange | None = None,
    layout: str | None = None,
    name: str = "arrays",
    public: bool = False,
) -> LabelledImages:
    """Check and convert a person's own arrays.

    Args:
        images: [R, H, W], [R, C, H, W] or [R, H, W, C]; uint8, bool, or numbers with a declared range.
        labels: [R] or [R, 1] of whole numbers or strings, or one-hot [R, Y].
        classes: the public list of classes (names, or a number Y for "0" to "Y-1"). Left out, it is read off
            the labels and the result says so in ``classes_from_data``.
        value_range: what counts as black and as white, such as (0, 1) or (-1, 1).
        layout: "NCHW" or "NHWC", needed only where the shape fits both.

    Raises:
        DataError: the values break a rule; they are shown.
        ConfigError: a declaration that contradicts itself.

    >>> data = labelled_images(np.zeros((3, 4, 4), np.uint8), ["b", "a", "b"])
    >>> data.labels.tolist(), data.classes, data.classes_from_data
    ([1, 0, 1], ('a', 'b'), True)
    """
    pixels = to_bytes(channels_first(_as_array(images, name), layout, name), value_range, name)
    numbers, names = encode_labels(labels, classes, name)
    return LabelledImages(pixels, numbers, names, name, public, classes_from_data=classes is None)


def channels_first(images: np.ndarray, layout: str | None, name: str) -> np.ndarray:
    """Bring images to [R, C, H, W]; a shape that could be read in two ways is refused."""
    if layout not in (None, "NCHW", "NHWC"):
        raise ConfigError(f"layout is {layout!r}, but must be 'NCHW' or 'NHWC'")
    if images.ndim == 3:
        return images[:, np.newaxis]
    if images.ndim != 4:
        raise DataError(f"{name}: x has shape {images.shape}; give [N,H,W], [N,C,H,W] or [N,H,W,C]")
    first, last = images.shape[1] in CHANNEL_COUNTS, images.shape[3] in CHANNEL_COUNTS
    if layout is None and first and last:
        raise DataError(
            f"{name}: x of shape {images.shape} fits [N,C,H,W] and [N,H,W,C]; "
            "give --layout (of samples --samples-layout) NCHW or NHWC, in Python layout='NCHW'"
        )
    if not (first if layout == "NCHW" else last if layout == "NHWC" else first or last):
        raise DataError(f"{name}: x has shape {images.shape}, but the channels must number 1 or 3")
    is_last = layout == "NHWC" or (layout is None and last)
    return np.moveaxis(images, 3, 1) if is_last else images


def to_bytes(images: np.ndarray, value_range: ValueRange | None, name: str) -> np.ndarray:
    """Pixels as uint8 0 to 255; the range is never guessed from the values.

    uint8 stands for itself and bool for black and white; anything else needs ``value_range``.
    """
    if value_range is None:
        if images.dtype == np.uint8:
            return np.ascontiguousarray(images)
        if images.dtype == np.bool_:
            return np.ascontiguousarray(images).astype(np.uint8) * np.uint8(255)
        raise DataError(
            f"{name}: x is {images.dtype}, whose black and white are unknown; "
            "give --value-range (of samples --samples-range) 0..1, -1..1 or 0..255, in Python value_range=(0, 1)"
        )
    low, high = _check_range(value_range)
    if images.dtype == np.uint8 and (low, high) == (0.0, 255.0):
        return np.ascontiguousarray(images)
    if images.dtype.kind not in "biuf":
        raise DataError(f"{name}: x is {images.dtype}, but pixels must be numbers")
    pixels = np.empty(images.shape, np.uint8)
    for start in range(0, len(images), _ROWS_AT_ONCE):
        rows = images[start : start + _ROWS_AT_ONCE].astype(np.float64)
        bad = rows[~((rows >= low) & (rows <= high))]
        if bad.size:
            raise DataError(
                f"{name}: x holds {bad.flat[0]:g}, outside the declared range {low:g}..{high:g}; "
                "mend the pixels or declare the range they have"
            )
        pixels[start : start + _ROWS_AT_ONCE] = np.rint((rows - low) / (high - low) * 255.0)
    return pixels


def encode_labels(
    labels: Any, classes: Sequence[object] | int | None, name: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels as numbers 0..Y-1, and the Y names they stand for.

    Without declared classes the names are the distinct labels, numbers in numeric order; for one-hot labels,
    the column numbers. Declared names are matched by name; where they are words and the labels numbers
    0..Y-1 (or one-hot of Y columns), by position.

    Returns:
        int64 [R], and the class names.

    Raises:
        DataError: labels that are negative, not whole, not finite, of a strange shape, or not declared.

    >>> numbers, names = encode_labels([9.0, 0.0, 5.0], None, "gaps")
    >>> numbers.tolist(), names
    ([2, 0, 1], ('0', '5', '9'))
    """
    declared = None if classes is None else declare_classes(classes)
    array = _as_array(labels, name)
    values, width = _flat_labels(array, name)
    if width is not None:
        if declared is None:
            return values, tuple(str(number) for number in range(width))
        if width != len(declared):
            raise DataError(
                f"{name}: y is one-hot with {width} columns, but {len(declared)} classes are declared; "
                "give as many columns as classes"
            )
        return values, declared
    if declared is not None and _is_positional(values, declared):
        return values, declared
    distinct, numbers = np.unique(values, return_inverse=True)
    numbers = numbers.reshape(-1).astype(np.int64)
    found = tuple(str(value) for value in distinct.tolist())
    if declared is None:
        if distinct.dtype.kind == "i" and distinct.size and distinct[0] < 0:
            negative = _show(distinct[distinct < 0])
            raise DataError(f"{name}: y holds {negative}, but labels start at 0; mend it, or declare classes")
        if "" in found:
            raise DataError(f"{name}: y holds an empty label; name the class of every record")
        check_class_names(found, name)
        return numbers, found
    place = {item: position for position, item in enumerate(declared)}
    strange = [item for item in found if item not in place]
    if strange:
        raise DataError(
            f"{name}: y holds {_show(strange)}, not among the declared classes {_show(declared)}; "
            "declare every class, or mend the labels"
        )
    return np.array([place[item] for item in found], np.int64)[numbers], declared


def npz_splits(path: Path) -> tuple[Split, ...]:
    """Which of train and test an .npz file holds, from its keys alone."""
    with _open_npz(path) as archive:
        return tuple(split for split in SPLITS if _find_keys(archive.files, split))


def load_npz(
    path: Path,
    split: str = "train",
    *,
    classes: Sequence[object] | int | None = None,
    value_range: ValueRange | None = None,
    layout: str | None = None,
    group_column: str | None = None,
    public: bool = False,
) -> LabelledImages:
    """One split of an .npz file: keys x and y (or x_train, y_train), and x_test, y_test.

    Undeclared classes of the test split are read off the training labels, so that both share one numbering.
    Nothing is unpickled. ``group_column`` is the key of an array with the name of each record's group.

    Raises:
        DataError: the file is not what it should be; the message names it.
    """
    with _open_npz(path) as archive:
        keys = _find_keys(archive.files, split)
        if keys is None:
            wanted = " or ".join(f"{x} and {y}" for x, y in _NPZ_KEYS[split])
            raise DataError(
                f"{path}: holds {_show(archive.files)}, but the {split} split needs {wanted}; add them"
            )
        images, labels = _read_key(archive, keys[0], path), _read_key(archive, keys[1], path)
        declared = classes
        train_keys = _find_keys(archive.files, "train")
        if classes is None and split == "test" and train_keys is not None:
            declared = encode_labels(_read_key(archive, train_keys[1], path), None, str(path))[1]
        groups = None if group_column is None else _read_groups(archive, group_column, path)
    data = labelled_images(
        images,
        labels,
        classes=declared,
        value_range=value_range,
        layout=layout,
        name=str(path),
        public=public,
    )
    if groups is not None:
        data = data.with_groups(groups)
    return data if declared is classes else replace(data, classes_from_data=True)


def _is_positional(values: np.ndarray, declared: tuple[str, ...]) -> bool:
    """Whether labels are positions in the declared list and not names from it."""
    is_words = not any(item.lstrip("-").isdigit() for item in declared)
    in_list = values.dtype.kind == "i" and bool(np.all((values >= 0) & (values < len(declared))))
    return is_words and in_list


def _flat_labels(labels: np.ndarray, name: str) -> tuple[np.ndarray, int | None]:
    """Labels as [R] of int64 or str; for one-hot labels also how many columns they had."""
    if labels.dtype == object:
        if not all(isinstance(item, str) for item in labels.flat):
            raise DataError(
                f"{name}: y mixes types ({_show(labels.ravel()[:SHOWN_VALUES])}); give numbers or strings"
            )
        labels = labels.astype(np.str_)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dtype.kind == "S":
        try:
            labels = np.char.decode(labels, "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{name}: y holds bytes that are not UTF-8; give strings or numbers") from error
    if labels.dtype.kind not in "biufU":
        raise DataError(f"{name}: y is {labels.dtype}, but labels must be whole numbers or strings")
    if labels.ndim == 2 and labels.dtype.kind != "U":
        hot = labels == 1
        if not (labels.size and np.all(hot | (labels == 0)) and np.all(hot.sum(axis=1) == 1)):
            raise DataError(f"{name}: y of shape {labels.shape} is not one-hot; give one label a record")
        return np.argmax(hot, axis=1).astype(np.int64), labels.shape[1]
    if labels.ndim != 1:
        raise DataError(
            f"{name}: y has shape {labels.shape}; give one label a record: [N], [N,1] or one-hot [N,Y]"
        )
    if labels.dtype.kind == "f":
        labels = labels.astype(np.float64)  # half precision cannot even hold the limit below
        bad = labels[~np.isfinite(labels) | (labels != np.floor(np.where(np.isfinite(labels), labels, 0.0)))]
        if bad.size:
            raise DataError(
                f"{name}: y holds {_show(np.unique(bad))}, but labels must be whole numbers; mend them"
            )
    if labels.dtype.kind in "uf" and np.any(np.abs(labels) >= _LABEL_LIMIT):
        largest = labels[np.argmax(np.abs(labels))]
        raise DataError(f"{name}: y holds {largest}, but a class number must be below 2**63; mend the labels")
    return (labels if labels.dtype.kind == "U" else labels.astype(np.int64)), None


def _check_range(value_range: ValueRange) -> ValueRange:
    try:
        low, high = (float(value) for value in value_range)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"value_range is {value_range!r}, but must be two numbers, black and white"
        ) from error
    if not (np.isfinite([low, high, high - low]).all() and low < high):
        raise ConfigError(
            f"value_range is ({low:g}, {high:g}), but must be two finite numbers a finite way apart, the lower "
            "first, such as (0, 1)"
        )
    return low, high


def _as_array(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise DataError(f"{name}: not an array ({str(error).splitlines()[0]}); give one array") from error


@contextlib.contextmanager
def _open_npz(path: Path) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        try:
            archive = np.load(stack.enter_context(path.open("rb")), allow_pickle=False)
        except Exception as error:
            raise DataError(
                f"{path}: not a readable .npz file ({_reason(error)}); save it with numpy.savez"
            ) from error
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise DataError(f"{path}: holds one bare array; save x and y together with numpy.savez")
        yield stack.enter_context(archive)


def _read_key(archive: Any, key: str, path: Path) -> np.ndarray:
    try:
        return archive[key]
    except Exception as error:
        raise DataError(
            f"{path}: {key} can't be read ({_reason(error)}); save plain arrays, not objects"
        ) from error


def _read_groups(archive: Any, key: str, path: Path) -> np.ndarray:
    if key not in archive.files:
        raise DataError(
            f"{path}: --group-column {key} (group_column): holds {_show(archive.files)}; give one of these"
        )
    return _read_key(archive, key, path)


def _reason(error: Exception) -> str:
    """What a reader says of a damaged file: NumPy, zipfile and zlib raise a dozen kinds of errors there."""
    return f"{' '.join(str(error).split()) or type(error).__name__:.160}"


def _find_keys(files: Sequence[str], split: str) -> tuple[str, str] | None:
    return next((keys for keys in _NPZ_KEYS[split] if set(keys) <= set(files)), None)


def _show(values: Any) -> str:
    shown = [f"{value!s:.60}" for value in list(values)[:SHOWN_VALUES]]
    return ", ".join(shown) + (", ..." if len(values) > SHOWN_VALUES else "") if shown else "nothing"
