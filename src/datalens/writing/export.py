"""A folder of samples that can be uploaded as it is: images where their readers look for them, and pages beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path, PurePosixPath

from datalens.writing.contents import AddImages, Contents, Writer, write_file
from datalens.writing.kinds import SampleFormat
from datalens.writing.whole import WRITERS


class ExportForm(StrEnum):
    """How images lie in such a folder; ``datasets.load_dataset(FOLDER)`` reads all three.

    >>> ExportForm.HF.place.name, ExportForm.IMAGEFOLDER.samples
    ('train-00000-of-00001.parquet', <SampleFormat.FOLDER: 'folder'>)
    """

    HF = "hf"
    """As on Hugging Face's hub: Parquet under ``data/``."""
    IMAGEFOLDER = "imagefolder"
    """PNGs under ``train/``, in a sub-folder a class."""
    PARQUET = "parquet"
    """One file, ``samples.parquet``."""

    @property
    def samples(self) -> SampleFormat:
        """What the images are written as."""
        return SampleFormat.FOLDER if self is ExportForm.IMAGEFOLDER else SampleFormat.PARQUET

    @property
    def place(self) -> PurePosixPath:
        """Where in the folder."""
        return PurePosixPath(_PLACES[self])

    @property
    def pattern(self) -> str:
        """What finds the files there."""
        return _PATTERNS[self]

    @property
    def loading(self) -> str:
        """Python that reads them, where ``FOLDER`` is the folder."""
        return _LOADING[self]


_PLACES = {
    ExportForm.HF: "data/train-00000-of-00001.parquet",
    ExportForm.IMAGEFOLDER: "train",
    ExportForm.PARQUET: "samples.parquet",
}
_PATTERNS = {
    ExportForm.HF: "data/train-*.parquet",
    ExportForm.IMAGEFOLDER: "train/**",
    ExportForm.PARQUET: "samples.parquet",
}
_DATASETS = 'from datasets import load_dataset\n\nimages = load_dataset("FOLDER", split="train")'
_LOADING = {
    ExportForm.HF: _DATASETS,
    ExportForm.IMAGEFOLDER: (
        f'{_DATASETS}\n\nfrom torchvision.datasets import ImageFolder\n\nimages = ImageFolder("FOLDER/train")'
    ),
    ExportForm.PARQUET: (
        f'{_DATASETS}\n\nimport pandas\n\nrows = pandas.read_parquet("FOLDER/samples.parquet")  # PNGs and numbers'
    ),
}


def export_writer(form: ExportForm, beside: Mapping[str, bytes]) -> Writer:
    """Writes a folder with images in one form and files beside them.

    Args:
        form: of the images.
        beside: small files by name, such as ``README.md``.
    """

    @contextmanager
    def write(path: Path, contents: Contents) -> Iterator[AddImages]:
        target = path / form.place
        target.parent.mkdir(parents=True)
        for name, content in beside.items():
            write_file(path / name, content)
        with WRITERS[form.samples](target, contents) as add:
            yield add

    return write
