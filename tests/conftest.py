"""What all tests share: real data where this machine has them, and a data root that is nobody's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
DATA_ROOT = Path(os.environ.get("DATALENS_DATA") or REPOSITORY.parent / "shared" / "data")


@pytest.fixture(autouse=True)
def _no_user_data(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep every test away from the user's own data root and cache."""
    monkeypatch.delenv("DATALENS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def _root_with(folder: str) -> Path:
    if not (DATA_ROOT / folder).is_dir():
        pytest.skip(f"no {folder} under {DATA_ROOT}; set DATALENS_DATA or run `datalens data fetch {folder}`")
    return DATA_ROOT


@pytest.fixture(scope="session")
def mnist_root() -> Path:
    """A data root that holds MNIST."""
    return _root_with("mnist")


@pytest.fixture(scope="session")
def fashion_mnist_root() -> Path:
    """A data root that holds Fashion-MNIST."""
    return _root_with("fashion-mnist")


@pytest.fixture(scope="session")
def cifar10_root() -> Path:
    """A data root that holds CIFAR-10."""
    return _root_with("cifar10")


@pytest.fixture(scope="session")
def emoji_root() -> Path:
    """A data root that holds the emoji."""
    return _root_with("emoji")
