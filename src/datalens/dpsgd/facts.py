"""Settings of a run of DP-SGD, and what everybody may know of it: ``release/config.json``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import field_validator

from datalens.data.images import LabelledImages
from datalens.dpsgd.plan import DPSGD, NAME, ClassifierSettings
from datalens.errors import RunError
from datalens.methods.facts import MethodConfig, MethodFacts, plan_of
from datalens.methods.method import PublicSize
from datalens.models.small_classifiers import num_weights
from datalens.training.facts import common_facts, declared_records, require_public_classes, whole
from datalens.training.repeats import refuse_groups
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


def planned_for(config: ClassifierConfig, data: LabelledImages) -> DPSGD:
    """The training that a run on these data would plan.

    Raises:
        DataLensError: settings or data that do not fit.
    """
    refuse_groups(data)
    num_records = declared_records(config.privacy, data)
    require_public_classes(config.privacy, data)
    size = PublicSize(num_records, data.image_shape, data.num_classes)
    planned: Any = plan_of(config.settings, config.privacy, size)
    return planned


@dataclass(frozen=True, kw_only=True)
class ClassifierFacts(MethodFacts):
    """What everybody may know of a run of DP-SGD.

    Attributes:
        config: the settings.
    """

    config: ClassifierConfig

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
                found = data.get("method", "datalens")
                raise RunError(
                    f"{source}: is a run of {found!s:.40}, and this is for runs of {NAME}; give one"
                )
            return cls(config=parse_classifier(data["config"]), **common_facts(data, source))
