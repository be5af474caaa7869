"""``release/warm-start.safetensors``: what a warm start released, each table with the ledger line that paid for it.

The file is written anew, whole, after every release and before that is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors
import safetensors.torch
from torch import Tensor, float64

from datalens.errors import CheckpointError
from datalens.moments.measuring import STATES, Measures
from datalens.privacy.ledger import Ledger, LineKind
from datalens.training.warm_plan import NOTE

LINES = "lines"
"""In the header: the hash of the ledger line of each table, by its name."""


@dataclass(frozen=True, eq=False)
class Table:
    """One release. Public.

    Attributes:
        sums_YS: float64, the noisy sums, a row a class.
        line_hash: of the ledger line that paid for it.
    """

    sums_YS: Tensor
    line_hash: str


Tables = Mapping[str, Table]
"""What was released, by what it is (:data:`datalens.moments.measuring.STATES`), in the order of release."""


def file_of(tables: Tables) -> bytes:
    """The file."""
    tensors = {STATES[what]: table.sums_YS.cpu().contiguous() for what, table in tables.items()}
    lines = {STATES[what]: table.line_hash for what, table in tables.items()}
    return safetensors.torch.save(tensors, {LINES: json.dumps(lines, sort_keys=True)})


def read_tables(path: Path, measures: Measures, ledger: Ledger) -> dict[str, Table]:
    """The tables of a run; none where there is no file.

    Args:
        path: of the file.
        measures: of the run.
        ledger: of the run.

    Raises:
        CheckpointError: it is damaged, of other settings, or the ledger has no line that pays for a table.
    """
    if not path.is_file():
        return {}
    try:
        with safetensors.safe_open(path, "pt") as file:
            lines = json.loads((file.metadata() or {}).get(LINES, "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  no mapping
        names = list(STATES.values())[: len(tensors)]
        if set(tensors) != set(names) or not isinstance(lines, dict) or set(lines) != set(names):
            raise ValueError("it holds other tables than a warm start's")
        if not all(isinstance(line, str) for line in lines.values()):
            raise ValueError("it does not say which lines paid for its tables")
        tables = {what: Table(tensors[name], lines[name]) for what, name in STATES.items() if name in names}
        for what, table in tables.items():
            _check(what, table, measures, ledger)
    except (OSError, RuntimeError, ValueError, MemoryError, safetensors.SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"{path}: cannot be used ({reason:.120}); restore the file") from None
    return tables


def _check(what: str, table: Table, measures: Measures, ledger: Ledger) -> None:
    expected = (measures.num_classes, measures.grid(what).dim)
    if tuple(table.sums_YS.shape) != expected or table.sums_YS.dtype != float64:
        raise ValueError(f"its {what} have another shape or type than the run's")
    if not bool(table.sums_YS.isfinite().all()):
        raise ValueError(f"its {what} are not finite")
    paid = {
        line.hash: line.body["note"]
        for line in ledger.lines
        if line.kind == LineKind.RELEASE and NOTE in (line.body.get("note") or {})
    }
    if paid.get(table.line_hash, {}).get("what") != what:
        raise ValueError(f"the ledger has no line that pays for its {what}")
