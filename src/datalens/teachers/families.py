"""The kinds of teachers by name."""

from __future__ import annotations

from enum import StrEnum

from datalens.teachers.family import TeacherFamily


class TeacherKind(StrEnum):
    """Which discriminators the teachers are."""

    PAPER = "paper"
    PROTOTYPE = "prototype"
