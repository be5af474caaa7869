"""Settings as the tools around scikit-learn ask for them and set them: ``get_params`` and ``set_params``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

from datalens.errors import ConfigError
from datalens.training.sections import RunSettings, Section, validated

Settings = TypeVar("Settings", bound=RunSettings)
AnySection = TypeVar("AnySection", bound=Section)
_CONFIG, _BELOW = "config", "__"


class Parameters(Generic[Settings]):
    """What scikit-learn expects of an estimator's constructor: it stores ``config``, and nothing else decides.

    So ``sklearn.base.clone`` gives an estimator with the same settings and nothing trained.

    Attributes:
        config: settings of the next training.
    """

    config: Settings

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters, and where ``deep`` every single setting as ``config__section__name``."""
        return {_CONFIG: self.config, **(flat(self.config, _CONFIG) if deep else {})}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by the names of :meth:`get_params`, checked again; what was trained stays as it is.

        Raises:
            ConfigError: an unknown name, or a value that breaks a rule; nothing is changed then.
        """
        config = params.get(_CONFIG, self.config)
        if not isinstance(config, type(self.config)):
            raise ConfigError(
                f"config is of type {type(config).__name__}: give a {type(self.config).__name__}"
            )
        known, changes = flat(config, _CONFIG), {}
        for name, value in params.items():
            if name != _CONFIG and name not in known:
                sections = ", ".join(f"{_CONFIG}{_BELOW}{section}" for section in type(config).model_fields)
                raise ConfigError(
                    f"parameter {name!r} is unknown; known: {_CONFIG}, and what is in {sections}"
                )
            if name != _CONFIG:
                changes[name.removeprefix(_CONFIG + _BELOW)] = value
        self.config = changed(config, changes)
        return self


def changed(settings: AnySection, changes: Mapping[str, Any]) -> AnySection:
    """The same settings with some changed, each by its path (``privacy__epsilon``), and checked again.

    Raises:
        ConfigError: one line that names the setting, its value and the rule.
    """
    values: dict[str, Any] = {name: getattr(settings, name) for name in type(settings).model_fields}
    below: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        name, _, rest = path.partition(_BELOW)
        if rest:
            below.setdefault(name, {})[rest] = value
        else:
            values[name] = value
    for name, of_section in below.items():
        if not isinstance(values[name], Section):
            shown = f"{values[name]!r:.60}"
            raise ConfigError(
                f"{name} = {shown}: has no settings below it, and {name}{_BELOW}... was given; leave one out"
            )
        values[name] = changed(values[name], of_section)
    return validated(type(settings), values)


def flat(section: Section, path: str = "") -> dict[str, Any]:
    """Every section and setting below one, by its path, such as ``privacy__epsilon``."""
    found: dict[str, Any] = {}
    for name in type(section).model_fields:
        value, below = getattr(section, name), f"{path}{_BELOW}{name}" if path else name
        found[below] = value
        if isinstance(value, Section):
            found |= flat(value, below)
    return found
