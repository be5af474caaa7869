"""D2P-Fed and FetchSGD: what they charge, what one teacher can move, and the known mistakes about them."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.compression.count_sketch import count_sketch, keep_top
from datalens.compression.klevel import stochastic_levels
from datalens.compression.rotation import padded_dim, rotate_back
from datalens.errors import BudgetError, ConfigError
from datalens.mechanisms.d2p_fed import D2PFed
from datalens.mechanisms.fetchsgd import PublishedFetchSGD, SketchedSum
from datalens.noise import SeededEntropy, make_noise
from datalens.noise.rounded_gaussian import RoundedGaussian
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind
from datalens.privacy.ledger import Ledger
from datalens.privacy.sensitivity import d2p_fed_sensitivity, sketch_sensitivity, topagg_sensitivity

ROOM = 1 + 1e-12


def _budget(epsilon: float = 1.0) -> Budget:
    return Budget(Ledger.in_memory(), Authorisation(epsilon, 1e-5))


def _noise(key: bytes = b"of a test") -> RoundedGaussian:
    return RoundedGaussian(SeededEntropy(key))


def _d2p(levels: int = 4, dim: int = 6, stddev: float = 300.0, beta: float = 0.0, **other: int) -> D2PFed:
    return D2PFed(10, levels, dim, stddev, beta, _noise(), **other)


def _sketched(top_k: int = 4, rows: int = 3, buckets: int = 5, stddev: float = 200.0) -> SketchedSum:
    return SketchedSum(10, top_k, stddev, 0.0, _noise(), rows=rows, buckets=buckets)


def _sparse_votes(rng: np.random.Generator, images: int, dim: int, top_k: int) -> np.ndarray:
    votes = np.zeros((images, dim), np.int64)
    for row in votes:
        row[rng.choice(dim, top_k, replace=False)] = rng.choice([-1, 1], top_k)
    return votes


def _moved(mechanism: SketchedSum, before: np.ndarray, after: np.ndarray) -> float:
    one, two = (mechanism.summed(torch.from_numpy(votes)) for votes in (before, after))
    return float((one - two).double().norm())


# -- D2P-Fed ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("levels", "dim", "images"), [(2, 4, 1), (8, 784, 3), (16, 5, 2)])
def test_d2p_opposite_teachers_reach_the_sensitivity_charged(levels: int, dim: int, images: int) -> None:
    width = padded_dim(dim)
    spike = torch.zeros(1, images, dim)
    spike[..., 0] = 1.0
    rng = torch.Generator()
    one, two = (stochastic_levels(g, levels, 1e-5, rng).vote_TBD.double() for g in (spike, -spike))
    claimed = _d2p(levels, dim, 4000.0).event(images, dim).sensitivity
    assert claimed == d2p_fed_sensitivity(levels, width, images)
    assert float((one - two).norm()) == pytest.approx(claimed)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), levels=st.integers(2, 9), dim=st.integers(1, 20))
def test_d2p_no_gradients_pass_the_sensitivity(seed: int, levels: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    scales = rng.choice([1e-44, 1e-7, 1e-5, 1.0, 1e38, math.nan, math.inf], (2, 1, 2, dim))
    with np.errstate(over="ignore"):  # an infinity is wanted here
        grads = torch.from_numpy((rng.normal(size=scales.shape) * scales).astype(np.float32))
    one, two = (stochastic_levels(g, levels, 1e-5, torch.Generator()).vote_TBD.double() for g in grads)
    assert float((one - two).norm()) <= d2p_fed_sensitivity(levels, padded_dim(dim), 2) * ROOM


def test_r_d2p_padded_coordinates_are_charged_and_noised() -> None:
    """Known mistake: a Hadamard rotation pads 784 to 1024, and the 240 others are votes that nobody counts."""
    event = _d2p(8, 784, 4000.0).event(15, 784)
    assert event.coordinates == 15 * 1024
    assert event.sensitivity == 2 * 7 * math.sqrt(1024 * 15)
    assert event.sensitivity > 2 * 7 * math.sqrt(784 * 15)
    votes = stochastic_levels(torch.ones(1, 1, 784), 8, 1e-5, torch.Generator()).vote_TBD
    assert int((votes != 0).sum()) == 1024


def test_r_d2p_the_threshold_looks_at_pixels_not_at_rotated_coordinates() -> None:
    """Known mistake: Algorithm 6 compares rotated coordinates with beta N, and moves the image by what it finds."""
    grad = torch.zeros(10, 1, 6)
    grad[..., 2] = 1e-5
    tally = stochastic_levels(grad, 4, 1e-5 / math.sqrt(8), torch.Generator()).vote_TBD.sum(0)
    mechanism = D2PFed(10, 4, 6, 0.25, 0.7, _noise())
    assert mechanism.direction_of(tally, 6).tolist() == [[0, 0, 1, 0, 0, 0]]
    assert mechanism.threshold(tally).abs().sum() == 8


def test_d2p_the_threshold_counts_votes_not_the_quantisers_units() -> None:
    """All teachers at the highest level are one vote each on a rotated coordinate: k - 1 units to a vote."""
    tally = torch.full((1, 1), 7 * 3)  # 7 of 10 teachers at level 3 of 4
    at = [D2PFed(10, 4, 1, 0.25, beta, _noise()).direction_of(tally, 1).abs().item() for beta in (0.7, 0.71)]
    assert at == [1, 0]


def test_d2p_release_is_charged_then_rotated_back_and_cut() -> None:
    mechanism, budget = _d2p(beta=0.5), _budget()
    tally = torch.randint(-30, 31, (2, 8), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
    release = mechanism.release(tally, budget, {"step": 0})
    assert budget.ledger.events() == (mechanism.event(2, 6),)
    noisy = tally + torch.from_numpy(_noise().sample((2, 8), 300.0))
    back = rotate_back(noisy.double(), 6) / 3
    assert torch.equal(release.value, (back >= 5).to(torch.int8) - (back <= -5).to(torch.int8))
    assert release.value.shape == (2, 6)


@pytest.mark.parametrize("tally", [torch.full((1, 8), 31), torch.zeros(1, 6, dtype=torch.int64)])
def test_d2p_sums_of_invalid_votes_are_not_released(tally: torch.Tensor) -> None:
    budget = _budget()
    with pytest.raises(ValueError, match="tally"):
        _d2p().release(tally, budget, {})
    assert not budget.ledger.events()


# -- the sketch ---------------------------------------------------------------------------------------------------


def test_the_sketch_of_the_paper_costs_more_than_three_times_topagg() -> None:
    """784 coordinates, k 200, 5 rows of 500: about 100 where TopAgg has 28; the bound differs a little by hashes."""
    claimed = SketchedSum(10, 200, 400.0, 0.0, _noise()).event(1, 784).sensitivity
    assert 95 < claimed < 110
    assert topagg_sensitivity(200, 1) < 29
    of_others = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        hashes = rng.integers(0, 500, (5, 784)), 2 * rng.integers(0, 2, (5, 784)) - 1
        of_others.append(sketch_sensitivity(*hashes, 500, 200, 1))
    assert all(95 < value < 110 for value in of_others)


def test_r_fetchsgd_collisions_add_so_two_root_k_rows_is_too_little() -> None:
    """Known mistake: 2 sqrt(k rows), as if no two votes met in a bucket."""
    mechanism = _sketched(top_k=4, rows=3, buckets=2)
    worst = _worst_by_search(mechanism, 8)
    assert worst > 2 * math.sqrt(4 * 3)
    assert worst <= mechanism.event(1, 8).sensitivity * ROOM


@pytest.mark.parametrize(
    ("rows", "buckets", "top_k"), [(1, 1, 2), (1, 3, 3), (3, 2, 4), (3, 5, 4), (5, 40, 2)]
)
def test_sketch_no_votes_found_by_full_search_pass_the_sensitivity(
    rows: int, buckets: int, top_k: int
) -> None:
    mechanism = _sketched(top_k, rows, buckets)
    worst, claimed = _worst_by_search(mechanism, 8), mechanism.event(1, 8).sensitivity
    assert worst <= claimed * ROOM
    assert worst > claimed / 2  # the bound is not idle either


def test_sketch_no_votes_found_by_climbing_pass_the_sensitivity() -> None:
    """At the paper's size: from the best votes along the leading singular vector, improved one flip at a time."""
    dim, top_k = 784, 200
    mechanism = SketchedSum(10, top_k, 400.0, 0.0, _noise())
    table = mechanism.summed(torch.eye(dim, dtype=torch.int64)).reshape(dim, -1).double().numpy()
    leading = np.linalg.eigh(table @ table.T)[1][:, -1]
    votes = np.zeros(dim)
    votes[np.argsort(-np.abs(leading))[:top_k]] = 1
    votes *= np.sign(leading)
    for _ in range(20):
        pull = table @ (table.T @ votes)
        votes = np.zeros(dim)
        kept = np.argsort(-np.abs(pull))[:top_k]
        votes[kept] = np.sign(pull[kept])
    found = 2 * np.linalg.norm(votes @ table)
    claimed = mechanism.event(1, dim).sensitivity
    assert 2 * math.sqrt(5 * top_k) < found <= claimed
    opposite = _moved(mechanism, votes[None].astype(np.int64), -votes[None].astype(np.int64))
    assert opposite == pytest.approx(found)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.sampled_from([(6, 1, 1), (30, 3, 4), (30, 5, 60)]),
    images=st.integers(1, 3),
)
def test_sketch_no_neighbours_pass_the_sensitivity(
    seed: int, sizes: tuple[int, int, int], images: int
) -> None:
    dim, rows, buckets = sizes
    top_k = 1 + seed % dim
    mechanism, rng = _sketched(top_k, rows, buckets), np.random.default_rng(seed)
    before, after = (_sparse_votes(rng, images, dim, top_k) for _ in range(2))
    assert _moved(mechanism, before, after) <= mechanism.event(images, dim).sensitivity * ROOM


