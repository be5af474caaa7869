"""Complete, named configurations: functions that return one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from datalens.errors import ConfigError
from datalens.recipes.colour import (
    celeba_gender_paper,
    celeba_hair_paper,
    colour_quick,
    emoji_paper,
    emoji_quick,
    places365_paper,
)
from datalens.recipes.mnist import fashion_paper, fashion_quick, mnist_paper, mnist_quick
from datalens.recipes.quick import quick
from datalens.recipes.shapes import shapes_quick
from datalens.training.config import Config

__all__ = [
    "RECIPES",
    "by_name",
    "celeba_gender_paper",
    "celeba_hair_paper",
    "colour_quick",
    "emoji_paper",
    "emoji_quick",
    "fashion_paper",
    "fashion_quick",
    "mnist_paper",
    "mnist_quick",
    "places365_paper",
    "quick",
    "shapes_quick",
]

RECIPES: dict[str, Callable[..., Config]] = {
    "quick": quick,
    "mnist-quick": mnist_quick,
    "mnist-paper": mnist_paper,
    "fashion-quick": fashion_quick,
    "fashion-paper": fashion_paper,
    "shapes-quick": shapes_quick,
    "colour-quick": colour_quick,
    "emoji-quick": emoji_quick,
    "celeba-gender-paper": celeba_gender_paper,
    "celeba-hair-paper": celeba_hair_paper,
    "places365-paper": places365_paper,
    "emoji-paper": emoji_paper,
}


def by_name(name: str, **options: Any) -> Config:
    """The configuration of a named recipe.

    Raises:
        ConfigError: an unknown name (the known ones are listed), or an option out of range.

    >>> by_name("mnist-quick", epsilon=2.0).privacy.epsilon
    2.0
    """
    if name not in RECIPES:
        raise ConfigError(f"recipe {name!r} is unknown; known: {', '.join(RECIPES)}")
    return RECIPES[name](**options)
