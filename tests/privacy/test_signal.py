"""What survives the noise: against the measured MNIST figures, against simulation, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from datalens.errors import ConfigError
from datalens.privacy.signal import LEAST_MARGIN, best_threshold, require_signal, signal_of


def test_the_papers_settings_at_epsilon_1() -> None:
    signal = signal_of(4000, 5000.0, 0.7)
    assert signal.right == pytest.approx(0.595, abs=5e-4)
    assert signal.wrong == pytest.approx(0.087, abs=5e-4)
    assert 784 * signal.from_noise == pytest.approx(451, abs=0.5)
    assert not signal.is_hopeless


@pytest.mark.parametrize(
    ("teachers", "stddev", "threshold", "share"), [(40, 30.0, 0.5, 1.0), (100, 80.0, 0.2, 0.3)]
)
def test_simulation_gives_the_same_chances(
    teachers: int, stddev: float, threshold: float, share: float
) -> None:
    noise = np.random.default_rng(5).normal(0, stddev, 200_000)
    signal = signal_of(teachers, stddev, threshold, share_voting=share)
    votes = share * teachers
    assert signal.right == pytest.approx(np.mean(votes + noise >= threshold * teachers), abs=5e-3)
    assert signal.wrong == pytest.approx(np.mean(votes + noise <= -threshold * teachers), abs=5e-3)
    assert signal.from_noise == pytest.approx(np.mean(np.abs(noise) >= threshold * teachers), abs=5e-3)


def test_without_noise_unanimity_is_always_heard() -> None:
    signal = signal_of(10, 0.0, 0.7)
    assert (signal.right, signal.wrong, signal.from_noise) == (1.0, 0.0, 0.0)
    assert signal_of(10, 0.0, 0.7, share_voting=0.5).right == 0.0


def test_more_teachers_are_heard_better() -> None:
    margins = [signal_of(count, 5000.0, 0.7).margin for count in (10, 100, 1000, 4000, 12000)]
    assert margins == sorted(margins)
    assert margins[0] < LEAST_MARGIN < margins[-1]


def test_the_suggested_threshold_keeps_most_of_a_weak_signal() -> None:
    def ratio(threshold: float) -> float:
        signal = signal_of(100, 5000.0, threshold)
        return signal.margin / np.sqrt(signal.from_noise)

    best = best_threshold(100, 5000.0)
    assert best == pytest.approx(30.6)
    assert ratio(best) > ratio(0.9 * best)
    assert ratio(best) > ratio(1.1 * best)


def test_a_hopeless_plan_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"num_teachers = 40 .* leaves no signal .*more teachers"):
        require_signal(40, 5000.0, 0.7)
    assert require_signal(4000, 5000.0, 0.7) == signal_of(4000, 5000.0, 0.7)


@pytest.mark.parametrize(
    ("teachers", "stddev", "threshold", "share", "named"),
    [
        (0, 1.0, 0.5, 1.0, "num_teachers"),
        (5, -1.0, 0.5, 1.0, "noise_stddev"),
        (5, float("nan"), 0.5, 1.0, "noise_stddev"),
        (5, float("inf"), 0.5, 1.0, "noise_stddev"),
        (5, 1.0, float("nan"), 1.0, "vote_threshold"),
        (5, 1.0, -0.1, 1.0, "vote_threshold"),
        (5, 1.0, 0.5, 0.0, "share_voting"),
        (5, 1.0, 0.5, float("nan"), "share_voting"),
    ],
)
def test_values_out_of_range_are_named(
    teachers: int, stddev: float, threshold: float, share: float, named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        signal_of(teachers, stddev, threshold, share_voting=share)


@pytest.mark.parametrize(
    ("stddev", "verdict", "hopeless"),
    [(1.0, "signal", False), (150.0, "some signal", False), (1e4, "hopeless", True)],
)
def test_the_verdict_follows_the_margin(stddev: float, verdict: str, hopeless: bool) -> None:
    signal = signal_of(40, stddev, 0.7)
    assert (signal.verdict, signal.is_hopeless) == (verdict, hopeless)
    said = signal.to_json()
    assert said == {
        "right": signal.right,
        "wrong": signal.wrong,
        "from_noise": signal.from_noise,
        "margin": signal.right - signal.wrong,
        "hopeless": hopeless,
        "verdict": verdict,
    }
