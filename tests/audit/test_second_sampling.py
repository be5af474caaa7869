"""The cost of sampled steps, integrated, against the account, the literature's library and closed forms."""

from __future__ import annotations

import math
import warnings

import pytest

from datalens.audit.ledger_reader import Difference
from datalens.audit.second_curves import epsilon_again
from datalens.audit.second_sampling import Between, step_again
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import GaussianEvent, NoiseKind, PoissonGaussianEvent, SamplerSlack
from datalens.privacy.replacing import replace_one_epsilon

SLACK = SamplerSlack(2.0**-56, 2.0**-120)


@pytest.mark.parametrize("multiplier", [0.25, 1.0, 7.0, 200.0])
@pytest.mark.parametrize("order", [1.01, 2.0, 3.5, 40.0, 3000.0])
def test_a_step_that_everybody_is_in_is_a_gaussian_release(order: float, multiplier: float) -> None:
    assert step_again(order, 1.0, multiplier) == pytest.approx(order / (2 * multiplier**2), rel=1e-9)


@pytest.mark.parametrize("multiplier", [0.3, 1.1, 6.0])
@pytest.mark.parametrize("probability", [1e-4, 0.02, 0.5])
def test_at_order_two_it_is_the_closed_form(probability: float, multiplier: float) -> None:
    """E of the squared ratio is 1 + q^2 (exp(1/s^2) - 1)."""
    moment = math.log1p(probability**2 * math.expm1(1 / multiplier**2))
    assert step_again(2.0, probability, multiplier) == pytest.approx(moment, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize(
    ("probability", "multiplier", "count"),
    [(0.002, 0.8, 4000), (0.1, 3.0, 8), (0.002, 4.0, 24), (1e-4, 40.0, 1), (0.3, 1.1, 50), (1.0, 9.0, 3)],
)
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_what_the_account_finds_lies_between(
    probability: float, multiplier: float, count: int, delta: float
) -> None:
    """Also beside a Gaussian release and with a sampler's slack; and the interval is narrow where it matters."""
    events = [
        PoissonGaussianEvent(probability, multiplier, count, NoiseKind.ROUNDED, 100, SLACK),
        GaussianEvent(1.0, 30.0, 4, NoiseKind.ROUNDED, SLACK),
    ]
    for kind in AccountantKind:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = Accountant(kind).epsilon(events, delta)
        mine = epsilon_again([event.to_json() for event in events], delta, str(kind))
        assert isinstance(mine, Between)
        assert mine * (1 - 1e-6) <= theirs <= mine.most * (1 + 1e-6)
        assert mine.most <= 1.2 * mine + 1e-3


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.nan, 1e-160, 0.001])
def test_no_noise_to_speak_of_is_refused_before_its_integrals_fill_the_memory(multiplier: float) -> None:
    event = {**PoissonGaussianEvent(0.1, 1.0).to_json(), "noise_multiplier": multiplier}
    with pytest.raises(Difference, match=r"cannot be read: sampled with probability 0\.1 and noise"):
        epsilon_again([event], 1e-5, "exact")


def test_the_best_proof_known_is_not_undercut() -> None:
    """Privacy loss distributions compose sampled steps almost exactly: any sound epsilon is above theirs."""
    import dp_accounting
    from dp_accounting import pld

    mine = epsilon_again([PoissonGaussianEvent(0.1, 3.0, 20).to_json()], 1e-5, "rdp")
    accountant = pld.PLDAccountant()
    step = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(3.0))
    accountant.compose(step, 20)
    assert accountant.get_epsilon(1e-5) * 0.999 < mine < 1.5 * accountant.get_epsilon(1e-5)


def test_replacing_is_bounded_by_two_moves_as_the_product_has_it() -> None:
    from datalens.audit.second_sampling import two_moves

    event = PoissonGaussianEvent(0.1, 3.0, 20)
    theirs = replace_one_epsilon(Accountant(), event, 1e-5)
    mine = two_moves(lambda delta: epsilon_again([event.to_json()], delta, "rdp"), 1e-5)
    assert mine * (1 - 1e-6) <= theirs <= mine.most * (1 + 2e-6)
    assert mine.most < 1.05 * mine


@pytest.mark.parametrize(
    "change", [{"sampling_probability": 0.0}, {"sampling_probability": 1.5}, {"noise_multiplier": -1.0}]
)
def test_numbers_that_no_step_can_have_are_named(change: dict[str, float]) -> None:
    with pytest.raises(Difference, match="cannot be read"):
        epsilon_again([PoissonGaussianEvent(0.1, 3.0).to_json() | change], 1e-5, "rdp")
