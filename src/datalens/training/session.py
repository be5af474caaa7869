"""A run in progress: begin it or go on with it, take steps, save, finish."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from datalens.data.images import LabelledImages
from datalens.distributed.ranks import Ranks
from datalens.errors import CheckpointError
from datalens.privacy.budget import Budget
from datalens.privacy.dataset_budget import DatasetBudget
from datalens.privacy.ledger import Ledger
from datalens.student.update import Student
from datalens.teachers.ensemble import Diagnostics
from datalens.training.agreement import check_records
from datalens.training.algorithm import Parts, generator_step, replayed_step
from datalens.training.assembly import make_teachers, noise_for_step
from datalens.training.changes import change_terms
from datalens.training.checkpoint import Checkpoint, latest_checkpoint, save_checkpoint
from datalens.training.config import Config, Performance
from datalens.training.crew import Crew
from datalens.training.directions import DirectionLog, DirectionRecord
from datalens.training.facts import PublicFacts
from datalens.training.files import append_line
from datalens.training.following import announce
from datalens.training.groups import note_of_groups
from datalens.training.heads import note_head
from datalens.training.opening import OpenRun, open_new, open_old
from datalens.training.plan import Plan
from datalens.training.progress import Progress
from datalens.training.repeats import notes_of
from datalens.training.room import has_room
from datalens.training.run_folder import RunFolder
from datalens.training.several import check_ranks
from datalens.training.shared_budget import marks_of, note_heads
from datalens.training.start_file import PublicStart
from datalens.training.starting import MakeStart
from datalens.training.terms import next_step, plan_in_force, terms_in_force
from datalens.training.warm_state import WarmState


class Session:
    """A run in progress. Make one with :meth:`begin` or :meth:`resume`, then call :meth:`run`.

    Args:
        run: what it is made from; closed with the session.
        data: the sensitive records.
        ranks: of the run, of which this is the first; a single process unless given.

    Attributes:
        facts: what everybody may know.
        performance: settings of this stretch of the run; the run's own, unless others were given.
        start: the public weights that it begins with; None where it begins at random.
        warm: its warm start; None where it has none.
        plan: what may still be released, and how.
        budget: what was authorised and spent.
        student: the generator in training.
        teachers: this rank's share of them, leading the others'.
        was_stopped: whether :meth:`run` ended early, as it was asked to.
        steps_done: generator steps done, replayed ones among them.
        notes: lines for the owner, such as repeated records or checkpoints passed over; never shared.
    """

    def __init__(self, run: OpenRun, data: LabelledImages, ranks: Ranks | None = None) -> None:
        self.facts: PublicFacts = run.facts
        self.performance: Performance = run.performance
        self.folder: RunFolder | None = run.folder
        self.start: PublicStart | None = run.start
        self.warm: WarmState | None = WarmState.of(run)
        told = note_of_groups(run.partition, data.name), None if self.warm is None else self.warm.note
        self.notes: list[str] = notes_of(data, run.facts.config.privacy, run.facts.classes_from_data, *told)
        self.diagnostics: list[Diagnostics] = []
        self.steps_done: int = 0
        self._saved_at = -1
        self.was_stopped: bool = False
        self._run, self._data = run, data
        self._log = DirectionLog(run.folder.directions) if run.folder is not None else None
        self.records: list[DirectionRecord] = self._log.records if self._log is not None else []
        try:
            self._assemble(run, data, ranks or Ranks.alone())
        except BaseException:
            if self._log is not None:
                self._log.close()
            raise

    def _assemble(self, run: OpenRun, data: LabelledImages, ranks: Ranks) -> None:
        facts = run.facts
        shared = None if run.shared is None else run.shared.budget
        self.budget: Budget = Budget(run.ledger, shared=shared, run=run.run_id, marks=marks_of(facts.config))
        if run.changes:
            self.notes += filter(None, [change_terms(facts, self.budget, run.changes, shared)])
        self.plan: Plan = plan_in_force(facts, run.ledger, self.budget.authorisation)
        self._next_step = next_step(run.ledger.lines)
        device = ranks.device(self.performance.device)
        self.student: Student = Student(facts.student_plan, facts.streams, device, run.start_weights)
        config, noise = terms_in_force(run.ledger).config(facts.config), noise_for_step(facts.config)
        announce(ranks, self.performance, run.ledger.head)
        folder = None if run.folder is None else run.folder.private
        self.teachers: Crew = make_teachers(
            facts, data, run.partition, run.private, self.performance, folder, ranks, run.start
        )
        self.parts: Parts = Parts(
            config=config,
            student=self.student,
            teachers=self.teachers,
            mechanism=self.plan.mechanism,
            budget=self.budget,
            noise_for_step=noise,
            record=self._record,
            diagnose=self._diagnose,
        )

    # -- making one ---------------------------------------------------------------------------------------------

    @classmethod
    def begin(
        cls,
        config: Config,
        data: LabelledImages,
        root: Path | None,
        budget_file: DatasetBudget | None = None,
        *,
        signal_matters: bool = True,
        ranks: Ranks | None = None,
        make_start: MakeStart | None = None,
    ) -> Session:
        """A new run; with ``root`` its folder is made, and removed again if the run cannot begin.

        Args:
            config: settings.
            data: the sensitive records.
            root: a new folder, or None to keep everything in memory.
            budget_file: the data set's budget, open; charged before the run's own, and closed with the run.
            signal_matters: False for an audit, which has few teachers and learns nothing from them.
            ranks: where other processes hold teachers too; this is the first of them, and needs ``root``.
            make_start: of public weights to begin with; None to begin at random.

        Raises:
            DataLensError: settings or data that do not fit; nothing is left behind.

        Warns:
            PrivacyWarning: a delta at which releasing a whole record would be allowed.
        """
        check_ranks(ranks, root, config.warm_start)
        run = open_new(config, data, root, budget_file, signal_matters=signal_matters, make_start=make_start)
        try:
            session = cls(run, data, ranks)
        except BaseException:
            run.ledger.close()  # the data set's budget stays open: whoever opened it may begin another run
            if run.folder is not None:
                run.folder.discard()
            raise
        if run.folder is not None:
            note_head(run.run_id, run.ledger.head)
        return session

    @classmethod
    def resume(
        cls,
        root: Path,
        data: LabelledImages,
        changes: Mapping[str, Any] | None = None,
        *,
        ranks: Ranks | None = None,
    ) -> Session:
        """A run that was interrupted, at its last good checkpoint; released steps after it are replayed.

        Args:
            root: the run's folder.
            data: the same records.
            changes: settings that may change, see :func:`datalens.training.changes.change_terms`, and any
                performance setting, which is not recorded.
            ranks: where other processes hold teachers too, as many as then or not; this is the first of them.

        Raises:
            DataLensError: the folder lacks what is needed, or disagrees with the data or itself.
        """
        run = open_old(root, data, changes or {})
        try:
            check_ranks(ranks, root, run.facts.config.warm_start)
            session = cls(run, data, ranks)
        except BaseException:
            run.close()
            raise
        try:
            if run.folder is not None:
                session._catch_up(run.folder)
            note_head(run.run_id, run.ledger.head)
        except BaseException:
            session.close()
            raise
        return session

    # -- running ------------------------------------------------------------------------------------------------

    def run(
        self, *, tell: Callable[[Progress], None] | None = None, stop: Callable[[], bool] = lambda: False
    ) -> bool:
        """Take the remaining steps; after each, ``tell`` is told and ``stop`` may end the run early.

        Returns:
            Whether all planned steps are done (or the budget has no room for another).
        """
        if self.warm is not None and not self.warm.is_done:
            if stop():
                self.was_stopped = True
                return False
            self.warm.release(self._data, self.budget)
            self._begin_warm(self.warm)
        while self._next_step < self.plan.num_steps and has_room(self.budget, self.plan.event):
            if stop() or self.teachers.is_asked_to_stop:
                self.was_stopped = True
                self.checkpoint()
                return False
            step, self._next_step = self._next_step, self._next_step + 1
            generator_step(self.parts, step)
            self.steps_done += 1
            if self.steps_done % self.performance.checkpoint_every == 0:
                self.checkpoint()
            if tell is not None:
                student, total = self.student, self.plan.num_steps
                tell(Progress.at(self.steps_done, total, self.budget, student.rows_of_classes))
        self.checkpoint()
        return True

    def checkpoint(self) -> None:
        """Save teachers and student under ``private/``; nothing without a folder, or since the last time."""
        if self.folder is None or self._saved_at == self.steps_done:
            return
        save_checkpoint(
            self.folder.checkpoints,
            self.steps_done,
            self.student.state_dict(),
            self.teachers.write,
            head=self.ledger.head,
            last_step=self.records[-1].step if self.records else -1,
        )
        self._saved_at = self.steps_done
        note_heads(self.ledger, self._run.shared)

    def dismiss(self) -> None:
        """Tell the other ranks that all is done; without this they take it that the run has failed."""
        self.teachers.dismiss(stopped=self.was_stopped)

    def close(self) -> None:
        """Give back ledgers, files and the teachers' states."""
        self.teachers.close()
        self._run.close()
        if self._log is not None:
            self._log.close()

    @property
    def ledger(self) -> Ledger:
        """The run's ledger."""
        return self._run.ledger

    def _begin_warm(self, warm: WarmState) -> None:
        """The student anew, from what the warm start has released."""
        self.student = warm.student(self.student.device)
        self.parts = replace(self.parts, student=self.student)
        self.checkpoint()

    def _record(self, record: DirectionRecord) -> None:
        keep = self.records if self._log is None else self._log
        keep.append(record)

    def _diagnose(self, diagnostics: Diagnostics) -> None:
        self.diagnostics.append(diagnostics)
        if self.folder is not None:
            append_line(self.folder.diagnostics, json.dumps(asdict(diagnostics)))

    def _catch_up(self, folder: RunFolder) -> None:
        """Load the last good checkpoint, then replay what was released after it."""
        check_records(self.records, self.ledger, folder.directions)
        checkpoint = latest_checkpoint(folder.checkpoints)
        if checkpoint is None and self.warm is not None and self.warm.is_done:
            self._begin_warm(self.warm)
        last_step = -1 if checkpoint is None else self._load(checkpoint, folder)
        for record in [record for record in self.records if record.step > last_step]:
            replayed_step(self.parts, record)
            self.steps_done += 1

    def _load(self, checkpoint: Checkpoint, folder: RunFolder) -> int:
        """The last step that the checkpoint has seen, which is now the run's."""
        self.notes += checkpoint.passed_over
        self.ledger.check_heads([checkpoint.head])
        if checkpoint.last_step not in {-1, *(record.step for record in self.records)}:
            raise CheckpointError(
                f"{folder.directions}: ends before step {checkpoint.last_step}, which a checkpoint has seen; "
                "restore the file"
            )
        self.steps_done = self._saved_at = checkpoint.step
        self.student.load_state_dict(checkpoint.tensors)
        self.teachers.read(checkpoint.path)
        return checkpoint.last_step
