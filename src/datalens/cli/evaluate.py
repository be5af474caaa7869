"""``datalens evaluate``: how good synthetic images are, measured against real ones."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from datalens.cli import judged, scoring
from datalens.cli.classified import open_classifier, report_accuracy
from datalens.cli.known import SOURCES
from datalens.cli.options import data_options, data_settings, json_option, public_option, quiet_option
from datalens.cli.output import Output, refuse_released
from datalens.cli.params import Once, Range, Several, Text, Whole
from datalens.cli.reporting import pages_after
from datalens.cli.sample import warn_unfinished
from datalens.cli.scores_table import few, say_scores
from datalens.errors import ConfigError, DataError, NotPrivateError

if TYPE_CHECKING:
    from datalens.baselines.model import Baseline
    from datalens.data.images import LabelledImages
    from datalens.dpsgd.classifier import DPSGDClassifier
    from datalens.training.synthesizer import DataLens


@click.command(cls=Once, short_help="Score a run or samples against real images.")
@click.argument("run", type=Text(paths=True), metavar="RUN|SAMPLES")
@click.option(
    "--data", "source", type=Text(*SOURCES, paths=True), required=True, metavar="SOURCE", help="Real images."
)
@click.option(
    "--metrics",
    type=Several(*scoring.METRICS),
    default="utility",
    show_default=True,
    help="Accuracy of a classifier, Inception Score, Frechet and kernel distance, search for copies.",
)
@click.option(
    "--classifier",
    type=Several(*scoring.CLASSIFIERS),
    default="cnn",
    show_default=True,
    help="Trained on synthetic, tested on real.",
)
@click.option(
    "--num-samples",
    "-n",
    type=Whole(),
    show_default=f"{judged.RUN_SAMPLES} of a run, else all",
    help="Synthetic images.",
)
@click.option("--epochs", type=Whole(), show_default="4 (cnn), 10 (mlp, logistic)", help="Fixed beforehand.")
@click.option("--seed", type=Whole(0), default=0, show_default=True, help="Of samples and classifier.")
@click.option("--device", type=Text(), default="cpu", show_default=True)
@click.option("--samples-range", type=Range(), metavar="LOW..HIGH", help="Like --value-range, of SAMPLES.")
@click.option("--samples-layout", type=click.Choice(["NCHW", "NHWC"]), help="Like --layout, of SAMPLES.")
@click.option(
    "--resize-samples", is_flag=True, help="Scale SAMPLES to the real images' size; it is recorded."
)
@click.option(
    "--inception",
    type=Text(paths=True),
    metavar="FILE|auto",
    help="Inception v3 weights for is, fid, kid, in place of a classifier trained on SOURCE; auto: where "
    "torch's downloads lie.",
)
@click.option(
    "--inception-layer",
    type=click.Choice(["64", "192", "768", "2048"]),
    help="Features of Inception v3.",
    show_default="2048",
)
@click.option(
    "--charge", is_flag=True, help="Put the accuracy under release/: noisy and charged, or on public data."
)
@click.option("--test-count-is-public", is_flag=True, help="The number of test images may be known.")
@click.option(
    "--budget-file",
    type=Text(paths=True),
    metavar="FILE",
    help="Where RUN/private is gone: its data set's budget.",
)
@data_options
@public_option
@quiet_option
@json_option
def evaluate(run: str, source: str, **options: Any) -> None:
    """Score images drawn from RUN, or SAMPLES (what `datalens sample` writes), against SOURCE.

    utility: a classifier learns from the synthetic images and is tested on the test split of SOURCE; the headline
    is the last epoch. is, fid, kid: Inception Score, and distances to the training split, on features of a
    classifier trained on that split (kept for the next time) or of Inception v3. copies: nearest neighbours
    among training and test images.

    Of a run the result is kept in RUN/private, since a score on people's data is not covered by the guarantee.
    Of a run of `datalens dpsgd`, which is a classifier, its own accuracy on the test split is measured.
    With --charge the accuracy also goes under release/: on public data as it is, else as a count of right
    predictions with noise, charged in the run's ledger, for which the run was trained with --score-noise.

    \b
    datalens evaluate runs/mnist --data mnist
    datalens evaluate runs/mnist --data mnist --metrics is,fid -n 10000
    datalens evaluate samples.npz --data mnist --classifier cnn,mlp,logistic
    """
    from datalens.cli.fitness import run_summary, unfit_line
    from datalens.training.charged_score import require_score
    from datalens.training.devices import require_device
    from datalens.training.run_folder import RunFolder

    output = Output(options["json_target"], quiet=options["quiet"])
    refuse_released("--json", options["json_target"], [run])
    _check(options)
    if (classifier := open_classifier(run)) is not None:
        test = _split("test", source, classifier, options)
        keep = _private(Path(run), "scores") / f"{_named(source)}-accuracy.json"
        return report_accuracy(classifier, run, source, test, keep, output)
    require_device(options["device"])
    model = judged.open_run(run)
    if model is None:
        _require_run_for(run, options)
    metrics = options["metrics"]
    test = _split("test", source, model, options) if _needs_test(source, metrics) else None
    needs_train = "copies" in metrics or any(name in metrics for name in scoring.FEATURE_METRICS)
    train = _split("train", source, model, options) if needs_train else None
    data = test if test is not None else train
    if data is None:
        raise DataError(f"--data {source}: holds no images to measure against; give a train or test split")
    if "copies" in metrics and model is None and not data.public:
        raise NotPrivateError(
            f"{run}: a copy check on people's data is kept in a run's private/; give the run, or --public-data"
        )
    if model is not None:
        warn_unfinished(model, run, output)
        if options["charge"] and not data.public:
            require_score(Path(run))
        scored = judged.drawn(model, options["num_samples"], options["seed"])
    else:
        scored = judged.read(run, data.classes, data.image_shape, options, output)
    answer: dict[str, Any] = {
        "run" if model is not None else "samples_in": run,
        "data": source,
        "measured_on_public_data": data.public,
        "metrics": list(metrics),
        "seed": options["seed"],
        "samples": scored.facts,
    }
    if "utility" in metrics and test is not None:
        answer["utility"] = scoring.utility(scored, test, options, output)
    if train is not None and any(name in metrics for name in scoring.FEATURE_METRICS):
        cache = _cache(Path(run), model, train.public)
        answer["features"] = scoring.feature_scores(scored, train, test, options, output, cache)
    if "copies" in metrics and train is not None and test is not None:
        answer["copies"] = scoring.copies(scored, train, test, options)
    last = None
    if model is not None:
        last = unfit_line(model.config)
        answer |= {"privacy": run_summary(model), "note": last}
        answer["kept_in"] = str(_keep(Path(run), source, options, answer))
        answer["released"] = answer["released_in"] = None
        if options["charge"]:
            answer["released"] = _release(Path(run), data.public, answer, options)
            answer["released_in"] = str(RunFolder.open(Path(run)).scores)
        pages_after(Path(run), output, of_owner_alone=not options["charge"])
    if not data.public:
        answer.pop("copies", None)
    output.finish(answer)
    say_scores(answer, output, copies_kept="copies" in metrics and not data.public)
    if last is not None:
        output.insist(last)


def _check(options: dict[str, Any]) -> None:
    """Options that have no use beside each other."""
    metrics = options["metrics"]
    if options["charge"] and ("utility" not in metrics or len(options["classifier"]) != 1):
        raise ConfigError("--charge: releases one accuracy; give --metrics utility and one --classifier")
    if options["inception_layer"] is not None and options["inception"] is None:
        raise ConfigError("--inception-layer: is of Inception v3; give --inception, or leave it out")
    if options["inception"] is not None and not any(name in metrics for name in scoring.FEATURE_METRICS):
        raise ConfigError("--inception: is for is, fid and kid; add one to --metrics, or leave it out")
    options["inception_layer"] = int(options["inception_layer"] or 2048)


def _require_run_for(path: str, options: dict[str, Any]) -> None:
    for name in ("charge", "test_count_is_public", "budget_file"):
        if options[name]:
            raise ConfigError(f"--{name.replace('_', '-')}: is for runs, and {path} is none; leave it out")


def _needs_test(source: str, metrics: tuple[str, ...]) -> bool:
    """Whether the test split is read: always where there is one, for the row of real images."""
    from datalens.data import available_splits

    return "test" in available_splits(source) or "utility" in metrics or "copies" in metrics


def _cache(run: Path, model: DataLens | Baseline | None, is_public: bool) -> Path | None:
    """Where the feature classifier is kept; None for people's data outside of a run."""
    if is_public:
        return scoring.public_cache()
    return None if model is None else _private(run, "features")


