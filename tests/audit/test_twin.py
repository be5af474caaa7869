"""The twin sees nothing in a sound release and much in one whose noise is missing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from datalens.audit.twin import Canaries, Guesses, audit_twin, finding_of, guess
from datalens.data.shapes import draw_shapes
from datalens.errors import DataError
from datalens.noise import NoiseSource
from datalens.privacy.events import NoiseKind, SamplerSlack
from datalens.training.algorithm import Parts
from datalens.training.config import Config
from datalens.training.facts import PublicFacts
from datalens.training.session import Session

NUM_TEACHERS = 60


@pytest.fixture(scope="module")
def facts() -> PublicFacts:
    config = Config().replace(
        privacy__epsilon=0.1,
        voting__num_teachers=NUM_TEACHERS,
        voting__top_k=60,
        voting__batch_size=8,
        voting__num_steps=30,
        voting__vote_threshold=0.0,
        student__hidden_units=16,
        student__channels=8,
    )
    return Session.begin(config, draw_shapes(NUM_TEACHERS), None).facts


@dataclass(frozen=True)
class Whisper:
    """A thousandth of the noise."""

    inner: NoiseSource

    @property
    def kind(self) -> NoiseKind:
        return self.inner.kind

    @property
    def secure(self) -> bool:
        return self.inner.secure

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        return self.inner.sample(shape, stddev / 1000)

    def slack(self, stddev: float) -> SamplerSlack:
        return self.inner.slack(stddev)


def test_sound_training_keeps_its_canaries(facts: PublicFacts) -> None:
    finding = audit_twin(facts, draw_shapes(100))
    assert finding.passed
    assert finding.private
    assert finding.numbers["canaries"] == NUM_TEACHERS
    assert finding.numbers["claimed"] <= 0.1
    assert 0 <= finding.numbers["epsilon"] < finding.numbers["largest"]


def test_training_without_its_noise_is_caught(facts: PublicFacts) -> None:
    def broken(parts: Parts) -> Parts:
        return replace(parts, noise_for_step=lambda step: Whisper(parts.noise_for_step(step)))

    finding = audit_twin(facts, draw_shapes(100), alter=broken)
    assert not finding.passed
    assert finding.numbers["epsilon"] > 0.2


def test_coins_are_fair_and_fresh() -> None:
    one, two = (Canaries.draw(2000, (1, 4, 4), 3) for _ in range(2))
    assert 880 < one.included.sum() < 1120
    assert (one.included != two.included).any()
    assert set(np.unique(one.images)) == {0, 255}


def test_guesses_name_the_ends_of_the_scores() -> None:
    scores = np.array([0.0, 5.0, 1.0, 4.0])
    included = np.array([False, True, True, True])
    assert guess(scores, included)[-1] == Guesses(4, 3)
    assert guess(scores, included)[0] == Guesses(2, 2)


def test_low_bound_is_not_called_a_proof() -> None:
    text = finding_of([Guesses(10, 5)], 100, 1.0, 1e-5).text
    assert "never a proof" in text
    assert "at most" in text


def test_data_of_another_size_are_refused(facts: PublicFacts) -> None:
    with pytest.raises(DataError, match="images of size"):
        audit_twin(facts, draw_shapes(100, image_size=12))
