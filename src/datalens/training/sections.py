"""What settings are made of, and the settings that every method has: privacy, and the name that they go by."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from datalens.errors import ConfigError
from datalens.privacy.accountant import AccountantKind
from datalens.privacy.events import NoiseKind

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**18)]
"""Of steps and the like; more than that is no float's whole number, and nobody's plan."""
Slots = Annotated[int, Field(ge=1, le=10**8)]
"""Of records, each of which takes a few bytes for its slot, and of those who have one."""
Width = Annotated[int, Field(ge=1, le=2**16)]
"""Of a network's layer."""
Batch = Annotated[int, Field(ge=2, le=2**16)]
"""Of images that pass a batch norm together, which one image alone cannot."""
Fraction = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """Base of all settings: frozen, no unknown names, no conversion of text to numbers."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_default=True
    )


def merged(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with others in their place, table within table: what the changes do not name stays as it is.

    >>> merged({"a": {"b": 1, "c": {"d": 2, "e": 3}}}, {"a": {"c": {"d": 4}}})
    {'a': {'b': 1, 'c': {'d': 4, 'e': 3}}}
    """
    made = dict(settings)
    for name, value in changes.items():
        kept = made.get(name)
        if isinstance(kept, Mapping) and isinstance(value, Mapping):
            value = merged(kept, value)
        made[name] = value
    return made


def known_name(kind: type[StrEnum]) -> Any:
    """A validator that turns a known name into its enum member and lists the known names otherwise."""

    def convert(value: Any) -> Any:
        try:
            return kind(value)
        except ValueError:
            raise ValueError(f"unknown; known: {', '.join(kind)}") from None

    return convert


class Privacy(Section):
    """What is promised, and how it is counted.

    Attributes:
        epsilon: the most that may ever be spent; above 0.
        delta: in (0, 1).
        accountant: exact (default), rdp, or rdp-classic (the paper's).
        noise: rounded-gaussian (default), discrete-gaussian, continuous-gaussian, or none (no guarantee).
        num_records: public upper bound on the records; None where the file's own length is declared public.
        record_count_is_public: declare the file's own length public.
        labels_are_public: declare public the class list that was found in the records.
        group_size: records that one person may own; all of them together are protected.
        score_noise: standard deviation, in right predictions, of the one score on people's data that the budget
            leaves room for; None for no such score.
        insecure_seed: repeatable everything, noise included; such a release is not fit for publication.
        as_published: run what is not sound as its paper prints it (voting.mechanism = fetchsgd, or the method
            gs-wgan): there is no guarantee then, whatever the noise, and everything that is written says so.
    """

    epsilon: Positive = 1.0
    delta: float = Field(default=1e-5, gt=0, lt=1)
    accountant: AccountantKind = AccountantKind.EXACT
    noise: NoiseKind = NoiseKind.ROUNDED
    num_records: Slots | None = None
    record_count_is_public: bool = False
    labels_are_public: bool = False
    group_size: Count = 1
    score_noise: Positive | None = None
    insecure_seed: Annotated[int, Field(ge=0)] | None = None
    as_published: bool = False

    _accountant = field_validator("accountant", mode="before")(known_name(AccountantKind))
    _noise = field_validator("noise", mode="before")(known_name(NoiseKind))

    @property
    def is_private(self) -> bool:
        """False where no noise is added, or to what is not sound: nothing is promised then."""
        return self.adds_noise and not self.as_published

    @property
    def adds_noise(self) -> bool:
        """Whether noise is drawn at all."""
        return self.noise is not NoiseKind.NONE

    @property
    def is_publishable(self) -> bool:
        """Whether noise and secrets are such that the guarantee can be published."""
        proper = self.noise in (NoiseKind.ROUNDED, NoiseKind.DISCRETE) and self.insecure_seed is None
        return proper and not self.as_published


class RunSettings(Section):
    """What the settings of every method have.

    Attributes:
        recipe: name that they go by.
        privacy: what is promised.
    """

    recipe: str = "custom"
    privacy: Privacy = Privacy()

    def to_json(self) -> dict[str, Any]:
        """Plain values, as in a run's ``config.json``."""
        return self.model_dump(mode="json")


Kind = TypeVar("Kind", bound=Section)


def validated(kind: type[Kind], data: Any) -> Kind:
    """Settings of a kind from plain values.

    Raises:
        ConfigError: one line that names the first setting that breaks a rule, its value and the rule.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_one_line(kind, error)) from None


def _one_line(kind: type[Section], error: ValidationError) -> str:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"]) or "config"
    if first["type"] == "extra_forbidden":
        known = _known_names(kind, first["loc"][:-1])
        return f"setting {name!r} is unknown; known: {', '.join(known)}"
    value = first["input"]
    shown = repr(value) if not isinstance(value, float) or math.isfinite(value) else str(value)
    message = first["msg"].removeprefix("Value error, ")
    return f"{name} = {shown:.80}: {message[0].lower()}{message[1:]}; correct it"


def _known_names(kind: type[Section], section: tuple[int | str, ...]) -> list[str]:
    model: Any = kind
    for part in section:
        model = model.model_fields[part].annotation
    return list(model.model_fields)
