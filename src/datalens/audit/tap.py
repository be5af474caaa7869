"""A tap before a learner's mechanism: what is given to every release, and what came of it.

The learner is the product's own and takes its own steps. Only the mechanisms that its method, or another method
within it, hands it are watched, and where the audit wants two learners to have heard the same, what the first one
released is played to the second.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from datalens.baselines.method import Learner, Method
from datalens.methods.method import Context


@dataclass
class Tap:
    """What was seen.

    Attributes:
        played: values to hear instead of what is released, in order; empty: each hears its own.
        given: for each charge, the tensors that its release was given. Private.
        released: all values that were heard.
    """

    played: list[Any] = field(default_factory=list)
    given: list[list[Tensor]] = field(default_factory=list)
    released: list[Any] = field(default_factory=list)

    def begin(self, method: Method, context: Context) -> Learner:
        """The learner of a method, behind this tap."""
        begin: Any = type(method).begin
        return begin(_TappedMethod(method, self), context)

    def heard(self, value: Any) -> Any:
        """What the learner hears where ``value`` was released."""
        place = len(self.released)
        if self.played:
            value = self.played[place]
        self.released.append(value)
        return value


class _Tapped:
    """All that ``inner`` is, but for what subclasses change."""

    def __init__(self, inner: Any, tap: Tap) -> None:
        self._inner, self._tap = inner, tap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _TappedMethod(_Tapped):
    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        return _TappedMethod(value, self._tap) if hasattr(value, "mechanism") else value

    def mechanism(self, *noise: Any) -> Any:
        return _TappedMechanism(self._inner.mechanism(*noise), self._tap)


class _TappedMechanism(_Tapped):
    def release(self, given: Tensor, *others: Any) -> Any:
        self._tap.given.append([given.clone()])
        release = self._inner.release(given, *others)
        return replace(release, value=self._tap.heard(release.value))

    def charge(self, *payment: Any) -> Any:
        """Of a round, whose parts are released one by one."""
        self._tap.given.append([])
        return _TappedRound(self._inner.charge(*payment), self._tap)


class _TappedRound(_Tapped):
    def release(self, part: int, given: Tensor) -> Any:
        self._tap.given[-1].append(given.clone())
        release = self._inner.release(part, given)
        return replace(release, value=self._tap.heard(release.value))
