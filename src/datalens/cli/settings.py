"""One run's settings from a recipe, a TOML file and options: the later win, the absent change nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from datalens import recipes
from datalens.cli.known import CUSTOM
from datalens.cli.options import is_given
from datalens.errors import ConfigError
from datalens.privacy.events import NoiseKind
from datalens.privacy.wording import rounded_up
from datalens.training.config import Config, parse_config
from datalens.training.plan import least_epsilon
from datalens.training.sections import merged
from datalens.training.settings_file import read_toml

DEFAULT_RECIPE = "quick"
_NO_FLOAT = 10**308
"""Whole numbers of this size, which a file may hold, are no floats, or hardly any."""
RECIPE_OF_SOURCE = {
    "mnist": "mnist-quick",
    "fashion-mnist": "fashion-quick",
    "celeba-gender": "colour-quick",
    "celeba-hair": "colour-quick",
    "places365": "colour-quick",
    "emoji": "emoji-quick",
    "shapes": "shapes-quick",
}
SETTING_OF_OPTION = {
    "epsilon": ("privacy", "epsilon"),
    "delta": ("privacy", "delta"),
    "accountant": ("privacy", "accountant"),
    "noise": ("privacy", "noise"),
    "insecure_seed": ("privacy", "insecure_seed"),
    "group_size": ("privacy", "group_size"),
    "score_noise": ("privacy", "score_noise"),
    "num_records": ("privacy", "num_records"),
    "public_record_count": ("privacy", "record_count_is_public"),
    "as_published": ("privacy", "as_published"),
    "mechanism": ("voting", "mechanism"),
    "levels": ("voting", "levels"),
    "sketch_rows": ("voting", "sketch_rows"),
    "sketch_buckets": ("voting", "sketch_buckets"),
    "labels_are_public": ("privacy", "labels_are_public"),
    "warm_start": ("warm_start", "enabled"),
    "num_teachers": ("voting", "num_teachers"),
    "top_k": ("voting", "top_k"),
    "noise_stddev": ("voting", "noise_stddev"),
    "vote_threshold": ("voting", "vote_threshold"),
    "batch_size": ("voting", "batch_size"),
    "images_per_teacher": ("voting", "images_per_teacher"),
    "num_steps": ("voting", "num_steps"),
    "device": ("performance", "device"),
    "chunk_size": ("performance", "chunk_size"),
    "teacher_store": ("performance", "teacher_store"),
    "teacher_memory": ("performance", "teacher_memory"),
    "checkpoint_every": ("performance", "checkpoint_every"),
}


def build_config(
    recipe: str | None, config_file: str | None, options: dict[str, Any], source: str = ""
) -> Config:
    """Settings of a new run.

    Args:
        recipe: its name; None for the one that the file names, else the quick one that suits the source.
        config_file: a TOML file with a table a section, or None.
        options: option name -> value, None where it was not given; see SETTING_OF_OPTION.
        source: name or path of the data.

    Raises:
        ConfigError: one line that names the setting, its value, the rule and the remedy.
    """
    changes = {} if config_file is None else _file_changes(Path(config_file))
    usual = RECIPE_OF_SOURCE.get(source, DEFAULT_RECIPE)
    named = recipe if recipe is not None else changes.get("recipe", usual)
    changes.pop("recipe", None)
    for option, (section, name) in SETTING_OF_OPTION.items():
        if is_given(options.get(option)):
            changes.setdefault(section, {})[name] = options[option]
    base = _base(named, changes.get("privacy", {}).get("epsilon"))
    settings = merged(base.model_dump(), changes)
    _lift_recipe_limits(settings, changes)
    _check_epsilon(settings)
    return parse_config(settings)


def read_sections(path: Path, known: list[str]) -> dict[str, Any]:
    """What a config file says: a table a section, and where it is known the name of a recipe.

    Raises:
        ConfigError: a section that is not known, or is no table.
    """
    changes = read_toml(path)
    for section, values in changes.items():
        if section == "settings" and section not in known:
            raise ConfigError(
                f"--config {path}: a table [settings] is for --method; name the method, or write {', '.join(known)}"
            )
        if section not in known:
            raise ConfigError(f"--config {path}: {section!r} is unknown; known: {', '.join(known)}")
        if section == "recipe":
            if not isinstance(values, str):
                raise ConfigError(f"--config {path}: recipe is {values!r}, but must be a name in quotes")
        elif not isinstance(values, dict):
            raise ConfigError(f"--config {path}: {section} is {values!r:.60}; write a table [{section}]")
    return changes


def _file_changes(path: Path) -> dict[str, Any]:
    changes = read_sections(path, list(Config.model_fields))
    found = {name: dict(values) if isinstance(values, dict) else values for name, values in changes.items()}
    checked = {name: values for name, values in found.items() if name != "recipe"}
    privacy = checked.get("privacy", {})
    if _is_number(privacy.get("epsilon")):  # of its size there is more to say later
        checked["privacy"] = {**privacy, "epsilon": 1.0}
    try:
        parse_config(checked)
    except ConfigError as error:
        raise ConfigError(f"--config {path}: {error}") from None
    return found


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) < _NO_FLOAT


def _base(name: str, epsilon: Any) -> Config:
    if name == CUSTOM:
        return Config()
    if name not in recipes.RECIPES:
        raise ConfigError(f"recipe {name!r} is unknown; known: {', '.join(recipes.RECIPES)}, {CUSTOM}")
    if _is_number(epsilon) and 0 < epsilon < math.inf:
        return recipes.by_name(name, epsilon=float(epsilon))
    return recipes.by_name(name)


def _lift_recipe_limits(settings: dict[str, Any], changes: dict[str, Any]) -> None:
    """Where there is no noise, a recipe's own noise level has no meaning and is dropped."""
    asked = changes.get("voting", {})
    if settings["privacy"]["noise"] == NoiseKind.NONE and "noise_stddev" not in asked:
        settings["voting"]["noise_stddev"] = None


def _check_epsilon(settings: dict[str, Any]) -> None:
    """Refuse an epsilon that is no budget, naming the smallest that would be a plan."""
    epsilon = settings["privacy"]["epsilon"]
    if not _is_number(epsilon):
        return  # the settings say what is wrong with its type
    settings["privacy"]["epsilon"] = float(epsilon)
    if math.isfinite(epsilon) and epsilon > 0:
        return
    least = least_epsilon(parse_config({**settings, "privacy": {**settings["privacy"], "epsilon": 1.0}}))
    remedy = "use a value such as 1"
    if least is not None:
        remedy = f"the smallest that works with these settings is {rounded_up(least)}"
    raise ConfigError(f"epsilon = {epsilon:g}: must be above 0 and finite; {remedy}")
