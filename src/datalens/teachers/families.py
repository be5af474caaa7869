"""The kinds of teachers by name."""

from __future__ import annotations

from enum import StrEnum

from datalens.teachers.family import TeacherFamily
from datalens.teachers.kernel import KernelTeachers
from datalens.teachers.paper import PaperTeachers


class TeacherKind(StrEnum):
    """Which discriminators the teachers are."""

    PAPER = "paper"
    KERNEL = "kernel"


def make_family(
    kind: TeacherKind,
    image_shape: tuple[int, int, int],
    num_classes: int,
    *,
    learning_rate: float,
    bandwidth: float,
) -> TeacherFamily:
    """The teachers of one kind.

    Args:
        kind: which.
        image_shape: (C, H, W).
        num_classes: Y.
        learning_rate: of teachers that train.
        bandwidth: of kernel teachers.
    """
    match kind:
        case TeacherKind.PAPER:
            return PaperTeachers(image_shape, num_classes, learning_rate=learning_rate)
        case TeacherKind.KERNEL:
            return KernelTeachers(num_classes, bandwidth)
