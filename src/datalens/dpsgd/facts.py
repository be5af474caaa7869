"""Settings of a run of DP-SGD, and what everybody may know of it: ``release/config.json``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import field_validator

from datalens.dpsgd.plan import DPSGD, NAME, ClassifierSettings
from datalens.errors import ConfigError
from datalens.methods.facts import MethodConfig, MethodFacts
from datalens.models.small_classifiers import num_weights
from datalens.training.facts import common_facts, whole
from datalens.training.sections import validated


class ClassifierConfig(MethodConfig):
    """Everything that makes a run, but for the data.

    Attributes:
        recipe: name that the settings go by.
        privacy: what is promised, as for every method.
        method: ``dp-sgd``.
        settings: of the training.
        performance: device, and steps between checkpoints.
    """

    recipe: str = NAME
    method: str = NAME
    settings: ClassifierSettings = ClassifierSettings()  # pyright: ignore[reportIncompatibleVariableOverride]

    @field_validator("method")
    @classmethod
    def _known(cls, method: str) -> str:
        if method != NAME:
            raise ValueError(f"must be {NAME}")
        return method


def parse_classifier(data: dict[str, Any]) -> ClassifierConfig:
    """Settings from plain values: ``privacy``, ``settings`` and ``performance``, each where wanted.

    Raises:
        ConfigError: one line that names the first setting that breaks a rule, its value and the rule.

    >>> parse_classifier({"privacy": {"epsilon": 2.0}, "settings": {"keep": 0.7}}).settings.keep
    0.7
    """
    return validated(ClassifierConfig, data)


@dataclass(frozen=True, kw_only=True)
class ClassifierFacts(MethodFacts):
    """What everybody may know of a run of DP-SGD.

    Attributes:
        config: the settings.
    """

    config: ClassifierConfig

    @property
    def method(self) -> DPSGD:
        """The training with its noise."""
        return self.config.settings.plan(self.config.privacy, self.size)

    @property
    def num_weights(self) -> int:
        """Of the network."""
        return num_weights(self.config.settings.model, self.image_shape, len(self.classes))

    @classmethod
    def from_json(cls, data: Any, source: Path) -> ClassifierFacts:
        """Read ``release/config.json``.

        Raises:
            RunError: it is not one, from a newer version, or of another method.
        """
        with whole(source):
            if data.get("method") != NAME:
                raise ConfigError(f"of method {data.get('method', 'datalens')!r}, not {NAME}")
            return cls(config=parse_classifier(data["config"]), **common_facts(data, source))
