"""What ``datalens evaluate`` scores: images drawn from a run, or samples in a file or folder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datalens.cli.output import Output
from datalens.errors import ConfigError, DataError, RunError

if TYPE_CHECKING:
    from datalens.baselines.model import Baseline
    from datalens.data.own import OwnKind
    from datalens.training.synthesizer import DataLens

RUN_SAMPLES = 60000
"""Images drawn from a run where their number is left out."""
_JPEG_START = b"\xff\xd8"


@dataclass(frozen=True, eq=False)
class Judged:
    """Images and labels to be scored, in the order of their own content.

    Attributes:
        images: uint8 ``[N, C, H, W]``.
        labels: int64 ``[N]``.
        facts: How they came about, for the report: number, source, resizing, repeated channels, JPEG files.
    """

    images: np.ndarray
    labels: np.ndarray
    facts: dict[str, Any] = field(default_factory=dict)


def open_run(path: str) -> DataLens | Baseline | None:
    """The run in a folder, or None where the path names samples.

    Raises:
        RunError: it names neither.
    """
    from datalens.baselines.model import load_run
    from datalens.data.own import OwnKind, kind_at
    from datalens.training.run_folder import RunFolder

    folder = Path(path)
    if RunFolder.holds_run(folder):
        return load_run(path)
    kind = kind_at(folder)
    if is_named(path) or kind not in (None, OwnKind.FOLDER):
        return None
    if kind is None:
        raise RunError(
            f"{path}: neither a run nor samples; give a run's folder, an .npz or .parquet file, or a folder of images"
        )
    if not _is_idx(folder) and not any(
        entry.is_dir() and entry.name != "private" for entry in folder.iterdir()
    ):
        raise RunError(
            f"{path}: holds no run (no release/config.json) and no samples (a sub-folder a class); "
            "give a folder with one of these"
        )
    return None


def drawn(model: DataLens | Baseline, num_samples: int | None, seed: int) -> Judged:
    """Images drawn from a run."""
    start = time.monotonic()
    images, labels = model.sample(RUN_SAMPLES if num_samples is None else num_samples, seed=seed)
    facts = {"source": "run", "resize": "none", "channel_repeat": 1, "jpeg_files": 0}
    return _in_order(images, labels, facts | {"sampling_seconds": time.monotonic() - start})


def read(
    path: str,
    classes: Sequence[str],
    image_shape: tuple[int, int, int],
    options: dict[str, Any],
    output: Output,
) -> Judged:
    """Samples from a file or folder of any kind that `datalens sample` writes, or a named source's training images.

    Args:
        path: Where they are.
        classes: The real images' class names.
        image_shape: The real images' (C, H, W).
        options: ``num_samples``, ``seed``, ``samples_range``, ``samples_layout``, ``resize_samples``.
        output: Told of JPEG files.

    Raises:
        DataError: unreadable, an undeclared range, unknown classes, too few, or of another shape.
    """
    from datalens.data import load
    from datalens.data.own import OwnKind, kind_at
    from datalens.writing.names import folder_names

    kind = None if is_named(path) else kind_at(Path(path))
    given = {"value_range": options["samples_range"], "layout": options["samples_layout"]}
    if kind is not OwnKind.NPZ and any(value is not None for value in given.values()):
        raise ConfigError(f"{path}: --samples-range and --samples-layout are for .npz files; leave them out")
    if kind is OwnKind.FOLDER and _is_idx(Path(path)):
        stored, labels = _read_idx(Path(path), len(classes))
        images, facts = _fitted(path, stored, image_shape, resize=options["resize_samples"])
        judged = _in_order(images, labels, {"source": "idx", **facts, "jpeg_files": 0})
        return _taken(path, judged, options["num_samples"], options["seed"])
    names = None if kind is None else folder_names(classes) if kind is OwnKind.FOLDER else tuple(classes)
    data = load(path, classes=names, any_size=True, **given)
    if kind is None and data.classes != tuple(classes):
        raise DataError(f"{path}: its classes are not those of --data; give samples of the same classes")
    jpeg_files = 0 if kind in (None, OwnKind.NPZ) else count_jpeg(Path(path), kind, names)
    if jpeg_files:
        output.warn(
            f"{path}: {jpeg_files} samples are JPEG, whose losses change every score; save PNG or .npz instead"
        )
    images, facts = _fitted(path, data.images, image_shape, resize=options["resize_samples"])
    judged = _in_order(
        images,
        data.labels,
        {"source": "named" if kind is None else str(kind), **facts, "jpeg_files": jpeg_files},
    )
    return _taken(path, judged, options["num_samples"], options["seed"])


def _is_idx(folder: Path) -> bool:
    """Whether a folder holds the two files of ``--format idx``."""
    from datalens.writing.idx import IMAGES_NAME, LABELS_NAME

    return (folder / IMAGES_NAME).is_file() and (folder / LABELS_NAME).is_file()


def _read_idx(folder: Path, num_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The two files: uint8 [N, 1, H, W] and int64 [N], whose numbers are the run's classes in their order.

    Raises:
        DataError: damaged, of another type or shape, or labels of more classes.
    """
    from datalens.data.idx import read_idx
    from datalens.evaluation.inputs import byte_images, check_labels
    from datalens.writing.idx import IMAGES_NAME, LABELS_NAME

    images = byte_images(read_idx(folder / IMAGES_NAME), name=str(folder / IMAGES_NAME))
    found = read_idx(folder / LABELS_NAME)
    return images, check_labels(found, len(images), num_classes, name=str(folder / LABELS_NAME))


