"""What ``datalens train --resume`` asks before it reads any data."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datalens.cli.options import is_given
from datalens.cli.public_init import OPTIONS as PUBLIC_INIT
from datalens.errors import ConfigError, DataLensError

if TYPE_CHECKING:
    from datalens.training.run_folder import RunFolder
    from datalens.training.synthesizer import DataLens


def require_resumable(run: Path, options: dict[str, Any]) -> None:
    """Refuse a run that cannot go on, and options that a run keeps from its beginning.

    Raises:
        DataLensError: says which.
    """
    from datalens.training.private_files import require_private
    from datalens.training.run_folder import RunFolder
    from datalens.training.tuned import refuse_tuned

    _refuse_settings(options)
    refuse_tuned(RunFolder.open(run), "go on")
    require_private(RunFolder.open(run))


def is_restarted(run: Path, source: str, options: dict[str, Any], restarts: int) -> bool:
    """Whether a command that begins a run has begun it before it died, and its starter started it again.

    ``torchrun --max-restarts`` repeats the very same command. Only then, and only where settings and the data
    set's budget are those of the run in the folder, is ``--out`` the run to go on with. A folder where nothing
    had begun yet is removed, for the command to begin again.
    """
    from datalens.cli.settings import build_config
    from datalens.training.facts import read_facts
    from datalens.training.private_files import Secrets
    from datalens.training.run_folder import RunFolder
    from datalens.training.unbegun import clear_unbegun

    if restarts == 0 or options["resume"] is not None:
        return False
    if not RunFolder.holds_run(run):
        clear_unbegun(run)
        return False
    config = build_config(options["recipe"], options["config_file"], options, source)
    folder, budget_file = RunFolder.open(run), options["budget_file"]
    charged_to = None if budget_file is None else Path(budget_file).absolute()
    facts, starts = read_facts(folder), options.get("public_init") is not None
    if facts.config != config or (facts.start is not None) is not starts:
        return False
    return Secrets.read(folder.secrets).budget_file == charged_to


def as_resumed(run: Path, options: dict[str, Any]) -> dict[str, Any]:
    """The options that resume what these began: all settings are the run's own."""
    return {**options, **dict.fromkeys(_settings()), "resume": str(run)}


def finished_run(run: Path, options: dict[str, Any]) -> DataLens | None:
    """The run, if all its steps are taken and certified and nothing else is asked of it; else None.

    What a kill left half-written in a finished one is removed.

    Raises:
        LedgerError: its ledger is damaged, or has lost lines.
    """
    from datalens.cli.fitness import steps_charged, steps_planned
    from datalens.privacy.data_card import is_card_of
    from datalens.training.agreement import check_heads
    from datalens.training.files import read_json
    from datalens.training.run_folder import RunFolder
    from datalens.training.synthesizer import DataLens

    folder = RunFolder.open(run)
    if changes(options) or not (folder.certificate.is_file() and folder.generator.is_file()):
        return None
    model = DataLens.load(run)
    check_heads(model.ledger, folder)
    if model.ledger.was_cut_off or steps_charged(model) < steps_planned(model):
        return None
    certificate = read_json(folder.certificate)
    if certificate.get("ledger", {}).get("head") != model.ledger.head[1]:
        return None
    page = folder.data_card.read_text() if folder.data_card.is_file() else ""
    if not is_card_of(page, certificate):  # the page is written last
        return None
    _clear_leftovers(folder)
    return model


def _clear_leftovers(folder: RunFolder) -> None:
    """Remove what a process left half-written that was killed while it drew the pages of a finished run.

    Whoever works on the run holds its lock, and then nothing is removed; nor where it may not be written to.
    """
    from datalens.privacy.ledger import Ledger
    from datalens.training.files import sweep

    with contextlib.suppress(DataLensError), Ledger.open(folder.ledger):
        sweep([folder.release, folder.private, folder.checkpoints])


def device_of_run(run: Path, options: dict[str, Any]) -> str:
    """Where a resumed run will compute: where it is asked to, else where it began."""
    from datalens.training.facts import read_facts
    from datalens.training.run_folder import RunFolder

    return options["device"] or read_facts(RunFolder.open(run)).config.performance.device


def declared_classes(run: Path) -> tuple[str, ...] | None:
    """The class list that a run has declared, or None where it was found in the records."""
    from datalens.training.facts import common_facts, whole
    from datalens.training.files import read_json
    from datalens.training.run_folder import RunFolder

    path = RunFolder.open(run).config
    with whole(path):
        facts = common_facts(read_json(path), path)
    return None if facts["classes_from_data"] else facts["classes"]


def changes(options: dict[str, Any]) -> dict[str, Any]:
    """What a resumed run is asked to change."""
    from datalens.training.changes import CHANGEABLE

    return {name: options[name] for name in CHANGEABLE if is_given(options[name])}


def performance(options: dict[str, Any]) -> dict[str, Any]:
    """Settings of speed and memory that a resumed run is to use."""
    from datalens.training.changes import PERFORMANCE

    return {name: options[name] for name in PERFORMANCE if is_given(options.get(name))}


def _refuse_settings(options: dict[str, Any]) -> None:
    from datalens.training.changes import CHANGEABLE, PERFORMANCE

    epsilon = options["epsilon"]
    if epsilon is not None and not (math.isfinite(epsilon) and epsilon > 0):
        raise ConfigError(f"--epsilon {epsilon:g}: must be above 0 and finite; give more than was authorised")
    for name in _settings():
        if is_given(options[name]) and name not in (*CHANGEABLE, *PERFORMANCE):
            option = "--config" if name == "config_file" else "--" + name.replace("_", "-")
            raise ConfigError(f"{option} {options[name]}: a resumed run keeps it; leave it out")


def _settings() -> tuple[str, ...]:
    from datalens.cli.settings import SETTING_OF_OPTION

    return "out", "recipe", "config_file", "budget_file", "data_name", *PUBLIC_INIT, *SETTING_OF_OPTION
