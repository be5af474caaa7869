"""A network that learns by DP-SGD, one lot a step: the loop that runs and experiments share."""

from __future__ import annotations

import warnings

import torch
from opacus.grad_sample import GradSampleModule
from torch import Tensor, nn
from torch.nn import functional

from datalens.dpsgd.optimizer import TopAggOptimizer

ROWS_AT_ONCE = 256
"""Records whose gradients are in memory together."""


class LotSteps:
    """Makes one step of an optimiser of each lot of records.

    Args:
        module: class scores [R, Y] of inputs [R, ...]; no layer mixes records. It learns in place.
        optimizer: over the module's parameters.
        rows_at_once: of a lot; a larger one is taken in parts, with the same sum.

    Guarantee:
        A step's sum has one row a record, which is a function of the weights, of that record and of how many rows
        there are, and is at most ``optimizer.sensitivity`` long. A row whose record is not present is zero.
    """

    def __init__(
        self, module: nn.Module, optimizer: TopAggOptimizer, rows_at_once: int = ROWS_AT_ONCE
    ) -> None:
        self._wrapped = GradSampleModule(module.train(), loss_reduction="sum")
        self._optimizer, self._rows_at_once = optimizer, rows_at_once

    def step(self, inputs_R: Tensor, labels_R: Tensor, present_R: Tensor | None = None) -> None:
        """Learn from one lot, which may be empty: the noisy sum, over the lot's expected size, which is public.

        Args:
            inputs_R: [R, ...].
            labels_R: int64 [R].
            present_R: bool [R], False where a row stands for a record that is not there; None where all are.
        """
        size = len(labels_R)
        for start in range(0, max(1, size), self._rows_at_once):
            part = slice(start, start + self._rows_at_once)
            self._optimizer.zero_grad(set_to_none=True)
            if size:
                self._differentiate(
                    inputs_R[part], labels_R[part], None if present_R is None else present_R[part]
                )
            else:
                for p in self._optimizer.params:
                    p.grad_sample = p.new_zeros(0, *p.shape)
            self._optimizer.signal_skip_step(do_skip=start + self._rows_at_once < size)
            self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def finish(self) -> None:
        """Give the module back as it was, but for what it learned."""
        self._wrapped.to_standard_module()

    def _differentiate(self, inputs_R: Tensor, labels_R: Tensor, present_R: Tensor | None) -> None:
        """Hang the gradient of each record's loss on the parameters."""
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Full backward hook is firing"
            )  # no gradient of inputs is wanted
            loss_R = functional.cross_entropy(self._wrapped(inputs_R), labels_R, reduction="none")
            if present_R is not None:
                loss_R = torch.where(present_R, loss_R, 0.0)
            loss_R.sum().backward()
