"""Whoever uses the package from typed code sees a type for everything: ``py.typed`` is a promise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyright", reason="pyright (extra dev) is not installed")

SOURCE = Path(__file__).resolve().parents[2] / "src"
STANDS_ON_OPACUS = {
    "datalens.dpsgd.TopAggPrivacyEngine",
    "datalens.dpsgd.engine.TopAggPrivacyEngine",
    "datalens.dpsgd.integer.IntegerTopAggOptimizer",
    "datalens.dpsgd.lots.LotsOfAllRanks",
    "datalens.dpsgd.lots.SecretLots",
    "datalens.dpsgd.lots.with_lots",
    "datalens.dpsgd.optimizer.DistributedTopAggOptimizer",
    "datalens.dpsgd.optimizer.TopAggOptimizer",
    "datalens.dpsgd.steps.LotSteps",
    "datalens.dpsgd.steps.LotSteps.__init__",
}
"""Subclasses of Opacus's classes, which come without types, and what takes one of them."""


def public_symbols(source: Path) -> list[dict[str, Any]]:
    """What a user of the package sees, as ``pyright --verifytypes`` judges it."""
    words = [sys.executable, "-m", "pyright", "--ignoreexternal", "--outputjson", "--verifytypes", "datalens"]
    # with --verifytypes it knows the packages of the first python in PATH, whatever --pythonpath says
    first = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    answer = subprocess.run(
        words,
        env=os.environ | {"PATH": first, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(answer.stdout)["typeCompleteness"]
    assert Path(report["packageRootDirectory"]).samefile(source / "datalens"), "another datalens was read"
    return [symbol for symbol in report["symbols"] if symbol["isExported"]]


@pytest.mark.timeout(900)
def test_every_public_symbol_has_a_type_and_every_function_a_docstring() -> None:
    symbols = public_symbols(SOURCE)
    untyped = {
        symbol["name"]: [" ".join(found["message"].split()) for found in symbol["diagnostics"]]
        for symbol in symbols
        if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]
    }
    silent = [
        symbol["name"]
        for symbol in symbols
        if any("docstring" in found["message"] for found in symbol["diagnostics"])
    ]
    assert len(symbols) > 1000
    assert {name: why for name, why in untyped.items() if name not in STANDS_ON_OPACUS} == {}
    assert silent == []
