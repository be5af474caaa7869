"""``datalens evaluate``: a classifier learns from synthetic images and is tested on real ones."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from datalens.cli.options import data_options, data_settings, json_option, public_option, quiet_option
from datalens.cli.output import STDOUT, Output
from datalens.cli.params import Once, Text, Whole
from datalens.cli.sample import warn_unfinished
from datalens.errors import DataError, NotPrivateError

if TYPE_CHECKING:
    from datalens.data.images import LabelledImages
    from datalens.training.synthesizer import DataLens


@click.command(cls=Once, short_help="Score a run: train on synthetic, test on real.")
@click.argument("run", type=Text())
@click.option(
    "--data", "source", type=Text(), required=True, metavar="SOURCE", help="Real images with a test split."
)
@click.option("--classifier", type=click.Choice(["cnn", "mlp", "logistic"]), default="cnn", show_default=True)
@click.option("--num-samples", "-n", type=Whole(), default=60000, show_default=True, help="Synthetic images.")
@click.option("--epochs", type=Whole(), show_default="4 (cnn), 10 (mlp, logistic)", help="Fixed beforehand.")
@click.option("--seed", type=Whole(0), default=0, show_default=True, help="Of samples and classifier.")
@click.option("--device", type=Text(), default="cpu", show_default=True)
@click.option(
    "--charge", is_flag=True, help="Put the score under release/: noisy and charged, or on public data."
)
@click.option("--test-count-is-public", is_flag=True, help="The number of test images may be known.")
@click.option(
    "--budget-file", type=Text(), metavar="FILE", help="Where RUN/private is gone: its data set's budget."
)
@data_options
@public_option
@quiet_option
@json_option
def evaluate(run: str, source: str, **options: Any) -> None:
    """Train a classifier on images drawn from RUN and test it on the test split of SOURCE.

    The headline is the accuracy at the last epoch. The result is kept in RUN/private, since a score
    on people's data is not covered by the guarantee. With --charge a score also goes under release/: on
    public data as it is, else as a count of right predictions with noise, charged in the run's ledger, for
    which the run was trained with --score-noise.

    \b
    datalens evaluate runs/mnist --data mnist
    datalens evaluate runs/mnist --data mnist --classifier logistic --num-samples 10000
    """
    from datalens.cli.fitness import run_summary, unfit_line
    from datalens.cli.train import require_device
    from datalens.training.charged_score import require_score
    from datalens.training.run_folder import RunFolder
    from datalens.training.synthesizer import DataLens

    output = Output(options["json_target"], quiet=options["quiet"])
    _refuse_release(options["json_target"], Path(run))
    require_device(options["device"])
    model = DataLens.load(run)
    data = _test_split(source, model, options)
    warn_unfinished(model, run, output)
    if options["charge"] and not data.public:
        require_score(Path(run))
    result = _measure(model, data, options, quiet=output.quiet)
    last = unfit_line(model.config)
    answer = {
        "run": run,
        "data": source,
        "measured_on_public_data": data.public,
        **result,
        "privacy": run_summary(model),
        "note": last,
    }
    kept = _keep(Path(run), source, options, answer)
    released = _release(Path(run), data.public, result, options) if options["charge"] else None
    output.finish({**answer, "kept_in": str(kept), "released": released})
    output.say(
        f"accuracy {result['last_accuracy']:.2%} (last of {result['epochs']} epochs; {result['classifier']} "
        f"trained on {result['num_train']} synthetic images, tested on {result['num_test']} real ones)"
    )
    output.say(
        f"best epoch {result['best_epoch_accuracy']:.2%} (epoch {result['best_epoch']}, chosen on the test "
        "set, as the paper's code prints; not for comparison)"
    )
    output.say(f"kept in {kept}" + ("" if data.public else "; a score on people's data: not to be published"))
    if released is not None:
        count = released.get("noisy_right", released.get("right"))
        noise = "" if data.public else f" with noise of {released['noise_stddev']:g}, charged"
        output.say(f"{count} right{noise}: in {RunFolder.open(Path(run)).scores}")
    if last is not None:
        output.insist(last)


def _release(run: Path, is_public: bool, result: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Put the score under ``release/``."""
    from datalens.training.charged_score import charge_score, publish_score

    how = {name: result[name] for name in ("classifier", "epochs", "num_train", "seed")}
    num_test = result["num_test"]
    num_right = round(result["last_accuracy"] * num_test)
    if is_public:
        return publish_score(run, num_right, num_test, how)
    budget_file = options["budget_file"]
    return charge_score(
        run,
        num_right,
        num_test,
        how,
        test_count_is_public=options["test_count_is_public"],
        budget_file=None if budget_file is None else Path(budget_file),
    )


