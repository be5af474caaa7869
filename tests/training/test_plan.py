"""One check before every run: hopeless plans and useless budgets are refused, the remedy works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from small_runs import small_config, small_data

from datalens import DataLens, recipes
from datalens.errors import BudgetError, ConfigError, PrivacyWarning
from datalens.noise.table import MAX_STDDEV
from datalens.privacy.wording import rounded_up
from datalens.training.config import Config
from datalens.training.plan import check_plan, least_epsilon, plan_signal
from datalens.training.pricing import least_noise

SHAPE = (1, 8, 8)


def check(config: Config, records: int = 60) -> tuple[Any, tuple[str, ...]]:
    return check_plan(config, records, SHAPE)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"privacy__score_noise": 20.0},
        {"privacy__noise": "discrete-gaussian"},
        {"privacy__accountant": "rdp-classic"},
        {"privacy__group_size": 2},
        {"voting__images_per_teacher": 1},
        {"voting__vote_threshold": 2.5},
        {"voting__noise_stddev": 60.0},
        {"voting__noise_stddev": 60.0, "voting__num_steps": None},
    ],
)
def test_the_smallest_epsilon_works_and_a_smaller_one_does_not(changes: dict[str, Any]) -> None:
    config = small_config(**changes)
    least = least_epsilon(config, 64)
    assert least is not None
    named = rounded_up(least)
    plan, _ = check(config.replace(privacy__epsilon=float(named)))
    assert not plan_signal(config, plan).is_hopeless
    assert plan.noise_stddev <= MAX_STDDEV
    for fraction in (0.95, 1e-3, 1e-9):
        with pytest.raises((ConfigError, BudgetError)) as caught:
            check(config.replace(privacy__epsilon=least * fraction))
        text = str(caught.value)
        assert "\n" not in text
        assert "rescale" not in text
        if config.privacy.score_noise is None and config.voting.noise_stddev is None:
            assert f"use epsilon {named} or more" in text


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_every_recipe_names_the_smallest(name: str) -> None:
    config = recipes.by_name(name, epsilon=1e-4)
    grey = (1, 16, 16) if "shapes" in name else (1, 28, 28)
    shape = (3, 64, 64) if any(set_ in name for set_ in ("colour", "celeba", "places", "emoji")) else grey
    with pytest.raises((ConfigError, BudgetError), match=r"use epsilon \d\.\d+ or more") as caught:
        check_plan(config, 60000, shape)
    least = least_epsilon(config)
    assert least is not None
    found = re.search(r"use epsilon (\S+) or more", str(caught.value))
    assert found is not None
    assert float(found[1]) == float(rounded_up(least))


def test_the_sampler_has_only_so_much_noise() -> None:
    config = small_config(voting__num_teachers=10**6, voting__num_steps=1)
    least = least_epsilon(config, 64)
    assert least is not None
    assert 0.99 * MAX_STDDEV / 1.01 < least_noise(config.replace(privacy__epsilon=least), 64) <= MAX_STDDEV
    with pytest.raises(ConfigError, match=f"use epsilon {rounded_up(least)} or more"):
        check(config.replace(privacy__epsilon=0.9 * least), records=10**6)


def test_no_epsilon_helps_against_noise_that_was_asked_for() -> None:
    config = small_config(voting__noise_stddev=5000.0)
    assert least_epsilon(config) is None
    with pytest.raises(ConfigError, match=r"noise_stddev = 5000 .* leaves no signal"):
        check(config)


def test_a_large_epsilon_makes_a_plan_too() -> None:
    plan, _ = check(small_config(privacy__epsilon=1e5))
    assert 0.25 <= plan.noise_stddev < 4  # the sampler's slack, not epsilon, asks for the rest


def test_without_noise_there_is_nothing_to_pay() -> None:
    config = small_config(privacy__noise="none")
    assert least_epsilon(config) is None
    assert check(config)[1] == ()


def test_fit_refuses_a_hopeless_plan_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="leaves no signal"):
        DataLens(small_config(privacy__epsilon=0.01)).fit(small_data(), out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_fit_warns_of_a_delta_too_large() -> None:
    config = small_config(privacy__delta=0.1, voting__num_steps=1)
    assert check(config)[1][0].startswith("delta=0.1 is not below 1/num_records")
    with pytest.warns(PrivacyWarning, match=r"delta=0\.1 is not below"):
        DataLens(config).fit(small_data())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"privacy__delta": 1e-300}, "delta = 1e-300: .*use a larger delta"),
        ({"privacy__group_size": 10**12}, "a smaller top_k, group_size or batch"),
        ({"voting__num_steps": 10**12}, "or fewer steps"),
        ({"voting__noise_stddev": 0.25, "voting__num_steps": None, "voting__top_k": 60}, "use more noise"),
        ({"voting__noise_stddev": 20.0, "privacy__delta": 1e-36}, "has no finite cost"),
        ({"voting__top_k": 10**12}, "an image has 64 coordinates; choose at most 64"),
    ],
)
def test_a_plan_without_a_finite_cost_is_refused_in_plain_words(
    changes: dict[str, object], words: str
) -> None:
    with pytest.raises((ConfigError, BudgetError), match=words) as caught:
        check(small_config(**changes))
    assert re.search(r"\binf\b", str(caught.value)) is None
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "privacy__num_records",
        "voting__num_teachers",
        "voting__shard_size",
        "voting__batch_size",
        "student__latent_dim",
        "student__hidden_units",
        "student__channels",
    ],
)
def test_an_absurd_number_is_a_mistake_in_one_line_and_no_lack_of_memory(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name.split('__')[1]} = {10**12}: .* less than or equal to"):
        small_config(**{name: 10**12})
