"""Small runs that many tests look at and none changes."""

from __future__ import annotations

import numpy as np
import pytest
from small_runs import small_config, small_data, train

from datalens import DataLens
from datalens.data.images import LabelledImages
from datalens.training.run_folder import RunFolder

EVIL = ("<script>alert(1)</script>", "\"><img src=x onerror=alert(1)> & 'b'")
"""Names of classes that mean something to a browser."""


def evil_data() -> LabelledImages:
    """Small records of classes with such names."""
    data = small_data()
    return LabelledImages(data.images, data.labels, EVIL, name="<b>evil</b>", public=False)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A finished run of eight steps."""
    root = tmp_path_factory.mktemp("reports") / "run"
    train(root)
    return RunFolder.open(root)


@pytest.fixture(scope="session")
def evil(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run whose classes are called like markup."""
    root = tmp_path_factory.mktemp("evil") / "run"
    DataLens(small_config()).fit(evil_data(), out=root)
    return RunFolder.open(root)


@pytest.fixture(scope="session")
def images() -> np.ndarray:
    """Four grey images."""
    return np.random.default_rng(0).integers(0, 256, (4, 1, 8, 8), dtype=np.uint8)
