"""The measures that ``datalens evaluate`` takes of images, each as plain types for its report."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from datalens.cli.judged import Judged
from datalens.cli.output import Output

if TYPE_CHECKING:
    from datalens.data.images import LabelledImages
    from datalens.evaluation import FeatureExtractor, Features, InceptionExtractor

METRICS = ("utility", "is", "fid", "kid", "copies")
FEATURE_METRICS = ("is", "fid", "kid")
POOR_FEATURES = 0.8
"""Accuracy of the feature classifier below which its features are not worth much."""
CLASSIFIERS = ("cnn", "mlp", "logistic")


def utility(judged: Judged, test: LabelledImages, options: dict[str, Any], output: Output) -> dict[str, Any]:
    """Accuracy on real test images of each asked classifier, trained on the judged images."""
    from datalens.evaluation.utility import evaluate_utility

    return {
        classifier: evaluate_utility(
            judged.images,
            judged.labels,
            test.images,
            test.labels,
            num_classes=test.num_classes,
            classifier=classifier,
            epochs=options["epochs"],
            seed=options["seed"],
            device=options["device"],
            progress=_live(output, classifier),
        ).to_json()
        for classifier in options["classifier"]
    }


def feature_scores(
    judged: Judged,
    train: LabelledImages,
    test: LabelledImages | None,
    options: dict[str, Any],
    output: Output,
    cache: Path | None,
) -> dict[str, Any]:
    """Inception Score, FID and KID of the judged images, and of the real test images as what can be reached.

    Distances are to the real training images.
    """
    extractor = _extractor(train, options, output, cache)
    real = extractor.extract(train.images)
    found = extractor.extract(judged.images)
    with _warned(output):
        synthetic = _scores(found, real, options["metrics"], options["seed"])
    facts: dict[str, Any] = {
        "network": extractor.name,
        "network_digest": extractor.digest,
        "resize": found.resize,
        "channel_repeat": found.channel_repeat * judged.facts["channel_repeat"],
        "reference": f"{train.num_records} real training images",
        "synthetic": synthetic,
        "real_test": None,
        "accuracy_on_real_test": None,
    }
    if test is not None:
        from datalens.evaluation.inputs import content_order

        order = content_order(test.images, test.labels)
        with _warned(output, "real test images: "):
            facts["real_test"] = _scores(
                extractor.extract(test.images[order]), real, options["metrics"], options["seed"]
            )
        accuracy = facts["accuracy_on_real_test"] = _accuracy(extractor, test)
        if accuracy is not None and accuracy < POOR_FEATURES:
            output.warn(
                f"the feature classifier is right on only {accuracy:.1%} of the real test images, so its "
                "features say little; give more real images, or --inception"
            )
    return facts


def copies(
    judged: Judged, train: LabelledImages, test: LabelledImages, options: dict[str, Any]
) -> dict[str, Any]:
    """The nearest-neighbour copy check."""
    from datalens.evaluation.copies import copy_check

    return copy_check(
        judged.images, train.images, test.images, seed=options["seed"], device=options["device"]
    ).to_json()


def public_cache() -> Path:
    """Where feature classifiers of published images are kept: a cache folder of this user."""
    from datalens.data.user_cache import user_cache

    return user_cache() / "features"


def _extractor(
    train: LabelledImages, options: dict[str, Any], output: Output, cache: Path | None
) -> FeatureExtractor | InceptionExtractor:
    from datalens.evaluation import feature_extractor, find_weights, load_inception

    if options["inception"] is not None:
        path = find_weights() if options["inception"] == "auto" else Path(options["inception"])
        return load_inception(path, layer=options["inception_layer"], device=options["device"])
    return feature_extractor(
        train.images,
        train.labels,
        num_classes=train.num_classes,
        cache=cache,
        device=options["device"],
        progress=_live(output, "feature classifier"),
    )


def _scores(found: Features, real: Features, metrics: tuple[str, ...], seed: int) -> dict[str, Any]:
    from datalens.evaluation import feature_statistics, frechet_distance, inception_score, kernel_distance

    scores: dict[str, Any] = {"num_images": found.num_images}
    if "is" in metrics:
        scores["inception_score"] = inception_score(found.log_probabilities).to_json()
    if "fid" in metrics:
        distance = frechet_distance(feature_statistics(real.features), feature_statistics(found.features))
        scores["fid"] = distance.to_json()
    if "kid" in metrics:
        rng = np.random.default_rng(seed)
        scores["kid"] = kernel_distance(real.features, found.features, rng=rng).to_json()
    return scores


def _accuracy(extractor: FeatureExtractor | InceptionExtractor, test: LabelledImages) -> float | None:
    from datalens.evaluation import FeatureExtractor

    return extractor.accuracy(test.images, test.labels) if isinstance(extractor, FeatureExtractor) else None


@contextmanager
def _warned(output: Output, what: str = "") -> Iterator[None]:
    """What the measures warn of goes to the user, in one line each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        output.warn(f"{what}{warning.message}")


def _live(output: Output, what: str) -> Callable[..., None]:
    """A line an epoch for whoever watches a terminal."""
    live = not output.quiet and sys.stderr.isatty()

    def tell(epoch: int, epochs: int, accuracy: float | None = None) -> None:
        if live:
            score = "" if accuracy is None else f": {accuracy:.2%}"
            click.echo(f"{what}: epoch {epoch} of {epochs}{score}", err=True)

    return tell
