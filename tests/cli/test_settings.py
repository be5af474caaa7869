"""Recipe, then file, then options; what is not given changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from datalens import recipes
from datalens.cli.settings import SETTING_OF_OPTION, build_config
from datalens.errors import ConfigError
from datalens.training.config import Config


def written(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def test_a_recipe_alone_is_left_as_it_is() -> None:
    assert build_config("mnist-paper", None, {}) == recipes.mnist_paper()


@pytest.mark.parametrize(
    ("source", "recipe"),
    [
        ("mnist", "mnist-quick"),
        ("fashion-mnist", "fashion-quick"),
        ("shapes", "shapes-quick"),
        ("scans/", "quick"),
    ],
)
def test_the_quick_recipe_of_the_source_is_the_default(source: str, recipe: str) -> None:
    assert build_config(None, None, {}, source) == recipes.by_name(recipe)


def test_options_win_over_the_file_and_the_file_over_the_recipe(tmp_path: Path) -> None:
    file = written(tmp_path, "[privacy]\nepsilon = 3\ndelta = 1e-6\n[voting]\ntop_k = 77\n")
    base = recipes.mnist_quick(epsilon=5.0)
    config = build_config("mnist-quick", file, {"epsilon": 5.0, "top_k": None, "device": None})
    assert (config.privacy.epsilon, config.privacy.delta, config.voting.top_k) == (5.0, 1e-6, 77)
    assert config.student == base.student
    assert config.voting.num_teachers == base.voting.num_teachers


def test_a_recipe_that_depends_on_epsilon_gets_the_one_asked_for() -> None:
    assert build_config("mnist-paper", None, {"epsilon": 10.0}).voting == recipes.mnist_paper(10.0).voting


def test_the_file_may_name_the_recipe_and_the_option_wins(tmp_path: Path) -> None:
    file = written(tmp_path, 'recipe = "mnist-paper"\n')
    assert build_config(None, file, {}).recipe == "mnist-paper"
    assert build_config("shapes-quick", file, {}).recipe == "shapes-quick"
    own = written(tmp_path, 'recipe = "custom"\n[voting]\nnum_steps = 9\n')
    assert build_config(None, own, {}).voting.num_steps == 9


def test_every_option_reaches_its_setting() -> None:
    for option, (section, name) in SETTING_OF_OPTION.items():
        field = type(getattr(Config(), section)).model_fields[name]
        assert field is not None, option
    given = {"public_record_count": True, "insecure_seed": 0, "chunk_size": 3, "vote_threshold": 0.25}
    config = build_config("shapes-quick", None, given)
    assert config.privacy.record_count_is_public
    assert config.privacy.insecure_seed == 0
    assert config.performance.chunk_size == 3
    assert config.voting.vote_threshold == 0.25


def test_without_noise_the_recipes_noise_is_dropped() -> None:
    config = build_config("mnist-paper", None, {"noise": "none", "num_steps": 4})
    assert config.voting.noise_stddev is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[privacy]\nepsilonn = 1\n", "setting 'privacy.epsilonn' is unknown; known: epsilon"),
        ("[privcy]\nepsilon = 1\n", "'privcy' is unknown; known: recipe, privacy"),
        ("privacy = 3\n", "write a table [privacy]"),
        ("recipe__x = 3\n", "'recipe__x' is unknown"),
        ("recipe = 3\n", "must be a name in quotes"),
        ('recipe = "mine"\n', "recipe 'mine' is unknown; known: quick"),
        ('[privacy]\nepsilon = "1"\n', "privacy.epsilon = '1'"),
        ("[privacy]\nepsilon = nan\n", "epsilon = nan: must be above 0"),
        ("[privacy]\nepsilon = inf\n", "epsilon = inf: must be above 0"),
        ("[privacy]\nepsilon = true\n", "privacy.epsilon = True"),
        ("[privacy]\ndelta = nan\n", "privacy.delta = nan"),
        ("[privacy]\ndelta = 1\n", "privacy.delta"),
        ("[voting]\nnum_teachers = 2.5\n", "voting.num_teachers = 2.5"),
        ("[voting]\nnum_teachers = -3\n", "voting.num_teachers = -3"),
        ('[privacy]\nnoise = "laplace"\n', "known: rounded-gaussian"),
        ("[privacy\n", "cannot be read as TOML"),
        ("[privacy]\nepsilon = " + "9" * 5000, "cannot be read as TOML"),
        ("x = " + "[" * 5000, "is nested too deeply"),
        ("# " + "x" * 2**20, "has more than 1 MiB"),
    ],
)
def test_a_bad_file_is_named_with_its_setting(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_config("mnist-quick" if "recipe" not in text else None, written(tmp_path, text), {})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(ConfigError, match=str(path)):
            build_config(None, str(path), {})


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_an_epsilon_that_is_no_budget_names_the_smallest_that_works(epsilon: float) -> None:
    with pytest.raises(
        ConfigError, match=r"above 0 and finite; the smallest that works with these settings is 0\.0\d+"
    ):
        build_config("mnist-paper", None, {"epsilon": epsilon})


def test_a_nested_table_keeps_what_it_does_not_name(tmp_path: Path) -> None:
    """The recipe's jitter was lost where a file named another setting of the same last layer."""
    file = tmp_path / "config.toml"
    file.write_text("[student.finish]\ncontrast = 2.5\n")
    usual, made = (build_config(None, given, {}, "mnist") for given in (None, str(file)))
    assert made.student.finish.contrast == 2.5
    assert made.student.finish.jitter == usual.student.finish.jitter == 1.2
    assert made == usual.replace(student__finish=made.student.finish.model_dump())


@pytest.mark.parametrize("digits", ["1" + "0" * 400, str(2**1024 - 1)])
def test_a_whole_number_beyond_all_floats_is_refused(tmp_path: Path, digits: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[privacy]\nepsilon = " + digits + "\n")
    with pytest.raises(ConfigError, match=r"privacy\.epsilon"):
        build_config(None, str(file), {}, "shapes")
