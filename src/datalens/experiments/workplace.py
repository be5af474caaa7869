"""Where experiments read published data and keep what is not a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from datalens import data
from datalens.data.images import LabelledImages
from datalens.errors import NotPrivateError
from datalens.experiments.scorer import Scorer

HELD_OUT_SHARE = 6
"""A trial of settings is scored on the last sixth of the training images, and the rest are its records.

Part of what :data:`~datalens.experiments.cells.PROTOCOL` stands for: no cell's key has it.
"""


def _silent(_: str) -> None:
    """Nobody listens; by name, since a place goes to processes of their own."""


@dataclass
class Workplace:
    """Where experiments read data and keep what is not a result.

    Attributes:
        scratch: generators and feature classifiers by key, so that an interrupted sweep goes on.
        data_root: of the published data sets.
        grids: folder of image grids, one PNG a cell; None for none.
        apart: every training has a process of its own, so that its peak of memory can be told.
        resnet18: torchvision's weights; None where features are EfficientNet-Lite0's.
        tell: told what takes long besides trainings.
        records: those of DP-SGD that are in memory, by data set and extractor.
    """

    scratch: Path
    data_root: str | None = None
    grids: Path | None = None
    apart: bool = False
    resnet18: Path | None = None
    tell: Callable[[str], None] = field(default=_silent, repr=False)
    records: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    _held: dict[tuple[str, bool], tuple[LabelledImages, Scorer]] = field(
        default_factory=dict, init=False, repr=False
    )

    def absent(self, data_sets: Iterable[str]) -> frozenset[str]:
        """Those of these data sets whose files are not here, or not whole; pictures are not decoded."""
        return frozenset(
            name
            for name in set(data_sets)
            if any(file.status != "ok" for file in data.check(name, self.data_root))
        )

    def data_of(self, data_set: str, *, held_out: bool = False) -> tuple[LabelledImages, Scorer]:
        """The training images of a data set, and what scores images against it; the last asked for is kept.

        Args:
            data_set: its name.
            held_out: a part of the training images stands in for the test images, which are not read.

        Raises:
            DataError: its files are not here.
            NotPrivateError: the data are not published; experiments use insecure seeds.
        """
        what = (data_set, held_out)
        if what not in self._held:
            records = data.load(data_set, split="train", root=self.data_root)
            if not records.public:
                raise NotPrivateError(f"{data_set}: experiments are for published data; use datalens train")
            if held_out:
                records, test = without_last_sixth(records)
            else:
                test = data.load(data_set, split="test", root=self.data_root)
            self._held = {what: (records, Scorer(records, test, self.scratch / "features"))}
        return self._held[what]


def without_last_sixth(data: LabelledImages) -> tuple[LabelledImages, LabelledImages]:
    """Training images without the last sixth of them, and that sixth: what trials of settings learn and score on.

    >>> from datalens.data import load
    >>> [part.num_records for part in without_last_sixth(load("shapes"))]
    [3334, 666]
    """
    first = data.num_records - data.num_records // HELD_OUT_SHARE
    parts = slice(None, first), slice(first, None)
    records, validation = (
        replace(data, images=data.images[part], labels=data.labels[part]) for part in parts
    )
    return records, validation
