"""Who stands in a comparison, by name, each with the settings that its trials chose."""

from __future__ import annotations

import math

from datalens.baselines.registry import METHODS
from datalens.errors import ConfigError
from datalens.experiments import paper
from datalens.experiments.baseline_cells import AnyCell, BaselineCell
from datalens.experiments.cells import Cell
from datalens.experiments.settings import base_cell
from datalens.experiments.trials import Settings, chosen

DATALENS = "datalens"
AS_PUBLISHED = "-as-published"
PUBLISHED = tuple(name for name, settings in METHODS.items() if settings.has_published_form)
"""Methods whose paper prints a form without a sound guarantee."""
WITHOUT_PRIVACY = ("dc-gan",)
PRIORS: dict[tuple[str, str], Settings] = {("moments", "mnist"): (("finish__jitter", 1.0),)}
"""By contender and data set, what is known beforehand of how such images vary: handwriting leans and stretches."""
CONTENDERS = (DATALENS, *METHODS, *(f"{name}{AS_PUBLISHED}" for name in PUBLISHED))


def contender(name: str, data_set: str, epsilon: float) -> AnyCell:
    """A contender's cell on a data set, seed 0.

    A method without privacy has one cell, whatever epsilon is asked for.

    Raises:
        ConfigError: an unknown name.
    """
    if name not in CONTENDERS:
        raise ConfigError(f"method {name!r} is unknown; known: {', '.join(CONTENDERS)}")
    if name == DATALENS:
        return base_cell(data_set, epsilon) if data_set in paper.TABLE_1 else Cell(data_set, epsilon)
    method = name.removesuffix(AS_PUBLISHED)
    return BaselineCell(
        data_set,
        method,
        math.inf if method in WITHOUT_PRIVACY else epsilon,
        settings=chosen(name) + PRIORS.get((name, data_set), ()),
        as_published=name != method,
    )
