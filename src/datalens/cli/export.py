"""``datalens export``: synthetic images as a folder that can be uploaded, with card and certificate."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import STDOUT, Output, check_parent
from datalens.cli.params import Kind, Once, Text, Whole
from datalens.cli.sample import counted, refuse_inside, warn_unfinished
from datalens.cli.stopping import termination_interrupts
from datalens.cli.targets import check_room, marked
from datalens.errors import ConfigError, RunError
from datalens.privacy.card_front import Licence
from datalens.privacy.promises import CERTIFICATE_FILE
from datalens.writing import Contents, SampleFormat
from datalens.writing.export import ExportForm, export_writer
from datalens.writing.names import folder_names
from datalens.writing.whole import check_format, room_needed, write_whole

if TYPE_CHECKING:
    from datalens.training.run_folder import RunFolder


@click.command(cls=Once, short_help="Draw a data set that can be uploaded as it is.")
@click.argument("run", type=Text())
@click.option("--to", "form", type=Kind(ExportForm), required=True, help="How the images lie; see above.")
@click.option("--num-samples", "-n", type=Whole(), required=True, help="How many images.")
@click.option("--out", type=Text(), required=True, metavar="FOLDER", help="A new folder.")
@click.option(
    "--license",
    "licence",
    type=Kind(Licence),
    default=Licence.UNKNOWN,
    show_default="unknown",
    help="Of the images, in the card; the choice is yours.",
)
@click.option("--seed", type=Whole(0), show_default="fresh every time", help="For the same images again.")
@quiet_option
@json_option
def export(
    run: str,
    form: ExportForm,
    num_samples: int,
    out: str,
    licence: Licence,
    seed: int | None,
    quiet: bool,
    json_target: str | None,
) -> None:
    """Draw images from the generator in RUN into a folder with README.md, a data card, and certificate.json.

    They cost no epsilon. hf has Parquet under data/, as on Hugging Face's hub; imagefolder PNGs under train/, in a
    sub-folder a class; parquet one file. datasets.load_dataset(FOLDER) reads all three (hf and parquet need the
    extra parquet or huggingface). What comes from a run that is not fit for publication has -NOT-FOR-PUBLICATION
    added to the name that --out gives.

    \b
    datalens export runs/mnist --to hf --num-samples 60000 --out synthetic-digits/ --license cc-by-4.0
    datalens export runs/mnist --to imagefolder --num-samples 1000 --out pictures/
    """
    from datalens.baselines.model import load_run
    from datalens.cli.fitness import run_summary, unfit_line
    from datalens.training.run_folder import RunFolder

    output = Output(json_target, quiet=quiet)
    model = load_run(run)
    target = marked(Path(out), publishable=model.is_publishable)
    if json_target not in (None, STDOUT) and Path(json_target).absolute() == target.absolute():
        raise ConfigError(f"--json {json_target}: is the folder of --out too; give it another name")
    contents = Contents(num_samples, model.facts.image_shape, tuple(model.classes))
    check_format(form.samples, contents)
    check_parent(target, "--out")
    if os.path.lexists(target):
        raise RunError(f"--out {target}: exists already; choose another")
    check_room(target, room_needed(form.samples, contents))
    refuse_inside(target, Path(run))
    beside = _pages(RunFolder.open(Path(run)), form, licence, num_samples)
    warn_unfinished(model, run, output)
    per_class = np.zeros(len(model.classes), np.int64)
    drawn = counted(model.iter_samples(num_samples, seed=seed), per_class)
    with termination_interrupts():
        write_whole(target, export_writer(form, beside), contents, drawn)
    unfit = unfit_line(model.config)
    last = None if unfit is None else f"{unfit}; it is in {shlex.quote(str(target))}"
    output.finish(
        {
            "run": run,
            "out": str(target),
            "to": form,
            "num_samples": num_samples,
            "seed": seed,
            "license": licence,
            "per_class": dict(zip(model.classes, per_class.tolist(), strict=True)),
            "privacy": run_summary(model),
            "note": last,
        }
    )
    output.say(f"{num_samples} images, a card and the certificate in {shlex.quote(str(target))}")
    if licence is Licence.UNKNOWN:
        output.say("its card names no licence yet: give --license, or write it into the card's first lines")
    if last is not None:
        output.insist(last)


def _pages(folder: RunFolder, form: ExportForm, licence: Licence, num_samples: int) -> dict[str, bytes]:
    """Card and certificate, by the names of their files.

    Raises:
        RunError: the certificate is missing, damaged, about another generator, or says what its ledger does not.
    """
    from datalens.privacy.dataset_card import dataset_card
    from datalens.reports.facts import read_release
    from datalens.training.files import file_digest

    certificate = read_release(folder.release).certificate
    try:
        if certificate["files"][folder.generator.name] != file_digest(folder.generator):
            raise RunError(
                f"{folder.generator}: is not the one that {CERTIFICATE_FILE} is about; see `datalens verify`"
            )
        classes = [str(name) for name in certificate["assumed_public"]["classes"]]
        card = dataset_card(
            certificate,
            licence,
            files=form.pattern,
            folders=folder_names(classes) if form.samples is SampleFormat.FOLDER else None,
            num_images=num_samples,
            loading=form.loading,
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error!s:.80}"
        raise RunError(
            f"{folder.certificate}: cannot be understood ({reason}); see `datalens verify`"
        ) from None
    return {"README.md": card.encode(), folder.certificate.name: folder.certificate.read_bytes()}
