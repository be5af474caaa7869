"""Theorem 6: golden values by hand, the slips one by one, and the descent that it speaks of, simulated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from datalens.errors import ConfigError
from datalens.theory.quantiser import Quantiser
from datalens.theory.tail import WeibullTail
from datalens.theory.theorem6 import Descent, GradientFacts, Reading, bound, noise_per_kept

FACTS = GradientFacts(norm=2.0, tau=np.array([0.9, 0.6, 0.3, 0.0]), spread_l2=0.5, spread_l1=0.8)
DESCENT = Descent(
    num_teachers=10, noise_per_kept=50.0, clip_bound=0.5, step_size=0.1, num_steps=20, smoothness=3.0,
    start_gap=4.0,
)  # fmt: skip
PAPER = Descent(num_teachers=4000, noise_per_kept=125_000.0, clip_bound=1e-5)


def test_printed_bound_by_hand():
    found = bound(FACTS, DESCENT, Reading.PRINTED)
    assert found.bias == pytest.approx([min(3.6, 3.0), min(2.4, 2.0), min(1.2, 1.0), 0.0])
    assert found.privacy == pytest.approx([15.0, 30.0, 45.0, 60.0])  # L gamma A k = 0.3 * 50 k
    assert found.start == pytest.approx([2.0] * 4)  # 4/(20 * 0.1)
    assert found.spread == pytest.approx([1.6] * 4)  # max(0.25 + 1, 1.6)
    assert found.quantiser == pytest.approx([0.6 * (4 * 0.25 + 0.25)] * 4)  # 2 L gamma (d/4 + c^2)
    assert found.left_factor == pytest.approx(0.5 / 6)
    assert found.total == pytest.approx(
        found.bias + found.privacy + found.start + found.spread + found.quantiser
    )
    assert found.favoured_k == 1


def test_corrected_bound_by_hand():
    found = bound(FACTS, DESCENT, Reading.CORRECTED)
    assert found.privacy == pytest.approx([0.6, 1.2, 1.8, 2.4])  # 0.3 * d A k/N^2 = 0.3 * 4 * 50 k/100
    assert found.quantiser == pytest.approx([0.3, 0.6, 0.9, 1.2])  # 0.6 * (k/4 + k/4)
    each = bound(FACTS, DESCENT, Reading.INDEPENDENT)
    assert each.privacy == pytest.approx([6.0, 12.0, 18.0, 24.0])  # d A k/N


def test_without_quantisation():
    assert bound(FACTS, DESCENT, Reading.PRINTED, Quantiser.NONE).quantiser == pytest.approx([0.075] * 4)
    found = bound(FACTS, DESCENT, Reading.CORRECTED, Quantiser.NONE)
    assert found.quantiser == pytest.approx([0.075, 0.15, 0.225, 0.3])  # L gamma k c^2


def test_signs_of_algorithm_2_cost_k():
    found = bound(FACTS, DESCENT, Reading.CORRECTED, Quantiser.SIGN)
    assert found.quantiser == pytest.approx([0.6 * (k + k / 4) for k in range(1, 5)])


def test_the_clipped_square_never_exceeds_the_gradients():
    found = bound(FACTS, Descent(10, 0.0, clip_bound=1.5), Reading.CORRECTED, Quantiser.NONE)
    assert found.quantiser == pytest.approx([1e-3 * min(k * 2.25, 4.0) for k in range(1, 5)])


@pytest.mark.parametrize("quantiser", list(Quantiser))
def test_the_readings_differ_exactly_in_noise_clip_and_quantiser(quantiser):
    printed, corrected, each = (bound(FACTS, DESCENT, reading, quantiser) for reading in Reading)
    for other in (corrected, each):
        assert (other.bias == printed.bias).all()
        assert (other.start == printed.start).all()
        assert (other.spread == printed.spread).all()
        assert other.left_factor == printed.left_factor
        assert (other.privacy != printed.privacy).all()
    assert (corrected.quantiser == each.quantiser).all()
    assert np.unique(printed.quantiser).size == 1
    assert (np.diff(corrected.quantiser) > 0).all()


def test_above_a_clip_of_one_the_printed_spread_is_too_small():
    loose = Descent(10, 50.0, clip_bound=3.0)
    assert bound(FACTS, loose, Reading.PRINTED, Quantiser.NONE).spread[0] == pytest.approx(1.6)
    assert bound(FACTS, loose, Reading.CORRECTED, Quantiser.NONE).spread[0] == pytest.approx(4.8)


def test_only_the_printed_reading_uses_the_printed_tail():
    facts = GradientFacts.from_tail(WeibullTail(0.5, 0.1), 100)
    open_clip = Descent(4000, 125_000.0, clip_bound=1.0)
    assert facts.printed_tau is not None
    assert bound(facts, open_clip, Reading.PRINTED).bias == pytest.approx(facts.printed_tau * facts.norm**2)
    assert bound(facts, open_clip, Reading.CORRECTED).bias == pytest.approx(facts.tau * facts.norm**2)


def test_the_noise_of_a_step_agrees_with_drawing():
    """Expected square of the update's noise: d A k/N^2 for one noise after the sum, d A k/N for N of them."""
    rng, dim, top_k, teachers = np.random.default_rng(0), 200, 7, 9
    stddev = math.sqrt(DESCENT.noise_per_kept * top_k)
    one = rng.normal(0, stddev, (2000, dim)) / teachers
    each = rng.normal(0, stddev, (2000, teachers, dim)).sum(axis=1) / teachers
    facts = GradientFacts(1.0, np.linspace(1, 0, dim), 0.0, 0.0)
    descent = Descent(teachers, DESCENT.noise_per_kept, clip_bound=1.0, step_size=1.0)
    for drawn, reading in ((one, Reading.CORRECTED), (each, Reading.INDEPENDENT)):
        expected = bound(facts, descent, reading).privacy[top_k - 1]
        assert np.square(drawn).sum(axis=1).mean() == pytest.approx(expected, rel=0.02)
    printed = bound(facts, descent, Reading.PRINTED).privacy[top_k - 1]
    assert printed == pytest.approx(np.square(one).sum(axis=1).mean() * teachers**2 / dim, rel=0.02)


