"""Scores of generated images, by name, against one data set of real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from datalens.data.images import LabelledImages
from datalens.errors import ConfigError
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
        """One score, by name, of images uint8 [N, C, H, W] with labels int64 [N].

        Args:
            name: a classifier of :data:`~datalens.evaluation.PROTOCOLS` (``cnn``, ``mlp``, ``logistic``), ``is`` or
                ``fid``, and a number of images, as in ``cnn-60000``.
            images: generated.
            labels: what each is to be.
            seed: of the classifier's training.

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


def images_of(name: str) -> int:
    """How many images a score asks for.

    >>> images_of("cnn-60000")
    60000
    """
    kind, _, count = name.partition("-")
    if not kind or not count.isdigit() or int(count) < 1:
        raise ConfigError(f"score {name!r}: write a kind and a number of images, such as cnn-10000")
    return int(count)
