"""DataLens: share images of other people without betraying any of them.

Train a generator of images under differential privacy, then draw from it as much as you like.

>>> from datalens import DataLens, recipes
>>> model = DataLens(recipes.mnist_quick(epsilon=1))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from datalens.version import __version__

if TYPE_CHECKING:
    from datalens import data, recipes
    from datalens.audit.any_run import audit_run
    from datalens.baselines.model import load_run
    from datalens.errors import DataLensError
    from datalens.training.config import Config
    from datalens.training.synthesizer import DataLens

__all__ = ["Config", "DataLens", "DataLensError", "__version__", "audit_run", "data", "load_run", "recipes"]

_LAZY = {
    "Config": ("datalens.training.config", "Config"),
    "DataLens": ("datalens.training.synthesizer", "DataLens"),
    "DataLensError": ("datalens.errors", "DataLensError"),
    "audit_run": ("datalens.audit.any_run", "audit_run"),
    "load_run": ("datalens.baselines.model", "load_run"),
    "data": ("datalens.data", None),
    "recipes": ("datalens.recipes", None),
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that what needs no PyTorch starts without it."""
    if name not in _LAZY:
        raise AttributeError(f"module 'datalens' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    found = importlib.import_module(module)
    return found if attribute is None else getattr(found, attribute)
