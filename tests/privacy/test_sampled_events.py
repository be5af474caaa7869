"""Poisson-sampled steps say which noise they have, and its slack is charged like anybody's."""

from __future__ import annotations

import dataclasses
import math

import pytest

from datalens.errors import ConfigError
from datalens.privacy import promises
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.certificate import build_certificate, reasons_against
from datalens.privacy.data_card import data_card
from datalens.privacy.events import NoiseKind, PoissonGaussianEvent, SamplerSlack, event_from_json, times
from datalens.privacy.ledger import Ledger
from datalens.privacy.ledger_format import costliest
from datalens.privacy.replacing import replace_one_epsilon
from datalens.privacy.wording import rounded_up

STEP = PoissonGaussianEvent(0.01, 1.5, 40, coordinates=5000, slack=SamplerSlack(2.0**-56, 2.0**-120))
CONFIG = {
    "config": {"privacy": {"noise": "rounded-gaussian", "insecure_seed": None}},
    "data": "private",
    "image_shape": [1, 8, 8],
    "classes": ["a", "b"],
}


def test_a_line_of_an_older_ledger_is_read_as_the_event_it_was() -> None:
    old = {"type": "poisson-gaussian", "sampling_probability": 0.1, "noise_multiplier": 1.1, "count": 5}
    assert event_from_json(old) == PoissonGaussianEvent(0.1, 1.1, 5)
    assert Accountant().epsilon(event_from_json(old), 1e-5) == Accountant().epsilon(
        PoissonGaussianEvent(0.1, 1.1, 5, NoiseKind.CONTINUOUS, 7), 1e-5
    )


def test_it_is_read_back_exactly() -> None:
    assert event_from_json(STEP.to_json()) == STEP


@pytest.mark.parametrize("kind", list(AccountantKind))
def test_the_slack_of_sampled_steps_is_charged(kind: AccountantKind) -> None:
    ideal = dataclasses.replace(STEP, slack=SamplerSlack())
    loose = dataclasses.replace(STEP, slack=SamplerSlack(eta=1e-8))
    price = Accountant(kind).epsilon
    assert price(loose, 1e-5) >= price(ideal, 1e-5) + 2 * 40 * 5000 * 1e-8
    assert price(dataclasses.replace(STEP, slack=SamplerSlack(tau=1e-11)), 1e-5) > price(ideal, 1e-5) * 1.01
    assert price(STEP, 1e-5) == pytest.approx(price(ideal, 1e-5), rel=1e-6)
    assert Accountant(kind).delta(loose, 0.001) == 1.0


def test_without_noise_the_cost_is_infinite() -> None:
    bare = PoissonGaussianEvent(0.01, 0.0, 3, NoiseKind.NONE)
    assert Accountant().epsilon(bare, 1e-5) == math.inf and Accountant().delta(bare, 5.0) == 1.0
    assert Accountant().epsilon([bare, STEP], 1e-5) == math.inf
    assert replace_one_epsilon(Accountant(), bare, 1e-5) == math.inf


def test_discrete_noise_is_refused_where_nothing_is_proved_about_it() -> None:
    with pytest.raises(ConfigError, match="no proved cost in Poisson-sampled steps: use rounded-gaussian"):
        PoissonGaussianEvent(0.01, 1.0, noise=NoiseKind.DISCRETE)


def test_the_costliest_keeps_kinds_of_noise_apart_and_covers_all_draws() -> None:
    floating = PoissonGaussianEvent(0.5, 3.0, 2, NoiseKind.CONTINUOUS, 10)
    other = PoissonGaussianEvent(0.02, 2.0, 7, coordinates=90_000)
    mine, theirs = costliest([other, floating, STEP])
    assert theirs == floating
    assert mine == PoissonGaussianEvent(0.02, 1.5, 40, NoiseKind.ROUNDED, 15_750, STEP.slack)


def test_floating_point_noise_of_sampled_steps_is_named_in_the_certificate() -> None:
    floating = dataclasses.replace(STEP, noise=NoiseKind.CONTINUOUS)
    assert reasons_against([floating], {}) == [promises.CONTINUOUS]
    assert reasons_against([dataclasses.replace(STEP, noise=NoiseKind.NONE)], {}) == [promises.NO_NOISE]
    assert reasons_against([STEP], {}) == []
    certificate = _certificate(floating)
    assert promises.FLOATING_POINT in certificate["not_covered"]
    assert not certificate["fit_for_publication"]


def test_the_certificate_counts_draws_and_slack_of_sampled_steps() -> None:
    noise = _certificate(STEP)["noise"]
    assert noise["kinds"] == ["rounded-gaussian"] and noise["coordinates_drawn"] == 3 * 40 * 5000
    assert noise["slack_in_epsilon"] == pytest.approx(2 * 600_000 * 2.0**-56)
    assert noise["slack_mass"] == pytest.approx(600_000 * 2.0**-120)


def test_the_certificate_does_not_call_replacing_a_record_free() -> None:
    guarantee = _certificate(STEP)["guarantee"]
    assert guarantee["replace_one"]["epsilon"] == replace_one_epsilon(Accountant(), times(STEP, 3), 1e-5)
    assert guarantee["replace_one"]["epsilon"] > 2 * guarantee["epsilon"]
    assert guarantee["accountant_used"] == "rdp"
    card = " ".join(data_card(_certificate(STEP)).split())
    assert (
        f"instead: epsilon {rounded_up(guarantee['replace_one']['epsilon'])} (a bound for the whole plan"
        in card
    )
    assert "each from a lot that a person is in with probability 0.01" in card
    assert _certificate(STEP)["spent"]["mu"] is None


def test_replacing_is_not_known_where_only_a_ceiling_was_fixed() -> None:
    budget = Budget(Ledger.in_memory(), Authorisation(5.0, 1e-5))
    budget.charge(STEP)
    assert build_certificate(budget.ledger, CONFIG, {}, {})["guarantee"]["replace_one"]["epsilon"] is None


def _certificate(event: PoissonGaussianEvent) -> dict:
    plan = Authorisation(5.0, 1e-5, num_releases=3, planned=event)
    budget = Budget(Ledger.in_memory({"authorisation": plan.to_json()}), plan)
    for _ in range(3):
        budget.charge(event)
    return build_certificate(budget.ledger, CONFIG, {}, {})
