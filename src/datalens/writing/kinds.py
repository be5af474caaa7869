"""The forms that samples are written in."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path


class SampleFormat(StrEnum):
    """A form of samples on disk.

    >>> SampleFormat.told_by(Path("out/samples.parquet")), SampleFormat.PARQUET.suffix
    (<SampleFormat.PARQUET: 'parquet'>, '.parquet')
    >>> SampleFormat.told_by(Path("out/samples")), SampleFormat.IDX.suffix
    (<SampleFormat.FOLDER: 'folder'>, '')
    """

    NPZ = "npz"
    """One file: ``x`` uint8 [N, C, H, W] and ``y`` int64 [N]."""
    FOLDER = "folder"
    """A sub-folder a class, with PNGs."""
    PARQUET = "parquet"
    """One file with PNGs and class numbers, in the columns of Hugging Face."""
    IDX = "idx"
    """A folder with the two files of MNIST's training set; grey images only."""
    DATASETS = "datasets"
    """A folder that ``datasets.load_from_disk`` opens."""

    @classmethod
    def told_by(cls, target: Path) -> SampleFormat:
        """The form that a name stands for: a file's by its ending, else a folder of PNGs."""
        for form in cls:
            if form.suffix and target.suffix.lower() == form.suffix:
                return form
        return cls.FOLDER

    @property
    def suffix(self) -> str:
        """The ending of a file in this form; nothing for a folder."""
        return f".{self}" if self in (SampleFormat.NPZ, SampleFormat.PARQUET) else ""
