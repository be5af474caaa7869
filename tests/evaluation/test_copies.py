"""The copy check finds copies, and cries no wolf."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from datalens.errors import DataError
from datalens.evaluation.copies import copy_check, nearest


def _images(num: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (num, 1, 6, 5), dtype=np.uint8)


def test_nearest_agrees_with_a_loop() -> None:
    queries, references = _images(40, 0).reshape(40, -1), _images(70, 1).reshape(70, -1)
    index, distance = nearest(queries, references, torch.device("cpu"))
    for row, query in enumerate(queries):
        every = [np.sqrt(np.mean(((query.astype(float) - other) / 255) ** 2)) for other in references]
        assert index[row] == int(np.argmin(every))
        assert distance[row] == pytest.approx(min(every))


def test_exact_copies_are_counted_among_all_training_images() -> None:
    train, test = _images(300, 0), _images(40, 1)
    samples = np.concatenate([train[250:260], _images(30, 2)])
    check = copy_check(samples, train, test)
    assert check.num_exact_copies == 10
    assert check.smallest_distance_train == 0
    assert {pair[:2] for pair in check.closest_pairs} == {(i, 250 + i) for i in range(10)}
    assert check.num_reference == 40
    json.dumps(check.to_json(), allow_nan=False)


def test_near_copies_raise_the_score_and_fresh_images_do_not() -> None:
    train, test = _images(200, 0), _images(200, 1)
    wobble = np.random.default_rng(3).integers(-9, 10, train.shape)
    copies = np.clip(train.astype(int) + wobble, 0, 255).astype(np.uint8)
    leaking = copy_check(copies, train, test)
    assert leaking.share_closer_to_train == 1.0
    assert leaking.z_score > 10
    assert leaking.num_exact_copies == 0
    fresh = copy_check(_images(400, 2), train, test)
    assert abs(fresh.z_score) < 5
    assert fresh.median_distance_train == pytest.approx(fresh.median_distance_test, rel=0.05)


def test_a_larger_training_set_alone_raises_nothing() -> None:
    check = copy_check(_images(400, 2), _images(2000, 0), _images(100, 1))
    assert abs(check.z_score) < 5


def test_shapes_must_agree() -> None:
    with pytest.raises(DataError, match="one shape"):
        copy_check(_images(3, 0), np.zeros((3, 1, 6, 6), np.uint8), _images(3, 1))
