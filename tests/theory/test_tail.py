"""tau_k: closed forms, drawing, and where the printed formula goes wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest

from datalens.errors import ConfigError
from datalens.theory.tail import WeibullTail, compression_error, fit_weibull


@pytest.mark.parametrize(
    ("shape", "closed"),
    [
        (1.0, lambda u: 1 - math.exp(-u) * (1 + u + u * u / 2)),  # P(3, u)
        (2.0, lambda u: 1 - math.exp(-u) * (1 + u)),  # P(2, u)
    ],
)
def test_tau_has_the_closed_form_of_whole_orders(shape, closed):
    expected = [math.sqrt(max(0.0, closed(math.log(50 / k)))) for k in range(1, 51)]
    assert WeibullTail(shape, 7.0).tau(50) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("shape", [0.4, 0.8, 1.5])
def test_tau_agrees_with_drawing_top_k(shape):
    dim = 1000
    drawn = WeibullTail(shape, 0.01).draw(1500, dim, np.random.default_rng(5))
    measured, expected = compression_error(drawn), WeibullTail(shape).tau(dim)
    for k in (10, 100, 300, 800):
        assert measured[k - 1] == pytest.approx(expected[k - 1], rel=0.02, abs=1e-3)


def test_tau_ignores_the_unit_and_the_printed_formula_does_not():
    small, large = WeibullTail(0.5, 0.1), WeibullTail(0.5, 10.0)
    assert (small.tau(100) == large.tau(100)).all()
    assert small.printed_tau(100)[49] == 0.0 < 0.5 < large.printed_tau(100)[49]


def test_the_printed_formula_ends_at_zero_only_for_scale_one():
    assert WeibullTail(0.5, 1.0).printed_tau(100)[-1] == pytest.approx(0.0, abs=1e-12)
    assert WeibullTail(0.5, 10.0).printed_tau(100)[-1] > 0.5
    assert WeibullTail(0.5, 10.0).tau(100)[-1] == 0.0


def test_a_heavier_tail_leaves_less_out():
    assert (WeibullTail(0.3).tau(200)[:-1] < WeibullTail(0.9).tau(200)[:-1]).all()


def test_mean_square_agrees_with_drawing():
    tail = WeibullTail(0.7, 0.2)
    assert np.square(tail.draw(400, 1000, np.random.default_rng(1))).mean() == pytest.approx(
        tail.mean_square(), rel=0.03
    )


@pytest.mark.parametrize(("shape", "scale"), [(0.35, 1e-6), (1.0, 4.0), (3.0, 1e5)])
def test_a_fit_finds_the_tail_that_was_drawn(shape, scale):
    grad = WeibullTail(shape, scale).draw(100, 300, np.random.default_rng(2))
    grad[:, :30] = 0.0  # zeros say nothing of a tail
    found = fit_weibull(grad)
    assert (found.shape, found.scale) == pytest.approx((shape, scale), rel=0.03)


def test_compression_error_by_loops():
    grad = np.random.default_rng(3).normal(size=(6, 9))
    for k in range(1, 10):
        left, whole, worst = 0.0, 0.0, 0.0
        for row in grad:
            dropped = sorted(row, key=abs)[: 9 - k]
            left += sum(value**2 for value in dropped)
            whole += sum(value**2 for value in row)
            worst = max(worst, math.sqrt(sum(v**2 for v in dropped) / sum(v**2 for v in row)))
        assert compression_error(grad)[k - 1] == pytest.approx(math.sqrt(left / whole))
        assert compression_error(grad, worst=True)[k - 1] == pytest.approx(worst)


def test_gradients_of_zero_leave_nothing_out():
    assert compression_error(np.zeros((2, 3))).tolist() == [0.0, 0.0, 0.0]
    assert compression_error(np.zeros((2, 3)), worst=True).tolist() == [0.0, 0.0, 0.0]


def test_what_has_no_meaning_is_refused():
    for call in (
        lambda: WeibullTail(0.0),
        lambda: WeibullTail(1.0, math.inf),
        lambda: WeibullTail(1.0).tau(0),
        lambda: fit_weibull(np.ones(5)),
        lambda: fit_weibull(np.array([1.0, np.nan])),
        lambda: compression_error(np.ones(3)),
        lambda: compression_error(np.array([[1.0, np.inf]])),
    ):
        with pytest.raises(ConfigError):
            call()
