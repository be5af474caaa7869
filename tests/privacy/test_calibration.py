from __future__ import annotations

import math

import pytest

from datalens.errors import BudgetError, ConfigError
from datalens.privacy import calibration
from datalens.privacy.accountant import AccountantKind
from datalens.privacy.events import GaussianEvent, NoiseKind, PoissonGaussianEvent, SamplerSlack

KINDS = list(AccountantKind)
EVENT = GaussianEvent(2 * math.sqrt(200), 5000.0, coordinates=784)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", [0.1, 1.0, 8.0, 50.0])
def test_r21_noise_never_overshoots_and_uses_the_budget(kind, target):
    noise = calibration.noise_for(EVENT, 1000, target, 1e-5, kind)
    made = GaussianEvent(EVENT.sensitivity, noise, 784)
    epsilon = calibration.epsilon_for(made, 1000, 1e-5, kind)
    assert 0.99 * target <= epsilon <= target


SLOW = pytest.mark.slow  # a noise tried costs a fraction of a second in dp-accounting


@pytest.mark.parametrize(
    "target",
    [pytest.param(0.1, marks=SLOW), 1.0, pytest.param(8.0, marks=SLOW), pytest.param(50.0, marks=SLOW)],
)
def test_r21_noise_of_poisson_steps_never_overshoots(target):  # R21, q=.004 and T=1000
    noise = calibration.noise_for(PoissonGaussianEvent(0.004, 1.0), 1000, target, 1e-5, AccountantKind.RDP)
    epsilon = calibration.epsilon_for(PoissonGaussianEvent(0.004, noise), 1000, 1e-5, AccountantKind.RDP)
    assert 0.99 * target <= epsilon <= target


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", [0.05, 0.2, 1.0, 10.0])
def test_the_number_of_releases_is_the_largest_that_fits(kind, target):
    count = calibration.max_releases(EVENT, target, 1e-5, kind)
    assert calibration.epsilon_for(EVENT, count, 1e-5, kind) <= target
    assert calibration.epsilon_for(EVENT, count + 1, 1e-5, kind) > target


def test_what_costs_next_to_nothing_is_counted_to_2_to_the_53():
    bare = GaussianEvent(1e-12, 1e6, 1)
    assert calibration.max_releases(bare, 1.0, 1e-5, AccountantKind.EXACT) == 2**53 - 1


def test_steps_of_mnist_at_epsilon_one():
    step = GaussianEvent(2 * math.sqrt(200 * 15), 5000.0, coordinates=15 * 784)
    found = [calibration.max_releases(step, 1.0, 1e-5, kind) for kind in KINDS]
    assert found == [149, 127, 86]  # exact accounting allows 149; the paper's 86 (docs/algorithm.md)


def test_noise_may_depend_on_the_slack():
    def make(noise: float) -> GaussianEvent:
        return GaussianEvent(4.0, noise, 784, slack=SamplerSlack(1e-9 / noise, 1e-14))

    noise = calibration.noise_for(make, 10, 2.0, 1e-5, AccountantKind.EXACT)
    assert 1.98 <= calibration.epsilon_for(make(noise), 10, 1e-5, AccountantKind.EXACT) <= 2.0


def test_r21_a_target_out_of_reach_is_said():
    hopeless = GaussianEvent(2.0, 1.0, 784, slack=SamplerSlack(0.0, 1e-3))
    with pytest.raises(ConfigError, match="out of reach"):
        calibration.noise_for(hopeless, 1, 1.0, 1e-5, AccountantKind.EXACT)
    with pytest.raises(ConfigError, match="almost no noise"):
        calibration.noise_for(GaussianEvent(1e-9, 1.0, 1), 1, 1.0, 1e-5, AccountantKind.EXACT)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_an_epsilon_that_is_no_target_is_refused(epsilon):
    for call in (
        lambda: calibration.max_releases(EVENT, epsilon, 1e-5, AccountantKind.EXACT),
        lambda: calibration.noise_for(EVENT, 1, epsilon, 1e-5, AccountantKind.EXACT),
    ):
        with pytest.raises(ConfigError, match="above 0 and finite"):
            call()


@pytest.mark.parametrize("kind", KINDS)
def test_an_epsilon_too_small_for_one_step_names_the_smallest_that_works(kind):
    step = GaussianEvent(2 * math.sqrt(200 * 15), 5000.0, coordinates=15 * 784)
    with pytest.raises(BudgetError, match="too small for one step") as caught:
        calibration.require_releases(step, 0.001, 1e-5, kind)
    named = float(str(caught.value).split("use epsilon ")[1].split()[0])
    assert calibration.require_releases(step, named, 1e-5, kind) >= 1
    assert calibration.max_releases(step, named * 0.998, 1e-5, kind) == 0


def test_without_noise_nothing_fits():
    bare = GaussianEvent(2.0, 0.0, 784, NoiseKind.NONE)
    assert calibration.max_releases(bare, 10.0, 1e-5, AccountantKind.EXACT) == 0


def test_no_release_and_a_release_without_a_price_are_refused():
    with pytest.raises(ConfigError, match="num_releases=0 must be 1 or more"):
        calibration.epsilon_for(EVENT, 0, 1e-5, AccountantKind.EXACT)
    bare = GaussianEvent(2.0, 0.0, 1, NoiseKind.NONE)
    with pytest.raises(BudgetError, match="no finite cost at delta=1e-05"):
        calibration.require_releases(bare, 1.0, 1e-5, AccountantKind.EXACT)