def is_named(source: str) -> bool:
    """Whether a source is one of those with a name of their own."""
    from datalens.data import list_sources

    return source in [known.name for known in list_sources()]


def count_jpeg(path: Path, kind: OwnKind, classes: tuple[str, ...] | None) -> int:
    """How many of the images that lie there are JPEG, by their first bytes."""
    from datalens.data.own import list_own

    count = 0
    for record in list_own(kind, path, "train", classes=classes).records:
        if isinstance(record.content, bytes):
            count += record.content.startswith(_JPEG_START)
            continue
        with record.content.open("rb") as file:
            count += file.read(len(_JPEG_START)) == _JPEG_START
    return count


def _in_order(images: np.ndarray, labels: np.ndarray, facts: dict[str, Any]) -> Judged:
    from datalens.evaluation.inputs import content_order

    order = content_order(images, labels)
    return Judged(images[order], labels[order], {"num_samples": len(order), **facts})


def _taken(path: str, judged: Judged, num_samples: int | None, seed: int) -> Judged:
    """As many as were asked for, each once; never padded."""
    count = len(judged.images)
    if num_samples is None or num_samples == count:
        return judged
    if num_samples > count:
        raise DataError(
            f"{path}: holds {count} samples, fewer than --num-samples {num_samples}; ask for fewer"
        )
    chosen = np.random.default_rng(seed).permutation(count)[:num_samples]
    facts = judged.facts | {"num_samples": num_samples, "chosen_from": count}
    return Judged(judged.images[chosen], judged.labels[chosen], facts)


def _fitted(
    path: str, images: np.ndarray, image_shape: tuple[int, int, int], *, resize: bool
) -> tuple[np.ndarray, dict[str, Any]]:
    """The images in the real ones' shape, and what was done to them."""
    from datalens.data.pixels import resize_images

    channels, height, width = image_shape
    found = "x".join(str(side) for side in images.shape[1:])
    wanted = "x".join(str(side) for side in image_shape)
    if images.shape[1] not in (1, channels):
        raise DataError(
            f"{path}: samples are {found}, the real images {wanted} (CxHxW); make the samples grey"
        )
    method = "none"
    if images.shape[2:] != (height, width):
        if not resize:
            raise DataError(
                f"{path}: samples are {found}, the real images {wanted} (CxHxW); give samples of that size, "
                "or --resize-samples"
            )
        method = f"Lanczos, each sample by itself, {images.shape[2]}x{images.shape[3]} to {height}x{width}"
        images = resize_images(images, (height, width))
    repeat = channels // images.shape[1]
    return np.repeat(images, repeat, axis=1), {"resize": method, "channel_repeat": repeat}
