"""``datalens tune``: choose settings on people's data at a known price, and release the best run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from datalens.cli.known import CUSTOM, RECIPES, SOURCES
from datalens.cli.options import (
    data_options,
    data_settings,
    device_option,
    json_option,
    owner_options,
    quiet_option,
)
from datalens.cli.output import Output, refuse_released
from datalens.cli.params import Kind, Number, Once, Text, Whole
from datalens.cli.reporting import pages_after
from datalens.errors import ConfigError
from datalens.privacy.accountant import AccountantKind
from datalens.privacy.events import NoiseKind

if TYPE_CHECKING:
    from datalens.data.images import LabelledImages
    from datalens.training.config import Config
    from datalens.training.tuning import Try
    from datalens.training.tuning_plan import TuningPlan

CANDIDATE_SECTIONS = ("voting", "teachers", "student")


@click.command(cls=Once, short_help="Choose settings on people's data, at a known price.")
@click.argument("source", type=Text(*SOURCES, paths=True))
@click.option("--out", type=Text(paths=True), required=True, metavar="RUN", help="A new folder for the run.")
@click.option(
    "--candidates",
    type=Text(paths=True),
    required=True,
    metavar="FILE.toml",
    help="A [[candidate]] table for each, with tables voting, teachers, student; chosen without looking at the data.",
)
@click.option(
    "--epsilon", type=Number(0, above=True), required=True, help="For all tries, scores and the release."
)
@click.option("--delta", type=Number(0, 1, above=True, below=True), show_default="1e-05")
@click.option("--expected-tries", type=Number(1, above=True), default=5.0, show_default=True)
@click.option(
    "--eta",
    type=Number(-1, above=True),
    default=1.0,
    show_default=True,
    help="Shape of the number of tries: 1 geometric, 0 logarithmic.",
)
@click.option("--held-out", type=Number(0, 1, above=True, below=True), default=0.1, show_default=True)
@click.option(
    "--score-noise",
    type=Number(0, above=True),
    show_default="the least that costs nothing more",
    help="In right predictions.",
)
@click.option(
    "--classifier", type=click.Choice(["cnn", "mlp", "logistic"]), default="logistic", show_default=True
)
@click.option("--num-samples", "-n", type=Whole(), default=10000, show_default=True, help="Of each try.")
@click.option("--epochs", type=Whole(), show_default="the classifier's")
@click.option(
    "--recipe", type=Text(*RECIPES, CUSTOM), metavar="NAME", show_default="the quick one that suits SOURCE"
)
@click.option(
    "--config", "config_file", type=Text(paths=True), metavar="FILE.toml", help="What all candidates share."
)
@click.option(
    "--accountant", type=Kind(AccountantKind), show_default="exact", help="A tuning's exact is rdp."
)
@click.option("--noise", type=Kind(NoiseKind), show_default=str(NoiseKind.ROUNDED))
@owner_options
@device_option
@data_options
@quiet_option
@json_option
def tune(source: str, **options: Any) -> None:
    """Train candidates on SOURCE a secret random number of times and release the one with the best noisy score.

    All of it is charged before the first try (Papernot and Steinke 2022) and cannot be resumed. Tries stay under
    RUN/private; how many there were must not become known, nor how long they took.

    \b
    datalens tune mnist --out runs/tuned --candidates candidates.toml --epsilon 2
    """
    from datalens.data import load
    from datalens.privacy.wording import delta_warning
    from datalens.training.facts import declared_records

    refuse_released("--json", options["json_target"])
    output = Output(options["json_target"], quiet=options["quiet"])
    started = time.monotonic()
    if options["data_name"] is not None and options["budget_file"] is None:
        raise ConfigError(
            f"--data-name {options['data_name']}: belongs to a budget file; give --budget-file too"
        )
    changes = read_candidates(Path(options["candidates"]))
    base = _base(source, options)
    configs = [_candidate(base, number, tables) for number, tables in enumerate(changes, 1)]
    data = load(source, split="train", **data_settings(options))
    for note in data.notes:
        output.warn(note)
    plan = _plan(base, configs, data, options)
    if (warning := delta_warning(base.privacy.delta, declared_records(base.privacy, data))) is not None:
        output.warn(warning)
    output.say(
        f"tuning: epsilon {plan.authorisation.guarantee():.4g}, delta {plan.authorisation.delta:g} for all of it; "
        f"{plan.settings.expected_tries:g} tries expected among {len(configs)} candidates, each try at epsilon "
        f"{plan.candidates[0].privacy.epsilon:.4g} if it were alone; score noise {plan.score.noise_stddev:g}"
    )
    best = _run(plan, data, options)
    _report(best, plan, options, output, time.monotonic() - started)


def read_candidates(path: Path) -> list[dict[str, Any]]:
    """The candidates of a TOML file, each a table of sections.

    Raises:
        ConfigError: no such file, no TOML, or something else in it than candidates.
    """
    from datalens.training.settings_file import read_toml

    try:
        found = read_toml(path)
    except ConfigError as error:
        raise ConfigError(str(error).replace("--config", "--candidates", 1)) from None
    tables = found.get("candidate")
    if set(found) != {"candidate"} or not isinstance(tables, list) or len(tables) < 2:
        raise ConfigError(f"--candidates {path}: give two or more tables [[candidate]], and nothing else")
    for number, table in enumerate(tables, 1):
        for section, values in table.items() if isinstance(table, dict) else [("", None)]:
            if section not in CANDIDATE_SECTIONS or not isinstance(values, dict):
                raise ConfigError(
                    f"--candidates {path}: candidate {number} has {section!r}; it may have tables "
                    f"{', '.join(CANDIDATE_SECTIONS)}"
                )
    return tables


def _base(source: str, options: dict[str, Any]) -> Config:
    from datalens.cli.settings import build_config
    from datalens.training.devices import require_device

    own = {name: value for name, value in options.items() if name != "score_noise"}
    config = build_config(options["recipe"], options["config_file"], own, source)
    require_device(config.performance.device)
    return config


def _candidate(base: Config, number: int, tables: dict[str, Any]) -> Config:
    try:
        return base.replace(**tables)
    except ConfigError as error:
        raise ConfigError(f"candidate {number}: {error}") from None


def _plan(base: Config, configs: list[Config], data: LabelledImages, options: dict[str, Any]) -> TuningPlan:
    from datalens.training.facts import declared_records, require_public_classes
    from datalens.training.tuning_plan import TuningSettings, plan_tuning

    names = ("expected_tries", "eta", "held_out", "score_noise", "classifier", "num_samples", "epochs")
    settings = TuningSettings(**{name: options[name] for name in names})
    num_records = declared_records(base.privacy, data)
    require_public_classes(base.privacy, data)
    return plan_tuning(configs, settings, base.privacy, num_records, data.image_shape)


def _run(plan: TuningPlan, data: LabelledImages, options: dict[str, Any]) -> Try:
    from datalens.training.shared_budget import close_shared_budget, open_shared_budget
    from datalens.training.tuning import tune as run_tuning

    path = options["budget_file"]
    shared = None if path is None else open_shared_budget(Path(path), options["data_name"])
    try:
        return run_tuning(plan, data, Path(options["out"]), budget_file=shared)
    except KeyboardInterrupt:
        click.echo("error: interrupted; the tuning stays charged and cannot be resumed", err=True)
        raise click.exceptions.Exit(130) from None
    finally:
        if shared is not None:
            close_shared_budget(shared)


def _report(best: Try, plan: TuningPlan, options: dict[str, Any], output: Output, seconds: float) -> None:
    run = Path(options["out"])
    pages_after(run, output)
    output.finish(
        {
            "run": str(run),
            "epsilon": plan.authorisation.guarantee(),
            "delta": plan.authorisation.delta,
            "candidate": best.candidate,
            "noisy_right": best.noisy_right,
            "score_noise": plan.score.noise_stddev,
            "held_slots": plan.held_slots,
        }
    )
    output.say(
        f"candidate {best.candidate} chosen, with {best.noisy_right} right of {plan.held_slots} held-out slots "
        f"(noise {plan.score.noise_stddev:g})"
    )
    output.say(
        f"the whole tuning cost epsilon {plan.authorisation.guarantee():.4g}; {seconds:.0f} s, keep that to yourself"
    )
    output.say(f"to share: {run / 'release'}; never to share: {run / 'private'}, with the number of tries")
