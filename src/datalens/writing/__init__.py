"""Labelled images on disk in forms that others read, as they are drawn, whole or not there at all."""

from __future__ import annotations

from datalens.writing.contents import Contents
from datalens.writing.kinds import SampleFormat
from datalens.writing.whole import write_samples

__all__ = ["Contents", "SampleFormat", "write_samples"]
