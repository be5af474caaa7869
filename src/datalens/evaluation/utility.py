"""Utility: train a classifier on synthetic images, test it on real ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import torch

from datalens.errors import ConfigError, DataError
from datalens.evaluation.fitting import accuracy_of, fit_classifier
from datalens.evaluation.inputs import ImageArray, ValueRange, byte_images, check_labels
from datalens.models.classifiers import Classifier, ClassifierKind
from datalens.randomness import Streams


@dataclass(frozen=True)
class UtilityProtocol:
    """How a utility classifier is trained: fixed beforehand, whatever the scores.

    Attributes:
        epochs: Passes over the training images; the last one gives the headline.
        batch_size: Images in one step.
        learning_rate: Adam's, at its peak (see :func:`datalens.evaluation.fitting.fit_classifier`).
    """

    epochs: int
    batch_size: int
    learning_rate: float


PROTOCOLS = {
    ClassifierKind.CNN: UtilityProtocol(epochs=4, batch_size=64, learning_rate=2e-3),
    ClassifierKind.MLP: UtilityProtocol(epochs=10, batch_size=128, learning_rate=2e-3),
    ClassifierKind.LOGISTIC: UtilityProtocol(epochs=10, batch_size=128, learning_rate=2e-3),
}


@dataclass(frozen=True)
class UtilityResult:
    """Accuracy on real test images of a classifier trained on other images.

    Accuracies are shares from 0 to 1. They were measured against people's data: keep them private, or
    account for them.

    Attributes:
        last_accuracy: The headline: at the last of a number of epochs that was fixed beforehand.
        best_epoch_accuracy: At the best test epoch, which the test set chose: what the paper's code prints,
            and never to be compared with ``last_accuracy``.
        best_epoch: That epoch, from 1; the first of equals.
        accuracy_by_epoch: One accuracy an epoch.
        num_train: Training images used: exactly those given.
        num_test: Test images used.
        classifier: Which network.
        num_classes: Y.
        epochs: Passes over the training images.
        batch_size: Images in one step.
        learning_rate: Adam's peak learning rate.
        seed: Of initial weights, order and dropout.
        device: Where it ran.
        seconds: Wall time of training and testing.
    """

    last_accuracy: float
    best_epoch_accuracy: float
    best_epoch: int
    accuracy_by_epoch: tuple[float, ...]
    num_train: int
    num_test: int
    classifier: str
    num_classes: int
    epochs: int
    batch_size: int
    learning_rate: float
    seed: int
    device: str
    seconds: float

    def to_json(self) -> dict[str, object]:
        """The same, as plain types."""
        return {**asdict(self), "accuracy_by_epoch": list(self.accuracy_by_epoch)}


def evaluate_utility(
    train_images: ImageArray,
    train_labels: ImageArray,
    test_images: ImageArray,
    test_labels: ImageArray,
    *,
    num_classes: int,
    classifier: ClassifierKind | str = ClassifierKind.CNN,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    seed: int = 0,
    device: str | torch.device = "cpu",
    value_range: ValueRange | str | None = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> UtilityResult:
    """Train on ``train_images`` (synthetic), test on ``test_images`` (real) after every epoch.

    Guarantee: exactly the given images are used, every one once an epoch; the test set chooses nothing. Equal
    arguments give equal accuracies on one machine with one number of threads.

    Args:
        train_images: ``[N, H, W]``, ``[N, C, H, W]`` or ``[N, H, W, C]``, N at least 1; uint8, or any type
            together with ``value_range``.
        train_labels: ``[N]`` integers in 0..Y-1.
        test_images: Real images of the same shape.
        test_labels: Their labels.
        num_classes: Y.
        classifier: ``cnn`` (the paper's), ``mlp`` or ``logistic``.
        epochs: Instead of the protocol's.
        batch_size: Instead of the protocol's.
        learning_rate: Instead of the protocol's.
        seed: Of initial weights, order and dropout.
        device: Where to train.
        value_range: What the numbers mean, of images that are not uint8: ``byte``, ``unit`` or ``signed``.
        progress: Called after each epoch with the epoch (from 1), the number of epochs and the test accuracy.

    Raises:
        ConfigError: an unknown classifier, or a setting that is not positive.
        DataError: no images, an undeclared range, wrong labels, or shapes that differ.

    Source: section 6 of the paper. It trains with SGD for 600 epochs and prints the best one; here the
    protocol is short, fixed (:data:`PROTOCOLS`), and was chosen on held-out training images of MNIST.

    >>> import numpy as np
    >>> images, labels = np.arange(256, dtype=np.uint8).reshape(4, 8, 8), np.array([0, 0, 1, 1])
    >>> result = evaluate_utility(images, labels, images, labels, num_classes=2, classifier="mlp", epochs=2)
    >>> result.num_train, result.epochs, len(result.accuracy_by_epoch)
    (4, 2, 2)
    """
    protocol = _protocol(classifier, epochs, batch_size, learning_rate)
    kind = ClassifierKind(classifier)
    if num_classes < 1:
        raise ConfigError(f"num_classes is {num_classes}; give the number of classes, at least 1")
    train = byte_images(train_images, value_range, name="train_images")
    test = byte_images(test_images, value_range, name="test_images")
    if train.shape[1:] != test.shape[1:]:
        raise DataError(
            f"train_images are {train.shape[1:]} and test_images {test.shape[1:]} (C, H, W); give one shape"
        )
    train_targets = check_labels(train_labels, len(train), num_classes, name="train_labels")
    test_targets = check_labels(test_labels, len(test), num_classes, name="test_labels")
    place = torch.device(device)
    accuracies: list[float] = []

    def after_epoch(epoch: int, net: Classifier) -> None:
        accuracies.append(accuracy_of(net, test, test_targets, place))
        if progress is not None:
            progress(epoch, protocol.epochs, accuracies[-1])

    start = time.perf_counter()
    fit_classifier(
        train,
        train_targets,
        kind=kind,
        num_classes=num_classes,
        epochs=protocol.epochs,
        batch_size=protocol.batch_size,
        learning_rate=protocol.learning_rate,
        streams=Streams.from_insecure_seed(seed, "utility"),
        device=place,
        after_epoch=after_epoch,
    )
    best = max(accuracies)
    return UtilityResult(
        last_accuracy=accuracies[-1],
        best_epoch_accuracy=best,
        best_epoch=accuracies.index(best) + 1,
        accuracy_by_epoch=tuple(accuracies),
        num_train=len(train),
        num_test=len(test),
        classifier=str(kind),
        num_classes=num_classes,
        epochs=protocol.epochs,
        batch_size=protocol.batch_size,
        learning_rate=protocol.learning_rate,
        seed=seed,
        device=str(place),
        seconds=time.perf_counter() - start,
    )


def _protocol(
    classifier: str, epochs: int | None, batch_size: int | None, learning_rate: float | None
) -> UtilityProtocol:
    known = ", ".join(PROTOCOLS)
    if classifier not in PROTOCOLS:
        raise ConfigError(f"classifier {str(classifier)!r} is not known; choose one of: {known}")
    given = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate}
    for name, value in given.items():
        if value is not None and not value > 0:
            raise ConfigError(f"{name} is {value}; give a number above 0, or leave it out for the protocol's")
    changes = {name: value for name, value in given.items() if value is not None}
    return replace(PROTOCOLS[ClassifierKind(classifier)], **changes)
