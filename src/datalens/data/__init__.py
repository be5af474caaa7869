"""Labelled images in, tensors out: named published sets, drawn shapes, and people's own files, tables and arrays."""

from __future__ import annotations

from datalens.data.catalog import available_splits, check, fetch, load
from datalens.data.dataset import from_dataset
from datalens.data.duplicates import DuplicateReport, find_exact_duplicates
from datalens.data.groups import group_id, group_ids_of
from datalens.data.images import SPLITS, LabelledImages
from datalens.data.names import list_sources, remedy
from datalens.data.table import Columns

__all__ = [
    "SPLITS",
    "Columns",
    "DuplicateReport",
    "LabelledImages",
    "available_splits",
    "check",
    "fetch",
    "find_exact_duplicates",
    "from_dataset",
    "group_id",
    "group_ids_of",
    "list_sources",
    "load",
    "remedy",
]
