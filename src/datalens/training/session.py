"""One run from its settings and data to a trained student: begin, resume, step, checkpoint, finish."""

from __future__ import annotations

import json
import secrets
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from datalens.data.images import LabelledImages
from datalens.distributed.ranks import Ranks
from datalens.errors import BudgetError, CheckpointError, PrivacyWarning, RunError
from datalens.privacy.budget import Budget, PriceError
from datalens.privacy.dataset_budget import DatasetBudget
from datalens.privacy.ledger import Ledger
from datalens.randomness import Streams
from datalens.student.update import Student
from datalens.teachers.ensemble import Diagnostics
from datalens.teachers.partition import Partition
from datalens.training.agreement import check_class_order, check_header, check_heads, check_records
from datalens.training.algorithm import Parts, generator_step, replayed_step
from datalens.training.assembly import draw_run, make_teachers, noise_for_step
from datalens.training.changes import change_terms, split_performance
from datalens.training.checkpoint import Checkpoint, latest_checkpoint, save_checkpoint
from datalens.training.config import Config, Performance
from datalens.training.directions import DirectionLog, DirectionRecord
from datalens.training.facts import PublicFacts, declared_records, read_facts
from datalens.training.files import append_line, sweep, write_json
from datalens.training.following import announce
from datalens.training.heads import note_head
from datalens.training.plan import score_mechanism
from datalens.training.private_files import (
    Secrets,
    fingerprint,
    load_partition,
    require_private,
    save_partition,
)
from datalens.training.progress import Progress
from datalens.training.repeats import note_of_classes, note_of_repeats, refuse_groups
from datalens.training.run_folder import RunFolder
from datalens.training.shared_budget import (
    close_shared_budget,
    marks_of,
    note_budget_head,
    open_charged_budget,
)
from datalens.training.terms import (
    ledger_header,
    next_step,
    plan_in_force,
    terms_in_force,
)
from datalens.training.tuned import refuse_tuned

__all__ = ["Progress", "Session", "declared_records"]

NEEDS_FOLDER = "a run of several processes keeps its secrets in a folder that all of them see; give one (out)"


