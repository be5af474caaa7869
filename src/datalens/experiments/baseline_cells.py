"""A cell whose training is a baseline's: what :class:`~datalens.experiments.cells.Cell` is for DataLens."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from datalens.baselines.registry import BaselineConfig, parse_baseline
from datalens.experiments.cells import DATA_SETS, PROTOCOL, Cell


@dataclass(frozen=True)
class BaselineCell:
    """One training of a baseline, with an insecure seed so that anyone gets it again.

    Attributes:
        data_set: a name of :data:`~datalens.experiments.cells.DATA_SETS`.
        method: a name of :data:`datalens.baselines.registry.METHODS`.
        epsilon: authorised, at delta 1e-5, for adding or removing one record; infinite without noise.
        seed: of everything.
        settings: of the method, where they are not its defaults; ``section__name`` in a section of its own.
        as_published: the form that the method's paper prints, where that has no guarantee.
        held_out: a trial of settings: nothing of it is scored on test images.
    """

    data_set: str
    method: str
    epsilon: float
    seed: int = 0
    settings: tuple[tuple[str, Any], ...] = ()
    as_published: bool = False
    held_out: bool = False

    @property
    def recipe(self) -> str | None:
        """The method's name; None where no generator is trained on such data."""
        return None if DATA_SETS[self.data_set].quick is None else self.method

    def config(self) -> BaselineConfig:
        """Its settings.

        Raises:
            ConfigError: a setting that is unknown or out of range.
        """
        privacy: dict[str, Any] = {"insecure_seed": self.seed, "as_published": self.as_published}
        privacy |= {"noise": "none"} if math.isinf(self.epsilon) else {"epsilon": self.epsilon}
        settings: dict[str, Any] = {}
        for name, value in self.settings:
            section, _, inner = name.rpartition("__")
            (settings.setdefault(section, {}) if section else settings)[inner] = value
        return parse_baseline({"method": self.method, "settings": settings, "privacy": privacy})

    def with_seed(self, seed: int) -> BaselineCell:
        """The same with another seed."""
        return replace(self, seed=seed)

    @property
    def key(self) -> str:
        """Digest of everything that decides the result: equal settings are run once.

        The method's settings are in it, also those at their default: a default that changes is another cell. Those of
        privacy are there where they are not their default, and performance decides nothing.

        >>> defaults = BaselineCell("mnist", "dp-merf", 1.0)
        >>> defaults.key == BaselineCell("mnist", "dp-merf", 1.0, settings=(("num_features", 10000),)).key
        True
        >>> defaults.key == BaselineCell("mnist", "dp-merf", 1.0, held_out=True).key
        False
        """
        config = self.config()
        privacy = config.privacy.model_dump(mode="json", exclude_defaults=True)
        settings = config.settings.model_dump(mode="json")
        what = [
            PROTOCOL,
            self.data_set,
            self.method,
            settings,
            privacy,
            *(["held out"] if self.held_out else []),
        ]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """One line for people.

        >>> BaselineCell("mnist", "dp-merf", 1.0, 2, (("num_features", 500),)).title
        'MNIST, dp-merf, epsilon 1, seed 2, num_features 500'
        """
        flags = [
            word
            for word, is_set in (("as published", self.as_published), ("a trial", self.held_out))
            if is_set
        ]
        settings = [f"{name} {value}" for name, value in self.settings]
        words = [
            DATA_SETS[self.data_set].title,
            self.method,
            f"epsilon {self.epsilon:g}",
            f"seed {self.seed}",
        ]
        return ", ".join([*words, *flags, *settings])

    def to_json(self) -> dict[str, Any]:
        """The cell as plain values; an infinite epsilon is None."""
        epsilon = None if math.isinf(self.epsilon) else self.epsilon
        settings = [list(setting) for setting in self.settings]
        return {**asdict(self), "epsilon": epsilon, "settings": settings, "recipe": self.recipe}


AnyCell: TypeAlias = Cell | BaselineCell