@pytest.mark.parametrize("quantiser", list(Quantiser))
@pytest.mark.parametrize("clip", [0.05, 0.8])
def test_the_corrected_bound_holds_for_a_descent_that_is_carried_out(quantiser, clip):
    """Teachers F_n(x) = |x - a_n|^2/2, equation (2) step by step: the left side stays below the right one."""
    rng, teachers, dim, top_k, pace, steps, noise = np.random.default_rng(4), 6, 12, 4, 0.2, 60, 0.3
    centre_TD = rng.normal(1.0, 0.1, (teachers, dim))
    x, met, points = np.zeros(dim), [], []

    def value(x):
        return 0.5 * np.square(x - centre_TD).sum(axis=1).mean()

    first = value(x)
    for _ in range(steps):
        grad_TD = x - centre_TD
        points.append(grad_TD)
        slope = grad_TD.mean(axis=0)
        met.append(min(np.square(slope).sum(), abs(slope).sum()))
        kept = np.argsort(-abs(grad_TD), axis=1)[:, :top_k]
        sent = np.zeros_like(grad_TD)
        part = np.clip(np.take_along_axis(grad_TD, kept, 1), -clip, clip)
        if quantiser is Quantiser.BERNOULLI:
            part = np.sign(part) * (rng.random(part.shape) < abs(part))
        elif quantiser is Quantiser.SIGN:
            part = np.where(rng.random(part.shape) < (1 + part) / 2, 1.0, -1.0)
        np.put_along_axis(sent, kept, part, 1)
        x = x - pace / teachers * (sent.sum(axis=0) + rng.normal(0, noise * math.sqrt(top_k), dim))
    facts = GradientFacts.from_gradients(np.stack(points, axis=1))
    descent = Descent(teachers, noise**2, clip, pace, steps, 1.0, first - value(centre_TD.mean(axis=0)))
    found = bound(facts, descent, Reading.CORRECTED, quantiser)
    assert found.left_factor * np.mean(met) <= found.total[top_k - 1]


def test_at_the_papers_clip_every_reading_favours_one_coordinate_and_says_nothing():
    facts = GradientFacts.from_tail(WeibullTail(0.5, 0.1), 784)
    for reading in Reading:
        found = bound(facts, PAPER, reading)
        assert found.left_factor == pytest.approx(1.272e-8, rel=1e-3)
        assert found.favoured_k == 1
        assert not found.says_something


def test_with_an_open_clip_the_slip_in_the_noise_decides_the_favoured_k():
    facts = GradientFacts.from_tail(WeibullTail(0.5, 0.1), 784)
    open_clip = Descent(4000, 125_000.0, clip_bound=1.0)
    favoured = [bound(facts, open_clip, reading).favoured_k for reading in Reading]
    assert favoured[0] == favoured[2] == 1
    assert 500 < favoured[1] < 784


def test_facts_of_gradients():
    rng = np.random.default_rng(6)
    grad_TBD = rng.normal(size=(30, 3, 8)) * np.array([1.0, 5.0, 2.0])[:, None]
    facts = GradientFacts.from_gradients(grad_TBD)
    assert facts.norm == pytest.approx(math.sqrt(np.square(grad_TBD[:, 1]).sum(axis=1).mean()))
    assert facts.spread_l1 == pytest.approx(grad_TBD.std(axis=0).max(axis=0).sum())
    assert facts.dim == 8 and facts.tau[-1] == 0
    single = GradientFacts.from_gradients(grad_TBD[:, 1])
    assert single.norm == facts.norm and (single.tau <= facts.tau).all()


def test_a_bound_that_says_something_says_so():
    facts = GradientFacts(1.0, np.array([0.0]), 0.0, 0.0)
    assert bound(facts, Descent(10, 0.0, 1.0), Reading.CORRECTED, Quantiser.NONE).says_something


def test_what_has_no_meaning_is_refused():
    for call in (
        lambda: Descent(0, 1.0, 1.0),
        lambda: Descent(1, -1.0, 1.0),
        lambda: Descent(1, math.nan, 1.0),
        lambda: Descent(1, 1.0, 0.0),
        lambda: bound(FACTS, Descent(1, 1.0, 2.0), Reading.CORRECTED, Quantiser.SIGN),
        lambda: noise_per_kept(1.0, 0),
        lambda: GradientFacts.from_gradients(np.ones((2, 0, 3))),
        lambda: GradientFacts.from_gradients(np.full((2, 3), np.nan)),
    ):
        with pytest.raises(ConfigError):
            call()
    assert noise_per_kept(9000.0, 700) == pytest.approx(115_714.28, rel=1e-6)
