"""Settings of a run of such a method, and what everybody may know of it: ``release/config.json``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from pydantic import InstanceOf, SerializeAsAny

from datalens.methods.method import PlannedMethod, PlannedSettings, PublicSize
from datalens.training.facts import RunFacts
from datalens.training.sections import Count, Privacy, RunSettings, Section


class MethodPerformance(Section):
    """Settings that change speed and never noise, ledger or epsilon.

    Attributes:
        device: where to compute, as PyTorch names it.
        checkpoint_every: steps between checkpoints.
    """

    device: str = "cpu"
    checkpoint_every: Count = 100


class MethodConfig(RunSettings):
    """Everything that makes a run, but for the data.

    Attributes:
        method: its name.
        settings: of that method.
        performance: speed alone.
    """

    method: str
    settings: SerializeAsAny[InstanceOf[PlannedSettings]]
    performance: MethodPerformance = MethodPerformance()


def plan_of(settings: PlannedSettings, privacy: Privacy, size: PublicSize) -> PlannedMethod:
    """The method with the noise that fits; kept, since finding it takes seconds.

    Raises:
        ConfigError: no noise fits, or settings that contradict each other.
    """
    return _planned_once(cast(Any, settings), cast(Any, privacy), size)


@lru_cache(maxsize=32)
def _planned_once(settings: PlannedSettings, privacy: Privacy, size: PublicSize) -> PlannedMethod:
    """By frozen settings, which Pydantic gives a hash that type checkers do not see."""
    return settings.plan(privacy, size)


@dataclass(frozen=True, kw_only=True)
class MethodFacts(RunFacts):
    """What everybody may know of a run.

    Attributes:
        config: the settings.
    """

    config: MethodConfig

    @property
    def size(self) -> PublicSize:
        """What may be known of the data."""
        return PublicSize(self.num_records, self.image_shape, len(self.classes), self.of_groups)

    @property
    def method(self) -> PlannedMethod:
        """The method with its noise."""
        return plan_of(self.config.settings, self.config.privacy, self.size)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return super().to_json() | {"method": self.config.method, "config": self.config.to_json()}
