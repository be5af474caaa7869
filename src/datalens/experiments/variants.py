"""TopAgg with one part taken out (Table 7), for experiments on public data: never in a run that is shared.

The product's own settings cover most of the table: without top-k is ``top_k`` = D, without threshold is
``vote_threshold`` = 0. Here is the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

import torch
from torch import Tensor

from datalens.compression.topk_sign import SignVotes, signs_from_uniforms
from datalens.compression.topk_value import topk_value
from datalens.mechanisms.topagg import TopAgg
from datalens.mechanisms.vote_sum import VoteSum
from datalens.privacy.events import GaussianEvent
from datalens.training.algorithm import Parts

UNIT = 16
"""The integer that stands for a whole vote where values are kept: the finest power of two that leaves the paper's
noise, 5000 votes, within the range of the rounded sampler."""


class Variant(StrEnum):
    """What stands in place of Algorithms 2 and 3."""

    TOPAGG = "topagg"
    NOISY_SUM = "noisy-sum"
    SIGN = "sign"
    FIXED_POINT = "fixed-point"


def adapt(parts: Parts, variant: Variant) -> Parts:
    """The parts of a run with the variant's compression and mechanism in place of TopAgg's."""
    if variant is Variant.NOISY_SUM:
        return replace(parts, mechanism=_as(NoisySum, parts.mechanism))
    if variant is Variant.SIGN:
        parts.teachers.compress = largest_signs
    if variant is Variant.FIXED_POINT:
        parts.teachers.compress = partial(fixed_point, unit=UNIT)
        return replace(parts, mechanism=_as(FixedPointSum, parts.mechanism))
    return parts


def largest_signs(grad_TBD: Tensor, top_k: int, clip_bound: float, rng: torch.Generator) -> SignVotes:
    """Algorithm 2 without its chance: each kept coordinate votes its sign. ``rng`` is not used."""
    no_chance_TBD = torch.zeros_like(grad_TBD, dtype=torch.float32)
    return SignVotes(*signs_from_uniforms(grad_TBD, top_k, clip_bound, no_chance_TBD))


def fixed_point(
    grad_TBD: Tensor, top_k: int, clip_bound: float, rng: torch.Generator, *, unit: int
) -> SignVotes:
    """Algorithm 2 without its quantisation to signs: the normalised value. ``rng`` is not used."""
    return topk_value(grad_TBD, top_k, clip_bound, unit)


@dataclass(frozen=True)
class NoisySum(TopAgg):
    """Releases the noisy sum itself, as fractions of N; the same event, since the threshold costs nothing."""

    def threshold(self, noisy_BD: Tensor) -> Tensor:
        """No threshold: float32 shares of N."""
        return noisy_BD.to(torch.float32) / self.num_teachers


@dataclass(frozen=True)
class FixedPointSum(TopAgg):
    """TopAgg on votes of magnitude at most :data:`UNIT`: sensitivity, noise and threshold in that unit.

    Guarantee: one teacher's votes on an image have L2 norm at most ``UNIT * sqrt(top_k)``
    (:func:`datalens.compression.topk_value.topk_value`), so the tally moves by at most UNIT times what TopAgg's
    does, and with UNIT times the noise mu is the same. The sampler's slack at that noise differs a little, so a run
    planned for TopAgg may end one step earlier.
    """

    def event(self, batch_size: int, dim: int) -> GaussianEvent:
        """TopAgg's event in units of 1 / UNIT of a vote."""
        event = super().event(batch_size, dim)
        stddev = UNIT * self.noise_stddev
        return replace(
            event,
            sensitivity=UNIT * event.sensitivity,
            noise_stddev=stddev,
            slack=self.noise.slack(stddev),
        )

    def noisy_tally(self, tally_BD: Tensor) -> Tensor:
        """The tally with UNIT times the noise."""
        noise = torch.from_numpy(self.noise.sample(tuple(tally_BD.shape), UNIT * self.noise_stddev))
        return tally_BD + noise.to(tally_BD.device)

    def threshold(self, noisy_BD: Tensor) -> Tensor:
        """TopAgg's, at UNIT times the votes."""
        return _as(TopAgg, self, num_teachers=UNIT * self.num_teachers).threshold(noisy_BD)

    def check_tally(self, tally_BD: Tensor) -> None:
        """TopAgg's, at UNIT times the votes."""
        _as(TopAgg, self, num_teachers=UNIT * self.num_teachers).check_tally(tally_BD)


def _as(kind: type[TopAgg], mechanism: VoteSum, num_teachers: int | None = None) -> Any:
    """The same settings in another mechanism."""
    fields: dict[str, Any] = {name: getattr(mechanism, name) for name in mechanism.__dataclass_fields__}
    if num_teachers is not None:
        fields["num_teachers"] = num_teachers
    return kind(**fields)
