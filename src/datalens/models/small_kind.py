"""The names of :mod:`datalens.models.small_classifiers`; no PyTorch here."""

from __future__ import annotations

from enum import StrEnum


class SmallKind(StrEnum):
    """The classifiers that can be asked for by name."""

    CNN = "cnn"
    LINEAR = "linear"
