"""The kinds of teachers by name; apart from what they are, so that settings need no PyTorch."""

from __future__ import annotations

from enum import StrEnum


class TeacherKind(StrEnum):
    """Which discriminators the teachers are."""

    PAPER = "paper"
    KERNEL = "kernel"
    MATCHING = "matching"
