"""What a run is made from besides its networks: decided and written when it begins, read again when it goes on."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from datalens.data.images import LabelledImages
from datalens.errors import PrivacyWarning, RunError
from datalens.privacy.dataset_budget import DatasetBudget
from datalens.privacy.ledger import Ledger
from datalens.randomness import Streams
from datalens.teachers.groups import SlotMap
from datalens.training.agreement import check_class_order, check_data, check_header, check_heads
from datalens.training.assembly import draw_run
from datalens.training.changes import split_performance
from datalens.training.config import Config, Performance
from datalens.training.devices import require_device
from datalens.training.facts import PublicFacts, read_facts
from datalens.training.files import sweep, write_atomically, write_json
from datalens.training.private_files import (
    Secrets,
    fingerprint,
    load_partition,
    require_private,
    save_partition,
)
from datalens.training.run_folder import RunFolder
from datalens.training.shared_budget import close_shared_budget, open_charged_budget
from datalens.training.start_file import PublicStart
from datalens.training.starting import MakeStart, start_of
from datalens.training.terms import beside_steps, ledger_header
from datalens.training.tuned import refuse_tuned
from datalens.training.warm_plan import WarmTerms, check_warm_start
from datalens.training.warm_settings import ONE_START, refuse_warm


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run whose ledger and folder this process holds. Private.

    Attributes:
        facts: what everybody may know.
        partition: the slots of the records.
        private: private random streams.
        ledger: open for charging.
        folder: None for a run in memory.
        shared: the data set's budget, open, if the run is charged to one.
        changed_performance: performance settings of this stretch; None for the run's own.
        changes: other settings that are to change, by name.
        start: the public weights that it begins with; None where it begins at random.
    """

    facts: PublicFacts
    partition: SlotMap
    private: Streams
    ledger: Ledger
    folder: RunFolder | None = None
    shared: DatasetBudget | None = None
    changed_performance: Performance | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    start: PublicStart | None = None

    @property
    def performance(self) -> Performance:
        """Performance settings of this stretch of the run."""
        return self.changed_performance or self.facts.config.performance

    @property
    def run_id(self) -> str:
        """The run's name in ledgers; empty where it has none."""
        return str(self.ledger.header.get("run_id", ""))

    @property
    def start_weights(self) -> Mapping[str, Tensor] | None:
        """The state that the generator begins with; None where it begins at random."""
        return None if self.start is None else self.start.generator

    def close(self) -> None:
        """Give the ledgers back."""
        self.ledger.close()
        if self.shared is not None:
            close_shared_budget(self.shared)


def open_new(
    config: Config,
    data: LabelledImages,
    root: Path | None,
    shared: DatasetBudget | None,
    *,
    signal_matters: bool = True,
    make_start: MakeStart | None = None,
) -> OpenRun:
    """Decide all that a new run needs; with ``root`` write it into a new folder, or leave nothing there.

    A public start is made before anything is written.

    Raises:
        DataLensError: settings or data that do not fit.

    Warns:
        PrivacyWarning: a delta at which releasing a whole record would be allowed.
    """
    require_device(config.performance.device)
    facts, plan, partition, private, doubts = draw_run(config, data, signal_matters=signal_matters)
    check_warm_start(config, facts.image_shape, of_groups=facts.of_groups, num_classes=len(facts.classes))
    for doubt in doubts:
        warnings.warn(doubt, PrivacyWarning, stacklevel=4)
    if shared is not None:
        beside = beside_steps(facts, WarmTerms.of(config, facts.image_shape))
        shared.require(plan.event, plan.num_steps, *beside)
    start = None
    if make_start is not None:
        refuse_warm(config.warm_start, *ONE_START)
        if root is not None:
            RunFolder.require_new(root)
        start = make_start(facts)
        facts = replace(facts, start=start.facts)
    header = ledger_header(facts, plan, partition, secrets.token_hex(16))
    if shared is not None:
        header["dataset_budget"] = shared.to_json()
    if root is None:
        return OpenRun(facts, partition, private, Ledger.in_memory(header), shared=shared, start=start)
    folder = RunFolder.create(root, publishable=config.privacy.is_publishable)
    try:
        ledger = Ledger.create(folder.ledger, header)  # first: its lock says that the folder is in use
        try:
            shared_path = None if shared is None else shared.path.absolute()
            Secrets(private.root, fingerprint(data), shared_path).write(folder.secrets)
            save_partition(folder.partition, partition)
            if start is not None:
                write_atomically(folder.public_init, start.content)
            write_json(folder.config, facts.to_json())  # last: without settings no run has begun
        except BaseException:
            ledger.close()
            raise
    except BaseException:
        folder.discard()
        raise
    return OpenRun(facts, partition, private, ledger, folder, shared, start=start)


def open_old(root: Path, data: LabelledImages, changes: Mapping[str, Any]) -> OpenRun:
    """Read what an interrupted run is made from, and check that it agrees with itself and the data.

    Raises:
        DataLensError: the folder lacks what is needed, or disagrees with the data or itself.
    """
    folder = RunFolder.open(root)
    facts = read_facts(folder)
    refuse_tuned(folder, "go on")
    require_private(folder)
    performance, changes = split_performance(facts.config, changes)
    require_device(performance.device)
    kept = Secrets.read(folder.secrets)
    check_class_order(data.classes, facts, root)
    check_data(data, facts, kept, root)
    partition = load_partition(folder.partition)
    start = start_of(folder, facts)
    ledger, shared = open_charged(folder, kept, lambda ledger: check_header(ledger, facts, partition))
    return OpenRun(facts, partition, kept.streams, ledger, folder, shared, performance, changes, start)


def open_charged(
    folder: RunFolder, kept: Secrets, check: Callable[[Ledger], None]
) -> tuple[Ledger, DatasetBudget | None]:
    """The ledger of a run that goes on, locked, and the data set's budget that the run is charged to, if it is.

    Args:
        folder: of the run; what a crash left half-written there is swept.
        kept: its secrets, which name the budget file.
        check: refuses a ledger that is not about this run.

    Raises:
        DataLensError: the ledger disagrees with the run, or its budget file is missing, unnamed or another one.
    """
    shared: DatasetBudget | None = None
    ledger = Ledger.open(folder.ledger)
    try:
        sweep([folder.release, folder.private, folder.checkpoints])
        check(ledger)
        check_heads(ledger, folder)
        if kept.budget_file is not None:
            shared = open_charged_budget(kept.budget_file, ledger)
        elif ledger.header.get("dataset_budget") is not None:
            raise RunError(f"{folder.secrets}: does not name the data set's budget; restore the file")
    except BaseException:
        ledger.close()
        raise
    return ledger, shared
