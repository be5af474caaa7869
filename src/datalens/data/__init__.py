"""Labelled images in, tensors out: named published sets, drawn shapes, image folders and arrays."""

from __future__ import annotations

from datalens.data.catalog import available_splits, check, fetch, list_sources, load, remedy
from datalens.data.duplicates import DuplicateReport, find_exact_duplicates
from datalens.data.groups import group_id, group_ids_of
from datalens.data.images import SPLITS, LabelledImages

__all__ = [
    "SPLITS",
    "DuplicateReport",
    "LabelledImages",
    "available_splits",
    "check",
    "fetch",
    "find_exact_duplicates",
    "group_id",
    "group_ids_of",
    "list_sources",
    "load",
    "remedy",
]
