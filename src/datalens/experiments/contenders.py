"""Who stands in a comparison, by name, each with the settings that its trials chose."""

from __future__ import annotations

import math
from typing import Any

from datalens.baselines.priors import usual_settings
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
        settings=chosen(name) + _flat(usual_settings(name, data_set)),
        as_published=name != method,
    )


def _flat(settings: dict[str, Any]) -> Settings:
    """Settings of sections as ``section__name``."""
    return tuple(
        (f"{section}__{name}", value)
        for section, within in settings.items()
        for name, value in within.items()
    )