def test_the_bound_without_a_spectral_norm_is_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images too large for an eigenvalue are charged by a bound that is looser, never tighter."""
    rng = np.random.default_rng(0)
    hashes = rng.integers(0, 40, (3, 90)), 2 * rng.integers(0, 2, (3, 90)) - 1
    exact = sketch_sensitivity(*hashes, 40, 20, 1)
    monkeypatch.setattr("datalens.privacy.sensitivity._LARGEST_SIDE", 10)
    assert exact < sketch_sensitivity(*hashes, 40, 20, 1)


def test_sound_sketch_has_noise_on_every_bucket_and_reads_the_rest_from_it() -> None:
    mechanism, budget = _sketched(stddev=100.0), _budget()
    tally = torch.tensor([[10, -10, 0, 3, 0, 0, 0, 1], [0] * 8], dtype=torch.int32)
    release = mechanism.release(tally, budget, {"step": 0})
    assert budget.ledger.events() == (mechanism.event(2, 8),)
    assert release.event.coordinates == 2 * 3 * 5
    sketch = count_sketch(8, 3, 5)
    noisy = sketch.sketch(tally) + torch.from_numpy(_noise().sample((2, 3, 5), 100.0))
    assert torch.equal(release.value, keep_top(sketch.unsketch(noisy), 4).sign().to(torch.int8))
    assert (release.value != 0).sum(1).tolist() == [4, 4]


def test_sketch_takes_no_more_votes_than_teachers_can_cast() -> None:
    with pytest.raises(ValueError, match="tally"):
        _sketched().release(torch.full((1, 8), 9), _budget(), {})


# -- as published -------------------------------------------------------------------------------------------------


def test_r_fetchsgd_noise_after_top_k_of_the_unsketched_sum_is_not_bounded() -> None:
    """Known mistake (Algorithm 7, line 9): one teacher of a thousand decides which sums are shown at all.

    Half of the teachers vote for one coordinate and half for another. The last one decides between them, and the
    sum that noise is put on moves by hundreds of votes where 2 sqrt(k) = 2 is charged.
    """
    teachers, rest = 1001, 500
    mechanism = PublishedFetchSGD(teachers, 1, 20.0, 0.0, make_noise(NoiseKind.ROUNDED), rows=5, buckets=500)
    shown = []
    for own in ([1, 0], [0, 1]):
        tally = torch.tensor([[rest + own[0], rest + own[1], 0, 0]])
        shown.append(mechanism.summed(tally).double())
    moved = float((shown[0] - shown[1]).norm())
    assert mechanism.printed_event(1, 4).sensitivity == 2
    assert moved > 300 * mechanism.printed_event(1, 4).sensitivity
    sound = SketchedSum(teachers, 1, 20.0, 0.0, make_noise(NoiseKind.ROUNDED))
    one, two = (sound.summed(torch.tensor([[rest + a, rest + b, 0, 0]])) for a, b in ((1, 0), (0, 1)))
    assert float((one - two).double().norm()) <= sound.event(1, 4).sensitivity


def test_fetchsgd_as_published_costs_everything() -> None:
    mechanism = PublishedFetchSGD(10, 4, 50.0, 0.0, _noise())
    event = mechanism.event(2, 8)
    assert event.noise is NoiseKind.NONE
    assert event.mu == math.inf
    with pytest.raises(BudgetError):
        mechanism.release(torch.zeros(1, 8, dtype=torch.int32), _budget(1e6), {})
    budget = Budget(Ledger.in_memory(), Authorisation.not_private())
    mechanism.release(torch.zeros(1, 8, dtype=torch.int32), budget, {})
    assert budget.spent_epsilon() == math.inf


@pytest.mark.parametrize(
    "make",
    [
        lambda: _d2p(levels=1),
        lambda: _d2p(dim=0),
        lambda: _sketched(rows=0),
        lambda: _sketched(buckets=0),
        lambda: _sketched(stddev=0.0),
    ],
)
def test_settings_without_meaning_are_refused(make) -> None:
    with pytest.raises(ConfigError, match=r"levels is|dim is|rows is|buckets is|noise_stddev is"):
        make()


def _worst_by_search(mechanism: SketchedSum, dim: int) -> float:
    """The farthest that one teacher moves the table, over all its votes and all their opposites."""
    every = []
    for places in itertools.combinations(range(dim), mechanism.top_k):
        for signs in itertools.product([-1, 1], repeat=mechanism.top_k):
            votes = np.zeros(dim, np.int64)
            votes[list(places)] = signs
            every.append(votes)
    tables = mechanism.summed(torch.from_numpy(np.stack(every))).double().flatten(1)
    return 2 * float(tables.norm(dim=1).max())


@pytest.mark.parametrize("levels", [0, 1])
def test_one_level_says_nothing(levels: int) -> None:
    with pytest.raises(ConfigError, match=f"levels is {levels}"):
        D2PFed(10, levels, 16, 5.0, 0.1, make_noise(NoiseKind.ROUNDED))


def test_a_group_counts_fully_and_images_by_their_root() -> None:
    """Two images and three records are not three images and two records."""
    one = _sketched().event(1, 16).sensitivity
    many = dataclasses.replace(_sketched(), group_size=3).event(2, 16)
    assert many.sensitivity == pytest.approx(3 * math.sqrt(2) * one)
    assert many.coordinates == 2 * 3 * 5


def test_noise_in_whole_votes_of_a_teacher() -> None:
    assert D2PFed(10, 5, 16, 8.0, 0.1, _noise()).noise_in_votes == 2.0
