"""How far a run's warm start has come, by its ledger and the file of what was released."""

from __future__ import annotations

from pathlib import Path

import torch

from datalens.data.images import LabelledImages
from datalens.moments.measuring import STATES
from datalens.privacy.budget import Budget
from datalens.privacy.ledger import Ledger
from datalens.student.update import Student
from datalens.training.facts import PublicFacts
from datalens.training.files import write_atomically
from datalens.training.opening import OpenRun
from datalens.training.warm_file import Table, Tables, file_of, read_tables
from datalens.training.warm_plan import WarmTerms
from datalens.training.warm_start import LOST, num_paid, release_tables, weights_of


class WarmState:
    """A warm start in progress or done. Make one with :meth:`of`.

    Args:
        facts: of the run.
        terms: on which it makes its releases.
        ledger: of the run.
        path: of the file of what was released; None in memory.
        tables: what was released.

    Attributes:
        tables: what was released so far. Public.
    """

    def __init__(
        self,
        facts: PublicFacts,
        terms: WarmTerms,
        ledger: Ledger,
        path: Path | None,
        tables: dict[str, Table],
    ) -> None:
        self._facts, self._terms, self._ledger, self._path = facts, terms, ledger, path
        self.tables: dict[str, Table] = tables

    @classmethod
    def of(cls, run: OpenRun) -> WarmState | None:
        """As a run's files have it; None for a run without a warm start.

        Raises:
            DataLensError: files that cannot be used.
        """
        terms = WarmTerms.recorded(run.ledger)
        if terms is None:
            return None
        path = None if run.folder is None else run.folder.warm_start
        tables = {} if path is None else read_tables(path, run.facts.measures, run.ledger)
        return cls(run.facts, terms, run.ledger, path, tables)

    @property
    def is_lost(self) -> bool:
        """Whether something was charged and not saved: then nothing more of it is released."""
        return len(self.tables) < len(STATES) and num_paid(self._ledger) > len(self.tables)

    @property
    def is_done(self) -> bool:
        """Whether nothing is to be released any more."""
        return self.is_lost or len(self.tables) == len(STATES)

    @property
    def note(self) -> str | None:
        """A line for the owner where something was lost."""
        return LOST[list(STATES)[len(self.tables)]] if self.is_lost else None

    def release(self, data: LabelledImages, budget: Budget) -> None:
        """Release what is left; every table is on disk before anything is computed from it.

        Raises:
            BudgetError: it does not fit; nothing was released.
        """
        self.tables = release_tables(self._facts, self._terms, data, budget, self.tables, self._save)

    def student(self, device: torch.device) -> Student:
        """The student before its first step: a function of what was released."""
        weights = weights_of(self._facts, self._terms, self.tables, device)
        return Student(self._facts.student_plan, self._facts.streams, device, weights)

    def _save(self, tables: Tables) -> None:
        if self._path is not None:
            write_atomically(self._path, file_of(tables))
