"""What every process of ``datalens train`` does, and all that the others than the first one do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from datalens.cli.judged import is_named
from datalens.cli.options import data_settings
from datalens.cli.resuming import declared_classes
from datalens.cli.stopping import StopRequest
from datalens.errors import ConfigError

if TYPE_CHECKING:
    from datalens.data.images import LabelledImages
    from datalens.distributed.ranks import Ranks


def follow_run(source: str, options: dict[str, Any], ranks: Ranks) -> int:
    """The part of another process than the first: it reads the data, and says nothing but what goes wrong."""
    from datalens.training.synthesizer import DataLens

    run = run_of(options)
    data = read_data(source, run, options)
    with StopRequest(heard=False) as stop:
        model = DataLens.resume(run, data, stop=stop, ranks=ranks)
    return stop.exit_status if model.was_stopped else 0


def run_of(options: dict[str, Any]) -> Path:
    """The folder that the command is about.

    Raises:
        ConfigError: it names none.
    """
    for name in ("resume", "out"):
        if options[name] is not None:
            return Path(options[name])
    raise ConfigError("--out is missing: give a new folder for the run (or --resume and a run's folder)")


def read_data(source: str, run: Path, options: dict[str, Any]) -> LabelledImages:
    """The training images, with the class list that a run which goes on has declared."""
    from datalens.data import load

    settings = data_settings(options)
    is_declared_elsewhere = options["resume"] is not None and not is_named(source)
    if is_declared_elsewhere and (classes := declared_classes(run)) is not None:
        settings.setdefault("classes", classes)
    return load(source, split="train", **settings)
