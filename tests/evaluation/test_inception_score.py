"""Inception Score: closed forms, an independent implementation, and never NaN (case R66)."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch

from datalens.errors import ConfigError, DataError
from datalens.evaluation.inception_score import inception_score, probability_logs, split_score


def _log_softmax(num: int, classes: int, seed: int) -> np.ndarray:
    logits = np.random.default_rng(seed).normal(size=(num, classes)) * 3
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def test_certain_and_even_images_score_the_number_of_classes() -> None:
    logs = probability_logs(np.eye(10)[np.arange(100) % 10])
    assert inception_score(logs, splits=10).mean == pytest.approx(10.0)
    assert inception_score(logs, splits=10).stddev == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("num", "splits"), [(200, 1), (200, 10), (64, 8)])
def test_agrees_with_torchmetrics_on_the_same_probabilities(
    num: int, splits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inception = pytest.importorskip("torchmetrics.image.inception", reason="independent score: torchmetrics")
    logs = _log_softmax(num, 7, 3)
    monkeypatch.setattr(inception.torch, "randperm", torch.arange)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = inception.InceptionScore(feature=torch.nn.Identity(), splits=splits).set_dtype(torch.float64)
        theirs.update(torch.from_numpy(logs))
        mean, _ = theirs.compute()
    assert inception_score(logs, splits=splits).mean == pytest.approx(float(mean), abs=1e-3)


def test_case_r66_fewer_images_than_splits_warns_and_stays_finite() -> None:
    for num in (1, 5):
        with pytest.warns(UserWarning, match=f"{num} images cannot fill 10 splits"):
            score = inception_score(_log_softmax(num, 10, 0), splits=10)
        assert score.splits == 1
        assert score.num_images == num
        assert score.mean >= 1
        assert "NaN" not in json.dumps(score.to_json())


def test_case_r66_exact_zeros_and_constant_images() -> None:
    zeros = probability_logs(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    score = inception_score(zeros, splits=1)
    assert score.mean == pytest.approx(np.exp(2 / 3 * np.log(2)))
    constant = probability_logs(np.tile([[0.3, 0.7, 0.0]], (40, 1)))
    assert inception_score(constant).mean == pytest.approx(1.0)


def test_scores_lie_between_one_and_the_number_of_classes() -> None:
    for seed in range(20):
        assert 1.0 <= split_score(_log_softmax(9, 4, seed)) <= 4.0


def test_images_sorted_by_class_need_the_shuffle() -> None:
    logs = probability_logs(np.eye(10)[np.arange(1000) // 100])
    assert inception_score(logs, splits=10).mean == pytest.approx(1.0)
    assert inception_score(logs, splits=10, rng=np.random.default_rng(0)).mean > 9


def test_wrong_input_is_refused() -> None:
    with pytest.raises(DataError, match="at least one"):
        inception_score(np.zeros((0, 3)))
    with pytest.raises(DataError, match="sum to one"):
        inception_score(np.zeros((4, 3)))
    with pytest.raises(DataError, match="sum to one"):
        inception_score(np.full((4, 3), np.nan))
    with pytest.raises(ConfigError, match="splits"):
        inception_score(_log_softmax(4, 3, 0), splits=0)
