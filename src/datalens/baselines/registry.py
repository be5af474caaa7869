"""The methods by name, each with its settings."""

from __future__ import annotations

import re
from typing import Any

from pydantic import InstanceOf, SerializeAsAny

from datalens.baselines.dcgan import Dcgan, DcganSettings
from datalens.baselines.dp_gan import DPGan, DPGanSettings
from datalens.baselines.dp_merf import DPMerf, MerfSettings
from datalens.baselines.g_pate import GPate, GPateSettings
from datalens.baselines.gs_wgan import GSWgan, GSWganSettings
from datalens.baselines.judged import Judged, JudgedSettings
from datalens.baselines.method import MethodSettings
from datalens.baselines.moments import Moments, MomentsSettings
from datalens.baselines.pate_gan import PateGan, PateGanSettings
from datalens.errors import ConfigError
from datalens.methods.facts import MethodConfig
from datalens.privacy import promises
from datalens.training.sections import Privacy, validated

METHODS: dict[str, type[MethodSettings]] = {
    Dcgan.name: DcganSettings,
    DPMerf.name: MerfSettings,
    Moments.name: MomentsSettings,
    Judged.name: JudgedSettings,
    PateGan.name: PateGanSettings,
    GPate.name: GPateSettings,
    DPGan.name: DPGanSettings,
    GSWgan.name: GSWganSettings,
}
TAKEN = ("datalens", "tune", *promises.METHOD_TEXT)
"""Names that mean something in a ledger."""


def register(name: str, settings: type[MethodSettings]) -> None:
    """Let a method of your own be asked for by name, for as long as this process lives.

    Its runs have the ledger, certificate and page of any other. That the certificate's epsilon holds is then yours to
    prove, and the certificate says so; ``datalens verify`` and ``datalens audit`` do not know its releases. Whoever
    opens its runs registers it first. A worked example: ``examples/own_baseline.py``.

    Args:
        name: small letters, digits and hyphens; the ``name`` of the method that ``settings.plan`` gives.
        settings: class of its settings.

    Raises:
        ConfigError: a name that is none, or that another method has; or no class of settings.
    """
    if not (isinstance(settings, type) and issubclass(settings, MethodSettings)):
        raise ConfigError(
            f"settings of {name!r:.60}: {settings!r:.60} is no class of MethodSettings; give one"
        )
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ConfigError(
            f"name {name!r:.60}: a method is named in small letters, digits and hyphens; choose another"
        )
    if name in (*TAKEN, *METHODS) and METHODS.get(name) is not settings:
        raise ConfigError(f"name {name!r}: is another method's; choose one of your own")
    METHODS[name] = settings


class BaselineConfig(MethodConfig):
    """Everything that makes a run of a baseline, but for the data.

    Attributes:
        method: a name of :data:`METHODS`.
        settings: of that method.
        performance: speed alone.
    """

    settings: SerializeAsAny[InstanceOf[MethodSettings]]  # pyright: ignore[reportIncompatibleVariableOverride]


def parse_baseline(data: dict[str, Any]) -> BaselineConfig:
    """Settings from plain values: ``method``, and where wanted ``settings``, ``privacy``, ``performance``.

    Raises:
        ConfigError: one line that names the first setting that breaks a rule, its value and the rule.

    >>> parse_baseline({"method": "dp-merf", "settings": {"num_features": 500}}).settings.num_features
    500
    """
    method = data.get("method")
    if method not in METHODS:
        raise ConfigError(f"method {method!r} is unknown; known: {', '.join(METHODS)}")
    settings = validated(METHODS[method], data.get("settings", {}))
    named = {"recipe": method, **data, "settings": settings}
    config = validated(BaselineConfig, named)
    check_form(config)
    return config


def check_form(config: BaselineConfig) -> None:
    """Refuse what a method cannot do: a published form that it does not have, or a charged score.

    Raises:
        ConfigError: says which.
    """
    if config.privacy.score_noise is not None:
        raise ConfigError(
            f"privacy.score_noise = {config.privacy.score_noise:g} with method {config.method}: only runs of "
            "datalens leave room for a score; leave it out"
        )
    if config.privacy.as_published and not config.settings.has_published_form:
        known = ", ".join(name for name, settings in METHODS.items() if settings.has_published_form)
        raise ConfigError(
            f"--as-published (privacy.as_published) with method {config.method}: is for {known}, whose published "
            "form has no guarantee; leave it out"
        )


def baseline(method: str, settings: dict[str, Any] | None = None, **privacy: Any) -> BaselineConfig:
    """Settings of a method, and of its privacy, by name.

    Raises:
        ConfigError: as :func:`parse_baseline`.

    >>> baseline("dp-merf", epsilon=10.0).privacy.epsilon
    10.0
    """
    checked = validated(Privacy, privacy)
    return parse_baseline({"method": method, "settings": settings or {}, "privacy": checked.model_dump()})
