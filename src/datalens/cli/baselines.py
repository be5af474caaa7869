"""``datalens train --method NAME``: a baseline through the same data, budget, ledger and report as DataLens."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datalens.cli.announcing import say_details
from datalens.cli.finished import report_training
from datalens.cli.joining import read_data
from datalens.cli.known import DATALENS
from datalens.cli.options import data_words, is_given
from datalens.cli.output import Output, check_new_run
from datalens.cli.public_init import OPTIONS as PUBLIC_INIT
from datalens.cli.stopping import how_to_resume
from datalens.cli.watching import require_board, watched
from datalens.errors import ConfigError

if TYPE_CHECKING:
    from datalens.baselines.registry import BaselineConfig


def method_asked(run: Path, options: dict[str, Any]) -> str:
    """The method of the run that goes on, or the one asked for.

    Raises:
        DataLensError: there is no run to go on with, or it is another method's than asked for.
    """
    asked = options["method"]
    if options["resume"] is None:
        return asked or DATALENS
    from datalens.baselines.facts import method_of
    from datalens.training.run_folder import RunFolder

    found = method_of(run) if RunFolder.holds_run(run) else asked or DATALENS
    if asked not in (None, found):
        raise ConfigError(f"--method {asked}: the run in {run} is of {found}; leave it out")
    return found


def train_baseline(method: str, source: str, run: Path, options: dict[str, Any]) -> int:
    """Train, or go on, and report; the exit status."""
    from datalens.baselines.model import Baseline

    output = Output.of(options)
    started = time.monotonic()
    is_new = options["resume"] is None
    _refuse_others(method, options, is_new=is_new)
    config = baseline_config(method, options, source) if is_new else None
    if is_new:
        check_new_run(run)
    require_board(options)
    data = read_data(source, run, options)
    for note in data.notes:
        output.warn(note)
    if config is not None:
        say_details(config, output)
    with watched(source, run, options, output) as watch:
        if config is None:
            model = Baseline.resume(run, data, **watch.hears)
        else:
            shared = {name: options[name] for name in ("budget_file", "data_name")}
            model = Baseline(config).fit(data, out=run, **watch.hears, **shared)
    report_training(
        model,
        run,
        output,
        title=model.config.method,
        seconds=time.monotonic() - started,
        resume_with=how_to_resume(source, run, data_words(options)),
        next_words=["datalens", "sample", str(run), "--num-samples", "10000", "--out", "samples.npz"],
    )
    return watch.stop.exit_status if model.was_stopped else 0


def baseline_config(method: str, options: dict[str, Any], source: str) -> BaselineConfig:
    """Settings of a new run: the method's own for the source, then the file's, then the options'; the later win.

    Raises:
        ConfigError: one line that names the setting, its value and the rule.
    """
    from datalens.baselines.priors import usual_settings
    from datalens.baselines.registry import parse_baseline
    from datalens.training.sections import merged

    changes: dict[str, Any] = {"method": method}
    if options.get("config_file") is not None:
        changes |= _file_changes(method, Path(options["config_file"]))
    changes["settings"] = merged(usual_settings(method, source), changes.get("settings", {}))
    for option, (section, name) in _taken().items():
        if is_given(options.get(option)):
            changes[section] = {**changes.get(section, {}), name: options[option]}
    return parse_baseline(changes)


def _file_changes(method: str, path: Path) -> dict[str, Any]:
    from datalens.baselines.registry import METHODS, BaselineConfig, parse_baseline
    from datalens.cli.settings import read_sections
    from datalens.training.settings_file import read_toml

    known = [name for name in BaselineConfig.model_fields if name != "method"]
    for section in read_toml(path):
        if section == "method":
            raise ConfigError(
                f"--config {path}: a file names no method; say it with --method and leave it out"
            )
        if section not in known and method in METHODS and section in METHODS[method].model_fields:
            raise ConfigError(
                f"--config {path}: {section} stands in no table; write it below a line [settings]"
            )
    found = read_sections(path, known)
    if method in METHODS:
        try:
            parse_baseline({"method": method, **found})
        except ConfigError as error:
            raise ConfigError(f"--config {path}: {error}") from None
    return found


def _taken() -> dict[str, tuple[str, str]]:
    """Options that baselines take, with where they belong."""
    from datalens.cli.settings import SETTING_OF_OPTION

    privacy = {name: place for name, place in SETTING_OF_OPTION.items() if place[0] == "privacy"}
    del privacy["score_noise"]
    speed = {name: ("performance", name) for name in ("device", "checkpoint_every")}
    return {**privacy, "num_steps": ("settings", "num_steps"), **speed}


def _refuse_others(method: str, options: dict[str, Any], *, is_new: bool) -> None:
    """Options that are DataLens's own, or that a run keeps from its beginning."""
    from datalens.cli.settings import SETTING_OF_OPTION

    taken = _taken()
    for name in ("recipe", *PUBLIC_INIT, *SETTING_OF_OPTION):
        if is_given(options.get(name)) and (name not in taken or not is_new):
            option = "--" + name.replace("_", "-")
            why = "a resumed run keeps it; leave it out"
            if is_new:
                why = f"is for the method {DATALENS}; {method} takes a table [settings] in a --config file"
            raise ConfigError(f"{option} {options[name]}: {why}")
    for name in ("config_file", "budget_file", "data_name"):
        if options[name] is not None and not is_new:
            option = "--config" if name == "config_file" else "--" + name.replace("_", "-")
            raise ConfigError(f"{option} {options[name]}: a resumed run keeps it; leave it out")
