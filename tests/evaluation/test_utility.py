"""Train on synthetic, test on real: what is used, what is reported, and what the numbers mean."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from datalens.errors import ConfigError, DataError
from datalens.evaluation import fitting
from datalens.evaluation.fitting import fit_classifier, learning_rate_factor
from datalens.evaluation.utility import PROTOCOLS, evaluate_utility
from datalens.models.classifiers import ClassifierKind
from datalens.randomness import Streams


def _bars(num: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy 10x10 images with one bright row, which is the label."""
    rng = np.random.default_rng(seed)
    labels = np.arange(num) % 4
    images = rng.integers(0, 90, (num, 1, 10, 10), dtype=np.uint8)
    images[np.arange(num), 0, 2 * labels + 1] = 230
    return images, labels


@pytest.mark.parametrize("classifier", ["cnn", "mlp", "logistic"])
def test_every_classifier_learns_drawn_bars(classifier: str) -> None:
    result = evaluate_utility(
        *_bars(403, 0), *_bars(101, 1), num_classes=4, classifier=classifier, epochs=6, batch_size=32
    )
    assert result.last_accuracy > 0.95
    assert result.classifier == classifier


def test_labels_that_mean_nothing_score_near_chance() -> None:
    images, labels = _bars(400, 0)
    shuffled = np.random.default_rng(0).permutation(labels)
    result = evaluate_utility(
        images, shuffled, *_bars(400, 1), num_classes=4, classifier="logistic", epochs=2
    )
    assert result.last_accuracy < 0.5


def test_last_and_best_epoch_are_separate_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [0.25, 0.9, 0.5, 0.9, 0.75]
    measured = iter(scores)
    monkeypatch.setattr("datalens.evaluation.utility.accuracy_of", lambda *_: next(measured))
    seen: list[tuple[int, int, float]] = []
    result = evaluate_utility(
        *_bars(60, 0),
        *_bars(40, 1),
        num_classes=4,
        classifier="mlp",
        epochs=5,
        progress=lambda epoch, epochs, accuracy: seen.append((epoch, epochs, accuracy)),
    )
    assert result.last_accuracy == 0.75
    assert result.best_epoch_accuracy == 0.9
    assert result.best_epoch == 2
    assert result.epochs == len(result.accuracy_by_epoch) == 5
    assert seen == [(number + 1, 5, score) for number, score in enumerate(scores)]
    assert json.loads(json.dumps(result.to_json()))["accuracy_by_epoch"] == scores


def test_the_test_set_changes_nothing_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    weights: list[torch.Tensor] = []

    def spy(*args: object, **kwargs: object) -> object:
        net = fit_classifier(*args, **kwargs)  # pyright: ignore
        weights.append(torch.cat([parameter.detach().flatten() for parameter in net.parameters()]))
        return net

    monkeypatch.setattr("datalens.evaluation.utility.fit_classifier", spy)
    train = _bars(50, 0)
    for test in (_bars(30, 1), (_bars(90, 2)[0], np.zeros(90, np.int64))):
        evaluate_utility(*train, *test, num_classes=4, epochs=2, batch_size=16)
    assert torch.equal(weights[0], weights[1])


def test_equal_seeds_agree_and_others_differ() -> None:
    def run(seed: int) -> tuple[float, ...]:
        torch.rand(seed + 1)
        return evaluate_utility(
            *_bars(64, 0), *_bars(200, 1), num_classes=4, epochs=3, batch_size=16, seed=seed
        ).accuracy_by_epoch

    assert run(0) == run(0)
    assert len({run(seed) for seed in range(3)}) > 1


