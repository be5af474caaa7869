"""Trainings within this process, by the Python interface: an error in the middle leaves no lock and no handle."""

from __future__ import annotations

from typing import Any

import numpy as np
from soak import invariants
from soak.commands import at_home
from soak.plan import CLASSES, EPSILON, RECORDS, Plan
from soak.scene import Scene

from datalens import DataLens, data, load_run
from datalens.audit.verify import verify_run
from datalens.baselines.model import Baseline
from datalens.baselines.registry import parse_baseline
from datalens.training.config import parse_config
from datalens.training.run_folder import RunFolder

TRAININGS = 2
"""Of each kind, saved and crashed."""


class _Crash(Exception):
    """What a callback raises in the middle of a training."""


def estimator(plan: Plan) -> DataLens | Baseline:
    """Untrained, with the settings of the round."""
    privacy = {"epsilon": EPSILON, "num_records": RECORDS, "insecure_seed": plan.insecure_seed}
    if plan.method == "datalens":
        return DataLens(parse_config({"privacy": privacy, **plan.settings}))
    return Baseline(parse_baseline({"method": plan.method, "privacy": privacy, **plan.settings}))


def inside(scene: Scene) -> None:
    """Fit, sample, save, load and crash, again and again."""
    with at_home(scene.place):
        for number in range(TRAININGS):
            _saved(scene, number)
            _crashed(scene, number)
    scene.violations += invariants.nothing_left(scene.place.temporary)
    scene.outcome.append(f"{2 * TRAININGS} trainings")


def _saved(scene: Scene, number: int) -> None:
    records = data.load(str(scene.place.data), classes=CLASSES)
    target = scene.place.folder / f"saved-{number}"
    model = estimator(scene.plan)
    if isinstance(model, DataLens):
        model.fit(records).save(target)
    else:  # a baseline in memory cannot be saved later
        model.fit(records, out=target)
    loaded = load_run(target)
    pairs = zip(model.sample(8, seed=1), loaded.sample(8, seed=1), strict=True)
    if not all(np.array_equal(one, other) for one, other in pairs):
        scene.violations.append("a saved and loaded model draws other samples")


def _crashed(scene: Scene, number: int) -> None:
    records = data.load(str(scene.place.data), classes=CLASSES)
    run = scene.place.folder / f"run-{number}"
    last = scene.rng.randint(1, 6)

    def tell(progress: Any) -> None:
        if progress.step >= last:
            raise _Crash

    seen = invariants.Seen()
    try:
        estimator(scene.plan).fit(records, out=run, tell=tell)
    except _Crash:
        scene.violations += seen.look(run)
        if RunFolder.open(run).checkpoints.is_dir():
            type(estimator(scene.plan)).resume(run, records).sample(8, seed=1)
    scene.violations += seen.look(run)
    if RunFolder.open(run).certificate.is_file():
        scene.violations += [f"verify: {line}" for line in verify_run(run).differences]
