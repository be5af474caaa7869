"""Exact copies among images: with different teachers they cost more than one record promises."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class DuplicateReport:
    """Counts of byte-equal images. They come from the data: to be shown to the owner, never released.

    Attributes:
        num_records: images looked at, a group's copies once.
        num_distinct: different images among them.
        num_copied: different images that occur more than once.
        largest_group: how often the most frequent image occurs.
    """

    num_records: int
    num_distinct: int
    num_copied: int
    largest_group: int

    @property
    def num_extra(self) -> int:
        """Records that repeat an earlier one."""
        return self.num_records - self.num_distinct


def find_exact_duplicates(images: np.ndarray, group_ids: np.ndarray | None = None) -> DuplicateReport:
    """Count byte-equal images in [R, ...]; labels are not looked at, and copies within a group count as one.

    >>> find_exact_duplicates(np.array([[1, 2], [3, 4], [1, 2]], np.uint8))
    DuplicateReport(num_records=3, num_distinct=2, num_copied=1, largest_group=2)
    """
    rows = np.ascontiguousarray(images)
    digests = [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows]
    if group_ids is not None:
        digests = [digest for digest, _ in set(zip(digests, group_ids.tolist(), strict=True))]
    counts = Counter(digests)
    return DuplicateReport(
        num_records=len(digests),
        num_distinct=len(counts),
        num_copied=sum(count > 1 for count in counts.values()),
        largest_group=max(counts.values(), default=0),
    )
