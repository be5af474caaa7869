"""Columns ``image`` and ``label`` as Hugging Face lays them out, in Arrow's tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from datalens.errors import MissingExtraError
from datalens.writing.contents import Contents
from datalens.writing.kinds import SampleFormat
from datalens.writing.png import png_bytes, png_name

ROWS = 500
"""Images in a batch of rows at most: what reads one image reads a batch."""
_EXTRA = {SampleFormat.PARQUET: "parquet", SampleFormat.DATASETS: "huggingface"}


def load_pyarrow(form: SampleFormat) -> Any:
    """pyarrow, or a refusal that names the extra.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingExtraError(
            f"the format {form} needs pyarrow, which is not installed; "
            f"run: pip install 'datalens-dp[{_EXTRA[form]}]'"
        ) from None
    return pyarrow


def features(contents: Contents) -> dict[str, Any]:
    """The two columns in the words of ``datasets.Features``."""
    return {
        "image": {"_type": "Image"},
        "label": {"names": list(contents.classes), "_type": "ClassLabel"},
    }


def schema(pyarrow: Any, contents: Contents) -> Any:
    """``image: struct<bytes: binary, path: string>`` and ``label: int64``, with their features as metadata."""
    image = pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string()})
    told = json.dumps({"info": {"features": features(contents)}})
    return pyarrow.schema({"image": image, "label": pyarrow.int64()}, {"huggingface": told})


def record_batches(
    pyarrow: Any, layout: Any, first: int, images: np.ndarray, labels: np.ndarray
) -> Iterator[Any]:
    """Images and labels as rows of that schema, ``ROWS`` at most in a batch; ``first`` numbers the first image."""
    kinds = [layout.field(name).type for name in ("image", "label")]
    for start in range(0, len(labels), ROWS):
        pictures, numbers = images[start : start + ROWS], labels[start : start + ROWS]
        cells = [
            {"bytes": png_bytes(image), "path": png_name(number)}
            for number, image in enumerate(pictures, first + start)
        ]
        columns = [pyarrow.array(values, kind) for values, kind in zip((cells, numbers), kinds, strict=True)]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=layout)
