"""Train a cell and keep its generator, so that an interrupted sweep goes on and further scores cost no training."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch

from datalens.baselines.facts import BaselineFacts
from datalens.baselines.run import BaselineRun
from datalens.data.images import LabelledImages
from datalens.experiments.apart import peak_memory_mib
from datalens.experiments.baseline_cells import AnyCell, BaselineCell
from datalens.experiments.cells import Cell
from datalens.experiments.variants import adapt
from datalens.methods.pricing import replace_one_price
from datalens.models.finish import AnyGenerator
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.budget import Budget
from datalens.student.latent import LatentSpace
from datalens.training.facts import GeneratorFacts, PublicFacts, whole
from datalens.training.files import read_json, write_atomically, write_json
from datalens.training.release import environment, read_generator
from datalens.training.sections import Privacy
from datalens.training.session import Session
from datalens.training.unbegun import clear_unbegun


@dataclass(frozen=True)
class TrainedCell:
    """What a training leaves.

    Attributes:
        generator: finished and frozen.
        latent: what it is fed.
        facts: of its training: privacy, steps, seconds, settings, environment.
    """

    generator: AnyGenerator
    latent: LatentSpace
    facts: dict[str, Any]


def is_trained(cell: AnyCell, scratch: Path) -> bool:
    """Whether the cell's generator is at hand."""
    return all(path.exists() for path in _files(cell, scratch))


def read_trained(cell: AnyCell, scratch: Path) -> TrainedCell:
    """What :func:`train` kept.

    Raises:
        DataLensError: one of the two files is missing, damaged, or from a version with other networks.
    """
    weights, about = _files(cell, scratch)
    kept = read_json(about)
    with whole(about):
        public, facts = kept["public"], dict(kept["facts"])
    trained: GeneratorFacts = _kind_of_facts(cell).from_json(public, about)
    return TrainedCell(read_generator(weights, trained), trained.latent, facts)


def train(cell: AnyCell, data: LabelledImages, scratch: Path, *, measures_memory: bool = False) -> None:
    """Train a cell and keep its generator under ``scratch``.

    Args:
        cell: what.
        data: its records; published.
        scratch: a folder, made where it is missing.
        measures_memory: this process is the training's own, so that its peak is the training's.

    Raises:
        DataLensError: settings that contradict each other, or an epsilon with which nothing can be released.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    weights, about = _files(cell, scratch)
    started = time.monotonic()
    if isinstance(cell, BaselineCell):
        public, generator, facts = _train_baseline(cell, data)
    else:
        public, generator, facts = _train_datalens(cell, data, scratch / f"{cell.key}.run")
    facts |= {
        "training_seconds": round(time.monotonic() - started, 1),
        "peak_memory_mib": round(peak_memory_mib()) if measures_memory else None,
        "config": public.config.to_json(),
        "environment": {**environment(public.config.performance.device), "cores": os.cpu_count()},
        "command": f"datalens reproduce or benchmark (cell {cell.key})",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    write_atomically(weights, safetensors.torch.save(dict(generator.state_dict())))
    write_json(about, {"public": public.to_json(), "facts": facts})


def _files(cell: AnyCell, scratch: Path) -> tuple[Path, Path]:
    """Weights, and what is said of them."""
    return scratch / f"{cell.key}.safetensors", scratch / f"{cell.key}.json"


def _kind_of_facts(cell: AnyCell) -> type[PublicFacts] | type[BaselineFacts]:
    return BaselineFacts if isinstance(cell, BaselineCell) else PublicFacts


Outcome = tuple[PublicFacts | BaselineFacts, AnyGenerator, dict[str, Any]]
"""Public facts, the finished generator, and what is said of the training."""


def _train_datalens(cell: Cell, data: LabelledImages, folder: Path) -> Outcome:
    session = _begin(cell, data, folder)
    try:
        resumed = session.steps_done
        session.parts = adapt(session.parts, cell.variant)
        session.run()
        plan = session.plan
        facts = {
            "privacy": _privacy(cell.config().privacy, session.budget),
            "steps": session.steps_done,
            "noise_stddev": plan.noise_stddev,
            "vote_threshold": plan.mechanism.vote_threshold,
            "rms_agreement_by_step": [round(found.rms_agreement, 4) for found in session.diagnostics],
            "resumed_at_step": resumed,
        }
        return session.facts, session.student.finished_generator(), facts
    finally:
        session.close()


def _begin(cell: Cell, train: LabelledImages, folder: Path) -> Session:
    """A training that goes on where it was interrupted; minutes are not worth the folder."""
    if not cell.paper_networks:
        return Session.begin(cell.config(), train, None)
    clear_unbegun(folder)
    if folder.exists():
        return Session.resume(folder, train)
    return Session.begin(cell.config(), train, folder)


def _train_baseline(cell: BaselineCell, data: LabelledImages) -> Outcome:
    run = BaselineRun.begin(cell.config(), data, None)
    try:
        run.run()
        settings = cell.config().privacy
        privacy = _privacy(settings, run.budget)
        if privacy is not None:
            accountant = Accountant(settings.accountant)
            privacy["replace_one_epsilon"] = replace_one_price(
                run.method.planned(), accountant, settings.delta
            )
        facts = {"privacy": privacy, "steps": run.steps_done}
        return run.facts, run.learner.generator(), facts
    finally:
        run.close()


def _privacy(settings: Privacy, budget: Budget) -> dict[str, Any] | None:
    """What was spent, under every accountant; None where nothing is promised."""
    if not settings.is_private:
        return None
    spent = budget.ledger.events()
    return {
        "adjacency": "add-or-remove one record; replace_one_epsilon where replacing one costs more",
        "delta": settings.delta,
        "authorised_epsilon": budget.authorised_epsilon(),
        "spent_epsilon": {
            str(kind): Accountant(kind).epsilon(spent, settings.delta) for kind in AccountantKind
        },
    }
