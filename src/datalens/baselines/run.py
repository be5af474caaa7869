"""One run of a baseline: the same folder, ledger, budget and checkpoints that a run of DataLens has.

A method's releases are not replayed: they may be many and large. A run goes on from its last checkpoint, and steps
that were charged after it are not taken again; what they released is lost, its charge stays.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from datalens.baselines.facts import BaselineFacts
from datalens.baselines.method import Context, Method, Planned, PublicSize
from datalens.baselines.registry import BaselineConfig
from datalens.data.images import LabelledImages
from datalens.errors import BudgetError, PrivacyWarning, RunError
from datalens.noise import NoiseSource, make_noise
from datalens.privacy.accountant import Accountant
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.dataset_budget import DatasetBudget
from datalens.privacy.events import Event, times
from datalens.privacy.ledger import Ledger
from datalens.privacy.promises import ADD_OR_REMOVE, BLANKED
from datalens.privacy.wording import delta_warning
from datalens.randomness import Streams
from datalens.training.agreement import check_class_order, check_heads
from datalens.training.checkpoint import latest_checkpoint, save_checkpoint
from datalens.training.devices import require_device
from datalens.training.facts import declared_records, require_public_classes
from datalens.training.files import read_json, sweep, write_json
from datalens.training.heads import note_head
from datalens.training.private_files import Secrets, fingerprint
from datalens.training.progress import Progress
from datalens.training.repeats import note_of_classes, note_of_repeats, refuse_groups
from datalens.training.run_folder import RunFolder
from datalens.training.sections import Privacy
from datalens.training.shared_budget import (
    close_shared_budget,
    marks_of,
    note_budget_head,
    open_charged_budget,
)
from datalens.training.terms import next_step
from datalens.version import __version__

FEW_RELEASES = 32
"""With at most so many releases every one is worth a checkpoint of its own."""
ROOM = 1 + 1e-9
"""For the last bit of a float between a plan's cost and a ceiling."""


class BaselineRun:
    """A run in progress. Make one with :meth:`begin` or :meth:`resume`, then call :meth:`run`.

    Attributes:
        facts: what everybody may know.
        method: with its noise.
        budget: what was authorised and spent.
        learner: holds data and networks. Private.
        was_stopped: whether :meth:`run` ended early, as it was asked to.
        steps_done: steps whose outcome the learner holds.
        notes: lines for the owner; never shared.
    """

    def __init__(
        self,
        facts: BaselineFacts,
        data: LabelledImages,
        private: Streams,
        ledger: Ledger,
        folder: RunFolder | None,
        shared: DatasetBudget | None,
    ) -> None:
        privacy = facts.config.privacy
        is_declared = privacy.labels_are_public or not facts.classes_from_data
        notes = note_of_classes(data, is_declared=is_declared), note_of_repeats(data, privacy.group_size)
        self.notes = [*filter(None, notes)]
        self.facts, self.folder, self.ledger = facts, folder, ledger
        self._shared = shared
        self.method = facts.config.settings.plan(privacy, facts.size)
        self.budget = Budget(
            ledger,
            shared=None if shared is None else shared.budget,
            run=self._run_id,
            marks=marks_of(facts.config),
        )
        self.device = torch.device(facts.config.performance.device)
        self.learner = self.method.begin(
            Context(data, facts.size, self.budget, _noise_for(privacy), facts.streams, private, self.device)
        )
        self.steps_done, self._saved_at = 0, -1
        self._next_step = next_step(ledger.lines)
        self._keeps_each_release = sum(planned.count for planned in self.method.planned()) <= FEW_RELEASES
        self.was_stopped = False

    @classmethod
    def begin(
        cls,
        config: BaselineConfig,
        data: LabelledImages,
        root: Path | None,
        shared: DatasetBudget | None = None,
    ) -> BaselineRun:
        """A new run; with ``root`` its folder is made, and removed again if the run cannot begin.

        Args:
            config: settings.
            data: the sensitive records.
            root: a new folder, or None to keep everything in memory.
            shared: the data set's budget, open; charged before the run's own, and closed with the run.

        Raises:
            DataLensError: settings or data that do not fit; nothing is left behind.

        Warns:
            PrivacyWarning: a delta at which releasing a whole record would be allowed.
        """
        facts, private, header = _decide(config, data, shared)
        if root is None:
            return cls(facts, data, private, Ledger.in_memory(header), None, shared)
        folder = RunFolder.create(root, publishable=config.privacy.is_publishable)
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
    def resume(cls, root: Path, data: LabelledImages) -> BaselineRun:
        """A run that was interrupted, at its last good checkpoint.

        Args:
            root: the run's folder.
            data: the same records.

        Raises:
            DataLensError: the folder lacks what is needed, or disagrees with the data or itself.
        """
        folder = RunFolder.open(root)
        facts = BaselineFacts.from_json(read_json(folder.config), folder.config)
        if not folder.secrets.is_file():
            raise RunError(
                f"{root}: its private side is gone (purged?), so it cannot go on; sampling needs only release/"
            )
        require_device(facts.config.performance.device)
        kept = Secrets.read(folder.secrets)
        check_class_order(data.classes, facts, root)
        if kept.fingerprint != fingerprint(data):
            raise RunError(f"{root}: these are not the data of this run; resume with the same data")
        ledger = Ledger.open(folder.ledger)
        shared: DatasetBudget | None = None
        try:
            sweep([folder.release, folder.private, folder.checkpoints])
            _check_header(ledger, facts)
            check_heads(ledger, folder)
            if kept.budget_file is not None:
                shared = open_charged_budget(kept.budget_file, ledger)
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
            except BudgetError:
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
        note_head(self._run_id, self.ledger.head)
        if self._shared is not None:
            note_budget_head(self._shared)

    def close(self) -> None:
        """Give the ledgers back."""
        self.ledger.close()
        if self._shared is not None:
            close_shared_budget(self._shared)

    @property
    def _run_id(self) -> str:
        return str(self.ledger.header.get("run_id", ""))

    def _progress(self) -> Progress:
        return Progress(
            self.steps_done,
            self.method.num_steps,
            self.budget.spent_epsilon(),
            self.budget.authorised_epsilon(),
        )

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
        self.steps_done = checkpoint.step
        lost = max(0, self._next_step - checkpoint.step)
        if lost:
            self.notes.append(f"{lost} steps were charged and lost in a crash; they are not taken again")
        self._next_step = max(self._next_step, checkpoint.step)


