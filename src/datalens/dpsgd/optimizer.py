"""Opacus's optimiser with a selection between clipping and summing: of each record's gradient, the largest part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from opacus.optimizers import DistributedDPOptimizer, DPOptimizer
from opacus.optimizers.optimizer import _check_processed_flag, _mark_as_processed
from torch import Tensor

from datalens.compression.norm_topk import clip_factor
from datalens.dpsgd.method import Rule

_CPU_ELEMENTS = 250_000
_DEVICE_ELEMENTS = 2**26


class TopAggOptimizer(DPOptimizer):
    """A ``DPOptimizer`` whose records each add at most ``sensitivity`` to the sum.

    Only two of Opacus's methods are replaced: ``clip_and_accumulate``, which also drops coordinates, and
    ``add_noise``, which measures the noise by ``sensitivity``. Without anything to drop both are Opacus's own, so
    the step equals plain Opacus bit for bit, except that a record whose gradient is not finite adds nothing.

    Args:
        rule: what happens to a record's gradient.
        others: as for ``DPOptimizer``.

    Source: Wang et al. 2021, Algorithm 4, lines 12 to 19.
    """

    max_grad_norm: float

    def __init__(self, *args: Any, rule: Rule, **others: Any) -> None:
        super().__init__(*args, **others)
        self.rule = rule

    @property
    def params(self) -> list[Any]:
        """All parameters that learn; Opacus hangs gradients of single records and their sum on each."""
        return super().params

    @property
    def sensitivity(self) -> float:
        """The longest that one record's part of the sum can be; what the noise multiplier multiplies."""
        return self.rule.share_of_norm * float(self.max_grad_norm)

    def clip_and_accumulate(self) -> None:
        """Sum what stays of each record's gradient, clipped, into ``p.summed_grad``."""
        if not self.rule.drops:
            self._silence_failed()
            super().clip_and_accumulate()
            return
        sum_D = torch.zeros(self.dim, device=self.params[0].device)
        for row_RD, factor_R in self.kept_rows():
            sum_D += factor_R @ row_RD
        self.accumulate(sum_D)

    def add_noise(self) -> None:
        """Opacus's noise, measured by what one record can add instead of by the clipping norm."""
        max_grad_norm, self.max_grad_norm = self.max_grad_norm, self.sensitivity
        try:
            super().add_noise()
        finally:
            self.max_grad_norm = max_grad_norm

    @property
    def dim(self) -> int:
        """Coordinates of a gradient, all parameters together."""
        return sum(p.numel() for p in self.params)

    def kept_rows(self) -> Iterator[tuple[Tensor, Tensor]]:
        """What stays of gradients, by blocks: rows [R, D], and what to multiply each by [R]. Private."""
        parts = [self._flat(p) for p in self.params]
        limit = _CPU_ELEMENTS if parts[0].device.type == "cpu" else _DEVICE_ELEMENTS
        for blocks in zip(*(part.split(max(1, limit // self.dim)) for part in parts), strict=True):
            row_RD = torch.cat(blocks, 1)
            kept = self.rule.select(row_RD.square(), [block.shape[1] for block in blocks])
            row_RD.mul_(kept.mask_RD)
            if bool(kept.failed_R.any()):
                row_RD[kept.failed_R] = 0.0  # a NaN times 0 is a NaN
            yield row_RD, clip_factor(kept, float(self.max_grad_norm), self.sensitivity)

    def accumulate(self, sum_D: Tensor) -> None:
        """Add one number a coordinate to ``p.summed_grad``, and mark the gradients of single records as used."""
        for p, part in zip(self.params, self.by_parameter(sum_D), strict=True):
            part = part.to(p.dtype) if part.is_floating_point() else part
            p.summed_grad = part if p.summed_grad is None else p.summed_grad + part
            _mark_as_processed(p.grad_sample)

    def by_parameter(self, flat_D: Tensor) -> list[Tensor]:
        """One number a coordinate, in the shapes of the parameters."""
        parts = flat_D.split([p.numel() for p in self.params])
        return [part.view_as(p) for part, p in zip(parts, self.params, strict=True)]

    def _flat(self, p: Any) -> Tensor:
        """The gradients of single records, [R, d], in float32; refused if a step has used them already."""
        _check_processed_flag(p.grad_sample)
        sample = self._get_flat_grad_sample(p)
        return sample.reshape(len(sample), p.numel()).to(torch.float32)

    def _silence_failed(self) -> None:
        """Set the gradient of every record that holds a NaN or an infinity to zero, and touch no other."""
        samples = [p.grad_sample for p in self.params]
        for batch in zip(*(s if isinstance(s, list) else [s] for s in samples), strict=True):
            sums = [
                part.reshape(len(part), p.numel()).sum(1) for part, p in zip(batch, self.params, strict=True)
            ]
            finite = [torch.isfinite(sum_R) for sum_R in sums]
            failed_R = ~torch.stack(finite).all(0)
            if bool(failed_R.any()):
                for part in batch:
                    part[failed_R] = 0.0


class DistributedTopAggOptimizer(TopAggOptimizer, DistributedDPOptimizer):
    """The same where ranks share a step: the first one adds the noise, all sum what they have."""
