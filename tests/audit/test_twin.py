"""The twin sees nothing in a sound release and much in one whose noise is missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_runs import config_to_audit

from datalens.audit.sabotage import ScaledNoise
from datalens.audit.twin import SINGLE, Canaries, Guesses, audit_twin, finding_of, guess
from datalens.data.shapes import draw_shapes
from datalens.errors import DataError
from datalens.training.algorithm import Parts
from datalens.training.facts import PublicFacts
from datalens.training.session import Session

NUM_TEACHERS = 60


@pytest.fixture(scope="module")
def facts() -> PublicFacts:
    voting = {
        "num_teachers": NUM_TEACHERS,
        "top_k": 60,
        "batch_size": 8,
        "num_steps": 30,
        "vote_threshold": 0.0,
    }
    config = config_to_audit(
        privacy__epsilon=0.1, **{f"voting__{name}": value for name, value in voting.items()}
    )
    # noise that drowns the teachers, so that few canaries show a thousandth of it
    return Session.begin(config, draw_shapes(NUM_TEACHERS), None, signal_matters=False).facts


def test_sound_training_keeps_its_canaries(facts: PublicFacts) -> None:
    finding = audit_twin(facts, draw_shapes(100))
    assert finding.passed
    assert finding.private
    assert finding.numbers["canaries"] == NUM_TEACHERS
    assert finding.numbers["claimed"] <= 0.1
    assert 0 <= finding.numbers["epsilon"] < finding.numbers["largest"]


def test_training_without_its_noise_is_caught(facts: PublicFacts) -> None:
    def broken(parts: Parts) -> Parts:
        return replace(parts, noise_for_step=lambda step: ScaledNoise(parts.noise_for_step(step), 1e-3))

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


@pytest.mark.parametrize("what", ["records", "groups", "several records"])
def test_a_run_of_groups_is_told_that_canaries_are_single_records(facts: PublicFacts, what: str) -> None:
    config = facts.config.replace(privacy__group_size=2) if what == "several records" else facts.config
    finding = audit_twin(replace(facts, config=config, of_groups=what == "groups"), draw_shapes(100))
    assert (SINGLE in finding.text) == (what != "records")
