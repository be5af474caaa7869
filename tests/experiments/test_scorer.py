"""Scores by name: what they compare with, and names that mean nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datalens import data
from datalens.errors import ConfigError
from datalens.experiments.scorer import Scorer, images_of


def test_inception_score_and_fid_compare_with_the_real_images(tmp_path: Path) -> None:
    train, test = data.load("shapes"), data.load("shapes", split="test")
    few = replace(train, images=train.images[:300], labels=train.labels[:300])
    scorer = Scorer(few, test, tmp_path)
    real = scorer.score("fid-300", few.images, few.labels, seed=0)
    noise = np.random.default_rng(0).integers(0, 256, (300, 1, 16, 16), dtype=np.uint8)
    far = scorer.score("fid-300", noise, few.labels, seed=0)
    assert real["value"] < 0.01 < far["value"]
    assert scorer.score("is-300", few.images, few.labels, seed=0)["mean"] >= 1
    assert real["extractor"] == far["extractor"]
    with pytest.raises(ConfigError, match="'kid-10' is unknown"):
        scorer.score("kid-10", noise, few.labels, seed=0)


@pytest.mark.parametrize("name", ["cnn", "cnn-", "cnn-0", "-5", "cnn-x"])
def test_a_score_names_its_number_of_images(name: str) -> None:
    with pytest.raises(ConfigError, match="write a kind and a number of images"):
        images_of(name)