def _decide(
    config: BaselineConfig, data: LabelledImages, shared: DatasetBudget | None
) -> tuple[BaselineFacts, Streams, dict[str, Any]]:
    """What a new run is made from: public facts, private streams, and line 0 of its ledger."""
    privacy = config.privacy
    refuse_groups(data)
    require_device(config.performance.device)
    num_records = declared_records(privacy, data)
    require_public_classes(privacy, data)
    if privacy.is_private and (doubt := delta_warning(privacy.delta, num_records)) is not None:
        warnings.warn(doubt, PrivacyWarning, stacklevel=4)
    size = PublicSize(num_records, data.image_shape, data.num_classes)
    method = config.settings.plan(privacy, size)
    seed = privacy.insecure_seed
    public, private = (
        Streams.from_entropy() if seed is None else Streams.from_insecure_seed(seed, name)
        for name in ("public", "private")
    )
    facts = BaselineFacts(
        config=config,
        image_shape=data.image_shape,
        classes=data.classes,
        classes_from_data=data.classes_from_data,
        data_name=data.name if data.public else "private",
        num_records=num_records,
        num_steps=method.num_steps,
        public_root=public.root,
    )
    header = ledger_header(facts, method, secrets.token_hex(16))
    if shared is not None:
        for planned in method.planned():
            shared.require(planned.event, planned.count)
        header["dataset_budget"] = shared.to_json()
    return facts, private, header


def ledger_header(facts: BaselineFacts, method: Method, run_id: str) -> dict[str, Any]:
    """Line 0 of the ledger: what was authorised and on which terms. Nothing of it comes from records."""
    privacy = facts.config.privacy
    planned = method.planned()
    return {
        "datalens": __version__,
        "method": method.name,
        "run_id": run_id,
        "authorisation": authorisation_of(privacy, planned).to_json(),
        "adjacency": ADD_OR_REMOVE if privacy.insecure_seed is None else BLANKED,
        "mechanism": {
            "name": method.name,
            "num_records": facts.num_records,
            "group_size": privacy.group_size,
            "num_steps": facts.num_steps,
            "noise": str(privacy.noise),
            "releases": [
                {"what": one.what, "count": one.count, "event": one.event.to_json()} for one in planned
            ],
        },
        "replace_one_events": [times(one.replace_one, one.count).to_json() for one in planned],
        "score_noise": None,
        "planned_events": [event.to_json() for event in _events(planned)] if privacy.is_private else [],
        "publishable": privacy.is_publishable,
        "data": facts.data_name,
    }


def authorisation_of(privacy: Privacy, planned: tuple[Planned, ...]) -> Authorisation:
    """The cost of exactly what is planned, as a ceiling.

    Raises:
        BudgetError: it is more than was asked for.
    """
    if not privacy.is_private:
        return Authorisation.not_private(privacy.delta)
    cost = Accountant(privacy.accountant).epsilon(_events(planned), privacy.delta)
    if cost > privacy.epsilon * ROOM:
        raise BudgetError(
            f"epsilon = {privacy.epsilon:g}: the plan costs {cost:g}; lower the number of releases"
        )
    return Authorisation(min(privacy.epsilon, cost * ROOM), privacy.delta, privacy.accountant)


def _events(planned: tuple[Planned, ...]) -> list[Event]:
    return [times(one.event, one.count) for one in planned]


def _check_header(ledger: Ledger, facts: BaselineFacts) -> None:
    """The ledger's first line is about these settings.

    Raises:
        RunError: names what differs.
    """
    method = facts.config.settings.plan(facts.config.privacy, facts.size)
    expected = ledger_header(facts, method, str(ledger.header.get("run_id")))
    for name, value in expected.items():
        if ledger.header.get(name) != value and name != "datalens":
            raise RunError(
                f"{ledger.path}: says another {name} than the run's settings; restore the files that belong together"
            )


def _noise_for(privacy: Privacy) -> Callable[[str, int], NoiseSource]:
    """From what is released and its number to a noise source; with an insecure seed each has a stream of its own."""
    if privacy.insecure_seed is None or not privacy.adds_noise:
        noise = make_noise(privacy.noise)
        return lambda what, number: noise
    streams = Streams.from_insecure_seed(privacy.insecure_seed, "noise")
    return lambda what, number: make_noise(privacy.noise, streams.key(what, number))
