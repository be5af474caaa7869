"""Figure 2: independent curves by the accountants, the data-dependent one from votes, and its best case."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from small_runs import small_config, small_data

from datalens.errors import ConfigError, NotPrivateError
from datalens.experiments.figure2 import (
    DEPENDENT,
    FAVOURABLE,
    PAPER,
    Figure2Settings,
    break_even_noise,
    favourable_tally,
    figure2,
)
from datalens.experiments.gradients import recorded_tallies
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.data_dependent import data_dependent_cost, running_costs
from datalens.privacy.events import GaussianEvent

QUIET = Figure2Settings("small", 100, 3, 5.0, 0.5, 2, 6)


def curve(result, start):
    return next(curve for curve in result.curves if curve.label.startswith(start))


def test_training_stops_where_the_papers_accounting_reaches_the_target():
    assert PAPER["mnist"].num_steps == 86
    for settings in (PAPER["mnist"], PAPER["celeba-hair"]):
        classic = curve(figure2(replace(settings, dim=800)), "data-independent, rdp-classic").y
        assert len(classic) == settings.num_steps
        more = settings.step_mu**2 * (settings.num_steps + 1)
        assert classic[-1] <= 1.0 < more / 2 + math.sqrt(2 * more * math.log(1e5))


def test_independent_curves_are_those_of_the_accountants():
    result = figure2(PAPER["mnist"])
    step = GaussianEvent(sensitivity=2 * math.sqrt(15 * 200), noise_stddev=5000.0, coordinates=15 * 784)
    for kind in AccountantKind:
        found = next(c for c in result.curves if c.label.split(" (")[0] == f"data-independent, {kind}")
        assert found.y[41] == pytest.approx(Accountant(kind).epsilon([step] * 42, 1e-5), rel=1e-6)


@pytest.mark.parametrize("name", list(PAPER))
def test_at_the_papers_settings_even_unanimous_teachers_gain_nothing(name):
    result = figure2(replace(PAPER[name], dim=min(PAPER[name].dim, 1000)))
    assert result.beaten == ()
    assert "never beats" in result.verdict
    assert curve(result, FAVOURABLE).y[-1] > 0.7


def test_without_votes_it_says_so_and_still_shows_the_most_favourable_case():
    result = figure2(replace(PAPER["celeba-hair"], dim=1000))
    assert result.note == "no votes given"
    assert result.not_publishable == ()
    assert [c.label for c in result.curves][-1] == FAVOURABLE


def test_with_little_noise_it_does_gain_so_the_curve_can_differ():
    result = figure2(QUIET)
    assert result.beaten == (FAVOURABLE,)
    assert curve(result, FAVOURABLE).y[-1] < 0.5 * curve(result, "data-independent, exact").y[-1]


def test_break_even_noise_parts_gain_from_none():
    sigma = break_even_noise(PAPER["mnist"])
    assert 0.05 < sigma / 4000 < 0.1 < 5000 / 4000
    below, above = (replace(PAPER["mnist"], noise_stddev=sigma * factor) for factor in (0.9, 1.3))
    assert figure2(replace(below, target_epsilon=3.0)).beaten == (FAVOURABLE,)
    assert figure2(replace(above, target_epsilon=3.0)).beaten == ()
    assert break_even_noise(replace(PAPER["mnist"], vote_threshold=1.0)) == 0.0


def test_votes_of_a_run_on_published_images_make_a_curve_of_their_own():
    images = replace(small_data(), public=True)
    config = small_config(privacy__insecure_seed=1)
    settings = Figure2Settings("small", 10, 5, 20.0, 0.6, 3, 64, steps_per_epoch=2)
    result = figure2(settings, recorded_tallies(config, images), images_are_public=True)
    assert result.not_publishable == (DEPENDENT,)
    assert result.note == ""
    assert curve(result, DEPENDENT).x[:3] == (0.5, 1.0, 1.5)
    assert {len(each.y) for each in result.curves} == {8}


def test_images_are_charged_one_by_one_and_jointly_under_a_cap():
    tally = favourable_tally(QUIET)
    result = figure2(QUIET, [tally] * 3, images_are_public=True)
    log_q = dict(result.log_miss)[DEPENDENT]
    expected = data_dependent_cost([(2 * math.sqrt(3) / 5, log_q)] * 6, 1e-5)
    assert curve(result, DEPENDENT).y[-1] == pytest.approx(expected.epsilon)
    capped = replace(QUIET, images_per_teacher=1)
    assert favourable_tally(capped).sum() == 300
    joint = dict(figure2(capped, [tally], images_are_public=True).log_miss)[DEPENDENT]
    assert joint == pytest.approx(math.log(2) + log_q, rel=1e-3)


def test_running_costs_end_at_the_whole_cost():
    steps = [(0.5, -30.0), (0.3, -1e-9), (0.4, -200.0)]
    assert list(running_costs(steps, 1e-5))[-1] == data_dependent_cost(steps, 1e-5)
    assert len(list(running_costs(steps, 1e-5))) == 4


def test_votes_of_peoples_own_images_are_refused():
    with pytest.raises(NotPrivateError, match="published images only"):
        figure2(QUIET, [favourable_tally(QUIET)])


def test_what_does_not_fit_is_refused():
    for call in (
        lambda: figure2(QUIET, [np.zeros((1, 6), int)], images_are_public=True),
        lambda: replace(QUIET, top_k=7),
        lambda: replace(QUIET, noise_stddev=0.0),
        lambda: replace(QUIET, batch_size=0),
    ):
        with pytest.raises(ConfigError):
            call()
