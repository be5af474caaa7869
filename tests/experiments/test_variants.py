"""TopAgg with a part taken out: each variant costs what it says and does what its name says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_cell import TINY

from datalens.compression.topk_sign import topk_sign
from datalens.compression.topk_value import topk_value
from datalens.data import load
from datalens.experiments.variants import (
    UNIT,
    FixedPointSum,
    NoisySum,
    Variant,
    adapt,
    fixed_point,
    largest_signs,
)
from datalens.mechanisms.topagg import TopAgg
from datalens.noise import make_noise
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind
from datalens.privacy.ledger import Ledger
from datalens.training.session import Session

TOPAGG = TopAgg(40, 5, 100.0, 0.5, make_noise(NoiseKind.ROUNDED, b"a key for this test"), 3)


def as_kind(kind: type[TopAgg]) -> TopAgg:
    return kind(**{name: getattr(TOPAGG, name) for name in TOPAGG.__dataclass_fields__})


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_saturated_gradients_vote_the_same_with_and_without_chance() -> None:
    grad = torch.randn(6, 4, 50, generator=rng())  # far above the clip: the chance of each sign is 0 or 1
    with_chance = topk_sign(grad, 10, 1e-5, rng(1))
    without = largest_signs(grad, 10, 1e-5, rng(2))
    assert torch.equal(with_chance.vote_TBD, without.vote_TBD)


def test_the_deterministic_sign_is_the_sign_of_the_largest() -> None:
    grad = torch.tensor([[[0.1, -0.4, 0.3, 0.0]]])
    votes = [largest_signs(grad, 2, 1.0, rng(seed)).vote_TBD.tolist() for seed in range(20)]
    assert votes == [[[[0, -1, 1, 0]]]] * 20, "no chance is left"


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 12),
    st.floats(1e-6, 1e3),
    st.integers(1, 127),
    st.integers(0, 2**31),
)
def test_values_in_fixed_point_never_exceed_their_norm(top_k: int, clip: float, unit: int, seed: int) -> None:
    grad = torch.randn(3, 2, 12, generator=rng(seed)) * 10.0 ** (seed % 7 - 3)
    vote = topk_value(grad, top_k, clip, unit).vote_TBD.double()
    assert int((vote != 0).sum(-1).max()) <= top_k
    assert float(vote.square().sum(-1).max()) <= unit**2 * top_k
    assert float(vote.abs().max()) == unit, "the largest that remains stands for 1"


def test_bad_gradients_vote_zero() -> None:
    grad = torch.tensor([[[float("nan"), 1.0]], [[float("inf"), 1.0]], [[0.0, 0.0]], [[1.0, 2.0]]])
    votes = topk_value(grad, 1, 1.0, 16)
    assert votes.vote_TBD.tolist() == [[[0, 0]], [[0, 0]], [[0, 0]], [[0, 16]]]
    assert votes.failed_TB.flatten().tolist() == [True, True, False, False]


def test_adversarial_neighbours_move_the_fixed_point_tally_by_the_sensitivity_and_no_more() -> None:
    mechanism = as_kind(FixedPointSum)
    event = mechanism.event(batch_size=3, dim=50)
    grad = torch.zeros(1, 3, 50)
    grad[..., :5] = 1.0
    one, other = (fixed_point(sign * grad, 5, 1.0, rng(), unit=UNIT).vote_TBD.double() for sign in (1, -1))
    assert float((one - other).norm()) == pytest.approx(event.sensitivity)


def test_every_variant_has_the_mu_of_topagg() -> None:
    plain = TOPAGG.event(3, 50)
    for kind in (NoisySum, FixedPointSum):
        event = as_kind(kind).event(3, 50)
        assert event.sensitivity / event.noise_stddev == pytest.approx(plain.sensitivity / plain.noise_stddev)


def test_the_fixed_point_noise_is_what_its_event_says() -> None:
    mechanism = as_kind(FixedPointSum)
    noisy = mechanism.noisy_tally(torch.zeros(100, 400, dtype=torch.int32)).double()
    claimed = mechanism.event(100, 400).noise_stddev
    assert claimed == UNIT * TOPAGG.noise_stddev
    assert float(noisy.std()) == pytest.approx(claimed, rel=0.02)


def test_thresholds_are_in_their_own_unit() -> None:
    mechanism = as_kind(FixedPointSum)
    cut = UNIT * 20  # half of 40 teachers
    assert mechanism.threshold(torch.tensor([[cut - 1, cut, -cut, 1 - cut]])).tolist() == [[0, 1, -1, 0]]
    shares = as_kind(NoisySum).threshold(torch.tensor([[40, -10]]))
    assert shares.tolist() == [[1.0, -0.25]]


def test_a_variant_releases_through_the_one_function_that_charges() -> None:
    for kind in (NoisySum, FixedPointSum):
        mechanism = as_kind(kind)
        event = mechanism.event(3, 50)
        authorisation = Authorisation(5.0, 1e-5, num_releases=1, planned=event)
        budget = Budget(Ledger.in_memory(), authorisation)
        tally = torch.zeros(3, 50, dtype=torch.int32)
        release = mechanism.release(tally, budget, {"step": 0})
        assert release.event == event
        assert np.isfinite(release.value.numpy()).all()
        assert replace(mechanism, noise=mechanism.noise) == mechanism, "steps replace the noise"


def test_a_tally_beyond_the_unit_is_refused() -> None:
    mechanism = as_kind(FixedPointSum)
    tally = torch.zeros(3, 50, dtype=torch.int32)
    tally[0, 0] = UNIT * 40 + 1
    with pytest.raises(ValueError, match="sensitivity"):
        mechanism.check_tally(tally)


def test_values_keep_their_proportions() -> None:
    grad = torch.tensor([[[0.9, -1.0, 0.25, 0.1]]])
    assert topk_value(grad, 3, 1.0, 16).vote_TBD.tolist() == [[[14, -16, 4, 0]]]
    assert topk_value(grad, 3, 0.5, 16).vote_TBD.tolist() == [[[16, -16, 8, 0]]], "clipped, then divided"


@pytest.mark.parametrize(
    ("variant", "mechanism", "compress"),
    [
        (Variant.TOPAGG, TopAgg, topk_sign),
        (Variant.NOISY_SUM, NoisySum, topk_sign),
        (Variant.SIGN, TopAgg, largest_signs),
        (Variant.FIXED_POINT, FixedPointSum, fixed_point),
    ],
)
def test_a_variant_takes_the_place_of_the_part_that_it_names(
    variant: Variant, mechanism: type[TopAgg], compress: object
) -> None:
    session = Session.begin(TINY.config(), load("shapes"), None)
    parts = adapt(session.parts, variant)
    session.close()
    assert type(parts.mechanism) is mechanism
    assert getattr(parts.teachers.compress, "func", parts.teachers.compress) is compress
