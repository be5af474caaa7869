"""One run of a method: the same folder, ledger, budget and checkpoints that a run of DataLens has.

A method's releases are not replayed: they may be many and large. A run goes on from its last checkpoint, and steps
that were charged after it are not taken again; what they released is lost, its charge stays.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import torch

from datalens.data.images import LabelledImages
from datalens.errors import BudgetError, RunError
from datalens.methods.facts import MethodFacts
from datalens.methods.method import Context, PlannedMethod, StepLearner
from datalens.methods.opening import Decided, check_header, noise_for
from datalens.privacy.budget import Budget, PriceError
from datalens.privacy.dataset_budget import DatasetBudget
from datalens.privacy.ledger import Ledger
from datalens.randomness import Streams
from datalens.training.agreement import check_class_order, check_data
from datalens.training.checkpoint import latest_checkpoint, save_checkpoint
from datalens.training.devices import require_device
from datalens.training.files import write_json
from datalens.training.groups import note_of_groups
from datalens.training.heads import note_head
from datalens.training.opening import open_charged
from datalens.training.private_files import Secrets, fingerprint
from datalens.training.progress import Draw, Progress
from datalens.training.repeats import note_of_classes, note_of_repeats
from datalens.training.run_folder import RunFolder
from datalens.training.shared_budget import (
    close_shared_budget,
    marks_of,
    note_heads,
)
from datalens.training.terms import next_step

FEW_RELEASES = 128
"""With at most so many releases every one is worth a checkpoint of its own."""


Facts = TypeVar("Facts", bound=MethodFacts)
Learner = TypeVar("Learner", bound=StepLearner)


class MethodRun(Generic[Facts, Learner]):
    """A run in progress. Make one with :meth:`begun` or :meth:`reopened`, then call :meth:`run`.

    Attributes:
        facts: what everybody may know.
        method: with its noise.
        budget: what was authorised and spent.
        learner: holds data and networks. Private.
        was_stopped: whether :meth:`run` ended early, as it was asked to.
        steps_done: steps whose outcome the learner holds.
        notes: lines for the owner; never shared.
    """

    facts: Facts
    folder: RunFolder | None
    ledger: Ledger
    steps_done: int

    def __init__(
        self,
        facts: Facts,
        data: LabelledImages,
        private: Streams,
        ledger: Ledger,
        folder: RunFolder | None,
        shared: DatasetBudget | None,
    ) -> None:
        privacy = facts.config.privacy
        is_declared = privacy.labels_are_public or not facts.classes_from_data
        notes = note_of_classes(data, is_declared=is_declared), note_of_repeats(data, privacy.group_size)
        self.notes: list[str] = [*filter(None, notes)]
        self.facts, self.folder, self.ledger = facts, folder, ledger
        self._shared = shared
        self.method: PlannedMethod = facts.method
        self.budget: Budget = Budget(
            ledger,
            shared=None if shared is None else shared.budget,
            run=self._run_id,
            marks=marks_of(facts.config),
        )
        self.device: torch.device = torch.device(facts.config.performance.device)
        context = Context(
            data, facts.size, self.budget, noise_for(privacy), facts.streams, private, self.device
        )
        learner: Any = self.method.begin(context)
        self.learner: Learner = learner
        slots = getattr(learner, "partition", None)  # of methods with teachers
        self.notes += filter(
            None, [note_of_groups(slots, data.name), facts.config.settings.note(privacy, facts.size)]
        )
        self.steps_done, self._saved_at = 0, -1
        self._next_step = next_step(ledger.lines)
        self._keeps_each_release = sum(planned.count for planned in self.method.planned()) <= FEW_RELEASES
        self.was_stopped: bool = False

    @classmethod
    def begun(
        cls, decided: Decided[Facts], data: LabelledImages, root: Path | None, shared: DatasetBudget | None
    ) -> Self:
        """A new run; with ``root`` its folder is made, and removed again if the run cannot begin.

        Args:
            decided: what it is made from.
            data: the sensitive records.
            root: a new folder, or None to keep everything in memory.
            shared: the data set's budget, open; charged before the run's own, and closed with the run.

        Raises:
            DataLensError: data that do not fit, or a folder that is taken; nothing is left behind.
        """
        facts, private, header = decided.facts, decided.private, decided.header
        if root is None:
            return cls(facts, data, private, Ledger.in_memory(header), None, shared)
        folder = RunFolder.create(root, publishable=facts.config.privacy.is_publishable)
        try:
            ledger = Ledger.create(folder.ledger, header)  # first: its lock says that the folder is in use
            try:
                path = None if shared is None else shared.path.absolute()
                Secrets(private.root, fingerprint(data), path).write(folder.secrets)
                write_json(folder.config, facts.to_json())  # last: without settings no run has begun
                run = cls(facts, data, private, ledger, folder, shared)
            except BaseException:
                ledger.close()
                raise
        except BaseException:
            folder.discard()
            raise
        note_head(run._run_id, ledger.head)
        return run

    @classmethod
    def reopened(cls, facts: Facts, root: Path, data: LabelledImages) -> Self:
        """A run that was interrupted, at its last good checkpoint.

        Args:
            facts: as its folder has them.
            root: the run's folder.
            data: the same records.

        Raises:
            DataLensError: the folder lacks what is needed, or disagrees with the data or itself.
        """
        folder = RunFolder.open(root)
        if not folder.secrets.is_file():
            raise RunError(
                f"{root}: its private side is gone (purged?), so it cannot go on; sampling needs only release/"
            )
        require_device(facts.config.performance.device)
        kept = Secrets.read(folder.secrets)
        check_class_order(data.classes, facts, root)
        check_data(data, facts, kept, root)
        ledger, shared = open_charged(folder, kept, lambda ledger: check_header(ledger, facts))
        try:
            run = cls(facts, data, kept.streams, ledger, folder, shared)
            run._load(folder)
        except BaseException:
            ledger.close()
            if shared is not None:
                shared.close()
            raise
        note_head(run._run_id, ledger.head)
        return run

    def run(
        self,
        *,
        tell: Callable[[Progress], None] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Take the remaining steps; after each, ``tell`` is told and ``stop`` may end the run early.

        Returns:
            Whether all planned steps are done (or the budget has no room for another).
        """
        every = self.facts.config.performance.checkpoint_every
        while self._next_step < self.method.num_steps:
            if stop():
                self.was_stopped = True
                self.checkpoint()
                return False
            step, self._next_step = self._next_step, self._next_step + 1
            lines = len(self.ledger.lines)
            try:
                self.learner.step(step)
            except PriceError:
                raise
            except BudgetError:  # the data set's budget was used up by another run meanwhile
                if self.steps_done == 0:
                    raise
                break
            self.steps_done = step + 1
            released = len(self.ledger.lines) > lines
            if self.steps_done % every == 0 or (released and self._keeps_each_release):
                self.checkpoint()
            tell(self._progress())
        self.checkpoint()
        return True

    def checkpoint(self) -> None:
        """Save the learner under ``private/``; nothing without a folder, or since the last time."""
        if self.folder is None or self._saved_at == self.steps_done:
            return
        save_checkpoint(
            self.folder.checkpoints,
            self.steps_done,
            self.learner.state_dict(),
            lambda _: {},
            head=self.ledger.head,
            last_step=self.steps_done - 1,
        )
        self._saved_at = self.steps_done
        note_heads(self.ledger, self._shared)

    def close(self) -> None:
        """Give the ledgers back."""
        self.ledger.close()
        if self._shared is not None:
            close_shared_budget(self._shared)

    @property
    def _run_id(self) -> str:
        return str(self.ledger.header.get("run_id", ""))

    def _progress(self) -> Progress:
        return Progress.at(self.steps_done, self.method.num_steps, self.budget, self._draw())

    def _draw(self) -> Draw | None:
        """How images are drawn of what was learned so far; None where that is no generator."""
        return None

    def _load(self, folder: RunFolder) -> None:
        checkpoint = latest_checkpoint(folder.checkpoints)
        if checkpoint is None:
            if self._next_step > 0:
                raise RunError(
                    f"{folder.root}: ended before its first checkpoint, and what it had released is lost, though "
                    "charged; begin another run"
                )
            return
        self.notes += checkpoint.passed_over
        self.ledger.check_heads([checkpoint.head])
        self.learner.load_state_dict(checkpoint.tensors)
        self.steps_done = self._saved_at = checkpoint.step
        lost = max(0, self._next_step - checkpoint.step)
        if lost:
            self.notes.append(f"{lost} steps were charged and lost in a crash; they are not taken again")
        self._next_step = max(self._next_step, checkpoint.step)
