"""Moments: what one record moves, that only releases are learnt from, and that the law is the records'."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from baseline_scene import SpyNoise, budget_of, context_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_records import CLASSES, DELTA, NAMES, SHAPE, SIZE, noisy_images, only

from datalens.baselines.moments import MEANS, PRODUCTS, STATES, Moments, MomentsLearner, MomentsSettings
from datalens.data.images import LabelledImages
from datalens.data.shapes import draw_shapes
from datalens.errors import BudgetError, CheckpointError, ConfigError, RunError
from datalens.evaluation import evaluate_utility
from datalens.methods.method import PublicSize
from datalens.models.frequencies import Frequencies
from datalens.moments.law import centres, fit_law, products, symmetric
from datalens.noise import make_noise
from datalens.privacy.accountant import Accountant
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import GaussianEvent, NoiseKind
from datalens.privacy.ledger import Ledger
from datalens.student.sampling import sample_images
from datalens.training.sections import Privacy

SMALL = MomentsSettings(low_frequencies=4, rank=6)


def method_of(
    privacy: Privacy | None = None, size: PublicSize = SIZE, chosen: MomentsSettings = SMALL
) -> Moments:
    return chosen.plan(privacy or Privacy(), size)


def learner_of(data: LabelledImages, steps: int = 0, **parts: object) -> MomentsLearner:
    learner = method_of().begin(context_of(data, SIZE, **parts))
    for step in range(steps):
        learner.step(step)
    return learner


def sums_of(data: LabelledImages, what: str, released: dict[str, torch.Tensor]) -> torch.Tensor:
    """What is given to a release, after a public past."""
    learner = learner_of(data)
    learner.load_state_dict(released)
    return learner._sums(what)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(2, 150), what=st.sampled_from(list(STATES)))
def test_a_neighbour_moves_a_table_by_no_more_than_planned_and_nobody_else(
    seed: int, count: int, what: str
) -> None:
    data = noisy_images(seed, count)
    past = learner_of(noisy_images(seed + 1, 50), 1, noise=SpyNoise(3)).state_dict()
    planned = next(release for release in method_of().planned() if release.what == what)
    assert isinstance(planned.event, GaussianEvent) and isinstance(planned.replace_one, GaussianEvent)
    gone = int(np.random.default_rng(seed).integers(count))
    swapped = dataclasses.replace(
        data, images=data.images.copy(), labels=np.where(np.arange(count) == gone, 0, data.labels)
    )
    swapped.images[gone] = 255 - data.images[gone]
    whole = sums_of(data, what, past)
    removed = whole - sums_of(only(data, np.delete(np.arange(count), gone)), what, past)
    assert torch.equal(removed, sums_of(only(data, np.array([gone])), what, past))
    assert int(removed.square().sum()) <= planned.event.sensitivity**2
    assert int((whole - sums_of(swapped, what, past)).square().sum()) <= planned.replace_one.sensitivity**2


@pytest.mark.parametrize("what", STATES)
def test_some_record_moves_nearly_as_far_as_charged(what: str) -> None:
    white = LabelledImages(
        np.full((1, *SHAPE), 255, np.uint8), np.zeros(1, np.int64), NAMES, "one", public=True
    )
    past = {STATES[MEANS]: torch.zeros(CLASSES, method_of().grid(MEANS).dim, dtype=torch.float64)}
    planned = next(release for release in method_of().planned() if release.what == what)
    assert isinstance(planned.event, GaussianEvent)
    assert float(sums_of(white, what, past).double().norm()) > 0.97 * planned.event.sensitivity


def test_the_generator_hears_of_records_through_the_two_tables_only() -> None:
    budget, noise = budget_of(), SpyNoise(5)
    learner = learner_of(draw_shapes(60, image_size=8), 2, budget=budget, noise=noise)
    assert budget.num_releases == 2
    assert [shape for shape, _ in noise.calls] == [tuple(t.shape) for t in learner.state_dict().values()]
    other = learner_of(noisy_images(1, 7))
    other.load_state_dict(learner.state_dict())
    one, two = learner.generator().state_dict(), other.generator().state_dict()
    assert all(torch.equal(value, two[name]) for name, value in one.items())


@pytest.mark.parametrize("what", STATES)
def test_records_lie_in_memory_as_they_like(what: str) -> None:
    """Backwards, or where nobody may write."""
    data, past = noisy_images(4, 70), learner_of(noisy_images(5, 9), 1, noise=SpyNoise(3)).state_dict()
    there = dataclasses.replace(data, images=data.images[::-1].copy()[::-1])
    there.images.flags.writeable = False
    assert there.images.strides[0] < 0
    assert torch.equal(sums_of(there, what, past), sums_of(data, what, past))


def test_residuals_are_from_the_released_means_and_not_from_the_records() -> None:
    """A known mistake: then one record would move the residuals of all others."""
    data = draw_shapes(60, image_size=8)
    past = learner_of(noisy_images(2, 40), 1, noise=SpyNoise(9)).state_dict()
    half = np.arange(30)
    parts = [sums_of(only(data, part), PRODUCTS, past) for part in (half, half + 30)]
    assert torch.equal(sums_of(data, PRODUCTS, past), parts[0] + parts[1])


# Plan


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 10.0])
def test_the_plan_costs_epsilon_and_hardly_less_and_is_split_as_asked(epsilon: float) -> None:
    method = method_of(Privacy(epsilon=epsilon))
    events = [release.event for release in method.planned()]
    assert 0.99 * epsilon < Accountant(Privacy().accountant).epsilon(events, DELTA) <= epsilon
    means, moments = (event.mu**2 for event in events if isinstance(event, GaussianEvent))
    assert means / (means + moments) == pytest.approx(method.settings.mean_share, rel=1e-3)


def test_a_group_moves_both_tables_further() -> None:
    for alone, many in zip(method_of().planned(), method_of(Privacy(group_size=3)).planned(), strict=True):
        assert isinstance(alone.event, GaussianEvent) and isinstance(many.event, GaussianEvent)
        assert many.event.sensitivity == 3 * alone.event.sensitivity
        assert many.event.mu == pytest.approx(alone.event.mu, rel=1e-2)


def test_colour_images_measure_as_many_products_as_grey_ones() -> None:
    grey, colour = (MomentsSettings().basis(PublicSize(9, shape, 2)) for shape in ((1, 28, 28), (3, 64, 64)))
    assert (grey.num_low_coordinates, colour.num_low_coordinates) == (196, 192)
    assert MomentsSettings(low_frequencies=50).basis(SIZE).num_low_coordinates == 64


def test_too_little_epsilon_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"epsilon = 0.001: .* use a larger epsilon"):
        MomentsSettings().plan(Privacy(epsilon=1e-3), PublicSize(60_000, (1, 28, 28), 10))


def test_data_that_come_in_groups_are_refused() -> None:
    with pytest.raises(ConfigError, match="group"):
        learner_of(dataclasses.replace(draw_shapes(8, image_size=8), group_ids=np.arange(8)))


# Checkpoints


def test_a_resumed_run_releases_nothing_again_and_ends_alike() -> None:
    data = draw_shapes(60, image_size=8)
    whole = learner_of(data, 2, noise=SpyNoise(5))
    second = learner_of(data, noise=SpyNoise(5), budget=(budget := budget_of()))
    second.load_state_dict(learner_of(data, 1, noise=SpyNoise(5)).state_dict())
    second.step(1)
    assert budget.num_releases == 1
    for name, value in whole.generator().state_dict().items():
        assert torch.equal(value, second.generator().state_dict()[name])


def test_a_release_that_does_not_fit_leaves_nothing() -> None:
    noise = SpyNoise()
    poor = Budget(Ledger.in_memory(), Authorisation(1e-3, DELTA))
    learner = learner_of(draw_shapes(8, image_size=8), noise=noise, budget=poor)
    with pytest.raises(BudgetError):
        learner.step(0)
    assert noise.calls == [] and not learner.state_dict()


def test_a_state_of_other_settings_is_refused() -> None:
    state = learner_of(draw_shapes(8, image_size=8), 2).state_dict()
    other = method_of(chosen=MomentsSettings(low_frequencies=3)).begin(
        context_of(draw_shapes(8, image_size=8), SIZE)
    )
    with pytest.raises(CheckpointError, match="use the settings it was made with"):
        other.load_state_dict(state)


# The law


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), low=st.integers(1, 12))
def test_products_are_the_matrix_and_as_long(seed: int, low: int) -> None:
    rows_RL = torch.from_numpy(np.random.default_rng(seed).normal(size=(3, low)))
    found_RP = products(rows_RL)
    for row_L, found_P in zip(rows_RL, found_RP, strict=True):
        expected_LL = np.outer(row_L.numpy(), row_L.numpy())
        np.testing.assert_allclose(symmetric(found_P, low).numpy(), expected_LL, atol=1e-12)
        assert float(found_P.norm()) == pytest.approx(float(row_L.square().sum()))


def spiked(variances: list[float], noise_stddev: float, records: int = 1000) -> torch.Tensor:
    """Standard deviations along the directions that :func:`fit_law` finds in a covariance with such noise."""
    basis = Frequencies(SHAPE, 8)
    low = basis.num_low_coordinates
    truth_LL = torch.diag(torch.tensor(variances + [0.0] * (low - len(variances)), dtype=torch.float64))
    product_P = truth_LL[*torch.triu_indices(low, low)]
    rng = np.random.default_rng(7)
    noise_P = torch.from_numpy(rng.normal(size=len(product_P))) * noise_stddev
    energies_G = torch.zeros(basis.num_bins, dtype=torch.float64)
    sums_1M = (torch.cat([product_P * records + noise_P, energies_G]))[None]
    centre = centres(torch.tensor([[0.0] * basis.dim + [float(records)]], dtype=torch.float64), 1.0, 0.0)
    law = fit_law(centre, sums_1M, basis, 10, 1.0, noise_stddev)
    return law.factor_YKL[0].norm(dim=1)


def test_variances_come_back_from_under_noise() -> None:
    edge = math.sqrt(2 * 64) * 30 / 1000
    found_K = spiked([4.0, 2.0, 1.0], 30.0).square()
    assert torch.allclose(found_K[:3], torch.tensor([4.0, 2.0, 1.0]).double(), atol=0.35 * edge)
    assert float(found_K[3:].max()) < edge


def test_noise_alone_gives_hardly_any_direction() -> None:
    assert int((spiked([], 30.0) > 0).sum()) <= 1
    assert torch.equal(spiked([], 0.0), torch.zeros(10).double())


def quiet_learner(data: LabelledImages, steps: int, chosen: MomentsSettings) -> MomentsLearner:
    """Both releases, or the first, without noise."""
    method = chosen.plan(Privacy(noise=NoiseKind.NONE), SIZE)
    free = Budget(Ledger.in_memory(), Authorisation.not_private(DELTA))
    learner = method.begin(context_of(data, SIZE, noise=make_noise(NoiseKind.NONE), budget=free))
    for step in range(steps):
        learner.step(step)
    return learner


def test_images_longer_than_the_cut_are_counted_all_the_same() -> None:
    """Cut as a whole with the constant beside it, they would count for less."""
    data = noisy_images(4, 80)
    found = quiet_learner(data, 1, MomentsSettings(mean_length=0.1))._centres()
    np.testing.assert_allclose(found.count_Y.numpy(), np.bincount(data.labels, minlength=CLASSES), rtol=0.02)


def test_each_part_of_a_record_is_cut_by_itself() -> None:
    """Cut together, a long product would take the energies, or the count, with it."""
    learner, pixel = learner_of(noisy_images(5, 4)), math.sqrt(64)
    wild_RD = torch.from_numpy(np.random.default_rng(5).normal(size=(3, 64))) * 50
    found_RM = learner._method.measures.residual_vectors(wild_RD)
    num_bins = Frequencies(SHAPE, 4).num_bins
    product_R = found_RM[:, :-num_bins].norm(dim=1)
    energy_R = found_RM[:, -num_bins:].sum(1) / SMALL.energy_weight
    assert torch.allclose(product_R, torch.tensor((SMALL.product_length * pixel) ** 2).double())
    assert torch.allclose(energy_R, torch.tensor((SMALL.energy_length * pixel) ** 2).double())


@pytest.mark.parametrize("shortened", [0.25, 1.0])
def test_directions_and_grain_hold_all_the_energy(shortened: float) -> None:
    """Directions that were measured short are stretched; what they leave of a bin is grain."""
    basis = Frequencies(SHAPE, 4)
    residual_RD = torch.from_numpy(np.random.default_rng(5).normal(size=(200, 64)))
    low_RL, energy_D = residual_RD[:, basis.low_L], residual_RD.square().mean(0)
    energy_G = torch.zeros(basis.num_bins).double().index_add(0, basis.bin_D, energy_D)
    sums_1M = 200 * torch.cat([products(low_RL * shortened).mean(0), 0.3 * energy_G])[None]
    centre = centres(torch.tensor([[0.0] * 64 + [200.0]]).double(), 1.0, 0.0)
    law = fit_law(centre, sums_1M, basis, 16, 0.3, 0.0)
    assert float(law.factor_YKL[0].square().sum()) == pytest.approx(float(energy_D[basis.low_L].sum()))
    left_D = law.grain_YG[0][basis.bin_D].square()
    assert float(left_D.sum()) == pytest.approx(float(energy_D[basis.bin_D % 2 == 0].sum()), rel=0.02)


def test_means_that_are_noise_alone_are_drawn_to_nothing_and_others_stay() -> None:
    rng = np.random.default_rng(6)
    sums_1S = torch.from_numpy(rng.normal(size=(1, 10_001)) * 5.0)
    sums_1S[0, 0], sums_1S[0, -1] = 4000.0, 1000.0
    found = centres(sums_1S, 1.0, 5.0).mean_YD[0]
    assert float(found[0]) == pytest.approx(4.0, rel=1e-3)
    noise = float(sums_1S[0, 1:-1].square().mean()) / 1000**2
    assert float(found[1:].square().mean()) < 0.3 * noise


def test_without_noise_means_and_counts_are_the_records() -> None:
    data = noisy_images(3, 80)
    learner = quiet_learner(data, 1, MomentsSettings(mean_length=2.0))
    found = learner._centres()
    np.testing.assert_allclose(found.count_Y.numpy(), np.bincount(data.labels, minlength=CLASSES), rtol=0.02)
    shown = Frequencies(SHAPE, 4).to_images(found.mean_YD).numpy()
    for label in range(CLASSES):
        expected = data.images[data.labels == label].mean(0) / 255
        np.testing.assert_allclose(shown[label], expected, atol=0.03)


def test_it_learns_drawn_shapes_without_noise() -> None:
    size = PublicSize(1000, SHAPE, CLASSES)
    method = MomentsSettings(low_frequencies=8).plan(Privacy(noise=NoiseKind.NONE), size)
    free = Budget(Ledger.in_memory(), Authorisation.not_private(DELTA))
    data = draw_shapes(1000, image_size=8)
    learner = method.begin(context_of(data, size, noise=make_noise(NoiseKind.NONE), budget=free))
    for step in range(2):
        learner.step(step)
    images, labels = sample_images(learner.generator(), method.latent, 600, seed=1)
    test = draw_shapes(400, image_size=8, seed=9)
    result = evaluate_utility(
        images, labels, test.images, test.labels, num_classes=CLASSES, classifier="mlp", batch_size=32
    )
    assert result.last_accuracy > 0.6  # a quarter by chance


def test_more_noise_than_signal_is_a_line_for_the_owner_from_public_numbers() -> None:
    def note(
        records: int, epsilon: float = 1.0, noise: str = "rounded-gaussian", classes: int = 10
    ) -> str | None:
        size = PublicSize(records, (1, 28, 28), classes)
        return MomentsSettings().note(Privacy(epsilon=epsilon, noise=NoiseKind(noise)), size)

    line = note(300)
    assert line is not None and "use 2760 records or more" in line
    sigma = MomentsSettings().plan(Privacy(epsilon=1.0), PublicSize(300, (1, 28, 28), 10)).real_stddev(MEANS)
    needed = math.ceil(10 * sigma / 0.45)
    assert f"use {needed} records" in line
    assert note(needed - 1) is not None and note(needed) is None
    assert note(300, epsilon=30.0) is None and note(needed - 1, classes=5) is None
    assert note(300, noise="none") is None


def test_lost_means_end_a_run_before_anything_more_is_charged() -> None:
    budget = budget_of()
    learner = method_of().begin(context_of(noisy_images(0, 20), SIZE, budget=budget))
    with pytest.raises(RunError, match="class means were charged and lost"):
        learner.step(1)
    assert not budget.ledger.events()
