"""Train a cell and measure what is asked of it, on public data and with insecure seeds: nothing here is private."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from datalens import data
from datalens.data.images import LabelledImages
from datalens.errors import ConfigError, DataLensError, NotPrivateError
from datalens.evaluation import (
    PROTOCOLS,
    FeatureExtractor,
    FeatureStatistics,
    evaluate_utility,
    feature_extractor,
    feature_statistics,
    frechet_distance,
    inception_score,
)
from datalens.experiments.apart import in_fresh_process
from datalens.experiments.baseline_cells import HELD_OUT_SHARE, AnyCell
from datalens.experiments.store import ResultsStore
from datalens.experiments.training import TrainedCell, is_trained, read_trained, train
from datalens.student.sampling import sample_images
from datalens.training.files import write_atomically

GRID_ROWS = 5
Tell = Callable[[str], None]


class Scorer:
    """Scores generated images against one data set; the feature classifier is asked for when first needed.

    Args:
        train: real images that the feature classifier learns from; FID compares with them.
        test: real images that utility is tested on.
        features: folder of cached feature classifiers.
    """

    def __init__(self, train: LabelledImages, test: LabelledImages, features: Path | None) -> None:
        self._train, self._test, self._features = train, test, features
        self._extractor: FeatureExtractor | None = None
        self._real: FeatureStatistics | None = None

    def score(self, name: str, images: np.ndarray, labels: np.ndarray, *, seed: int) -> dict[str, Any]:
        """One score, by name as in :func:`measure`, of images uint8 [N, C, H, W] with labels int64 [N].

        Raises:
            ConfigError: an unknown name.
        """
        kind, _, _ = name.partition("-")
        if kind in PROTOCOLS:
            test = self._test
            result = evaluate_utility(
                images,
                labels,
                test.images,
                test.labels,
                num_classes=test.num_classes,
                classifier=kind,
                seed=seed,
            )
            kept = ("last_accuracy", "best_epoch_accuracy", "best_epoch", "epochs", "num_train", "num_test")
            return {name: value for name, value in result.to_json().items() if name in kept}
        if kind not in ("is", "fid"):
            raise ConfigError(
                f"score {name!r} is unknown; known: {', '.join(PROTOCOLS)}, is, fid, each with -N"
            )
        extractor = self._feature_classifier()
        found = extractor.extract(images)
        about = {"num_images": found.num_images, "extractor": found.extractor}
        if kind == "is":
            return {**inception_score(found.log_probabilities).to_json(), **about}
        if self._real is None:
            self._real = feature_statistics(extractor.extract(self._train.images).features)
        return {**frechet_distance(self._real, feature_statistics(found.features)).to_json(), **about}

    def score_real(self, kind: str) -> dict[str, Any]:
        """``is`` or ``fid`` of the real test images: what a perfect generator would reach."""
        return self.score(f"{kind}-{len(self._test.labels)}", self._test.images, self._test.labels, seed=0)

    def _feature_classifier(self) -> FeatureExtractor:
        if self._extractor is None:
            train = self._train
            self._extractor = feature_extractor(
                train.images, train.labels, num_classes=train.num_classes, cache=self._features
            )
        return self._extractor


@dataclass
class Workplace:
    """Where experiments read data and keep what is not a result.

    Attributes:
        scratch: generators and feature classifiers by key, so that an interrupted sweep goes on.
        data_root: of the published data sets.
        grids: folder of image grids, one PNG a cell; None for none.
        apart: every training has a process of its own, so that its peak of memory can be told.
    """

    scratch: Path
    data_root: str | None = None
    grids: Path | None = None
    apart: bool = False

    _held: dict[tuple[str, bool], tuple[LabelledImages, Scorer]] = field(
        default_factory=dict, init=False, repr=False
    )

    def data_of(self, data_set: str, *, held_out: bool = False) -> tuple[LabelledImages, Scorer]:
        """The training images of a data set, and what scores images against it; read once.

        Args:
            data_set: its name.
            held_out: a part of the training images stands in for the test images, which are not read.

        Raises:
            DataError: its files are not here.
            NotPrivateError: the data are not published; experiments use insecure seeds.
        """
        what = (data_set, held_out)
        if what not in self._held:
            records = data.load(data_set, split="train", root=self.data_root)
            if not records.public:
                raise NotPrivateError(f"{data_set}: experiments are for published data; use datalens train")
            if held_out:
                records, test = without_last_sixth(records)
            else:
                test = data.load(data_set, split="test", root=self.data_root)
            self._held = {what: (records, Scorer(records, test, self.scratch / "features"))}
        return self._held[what]


def measure(
    cell: AnyCell, scores: Sequence[str], store: ResultsStore, place: Workplace, tell: Tell = lambda _: None
) -> None:
    """Train the cell, unless its generator is still at hand, and put the scores that are missing in the store.

    Args:
        cell: what to train.
        scores: names: a classifier and a number of images (``cnn-60000``, ``mlp-10000``, ``logistic-10000``), or
            ``is-N`` and ``fid-N``.
        store: where results go; scores that it has are not measured again.
        place: where data and scratch files are.
        tell: told what begins.

    Raises:
        DataLensError: data that are missing, or settings that contradict each other.
    """
    missing = store.missing(cell, scores)
    if not missing:
        return
    _, scorer = place.data_of(cell.data_set, held_out=cell.held_out)
    trained = _trained(cell, place, tell)
    if place.grids is not None:
        place.grids.mkdir(parents=True, exist_ok=True)
        write_grid(place.grids / f"{cell.key}.png", trained, cell.seed)
    for name in missing:
        tell(name)
        started = time.monotonic()
        drawn = sample_images(trained.generator, trained.latent, images_of(name), seed=cell.seed)
        found = scorer.score(name, *drawn, seed=cell.seed)
        store.add(cell, {name: {**found, "seconds": round(time.monotonic() - started, 1)}}, trained.facts)


def _trained(cell: AnyCell, place: Workplace, tell: Tell) -> TrainedCell:
    """The cell's generator, trained now unless it is at hand."""
    if is_trained(cell, place.scratch):
        try:
            return read_trained(cell, place.scratch)
        except DataLensError as error:
            tell(f"what was kept is of no use ({error})")
    tell("training")
    if place.apart:
        in_fresh_process(_train_apart, cell, Workplace(place.scratch, place.data_root))
    else:
        train(cell, place.data_of(cell.data_set, held_out=cell.held_out)[0], place.scratch)
    return read_trained(cell, place.scratch)


