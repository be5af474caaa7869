"""Kernel distance: an independent implementation, few images, and sets that are alike."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch

from datalens.errors import ConfigError, DataError
from datalens.evaluation.kid import kernel_distance, subset_distance


def _features(num: int, seed: int, shift: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(shift, 1.0, (num, 24))


def test_agrees_with_torchmetrics_on_the_same_features() -> None:
    kid = pytest.importorskip("torchmetrics.image.kid", reason="the independent KID comes with torchmetrics")

    class Same(torch.nn.Module):
        num_features = 24

        def forward(self, features: torch.Tensor) -> torch.Tensor:
            return features

    real, generated = _features(90, 0), _features(90, 1, 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = kid.KernelInceptionDistance(feature=Same(), subsets=2, subset_size=90).set_dtype(
            torch.float64
        )
        theirs.update(torch.from_numpy(real), real=True)
        theirs.update(torch.from_numpy(generated), real=False)
        expected, _ = theirs.compute()
    ours = kernel_distance(real, generated, subsets=2, subset_size=90, rng=np.random.default_rng(0))
    assert ours.mean == pytest.approx(float(expected), abs=1e-3)
    assert ours.mean > 0.05


def test_case_r73_a_subset_larger_than_the_set_is_reduced_with_notice() -> None:
    with pytest.warns(
        UserWarning, match="876 images cannot fill a KID subset of 1000; subset_size is reduced"
    ):
        found = kernel_distance(
            _features(1200, 0), _features(876, 1), subsets=2, rng=np.random.default_rng(0)
        )
    assert (found.subset_size, found.num_real, found.num_generated) == (876, 1200, 876)
    assert "NaN" not in json.dumps(found.to_json())


def test_like_sets_are_near_zero_and_the_estimate_is_unbiased() -> None:
    values = [subset_distance(_features(20, 2 * seed), _features(20, 2 * seed + 1)) for seed in range(300)]
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(300)
    assert np.mean(values) < 0.1 * subset_distance(_features(20, 0), _features(20, 1, 1.0))


def test_wrong_input_is_refused() -> None:
    rng = np.random.default_rng(0)
    for real, generated, rule in (
        (np.zeros((3, 2)), np.zeros((3, 4)), "one feature network"),
        (np.zeros((1, 2)), np.zeros((3, 2)), "at least 2 images"),
        (np.full((3, 2), np.nan), np.zeros((3, 2)), "NaN"),
    ):
        with pytest.raises(DataError, match=rule):
            kernel_distance(real, generated, rng=rng)
    with pytest.raises(ConfigError, match="subset_size 1"):
        kernel_distance(np.zeros((3, 2)), np.zeros((3, 2)), subset_size=1, rng=rng)
