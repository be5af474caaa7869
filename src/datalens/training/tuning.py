"""``datalens tune``: a secret random number of tries, of which the one with the best noisy score is released.

The whole tuning is charged before the first try; a crash leaves it charged, and nothing of it can be resumed.
Tries live under ``private/``; ``release/`` is made at the end, of the best one alone, in one go, and neither it
nor the times of its files tell how many tries there were. Cost and proof: :mod:`datalens.privacy.private_tuning`
and :mod:`datalens.training.tuning_plan`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from datalens.data.images import LabelledImages
from datalens.errors import ConfigError
from datalens.evaluation.utility import evaluate_utility
from datalens.models.finish import AnyGenerator
from datalens.privacy import private_tuning
from datalens.privacy.authorisation import Authorisation
from datalens.privacy.budget import Budget
from datalens.privacy.dataset_budget import DatasetBudget
from datalens.privacy.events import times
from datalens.privacy.ledger import Ledger
from datalens.student.sampling import sample_images
from datalens.teachers.groups import SlotMap
from datalens.training.assembly import draw_run
from datalens.training.config import Config
from datalens.training.directions import DirectionRecord, write_directions
from datalens.training.facts import PublicFacts, require_public_classes
from datalens.training.files import write_json
from datalens.training.opening import OpenRun
from datalens.training.plan import Plan
from datalens.training.release import certify, environment, write_network
from datalens.training.repeats import refuse_groups
from datalens.training.run_folder import RunFolder
from datalens.training.session import Session
from datalens.training.starting import require_used
from datalens.training.terms import ledger_header
from datalens.training.tuned import METHOD
from datalens.training.tuning_plan import TuningPlan
from datalens.training.warm_settings import refuse_warm, require_enabled
from datalens.version import __version__


@dataclass(frozen=True)
class Try:
    """One try: its score, and what would be released of it. Private, but for the best one.

    Attributes:
        noisy_right: right predictions on held-out records, with noise.
        candidate: number of its settings, from 1.
    """

    noisy_right: int
    candidate: int
    facts: PublicFacts
    plan: Plan
    partition: SlotMap
    generator: AnyGenerator
    records: list[DirectionRecord]
    made_in: dict[str, Any]


def tune(
    plan: TuningPlan,
    data: LabelledImages,
    root: Path,
    *,
    budget_file: DatasetBudget | None = None,
    tell: Callable[[], None] = lambda: None,
    draw_tries: Callable[[float, float], int] = private_tuning.draw_tries,
) -> Try:
    """Try settings on people's data and release the best.

    Args:
        plan: made by :func:`datalens.training.tuning_plan.plan_tuning` for these data.
        data: the sensitive records.
        root: a new folder for the run.
        budget_file: the data set's budget, open; charged before the run's own. Closed by the caller.
        tell: called after every step of every try; for the owner alone, since its calls show how long it takes.
        draw_tries: E[K] and eta to the number of tries; another only in tests.

    Guarantee:
        What lies in ``release/`` afterwards is (epsilon, delta)-private with the plan's numbers, for the tuning
        and the training together.

    Raises:
        DataLensError: it does not fit, before anything is charged; or a try failed, after all of it was.
    """
    refuse_groups(data)
    for config in plan.candidates:
        require_public_classes(config.privacy, data)
        require_used(config.public_init)
        require_enabled(config.warm_start)
        refuse_warm(
            config.warm_start,
            "sums all records, and a try holds some out",
            "leave it out of what is tuned",
        )
    if budget_file is not None:
        budget_file.require(plan.event, 1)
    folder = RunFolder.create(root)
    run_id = secrets.token_hex(16)
    try:
        _charge(folder, plan, run_id, budget_file)
    except BaseException:
        if not _ledger(folder).exists():
            folder.discard()
        raise
    best: Try | None = None
    for number in range(draw_tries(plan.settings.expected_tries, plan.settings.eta)):
        made = _one_try(plan, data, tell)
        _keep(folder.private / "tries" / f"{number:03d}", made)
        if best is None or made.noisy_right > best.noisy_right:  # among equals the first, as good as by lot
            best = made
    if best is None:
        raise ConfigError("no try was made: a tuning needs one or more")
    _release(folder, plan, best, run_id, budget_file)
    return best


def _ledger(folder: RunFolder) -> Path:
    return folder.private / "tuning.jsonl"


def _charge(folder: RunFolder, plan: TuningPlan, run_id: str, shared: DatasetBudget | None) -> None:
    """Write the cost of all of it down, in the data set's budget and under ``private/``, before the first try."""
    header = {"datalens": __version__, "method": METHOD, "run_id": run_id}
    with Ledger.create(_ledger(folder), header) as ledger:
        budget = Budget(
            ledger, plan.authorisation, shared=None if shared is None else shared.budget, run=run_id
        )
        budget.charge(plan.event, {"tuning": "all tries and their scores"})