def _train_apart(cell: AnyCell, place: Workplace) -> None:
    """All of a training that is in a process of its own."""
    data, _ = place.data_of(cell.data_set, held_out=cell.held_out)
    train(cell, data, place.scratch, measures_memory=True)


def without_last_sixth(data: LabelledImages) -> tuple[LabelledImages, LabelledImages]:
    """Training images without the last sixth of them, and that sixth: what trials of settings learn and score on.

    >>> from datalens.data import load
    >>> [part.num_records for part in without_last_sixth(load("shapes"))]
    [3334, 666]
    """
    first = data.num_records - data.num_records // HELD_OUT_SHARE
    parts = slice(None, first), slice(first, None)
    records, validation = (
        replace(data, images=data.images[part], labels=data.labels[part]) for part in parts
    )
    return records, validation


def images_of(name: str) -> int:
    """How many images a score asks for.

    >>> images_of("cnn-60000")
    60000
    """
    kind, _, count = name.partition("-")
    if not kind or not count.isdigit() or int(count) < 1:
        raise ConfigError(f"score {name!r}: write a kind and a number of images, such as cnn-10000")
    return int(count)


def write_grid(path: Path, trained: TrainedCell, seed: int) -> None:
    """A PNG of generated images: a column a class, :data:`GRID_ROWS` rows."""
    classes = trained.latent.num_classes
    labels = np.tile(np.arange(classes), GRID_ROWS)
    images, _ = sample_images(trained.generator, trained.latent, len(labels), labels=labels, seed=seed)
    _, channels, height, width = images.shape
    grid = images.reshape(GRID_ROWS, classes, channels, height, width).transpose(0, 3, 1, 4, 2)
    picture = grid.reshape(GRID_ROWS * height, classes * width, channels)
    buffer = io.BytesIO()
    Image.fromarray(picture[:, :, 0] if channels == 1 else picture).save(buffer, format="PNG")
    write_atomically(path, buffer.getvalue())
