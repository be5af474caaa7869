"""Where the stacked states of all teachers live between steps; the ensemble asks for one chunk at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from datalens.errors import CheckpointError
from datalens.teachers.family import TeacherState


class TeacherStore(Protocol):
    """States of ``num_teachers`` teachers, read and written in chunks. Private."""

    @property
    def num_teachers(self) -> int:
        """Teachers in the store."""
        ...

    def load(self, start: int, stop: int) -> TeacherState:
        """The states of teachers ``start`` to ``stop - 1``; a family may change them in place."""
        ...

    def save(self, start: int, stop: int, state: TeacherState) -> None:
        """Put a chunk back. Between ``load`` and ``save`` of a chunk nothing else may read it."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Everything as a flat name -> tensor mapping, axis 0 the teacher; safetensors can hold it."""
        ...

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Replace everything; the shapes and names must be those of the same kind and number of teachers."""
        ...


class MemoryStore:
    """All states in memory: one tensor a name for all teachers; a chunk is a view, so nothing is copied.

    The first ``save`` decides names and shapes.

    >>> store = MemoryStore(3, torch.device("cpu"))
    >>> store.save(0, 2, {"w": torch.ones(2, 5)})
    >>> store.save(2, 3, {"w": torch.zeros(1, 5)})
    >>> store.load(1, 3)["w"].sum(1).tolist()
    [5.0, 0.0]
    """

    def __init__(self, num_teachers: int, device: torch.device) -> None:
        self._num_teachers = num_teachers
        self._device = device
        self._tensors: dict[str, Tensor] = {}

    @property
    def num_teachers(self) -> int:
        """Teachers in the store."""
        return self._num_teachers

    def load(self, start: int, stop: int) -> TeacherState:
        """Views of the states of teachers ``start`` to ``stop - 1``."""
        return {name: tensor[start:stop] for name, tensor in self._tensors.items()}

    def save(self, start: int, stop: int, state: TeacherState) -> None:
        """Put a chunk back; a tensor that is the view handed out by ``load`` is already in place."""
        if not self._tensors:
            self._tensors = {
                name: torch.zeros(
                    self._num_teachers, *value.shape[1:], dtype=value.dtype, device=self._device
                )
                for name, value in state.items()
            }
        for name, value in state.items():
            place = self._tensors[name][start:stop]
            if place.data_ptr() != value.data_ptr():
                place.copy_(value)

    def state_dict(self) -> dict[str, Tensor]:
        """The live tensors by name (not copies): write them out before the next step."""
        return dict(self._tensors)

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Replace all states, copying.

        Raises:
            CheckpointError: names or shapes that are not those of these teachers.
        """
        mine = {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}
        theirs = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if mine != theirs:
            wrong = sorted(
                name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)
            )[0]
            raise CheckpointError(
                f"teacher state {wrong!r} has shape {theirs.get(wrong, 'missing')} in the checkpoint and "
                f"{mine.get(wrong, 'none')} here: both must be one kind and number of teachers; "
                "resume with the run's own configuration"
            )
        for name, tensor in tensors.items():
            self._tensors[name].copy_(tensor)
