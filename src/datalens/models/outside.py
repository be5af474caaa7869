"""What lies beyond the edge of an image that is warped; apart, so that settings need no PyTorch."""

from __future__ import annotations

from enum import StrEnum


class Outside(StrEnum):
    """What lies beyond the edge of an image: the edge again, or black."""

    EDGE = "edge"
    BLACK = "black"
