"""Programs outside of the package, run in this process: starting PyTorch anew would take longer than they do."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


def program(path: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program at ``path`` in the repository, which may import its neighbours."""
    file = REPOSITORY / path
    monkeypatch.syspath_prepend(str(file.parent))
    spec = importlib.util.spec_from_file_location(f"program_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def said(printed: str) -> dict[str, Any]:
    """The one line of JSON that a program printed."""
    (line,) = printed.splitlines()
    return json.loads(line)
