"""A study: a computation of seconds or minutes that is no cell of a table, kept in the same results store."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from datalens.errors import DataLensError
from datalens.experiments.store import ResultsStore
from datalens.training.release import environment


@dataclass(frozen=True)
class Study:
    """What is computed, named by everything that decides it.

    Attributes:
        name: as in ``datalens reproduce NAME``.
        settings: plain values by name.
        version: raised when the computation changes.
    """

    name: str
    settings: tuple[tuple[str, Any], ...] = ()
    version: int = 1

    @property
    def key(self) -> str:
        """Digest of name, settings and version."""
        what = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(what.encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """The study as plain values."""
        return {
            "study": self.name,
            "version": self.version,
            "settings": [list(pair) for pair in self.settings],
        }


class NotRun(DataLensError):
    """A study that is not in the store, where nothing may be computed."""


def studied(study: Study, store: ResultsStore, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The study's result: from the store, or computed and put there with machine, versions and seconds.

    Args:
        study: what.
        store: where results are.
        compute: gives plain values; called only where the store has none.

    Raises:
        NotRun: it is not there, and the store is only to be read.
    """
    held = store.score(study, "result")
    if held is not None:
        return held
    if store.read_only:
        raise NotRun(f"{study.name}: not run")
    started = time.monotonic()
    result = compute()
    facts = {
        "seconds": round(time.monotonic() - started, 1),
        "environment": {**environment("cpu"), "cores": os.cpu_count()},
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    store.add(study, {"result": result}, facts)
    found = store.score(study, "result")
    return result if found is None else found