class Session:
    """A run in progress. Make one with :meth:`begin` or :meth:`resume`, then call :meth:`run`.

    Attributes:
        facts: what everybody may know.
        performance: settings of this stretch of the run; the run's own, unless others were given.
        plan: what may still be released, and how.
        budget: what was authorised and spent.
        student: the generator in training.
        teachers: this rank's share of them, leading the others'.
        was_stopped: whether :meth:`run` ended early, as it was asked to.
        steps_done: generator steps done, replayed ones among them.
        notes: lines for the owner, such as repeated records or checkpoints passed over; never shared.
    """

    def __init__(
        self,
        facts: PublicFacts,
        data: LabelledImages,
        partition: Partition,
        private: Streams,
        ledger: Ledger,
        folder: RunFolder | None,
        shared: DatasetBudget | None = None,
        changes: Mapping[str, Any] | None = None,
        performance: Performance | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        self.facts = facts
        self.performance = performance or facts.config.performance
        self.folder = folder
        privacy = facts.config.privacy
        of_classes = note_of_classes(
            data, is_declared=privacy.labels_are_public or not facts.classes_from_data
        )
        self.notes = [*filter(None, [of_classes, note_of_repeats(data, privacy.group_size)])]
        self.diagnostics: list[Diagnostics] = []
        self.steps_done = 0
        self.was_stopped = False
        self._ranks = ranks or Ranks.alone()
        self._ledger = ledger
        self._shared = shared
        self._run_id = str(ledger.header.get("run_id", ""))
        self._log = DirectionLog(folder.directions) if folder is not None else None
        self.records: list[DirectionRecord] = self._log.records if self._log is not None else []
        try:
            self._assemble(data, partition, private, changes)
        except BaseException:
            if self._log is not None:
                self._log.close()
            raise

    def _assemble(
        self, data: LabelledImages, partition: Partition, private: Streams, changes: Mapping[str, Any] | None
    ) -> None:
        facts, ledger, shared = self.facts, self._ledger, self._shared
        self.budget = Budget(
            ledger,
            shared=None if shared is None else shared.budget,
            run=self._run_id,
            marks=marks_of(facts.config),
        )
        if changes:
            self.notes += filter(
                None, [change_terms(facts, self.budget, changes, None if shared is None else shared.budget)]
            )
        self.plan = plan_in_force(facts, ledger, self.budget.authorisation)
        self._next_step = next_step(ledger.lines)
        self.student = Student(facts.student_plan, facts.streams, self._ranks.device(self.performance.device))
        announce(self._ranks, self.performance, ledger.head)
        self.teachers = make_teachers(
            facts,
            data,
            partition,
            private,
            self.performance,
            None if self.folder is None else self.folder.private,
            self._ranks,
        )
        self.parts = Parts(
            config=terms_in_force(ledger).config(facts.config),
            student=self.student,
            teachers=self.teachers,
            mechanism=self.plan.mechanism,
            budget=self.budget,
            noise_for_step=noise_for_step(facts.config),
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
    ) -> Session:
        """A new run; with ``root`` its folder is made, and removed again if the run cannot begin.

        Args:
            config: settings.
            data: the sensitive records.
            root: a new folder, or None to keep everything in memory.
            budget_file: the data set's budget, open; charged before the run's own, and closed with the run.
            signal_matters: False for an audit, which has few teachers and learns nothing from them.
            ranks: where other processes hold teachers too; this is the first of them, and needs ``root``.

        Raises:
            DataLensError: settings or data that do not fit; nothing is left behind.

        Warns:
            PrivacyWarning: a delta at which releasing a whole record would be allowed.
        """
        if root is None and ranks is not None and ranks.world_size > 1:
            raise RunError(NEEDS_FOLDER)
        refuse_groups(data)
        facts, plan, partition, private, doubts = draw_run(config, data, signal_matters=signal_matters)
        for doubt in doubts:
            warnings.warn(doubt, PrivacyWarning, stacklevel=3)
        header = ledger_header(facts, plan, partition, secrets.token_hex(16))
        if budget_file is not None:
            score = score_mechanism(config)
            budget_file.require(plan.event, plan.num_steps, *([] if score is None else [score.event(1)]))
            header["dataset_budget"] = budget_file.to_json()
        if root is None:
            return cls(facts, data, partition, private, Ledger.in_memory(header), None, budget_file)
        folder = RunFolder.create(root, publishable=config.privacy.is_publishable)
        try:
            ledger = Ledger.create(
                folder.ledger, header
            )  # first, so that its lock says that the folder is in use
            try:
                shared_path = None if budget_file is None else budget_file.path.absolute()
                Secrets(private.root, fingerprint(data), shared_path).write(folder.secrets)
                save_partition(folder.partition, partition)
                write_json(folder.config, facts.to_json())  # last: without settings no run has begun
                session = cls(facts, data, partition, private, ledger, folder, budget_file, ranks=ranks)
            except BaseException:
                ledger.close()
                raise
        except BaseException:
            folder.discard()
            raise
        note_head(session._run_id, ledger.head)
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
        folder = RunFolder.open(root)
        facts = read_facts(folder)
        refuse_tuned(folder, "go on")
        require_private(folder)
        performance, changes = split_performance(facts.config, changes or {})
        kept = Secrets.read(folder.secrets)
        check_class_order(data.classes, facts, root)
        if kept.fingerprint != fingerprint(data):
            raise RunError(f"{root}: these are not the data of this run; resume with the same data")
        partition = load_partition(folder.partition)
        shared: DatasetBudget | None = None
        ledger = Ledger.open(folder.ledger)
        try:
            sweep([folder.release, folder.private, folder.checkpoints])
            check_header(ledger, facts, partition)
            check_heads(ledger, folder)
            if kept.budget_file is not None:
                shared = open_charged_budget(kept.budget_file, ledger)
            elif ledger.header.get("dataset_budget") is not None:
                raise RunError(f"{folder.secrets}: does not name the data set's budget; restore the file")
            session = cls(
                facts, data, partition, kept.streams, ledger, folder, shared, changes, performance, ranks
            )
        except BaseException:
            ledger.close()
            if shared is not None:
                shared.close()
            raise
        try:
            session._catch_up(folder)
            note_head(session._run_id, ledger.head)
        except BaseException:
            session.close()
            raise
        return session

    # -- running ------------------------------------------------------------------------------------------------

    def run(
        self,
        *,
        tell: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Take the remaining steps; after each, ``tell`` is told and ``stop`` may end the run early.

        Returns:
            Whether all planned steps are done (or the budget has no room for another).
        """
        tell = tell or (lambda _: None)
        while self._next_step < self.plan.num_steps and self._has_room():
            if stop() or self.teachers.is_asked_to_stop:
                self.was_stopped = True
                self.checkpoint()
                return False
            step, self._next_step = self._next_step, self._next_step + 1
            generator_step(self.parts, step)
            self.steps_done += 1
            if self.folder is not None and self.steps_done % self._checkpoint_every == 0:
                self.checkpoint()
            tell(self._progress())
        self.checkpoint()
        return True

    def checkpoint(self) -> None:
        """Save teachers and student under ``private/``; without a folder, nothing."""
        if self.folder is None:
            return
        save_checkpoint(
            self.folder.checkpoints,
            self.steps_done,
            self.student.state_dict(),
            self.teachers.write,
            head=self._ledger.head,
            last_step=self.records[-1].step if self.records else -1,
        )
        note_head(self._run_id, self._ledger.head)
        if self._shared is not None:
            note_budget_head(self._shared)

    def dismiss(self) -> None:
        """Tell the other ranks that all is done; without this they take it that the run has failed."""
        self.teachers.dismiss(stopped=self.was_stopped)

    def close(self) -> None:
        """Give back ledgers, files and the teachers' states."""
        self.teachers.close()
        self._ledger.close()
        if self._shared is not None:
            close_shared_budget(self._shared)
        if self._log is not None:
            self._log.close()

    @property
    def ledger(self) -> Ledger:
        """The run's ledger."""
        return self._ledger

    @property
    def _checkpoint_every(self) -> int:
        return self.performance.checkpoint_every

    def _progress(self) -> Progress:
        return Progress(
            self.steps_done,
            self.plan.num_steps,
            self.budget.spent_epsilon(),
            self.budget.authorised_epsilon(),
        )

    def _has_room(self) -> bool:
        """Whether the budget pays for another step; an accountant that gives no number is an error."""
        try:
            self.budget.check(self.plan.event)
        except PriceError:
            raise
        except BudgetError:
            return False
        return True

    def _record(self, record: DirectionRecord) -> None:
        if self._log is not None:
            self._log.append(record)
        else:
            self.records.append(record)

    def _diagnose(self, diagnostics: Diagnostics) -> None:
        self.diagnostics.append(diagnostics)
        if self.folder is not None:
            append_line(self.folder.diagnostics, json.dumps(asdict(diagnostics)))

    def _catch_up(self, folder: RunFolder) -> None:
        """Load the last good checkpoint, then replay what was released after it."""
        check_records(self.records, self._ledger, folder.directions)
        checkpoint = latest_checkpoint(folder.checkpoints)
        last_step = -1
        if checkpoint is not None:
            self._load(checkpoint, folder)
            last_step = checkpoint.last_step
        for record in [record for record in self.records if record.step > last_step]:
            replayed_step(self.parts, record)
            self.steps_done += 1

    def _load(self, checkpoint: Checkpoint, folder: RunFolder) -> None:
        self.notes += checkpoint.passed_over
        self._ledger.check_heads([checkpoint.head])
        if checkpoint.last_step not in {-1, *(record.step for record in self.records)}:
            raise CheckpointError(
                f"{folder.directions}: ends before step {checkpoint.last_step}, which a checkpoint has seen; "
                "restore the file"
            )
        self.steps_done = checkpoint.step
        self.student.load_state_dict(checkpoint.tensors)
        self.teachers.read(checkpoint.path)
