"""The kinds of teachers, each made of the settings that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from datalens.teachers.family import TeacherFamily
from datalens.teachers.kernel import KernelTeachers
from datalens.teachers.kinds import TeacherKind
from datalens.teachers.matching import MatchingTeachers
from datalens.teachers.paper import PaperTeachers


@dataclass(frozen=True)
class TeacherSettings:
    """What the kinds of teachers need to know; each takes its own part.

    Attributes:
        image_shape: (C, H, W).
        num_classes: Y.
        shard_size: slots of each teacher.
        batch_size: fakes in a step.
        num_steps: generator steps planned.
        learning_rate: of teachers that train.
        bandwidth: of kernel teachers, and of matching teachers at the end.
        first_bandwidth: of matching teachers at the first step.
        annealing: fraction of the steps over which matching teachers go from one to the other.
        start: parameters of one public discriminator that all teachers which train begin with; None for random ones.
    """

    image_shape: tuple[int, int, int]
    num_classes: int
    shard_size: int
    batch_size: int
    num_steps: int
    learning_rate: float
    bandwidth: float
    first_bandwidth: float
    annealing: float
    start: Mapping[str, Tensor] | None = field(default=None, compare=False, repr=False)


def make_family(kind: TeacherKind, settings: TeacherSettings) -> TeacherFamily:
    """The teachers of one kind."""
    match kind:
        case TeacherKind.PAPER:
            return PaperTeachers(
                settings.image_shape,
                settings.num_classes,
                learning_rate=settings.learning_rate,
                start=settings.start,
            )
        case TeacherKind.KERNEL:
            return KernelTeachers(settings.num_classes, settings.bandwidth)
        case TeacherKind.MATCHING:
            return MatchingTeachers(
                settings.shard_size,
                settings.batch_size,
                max(1, round(settings.annealing * settings.num_steps)),
                settings.first_bandwidth,
                settings.bandwidth,
            )
