"""``datalens evaluate`` of a run that trained a classifier: how many test images it gets right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from datalens.cli.options import DATA_OPTIONS
from datalens.cli.output import Output
from datalens.cli.reporting import pages_after
from datalens.errors import ConfigError

if TYPE_CHECKING:
    from datalens.data.images import LabelledImages
    from datalens.dpsgd.classifier import DPSGDClassifier

_TAKEN = {"run", "source", "quiet", "json_target", *DATA_OPTIONS}


def open_classifier(run: str) -> DPSGDClassifier | None:
    """The run in a folder, or None where it is none of a classifier.

    Raises:
        DataLensError: it is one, but damaged, or without a classifier yet.
    """
    from datalens.baselines.facts import method_of
    from datalens.privacy import promises
    from datalens.training.run_folder import RunFolder

    if not RunFolder.holds_run(Path(run)) or method_of(Path(run)) not in promises.CLASSIFIERS:
        return None
    _refuse_others(run)
    from datalens.dpsgd import DPSGDClassifier

    return DPSGDClassifier.load(run)


def report_accuracy(
    model: DPSGDClassifier, run: str, source: str, test: LabelledImages, keep: Path, output: Output
) -> None:
    """Count, keep the answer under the run's ``private/``, and say it.

    Args:
        model: the classifier.
        run: its folder.
        source: name or path of the data.
        test: their test split.
        keep: the file to keep it in.
        output: who says it.
    """
    from datalens.cli.fitness import run_summary, unfit_line

    summary, last = run_summary(model), unfit_line(model.config)
    if summary["steps"] < summary["num_steps"]:
        output.warn(
            f"{run}: took {summary['steps']} of {summary['num_steps']} steps so far; resume its training"
        )
    accuracy = model.accuracy(test)
    answer: dict[str, Any] = {
        "run": run,
        "data": source,
        "measured_on_public_data": test.public,
        "accuracy": accuracy,
        "num_test": test.num_records,
        "privacy": summary,
        "note": last,
        "kept_in": str(keep),
    }
    Output(str(keep)).finish(answer)
    pages_after(Path(run), output, of_owner_alone=True)
    output.finish(answer)
    output.say(f"accuracy {accuracy:.2%} on {test.num_records} test images")
    private = "" if test.public else "; a score on people's data: not to be published"
    output.say(f"kept in {keep}{private}")
    if last is not None:
        output.insist(last)


def _refuse_others(run: str) -> None:
    """Options that are about images drawn from a generator, or about a budget that has no room for a score."""
    ctx = click.get_current_context()
    for name in ctx.params:
        if name not in _TAKEN and ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = {"num_samples": "--num-samples"}.get(name, "--" + name.replace("_", "-"))
            raise ConfigError(f"{option}: is for generators, and {run} holds a classifier; leave it out")