def _release(run: Path, is_public: bool, answer: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Put the accuracy under ``release/``."""
    from datalens.training.charged_score import charge_score, publish_score

    (result,) = answer["utility"].values()
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


def _split(
    split: str, source: str, model: DataLens | Baseline | DPSGDClassifier | None, options: dict[str, Any]
) -> LabelledImages:
    from datalens.data import available_splits, load

    if split not in available_splits(source):
        remedy = {
            "test": "put test images into test/ beside train/, x_test and y_test, or rows whose `split` is test",
            "train": "is, fid, kid and copies need the real training images",
        }[split]
        raise DataError(f"--data {source}: has no {split} split; {remedy}")
    settings = data_settings(options)
    if model is not None and not judged.is_named(source):
        settings.setdefault("classes", model.classes)
    data = load(source, split=split, **settings)  # pyright: ignore[reportArgumentType]
    if model is None:
        return data
    if data.classes != model.classes:
        raise DataError(
            f"--data {source}: its classes are {few(data.classes)}, the run's {few(model.classes)}; "
            "give the data that the run was trained for"
        )
    if data.image_shape != model.facts.image_shape:
        shapes = data.image_shape, model.facts.image_shape
        sizes = ["x".join(map(str, shape)) for shape in shapes]
        height, width = model.facts.image_shape[1:]
        raise DataError(
            f"--data {source}: its images are {sizes[0]}, the run's {sizes[1]} (CxHxW); "
            f"give --image-size {height}x{width}, or --channels"
        )
    return data


def _private(run: Path, name: str) -> Path:
    """A folder under the run's ``private/``, made anew for its owner alone where it was purged."""
    folder = run / "private"
    for part in (folder, folder / name):
        part.mkdir(mode=0o700, exist_ok=True)
        os.chmod(part, 0o700)
    return folder / name


def _named(source: str) -> str:
    """A source in the name of a file."""
    return re.sub(r"[^A-Za-z0-9-]+", "-", Path(source).name).strip("-")[:40] or "data"


def _keep(run: Path, source: str, options: dict[str, Any], answer: dict[str, Any]) -> Path:
    """Write the result under ``private/``."""
    words = [_named(source)]
    words += [name for name in options["metrics"] if name != "utility"]
    if "utility" in answer:
        words += list(options["classifier"])
    words.append(f"n{answer['samples']['num_samples']}")
    if options["epochs"] is not None and "utility" in answer:
        words.append(f"e{options['epochs']}")
    if "features" in answer:
        words.append(answer["features"]["network_digest"][:8])
    path = _private(run, "scores") / f"{'-'.join([*words, 'seed' + str(options['seed'])])}.json"
    Output(str(path)).finish(answer)
    return path
