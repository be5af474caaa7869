"""Teachers' states in parts, as checkpoints hold them, and their way back into chunks cut otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from datalens.errors import CheckpointError
from datalens.teachers.family import TeacherState


@dataclass(frozen=True)
class TeacherPart:
    """The states of some teachers, as a checkpoint holds them. Private.

    Attributes:
        start: the first of them.
        stop: one past the last.
        tensors: stacked, axis 0 the teacher.
    """

    start: int
    stop: int
    tensors: TeacherState

    @property
    def num_teachers(self) -> int:
        """Teachers in it."""
        return self.stop - self.start


def regrouped(
    parts: Iterable[TeacherPart],
    chunks: list[tuple[int, int]],
    shapes: dict[str, tuple[int, ...]],
    num_teachers: int,
) -> Iterator[TeacherPart]:
    """The same states cut into ``chunks``; what lies outside them is passed over.

    Args:
        parts: in order.
        chunks: (first, last + 1) of each, in order.
        shapes: of one teacher's state, by name.
        num_teachers: in the run, for the error.

    Raises:
        CheckpointError: states of another kind of teachers, or of too few.
    """
    waiting: list[TeacherPart] = []
    left = list(chunks)
    for part in parts:
        _check_shapes(part, shapes)
        if left and part.stop <= left[0][0]:
            continue
        waiting.append(part)
        while left and left[0][1] <= part.stop:
            start, stop = left.pop(0)
            pieces = [rows_of(one, start, stop) for one in waiting if one.stop > start and one.start < stop]
            if sum(one.num_teachers for one in pieces) != stop - start:
                raise _wrong_number(start, num_teachers)
            yield joined(pieces)
            waiting = [one for one in waiting if one.stop > stop]
        if not left:
            return
    if left:
        raise _wrong_number(left[0][0], num_teachers)


def rows_of(part: TeacherPart, start: int, stop: int) -> TeacherPart:
    """The teachers ``start`` to ``stop - 1`` of a part, as far as it has them."""
    first, last = max(part.start, start), min(part.stop, stop)
    rows = slice(first - part.start, last - part.start)
    return TeacherPart(first, last, {name: value[rows] for name, value in part.tensors.items()})


def joined(parts: list[TeacherPart]) -> TeacherPart:
    """Parts as one; each must begin where the one before ends."""
    if len(parts) == 1:
        return parts[0]
    names = parts[0].tensors
    tensors = {name: torch.cat([part.tensors[name] for part in parts]) for name in names}
    return TeacherPart(parts[0].start, parts[-1].stop, tensors)


def _check_shapes(part: TeacherPart, mine: dict[str, tuple[int, ...]]) -> None:
    theirs = {name: tuple(value.shape[1:]) for name, value in part.tensors.items()}
    lengths = {len(value) for value in part.tensors.values()}
    if mine != theirs:
        name = sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))[0]
        raise CheckpointError(
            f"teacher state {name!r} has shape {theirs.get(name, 'missing')} in the checkpoint and "
            f"{mine.get(name, 'none')} here: both must be one kind of teachers; "
            "resume with the run's own configuration"
        )
    if lengths != {part.num_teachers}:
        raise CheckpointError(
            f"states of teachers {part.start} to {part.stop - 1} are of {sorted(lengths)} teachers; "
            "restore the checkpoint"
        )


def _wrong_number(first: int, num_teachers: int) -> CheckpointError:
    return CheckpointError(
        f"states of teacher {first} and later are missing in the checkpoint: it must hold one kind and number "
        f"of teachers, {num_teachers} here; resume with the run's own configuration"
    )
