"""What a kind of teacher is: many discriminators at once, as stacked parameters, each with its own shard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

TeacherState = dict[str, Tensor]
"""Stacked parameters and optimiser states of one chunk of teachers; axis 0 is the teacher, always."""


@dataclass(frozen=True)
class Shards:
    """The real records of one chunk of teachers. Private.

    Attributes:
        images_TRCHW: float32 in [0, 1]; an empty slot holds zeros.
        labels_TR: int64 in 0..Y-1; an empty slot holds 0.
        present_TR: bool; False marks an empty slot, which must not influence anything.
        first: number of the first teacher; chunks come in any order, and several at a time.
    """

    images_TRCHW: Tensor
    labels_TR: Tensor
    present_TR: Tensor
    first: int = 0

    @property
    def num_teachers(self) -> int:
        """Teachers in this chunk."""
        return self.images_TRCHW.shape[0]


@dataclass(frozen=True)
class Fakes:
    """The step's generated images, the same for all teachers. Public.

    Attributes:
        images_BCHW: float32 in [0, 1].
        labels_B: int64 in 0..Y-1, drawn uniformly, never from the data.
    """

    images_BCHW: Tensor
    labels_B: Tensor


class TeacherFamily(Protocol):
    """One kind of teacher. No method may let one teacher's values touch another's.

    The guarantee of the whole product rests on that: axis T is a batch of independent programs. Test it with
    ``tests/contracts``: changing one teacher's shard changes that teacher's gradient alone.
    """

    def init(self, num_teachers: int, rng: torch.Generator, device: torch.device) -> TeacherState:
        """Fresh stacked parameters (and optimiser states) for ``num_teachers`` teachers."""
        ...

    def train(self, state: TeacherState, shards: Shards, fakes: Fakes, num_steps: int) -> TeacherState:
        """``num_steps`` optimiser steps of every teacher on its own shard against the shared fakes."""
        ...

    def input_gradient(self, state: TeacherState, shards: Shards, fakes: Fakes) -> Tensor:
        """``grad_TBD`` float32: for each teacher and fake, the move that raises the teacher's belief.

        g = + d log D(x, y) / d x (paper, Algorithm 1 line 11 with the sign of docs/algorithm.md), up to a
        positive scale of the teacher's own.
        """
        ...
