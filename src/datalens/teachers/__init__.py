"""The teachers: who sees which record, and how each one's opinion of a generated image is formed."""

from __future__ import annotations

from datalens.teachers.partition import Partition

__all__ = ["Partition"]
