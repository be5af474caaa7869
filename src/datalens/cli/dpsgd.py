"""``datalens dpsgd``: a classifier by DP-SGD with TopAgg, through the same data, budget and ledger as a generator."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from datalens.cli.announcing import say_details
from datalens.cli.finished import report_training
from datalens.cli.joining import read_data, run_of
from datalens.cli.known import SOURCES
from datalens.cli.options import (
    data_options,
    data_words,
    device_option,
    is_given,
    json_option,
    owner_options,
    public_option,
    quiet_option,
    run_options,
    tensorboard_option,
    verbose_option,
)
from datalens.cli.output import Output, check_new_run
from datalens.cli.params import Kind, Number, Once, Text, Whole
from datalens.cli.stopping import how_to_resume
from datalens.cli.watching import Watch, require_board, watched
from datalens.errors import ConfigError
from datalens.methods.sgd_kinds import Method, SelectBy
from datalens.models.small_kind import SmallKind
from datalens.privacy.accountant import AccountantKind
from datalens.privacy.events import NoiseKind

if TYPE_CHECKING:
    from datalens.data.images import LabelledImages
    from datalens.dpsgd.classifier import DPSGDClassifier
    from datalens.dpsgd.facts import ClassifierConfig

_OF_PRIVACY = ("epsilon", "delta", "accountant", "noise", "insecure_seed", "group_size", "num_records")
SETTING_OF_OPTION = {
    **{name: ("privacy", name) for name in (*_OF_PRIVACY, "labels_are_public")},
    "public_record_count": ("privacy", "record_count_is_public"),
    "method": ("settings", "training"),
    **{
        name: ("settings", name)
        for name in ("keep", "select_by", "model", "epochs", "num_steps", "batch_size", "max_grad_norm")
    },
    **{name: ("settings", name) for name in ("learning_rate", "momentum")},
    **{name: ("performance", name) for name in ("device", "checkpoint_every")},
}


@click.command(cls=Once, short_help="Train a classifier by DP-SGD with TopAgg.")
@click.argument("source", type=Text(*SOURCES, paths=True))
@run_options
@click.option(
    "--config",
    "config_file",
    type=Text(paths=True),
    metavar="FILE.toml",
    help="Settings with a table a section: [privacy], [settings], [performance].",
)
@click.option("--epsilon", type=Number(anything=True), show_default="1", help="The most that may be spent.")
@click.option("--delta", type=Number(0, 1, above=True, below=True), show_default="1e-05")
@click.option(
    "--keep", type=Number(0, 1, above=True), show_default="0.8", help="Of each gradient's squared norm."
)
@click.option(
    "--method",
    type=Kind(Method),
    show_default="topagg",
    help="gm-dp is plain DP-SGD; topk-sgd and clipped-sgd add no noise and have NO GUARANTEE.",
)
@click.option(
    "--select-by",
    type=Kind(SelectBy),
    show_default="norm",
    help="What --keep is a share of: the squared norm, that of each layer's tensors, or the coordinates.",
)
@click.option("--model", type=Kind(SmallKind), show_default="cnn", help="The network.")
@click.option("--epochs", type=Number(0, above=True), show_default="10", help="How often a record is used.")
@click.option("--num-steps", type=Whole(), help="In place of --epochs.")
@click.option("--batch-size", type=Whole(), show_default="512", help="Records expected in a lot.")
@click.option(
    "--max-grad-norm", type=Number(0, above=True), show_default="1", help="Longer gradients are cut."
)
@click.option("--learning-rate", type=Number(0, above=True), show_default="0.5")
@click.option("--momentum", type=Number(0, 1, below=True), show_default="0")
@click.option("--accountant", type=Kind(AccountantKind), show_default="exact", help="How epsilon is counted.")
@click.option(
    "--noise", type=Kind(NoiseKind), show_default=str(NoiseKind.ROUNDED), help="The first word will do."
)
@click.option("--insecure-seed", type=Whole(0), help="Repeatable, noise included: for experiments only.")
@owner_options
@device_option
@click.option("--checkpoint-every", type=Whole(), show_default="100", help="Steps between checkpoints.")
@data_options
@public_option
@tensorboard_option
@quiet_option
@verbose_option
@json_option
def dpsgd(source: str, **options: Any) -> int:
    """Train a classifier on SOURCE by DP-SGD that keeps the largest part of each gradient, with less noise for it.

    SOURCE is as for `datalens train`: mnist, fashion-mnist, shapes, or images of your own by their path. The noise is
    the least with which all steps cost --epsilon; every step is charged before it is taken. Settings come from the
    config file, then from the options. Ctrl-C ends the step, saves the run, says how to resume, and exits with
    status 130. Needs the extra dpsgd.

    \b
    datalens dpsgd mnist --epsilon 1 --keep 0.8 --out runs/digits
    datalens evaluate runs/digits --data mnist
    datalens dpsgd mnist --resume runs/digits
    """
    output = Output.of(options)
    started = time.monotonic()
    run, config = run_of(options), None
    if options["resume"] is None:
        config = build_config(options)
        check_new_run(run)
    else:
        _refuse_settings(run, options)
    require_board(options)
    data = read_data(source, run, options)
    for note in data.notes:
        output.warn(note)
    words = data_words(options)
    if config is not None:
        _announce(config, data, output)
        say_details(config, output)
    with watched(source, run, options, output, "dpsgd") as watch:
        model = _train(config, data, run, options, watch)
    report_training(
        model,
        run,
        output,
        title=str(model.config.settings.training),
        seconds=time.monotonic() - started,
        resume_with=how_to_resume(source, run, words, "dpsgd"),
        next_words=["datalens", "evaluate", str(run), "--data", source, *words],
    )
    return watch.stop.exit_status if model.was_stopped else 0


def build_config(options: dict[str, Any]) -> ClassifierConfig:
    """Settings of a new run: the file's, then the options'; a method without noise has none unless asked for.

    Raises:
        ConfigError: one line that names the setting, its value and the rule.
    """
    from datalens.cli.settings import read_sections
    from datalens.dpsgd import ClassifierConfig, parse_classifier

    changes = {}
    if options["config_file"] is not None:
        known = [name for name in ClassifierConfig.model_fields if name != "method"]
        changes = read_sections(Path(options["config_file"]), known)
        try:
            parse_classifier(_without_noise(changes))
        except ConfigError as error:
            raise ConfigError(f"--config {options['config_file']}: {error}") from None
    for option, (section, name) in SETTING_OF_OPTION.items():
        if is_given(options.get(option)):
            changes[section] = {**changes.get(section, {}), name: options[option]}
    return parse_classifier(_without_noise(changes))


def _without_noise(changes: dict[str, Any]) -> dict[str, Any]:
    """The changes, with no noise where the method has none and none was asked for."""
    if changes.get("settings", {}).get("training") not in (Method.TOPK_SGD, Method.CLIPPED_SGD):
        return changes
    return {**changes, "privacy": {"noise": NoiseKind.NONE, **changes.get("privacy", {})}}


def _refuse_settings(run: Path, options: dict[str, Any]) -> None:
    """What a run keeps from its beginning, and folders with no run that could go on."""
    from datalens.dpsgd.classifier import facts_of
    from datalens.training.run_folder import RunFolder

    for name in (*SETTING_OF_OPTION, "out", "config_file", "budget_file", "data_name"):
        if is_given(options[name]):
            option = "--config" if name == "config_file" else "--" + name.replace("_", "-")
            raise ConfigError(f"{option} {options[name]}: a resumed run keeps it; leave it out")
    facts_of(RunFolder.open(run))


def _train(
    config: ClassifierConfig | None, data: LabelledImages, run: Path, options: dict[str, Any], watch: Watch
) -> DPSGDClassifier:
    from datalens.dpsgd import DPSGDClassifier

    if config is None:
        return DPSGDClassifier.resume(run, data, **watch.hears)
    shared = {name: options[name] for name in ("budget_file", "data_name")}
    return DPSGDClassifier(config).fit(data, out=run, **watch.hears, **shared)


def _announce(config: ClassifierConfig, data: LabelledImages, output: Output) -> None:
    """Say what the plan is; one that cannot be paid is refused here as when the run begins."""
    from datalens.dpsgd.facts import planned_for

    method = planned_for(config, data)
    settings, privacy = config.settings, config.privacy
    promise = (
        f"epsilon {privacy.epsilon:g}, delta {privacy.delta:g}" if privacy.is_private else "no guarantee"
    )
    kept = f" keeping {settings.keep:g} by {settings.select_by}" if method.rule.drops else ""
    noise = f", noise multiplier {method.noise_multiplier:.4g}" if privacy.adds_noise else ", no noise"
    output.say(
        f"{settings.training}{kept}: {promise}, {method.num_steps} steps of about {settings.batch_size} of "
        f"{method.size.num_records} records, {method.grid.dim} weights{noise}"
    )