def _test_split(source: str, model: DataLens, options: dict[str, Any]) -> LabelledImages:
    from datalens.data import available_splits, list_sources, load

    if "test" not in available_splits(source):
        raise DataError(
            f"--data {source}: has no test split; put test images into test/ beside train/, or x_test, y_test"
        )
    settings = data_settings(options)
    if source not in [known.name for known in list_sources()]:
        settings.setdefault("classes", model.classes)
    data = load(source, split="test", **settings)
    if data.classes != model.classes:
        raise DataError(
            f"--data {source}: its classes are {_few(data.classes)}, the run's {_few(model.classes)}; "
            "give the data that the run was trained for"
        )
    if data.image_shape != model.facts.image_shape:
        sizes = [
            "x".join(str(side) for side in shape) for shape in (data.image_shape, model.facts.image_shape)
        ]
        height, width = model.facts.image_shape[1:]
        raise DataError(
            f"--data {source}: its images are {sizes[0]}, the run's {sizes[1]} (CxHxW); "
            f"give --image-size {height}x{width}, or --channels"
        )
    return data


def _measure(
    model: DataLens, data: LabelledImages, options: dict[str, Any], *, quiet: bool
) -> dict[str, Any]:
    from datalens.evaluation.utility import evaluate_utility

    started = time.monotonic()
    images, labels = model.sample(options["num_samples"], seed=options["seed"])
    sampling_seconds = time.monotonic() - started
    live = not quiet and sys.stderr.isatty()

    def tell(epoch: int, epochs: int, accuracy: float) -> None:
        if live:
            click.echo(f"epoch {epoch} of {epochs}: {accuracy:.2%}", err=True)

    result = evaluate_utility(
        images,
        labels,
        data.images,
        data.labels,
        num_classes=data.num_classes,
        classifier=options["classifier"],
        epochs=options["epochs"],
        seed=options["seed"],
        device=options["device"],
        progress=tell,
    )
    return {**result.to_json(), "sampling_seconds": sampling_seconds}


def _keep(run: Path, source: str, options: dict[str, Any], answer: dict[str, Any]) -> Path:
    """Write the result under ``private/``, made anew for its owner alone where it was purged."""
    folder = run / "private"
    for part in (folder, folder / "scores"):
        part.mkdir(mode=0o700, exist_ok=True)
        os.chmod(part, 0o700)
    name = re.sub(r"[^A-Za-z0-9-]+", "-", Path(source).name).strip("-")[:40] or "data"
    epochs, count = answer["epochs"], options["num_samples"]
    path = folder / "scores" / f"{name}-{options['classifier']}-n{count}-e{epochs}-seed{options['seed']}.json"
    Output(str(path)).finish(answer)
    return path


def _refuse_release(json_target: str | None, run: Path) -> None:
    if json_target in (None, STDOUT):
        return
    from datalens.training.run_folder import RunFolder

    if RunFolder.shares(run, Path(json_target)):
        raise NotPrivateError(
            f"--json {json_target}: a score on people's data does not go under release/; write it elsewhere"
        )


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
