"""What a command says at the end of a method's training: cost, where the run lies, and what comes next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from datalens.cli.output import Output
from datalens.cli.reporting import pages_after

if TYPE_CHECKING:
    from datalens.baselines.model import Baseline
    from datalens.dpsgd.classifier import DPSGDClassifier


def report_training(
    model: Baseline | DPSGDClassifier,
    run: Path,
    output: Output,
    *,
    title: str,
    seconds: float,
    resume_with: str,
    next_words: Sequence[str],
) -> None:
    """Say it, and write the answer that was asked for.

    Args:
        model: as trained.
        run: its folder.
        output: where to.
        title: the method, as people call it.
        seconds: that it all took.
        resume_with: how to go on, for a training that was stopped.
        next_words: the command that comes next, for one that ended.
    """
    from datalens.cli.fitness import run_summary, unfit_line
    from datalens.training.run_folder import RunFolder

    summary, last = run_summary(model), unfit_line(model.config)
    for note in model.notes:
        output.warn(note)
    pages_after(run, output)
    status = "stopped" if model.was_stopped else "finished"
    output.finish({"run": str(run), "status": status, **summary, "seconds": seconds, "note": last})
    if summary["is_private"]:
        steps = f", {summary['steps']} of {summary['num_steps']} steps" if "steps" in summary else ""
        output.say(
            f"{title}: epsilon {summary['epsilon_spent']:.4g} spent of {summary['epsilon_authorised']:.4g} "
            f"authorised at delta {summary['delta']:g} ({summary['accountant']} accountant){steps}, {seconds:.0f} s"
        )
    if model.was_stopped:
        output.insist(f"stopped early and saved; {resume_with}")
    else:
        label = "to share" if model.is_publishable else "not for publication"
        output.say(f"{label}: {RunFolder.open(run).release}; never to share: {run / 'private'}")
        output.say(f"next: {shlex.join(next_words)}")
    if last is not None:
        output.insist(last)
