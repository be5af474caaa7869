"""Train a cell and measure what is asked of it, on public data and with insecure seeds: nothing here is private."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from datalens.errors import DataLensError
from datalens.experiments.apart import in_fresh_process
from datalens.experiments.baseline_cells import AnyCell
from datalens.experiments.grids import write_grid
from datalens.experiments.scorer import images_of
from datalens.experiments.store import ResultsStore
from datalens.experiments.training import TrainedCell, is_trained, read_trained, train
from datalens.experiments.workplace import Workplace
from datalens.student.sampling import sample_images

Tell = Callable[[str], None]


def measure(
    cell: AnyCell, scores: Sequence[str], store: ResultsStore, place: Workplace, tell: Tell = lambda _: None
) -> None:
    """Train the cell, unless its generator is still at hand, and put the scores that are missing in the store.

    Args:
        cell: what to train.
        scores: names: a classifier and a number of images (``cnn-60000``, ``mlp-10000``, ``logistic-10000``), or
            ``is-N`` and ``fid-N``.
        store: where results go; scores that it has are not measured again.
        place: where data and scratch files are.
        tell: told what begins.

    Raises:
        DataLensError: data that are missing, or settings that contradict each other.
    """
    missing = store.missing(cell, scores)
    if not missing:
        return
    _, scorer = place.data_of(cell.data_set, held_out=cell.held_out)
    trained = _trained(cell, place, tell)
    if place.grids is not None:
        place.grids.mkdir(parents=True, exist_ok=True)
        write_grid(place.grids / f"{cell.key}.png", trained, cell.seed)
    for name in missing:
        tell(name)
        started = time.monotonic()
        drawn = sample_images(trained.generator, trained.latent, images_of(name), seed=cell.seed)
        found = scorer.score(name, *drawn, seed=cell.seed)
        store.add(cell, {name: {**found, "seconds": round(time.monotonic() - started, 1)}}, trained.facts)


def _trained(cell: AnyCell, place: Workplace, tell: Tell) -> TrainedCell:
    """The cell's generator, trained now unless it is at hand."""
    if is_trained(cell, place.scratch):
        try:
            return read_trained(cell, place.scratch)
        except DataLensError as error:
            tell(f"what was kept is of no use ({error})")
    tell("training")
    if place.apart:
        in_fresh_process(_train_apart, cell, Workplace(place.scratch, place.data_root))
    else:
        train(cell, place.data_of(cell.data_set, held_out=cell.held_out)[0], place.scratch)
    return read_trained(cell, place.scratch)


def _train_apart(cell: AnyCell, place: Workplace) -> None:
    """All of a training that is in a process of its own."""
    data, _ = place.data_of(cell.data_set, held_out=cell.held_out)
    train(cell, data, place.scratch, measures_memory=True)
