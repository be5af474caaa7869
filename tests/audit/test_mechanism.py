"""The attack on the mechanism is nearly as strong as any can be."""

from __future__ import annotations

import numpy as np
import pytest

from datalens.audit import mechanism, noise_law
from datalens.audit.self_test import self_test_subject
from datalens.privacy.events import NoiseKind


def test_attack_shows_most_of_what_is_claimed() -> None:
    finding = mechanism.audit_mechanism(self_test_subject(), trials=400_000)
    assert finding.passed
    for scale in finding.numbers["scales"]:
        assert 0.9 < scale["mu"] / scale["claimed_mu"] <= 1
        assert 0 < scale["epsilon_at_run"] < scale["largest_at_run"]
        if scale["claimed_mu"] <= 2:
            assert 0.6 < scale["epsilon"] / scale["claimed_epsilon"] <= 1


@pytest.mark.slow
def test_attack_reaches_nine_tenths_with_its_default_trials() -> None:
    finding = mechanism.audit_mechanism(self_test_subject())
    for scale in finding.numbers["scales"][:2]:
        assert scale["epsilon"] / scale["claimed_epsilon"] > 0.9
        assert scale["mu"] / scale["claimed_mu"] > 0.9


def test_few_trials_are_named_and_do_not_raise_the_alarm() -> None:
    finding = mechanism.audit_mechanism(self_test_subject(), trials=50)
    assert finding.passed
    assert finding.numbers["trials_a_side"] == 50


def test_sensitivity_is_reached_and_halved_by_silence() -> None:
    numbers = mechanism.audit_sensitivity(self_test_subject()).numbers
    assert numbers["turned"] == pytest.approx(numbers["claimed"], rel=1e-12)
    assert numbers["silent"] == pytest.approx(numbers["claimed"] / 2, rel=1e-12)


@pytest.mark.parametrize("stddev", [0.3, 1.0, 2.0, 7.5])
@pytest.mark.parametrize("kind", ["rounded-gaussian", "discrete-gaussian", "continuous-gaussian"])
def test_laws_agree_with_themselves(stddev: float, kind: str) -> None:
    values = np.arange(-100, 101).astype(float)
    mass = np.diff(noise_law.cumulative(values, stddev, NoiseKind(kind)))
    assert mass.sum() == pytest.approx(1)
    if kind == "rounded-gaussian":
        spread = float(np.sqrt((values[1:] ** 2 * mass).sum()))
        assert noise_law.ideal_stddev(stddev, NoiseKind(kind)) == pytest.approx(spread, rel=1e-9)