def _one_try(plan: TuningPlan, data: LabelledImages, tell: Callable[[], None]) -> Try:
    """One training of a candidate chosen by lot, and its noisy score; all of its noise is fresh."""
    choice = secrets.randbelow(len(plan.candidates))
    facts, steps, partition, private, _ = draw_run(plan.candidates[choice], data)
    own = Ledger.in_memory(ledger_header(facts, steps, partition, "a try"))
    session = Session(OpenRun(facts, partition, private, own), data)
    try:
        session.run(tell=lambda _: tell())
        generator = session.student.finished_generator()
        made_in = environment(session.student.device)
        records = list(session.records)
    finally:
        session.close()
    right = _count_right(plan, data, partition, facts, generator)
    price = Authorisation(
        plan.authorisation.epsilon,
        plan.authorisation.delta,
        plan.authorisation.accountant,
        num_releases=1,
        planned=plan.score.event(1),
    )
    paid = Budget(Ledger.in_memory(), price)  # the tuning's event covers it; nothing is noised uncharged
    release = plan.score.release(np.array([right], np.int64), paid, {"score": "right predictions"})
    noisy = int(release.value[0])
    return Try(noisy, choice + 1, facts, steps, partition, generator, records, made_in)


def _count_right(
    plan: TuningPlan,
    data: LabelledImages,
    partition: SlotMap,
    facts: PublicFacts,
    generator: AnyGenerator,
) -> int:
    """Held-out records that a classifier names rightly which learned from samples alone; private."""
    held = np.flatnonzero(partition.slot_of_record >= partition.num_records - plan.held_slots)
    if not held.size:
        return 0
    settings = plan.settings
    images, labels = sample_images(generator, facts.student_plan.latent, settings.num_samples)
    result = evaluate_utility(
        images,
        labels,
        data.images[held],
        data.labels[held],
        num_classes=len(facts.classes),
        classifier=settings.classifier,
        epochs=settings.epochs,
        seed=secrets.randbelow(2**31),
        device=facts.config.performance.device,
    )
    return round(result.last_accuracy * held.size)


def _keep(place: Path, made: Try) -> None:
    """What the owner may look at later; no run's folder, so that nobody takes it for one."""
    place.mkdir(parents=True, mode=0o700)
    write_json(place / "try.json", {"noisy_right": made.noisy_right, "candidate": made.candidate})
    write_json(place / "settings.json", made.facts.to_json())
    write_directions(place / "directions.bin", made.records)
    write_network(place / "generator.safetensors", made.generator, made.made_in)


def _release(
    folder: RunFolder, plan: TuningPlan, best: Try, run_id: str, shared: DatasetBudget | None
) -> None:
    """Make ``release/`` of the best try, at the price of the whole tuning."""
    facts = replace(best.facts, config=_with_whole_price(best.facts.config, plan))
    header = ledger_header(
        facts, replace(best.plan, authorisation=plan.authorisation), best.partition, run_id
    )
    header |= {"method": METHOD, "tuning": tuning_facts(plan, best)}
    if shared is not None:
        header["dataset_budget"] = shared.to_json()
    with Ledger.create(folder.ledger, header) as ledger:
        line = Budget(ledger).charge(plan.event, {"tuning": "all tries and their scores"})
        write_json(folder.config, facts.to_json())
        paid = [replace(record, line_hash=line.hash) for record in best.records]
        write_directions(folder.directions, paid)
        write_network(folder.generator, best.generator, best.made_in)
        certify(folder, ledger)
    for path in (*folder.release.iterdir(), folder.release):  # their times would tell how long it took
        os.utime(path, (0, 0))


def _with_whole_price(config: Config, plan: TuningPlan) -> Config:
    return config.replace(privacy__epsilon=plan.authorisation.epsilon)


def tuning_facts(plan: TuningPlan, best: Try) -> dict[str, Any]:
    """What the released ledger says of the tuning: the law of the number of tries, and the best one's score."""
    return {
        "expected_tries": plan.settings.expected_tries,
        "eta": plan.settings.eta,
        "num_candidates": len(plan.candidates),
        "held_slots": plan.held_slots,
        "score_noise": plan.score.noise_stddev,
        "noisy_right": best.noisy_right,
        "classifier": plan.settings.classifier,
        "num_samples": plan.settings.num_samples,
        "chosen": [
            times(best.plan.event, best.plan.num_steps).to_json(),
            plan.score.event(1).to_json(),
        ],
    }