@pytest.mark.parametrize("num", [1, 31, 64, 1234])
def test_case_r71_exactly_the_given_samples_are_used(num: int, monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.arange(num, dtype=np.uint16).view(np.uint8).reshape(num, 1, 1, 2)
    used: list[int] = []
    whole = fitting.unit_batch

    def spy(batch: np.ndarray, device: torch.device) -> torch.Tensor:
        used.extend(np.ascontiguousarray(batch).reshape(len(batch), 2).view(np.uint16)[:, 0].tolist())
        return whole(batch, device)

    monkeypatch.setattr(fitting, "unit_batch", spy)
    monkeypatch.setattr("datalens.evaluation.utility.accuracy_of", lambda *_: 0.0)
    result = evaluate_utility(
        images,
        np.arange(num) % 3,
        images,
        np.arange(num) % 3,
        num_classes=3,
        classifier="logistic",
        epochs=2,
        batch_size=30,
    )
    assert result.num_train == num
    assert sorted(used) == sorted(2 * list(range(num)))
    assert used[:num] != used[num:] or num == 1


def test_case_r71_no_samples_and_too_few_labels_are_refused() -> None:
    images, labels = _bars(8, 0)
    with pytest.raises(DataError, match="train_images are empty"):
        evaluate_utility(images[:0], labels[:0], images, labels, num_classes=4)
    with pytest.raises(DataError, match="test_images are empty"):
        evaluate_utility(images, labels, images[:0], labels[:0], num_classes=4)
    with pytest.raises(DataError, match="train_labels"):
        evaluate_utility(images, labels[:5], images, labels, num_classes=4)


def test_float_images_give_what_bytes_give_and_undeclared_ones_are_refused() -> None:
    (images, labels), test = _bars(64, 0), _bars(64, 1)
    floats = images.astype(np.float32) / 255
    settings = {"num_classes": 4, "classifier": "logistic", "epochs": 2}
    whole = evaluate_utility(images, labels, *test, **settings)
    assert (
        evaluate_utility(floats, labels, *test, **settings, value_range="unit").accuracy_by_epoch
        == whole.accuracy_by_epoch
    )
    with pytest.raises(DataError, match="train_images are float32 of undeclared range"):
        evaluate_utility(floats, labels, *test, **settings)


def test_wrong_settings_are_refused_before_training() -> None:
    data = (*_bars(8, 0), *_bars(8, 1))
    with pytest.raises(ConfigError, match=r"forest.*cnn, mlp, logistic"):
        evaluate_utility(*data, num_classes=4, classifier="forest")
    for name in ("epochs", "batch_size", "learning_rate"):
        with pytest.raises(ConfigError, match=name):
            evaluate_utility(*data, num_classes=4, **{name: 0})
    with pytest.raises(ConfigError, match="num_classes"):
        evaluate_utility(*data, num_classes=0)
    with pytest.raises(DataError, match="one shape"):
        evaluate_utility(*data[:2], np.zeros((8, 1, 12, 12), np.uint8), data[3], num_classes=4)


def test_the_learning_rate_ends_near_zero_and_never_passes_its_peak() -> None:
    for total in (1, 2, 9, 10, 57, 400):
        factors = [learning_rate_factor(step, total) for step in range(total)]
        assert max(factors) == 1.0
        assert min(factors) > 0
        assert factors[-1] == pytest.approx(1 / (total - int(0.1 * total)))


def test_the_protocol_is_fixed_for_every_utility_classifier() -> None:
    assert set(PROTOCOLS) == {ClassifierKind.CNN, ClassifierKind.MLP, ClassifierKind.LOGISTIC}


def _idx(path: Path, header: int) -> np.ndarray:
    return np.frombuffer(gzip.open(path).read(), np.uint8, offset=header)


def test_real_mnist_in_seconds(mnist_root: Path) -> None:
    folder = mnist_root / "mnist"
    images = _idx(folder / "train-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)
    labels = _idx(folder / "train-labels-idx1-ubyte.gz", 8).astype(np.int64)
    result = evaluate_utility(
        images[:2000], labels[:2000], images[-1000:], labels[-1000:], num_classes=10, epochs=2
    )
    assert result.last_accuracy > 0.85


def test_different_streams_give_different_classifiers() -> None:
    images, labels = _bars(16, 0)

    def head(name: str) -> torch.Tensor:
        return fit_classifier(
            images,
            labels,
            kind=ClassifierKind.MLP,
            num_classes=4,
            epochs=1,
            batch_size=8,
            learning_rate=1e-3,
            streams=Streams.from_insecure_seed(0, name),
            device=torch.device("cpu"),
        ).head.weight

    assert not torch.equal(head("a"), head("b"))
