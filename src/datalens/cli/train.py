"""``datalens train``: sensitive images in, a run with a generator that may be shared out."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from datalens.cli.announcing import announce_plan, plan_announced, say_details
from datalens.cli.baselines import method_asked, train_baseline
from datalens.cli.joining import follow_run, read_data, run_of
from datalens.cli.known import CUSTOM, DATALENS, METHODS, RECIPES, SOURCES
from datalens.cli.options import (
    data_options,
    data_words,
    device_option,
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
from datalens.cli.public_init import read_public_init
from datalens.cli.reporting import pages_after
from datalens.cli.resuming import (
    as_resumed,
    changes,
    device_of_run,
    finished_run,
    is_restarted,
    performance,
    require_resumable,
)
from datalens.cli.stopping import StopRequest, how_to_resume
from datalens.cli.watching import require_board, watched
from datalens.distributed.ranks import NOTHING_TO_DO, Ranks
from datalens.errors import ConfigError
from datalens.mechanisms.kinds import MechanismKind
from datalens.privacy.accountant import AccountantKind
from datalens.privacy.events import NoiseKind
from datalens.teachers.store_kind import StoreKind

if TYPE_CHECKING:
    from datalens.training.synthesizer import DataLens

_RECIPES = "the recipe's"


@click.command(cls=Once, short_help="Train a generator on sensitive images.")
@click.argument("source", type=Text(*SOURCES, paths=True))
@run_options
@click.option(
    "--method",
    type=Text(*METHODS),
    metavar="NAME",
    show_default=DATALENS,
    help=f"Or another: {', '.join(METHODS[1:])}.",
)
@click.option(
    "--recipe",
    type=Text(*RECIPES, CUSTOM),
    metavar="NAME",
    show_default="the quick one that suits SOURCE",
    help=f"{', '.join(RECIPES)} or {CUSTOM}.",
)
@click.option(
    "--config",
    "config_file",
    type=Text(paths=True),
    metavar="FILE.toml",
    help="Settings with a table a section: [privacy], [voting], [teachers], [student], [performance], "
    "[public_init], [warm_start]; with --method [settings], [privacy], [performance].",
)
@click.option(
    "--epsilon", type=Number(anything=True), help="The most that may be spent.", show_default=_RECIPES
)
@click.option("--delta", type=Number(0, 1, above=True, below=True), show_default="1e-05")
@click.option(
    "--num-teachers", type=Whole(), show_default=_RECIPES, help="Each owns a disjoint part of the records."
)
@click.option(
    "--mechanism",
    type=Kind(MechanismKind),
    show_default="topagg",
    help="How votes are released; d2p-fed and the sketches are there to compare with.",
)
@click.option("--levels", type=Whole(2), show_default="8", help="Of a vote, for d2p-fed.")
@click.option("--sketch-rows", type=Whole(), show_default="5", help="Of the sketch, odd.")
@click.option("--sketch-buckets", type=Whole(), show_default="500", help="Of each row of the sketch.")
@click.option(
    "--as-published",
    is_flag=True,
    help="Run fetchsgd, or the method gs-wgan, as it is printed, with NO GUARANTEE.",
)
@click.option("--top-k", type=Whole(), show_default=_RECIPES, help="Votes of a teacher on an image.")
@click.option(
    "--noise-stddev",
    type=Number(0, above=True),
    show_default="the least that --num-steps allows",
    help="In votes.",
)
@click.option(
    "--vote-threshold",
    type=Number(0),
    show_default=_RECIPES,
    help="Fraction of the teachers that a noisy vote must reach; 0.612 noise-stddev loses least.",
)
@click.option("--batch-size", type=Whole(2), show_default=_RECIPES, help="Images voted on in one step.")
@click.option("--images-per-teacher", type=Whole(), help="Most of them that one teacher votes on.")
@click.option("--num-steps", type=Whole(), show_default="the recipe's, else all that epsilon allows")
@click.option("--accountant", type=Kind(AccountantKind), show_default="exact", help="How epsilon is counted.")
@click.option(
    "--noise", type=Kind(NoiseKind), show_default=str(NoiseKind.ROUNDED), help="The first word will do."
)
@click.option("--insecure-seed", type=Whole(0), help="Repeatable, noise included: for experiments only.")
@click.option(
    "--score-noise",
    type=Number(0, above=True),
    show_default="no such score",
    help="Leave room for one score on people's data, with this noise in right predictions.",
)
@click.option(
    "--public-init",
    type=Text(*SOURCES, paths=True),
    metavar="SOURCE|RUN",
    help="Begin with weights learned from public images, or those of a run on public images.",
)
@click.option(
    "--warm-start",
    is_flag=True,
    help="Release two noisy sums of the records before the first vote, and begin with what they show.",
)
@click.option(
    "--public-init-is-public", is_flag=True, help="The folder or file given to --public-init is public."
)
@owner_options
@device_option
@click.option("--chunk-size", type=Whole(), show_default="what suits", help="Teachers handled at once.")
@click.option(
    "--teacher-store",
    type=Kind(StoreKind),
    show_default="auto",
    help="Where teachers live between steps; auto takes the disk where memory is too small.",
)
@click.option(
    "--teacher-memory",
    type=Number(0),
    metavar="GIB",
    show_default="most of what is free",
    help="What teachers may take in memory.",
)
@click.option("--checkpoint-every", type=Whole(), show_default=_RECIPES, help="Steps between checkpoints.")
@data_options
@public_option
@tensorboard_option
@quiet_option
@verbose_option
@json_option
def train(source: str, **options: Any) -> int:
    """Train a generator on SOURCE: a name of `datalens data list`, or images of your own by their path.

    Settings come from the recipe, then the config file, then the options; the later win. Ctrl-C ends the
    step, saves the run, says how to resume, and exits with status 130. With --resume the settings are the
    run's own and SOURCE the same; epsilon, noise, top-k, threshold, steps, and what only
    changes speed and memory, may be given anew, but not for a run of another --method.

    \b
    datalens train mnist --out runs/mnist --epsilon 1
    datalens train scans/ --out runs/scans --num-records 60000 --classes ill,well --epsilon 2
    datalens train mnist --resume runs/mnist
    torchrun --nproc-per-node 4 -m datalens train mnist --out runs/mnist
    """
    run = run_of(options)
    method = method_asked(run, options)
    with Ranks.join() as ranks:
        if method != DATALENS:
            if ranks.world_size > 1:
                raise ConfigError(f"--method {method}: is trained by one process; start it without torchrun")
            return train_baseline(method, source, run, options)
        return _lead(source, options, ranks) if ranks.is_first else follow_run(source, options, ranks)


def _lead(source: str, options: dict[str, Any], ranks: Ranks) -> int:
    """All that a command says and decides; a single process leads itself."""
    output = Output.of(options)
    started = time.monotonic()
    run = run_of(options)
    if is_restarted(run, source, options, ranks.place.restarts):
        options = as_resumed(run, options)
    if options["resume"] is not None:
        require_resumable(run, options)
        done = finished_run(run, options)
        if done is not None:
            output.say(
                f"{run}: already finished, nothing to do (a larger --epsilon or --num-steps takes more steps)"
            )
            _report(done, run, source, options, output, time.monotonic() - started)
            ranks.tell(NOTHING_TO_DO)
            return 0
    else:
        check_new_run(run)
    model, stop = _work(source, run, options, output, ranks)
    pages_after(run, output)
    _report(model, run, source, options, output, time.monotonic() - started)
    return stop.exit_status if model.was_stopped else 0


def _work(
    source: str, run: Path, options: dict[str, Any], output: Output, ranks: Ranks
) -> tuple[DataLens, StopRequest]:
    """Check all that can be checked without data, read them, then train."""
    from datalens.cli.settings import build_config
    from datalens.privacy.dataset_budget import require_budget_file
    from datalens.training.devices import require_device
    from datalens.training.repeats import note_of_repeats

    is_new = options["resume"] is None
    config = build_config(options["recipe"], options["config_file"], options, source) if is_new else None
    require_board(options)
    require_device(device_of_run(run, options) if config is None else config.performance.device)
    if options["budget_file"] is not None:
        require_budget_file(Path(options["budget_file"]))
    data = read_data(source, run, options)
    for note in data.notes:
        output.warn(note)
    if config is not None:
        announce_plan(config, data, output)
        say_details(config, output)
        if (note := note_of_repeats(data, config.privacy.group_size)) is not None:
            output.warn(note)
    public = None if config is None else read_public_init(source, config, data, options, output)
    from datalens.training.synthesizer import DataLens

    with watched(source, run, options, output) as watch, plan_announced():
        how: dict[str, Any] = {**watch.hears, "ranks": ranks}
        if config is None:
            model = DataLens.resume(run, data, changes=changes(options) | performance(options), **how)
            return model, watch.stop
        shared = {name: options[name] for name in ("budget_file", "data_name")}
        start: dict[str, Any] = {
            "public_init": public,
            "tell_public_init": watch.progress.tell_public_init,
        }
        return DataLens(config).fit(data, out=run, **shared, **start, **how), watch.stop


def _report(
    model: DataLens,
    run: Path,
    source: str,
    options: dict[str, Any],
    output: Output,
    seconds: float,
) -> None:
    from datalens.cli.fitness import run_summary, unfit_line
    from datalens.training.run_folder import RunFolder

    summary = run_summary(model)
    last = unfit_line(model.config)
    for note in model.notes:
        if note not in output.warnings:
            output.warn(note)
    output.finish(
        {
            "run": str(run),
            "status": "stopped" if model.was_stopped else "finished",
            **summary,
            "seconds": seconds,
            "note": last,
        }
    )
    if summary["is_private"]:
        output.say(
            f"epsilon {summary['epsilon_spent']:.4g} spent of {summary['epsilon_authorised']:.4g} authorised "
            f"at delta {summary['delta']:g} ({summary['accountant']} accountant), {summary['steps']} of "
            f"{summary['num_steps']} steps, {seconds:.0f} s"
        )
    if model.was_stopped:
        output.insist(f"stopped early and saved; {how_to_resume(source, run, data_words(options))}")
    else:
        label = "to share" if model.is_publishable else "not for publication"
        output.say(f"{label}: {RunFolder.open(run).release}; never to share: {run / 'private'}")
        where = shlex.quote(str(run))
        output.say(f"next: datalens sample {where} --num-samples 10000 --out samples.npz")
    if last is not None:
        output.insist(last)
