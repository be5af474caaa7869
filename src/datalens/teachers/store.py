"""Where the stacked states of all teachers live between steps; the ensemble asks for one chunk at a time."""

from __future__ import annotations

from threading import Lock
from typing import Protocol

import torch
from torch import Tensor

from datalens.teachers.family import TeacherState


class TeacherStore(Protocol):
    """States of many teachers, written and read in chunks. Private.

    The first ``save`` of a chunk makes its place; afterwards a chunk is loaded and saved with the same ends.
    Several threads may use a store at once, each with a chunk of its own.
    """

    @property
    def disk_bytes(self) -> int:
        """Bytes that lie on disk."""
        ...

    def load(self, start: int, stop: int) -> TeacherState:
        """The states of teachers ``start`` to ``stop - 1``; a family may change them in place."""
        ...

    def save(self, start: int, stop: int, state: TeacherState) -> None:
        """Put a chunk back. Between ``load`` and ``save`` of a chunk nothing else may read it."""
        ...

    def unload(self, start: int, stop: int) -> None:
        """Give a chunk back that was only read."""
        ...

    def prefetch(self, start: int, stop: int) -> None:
        """Say that this chunk will be loaded soon."""
        ...

    def flush(self) -> None:
        """Wait until all that was saved has arrived.

        Raises:
            CheckpointError: it could not be written.
        """
        ...

    def close(self) -> None:
        """Drop everything."""
        ...


class MemoryStore:
    """All states in memory: one tensor a name for all teachers; a chunk is a view, so nothing is copied.

    The first ``save`` decides names and shapes; any span may be loaded.

    >>> store = MemoryStore(3, torch.device("cpu"))
    >>> store.save(0, 2, {"w": torch.ones(2, 5)})
    >>> store.save(2, 3, {"w": torch.zeros(1, 5)})
    >>> store.load(1, 3)["w"].sum(1).tolist()
    [5.0, 0.0]

    Args:
        num_teachers: teachers in the store.
        device: where it is.
        first: number of the first of them.
    """

    def __init__(self, num_teachers: int, device: torch.device, first: int = 0) -> None:
        self._num_teachers = num_teachers
        self._device = device
        self._first = first
        self._tensors: dict[str, Tensor] = {}
        self._lock = Lock()

    @property
    def disk_bytes(self) -> int:
        """None do."""
        return 0

    def load(self, start: int, stop: int) -> TeacherState:
        """Views of the states of teachers ``start`` to ``stop - 1``."""
        start, stop = start - self._first, stop - self._first
        return {name: tensor[start:stop] for name, tensor in self._tensors.items()}

    def save(self, start: int, stop: int, state: TeacherState) -> None:
        """Put a chunk back; a tensor that is the view handed out by ``load`` is already in place."""
        with self._lock:
            if not self._tensors:
                self._tensors = {
                    name: torch.zeros(
                        self._num_teachers, *value.shape[1:], dtype=value.dtype, device=self._device
                    )
                    for name, value in state.items()
                }
        for name, value in state.items():
            place = self._tensors[name][start - self._first : stop - self._first]
            if place.data_ptr() != value.data_ptr():
                place.copy_(value)

    def unload(self, start: int, stop: int) -> None:
        """Nothing to do."""

    def prefetch(self, start: int, stop: int) -> None:
        """Nothing to do."""

    def flush(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Let the tensors go."""
        self._tensors = {}
