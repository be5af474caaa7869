"""Train a cell of DP-SGD, and put what it reaches and costs into the store."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from datalens.errors import MissingExtraError
from datalens.experiments.dpsgd_cells import ACCURACY, DpsgdCell
from datalens.experiments.dpsgd_costs import cost_of
from datalens.experiments.extractors import EXTRACTORS
from datalens.experiments.store import ResultsStore
from datalens.models.small_classifiers import set_weights, small_classifier
from datalens.models.small_kind import SmallKind
from datalens.privacy.events import PoissonGaussianEvent
from datalens.randomness import Streams
from datalens.training.release import environment

Tell = Callable[[str], None]
NUM_CLASSES = 10
_SCORED_AT_ONCE = 5_000


class Records(NamedTuple):
    """What a classifier learns and is scored on: inputs [R, ...] and classes [R], to train and to test."""

    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor


def measure_dpsgd(
    cell: DpsgdCell, records: Records, store: ResultsStore, tell: Tell = lambda _: None
) -> None:
    """Train the cell from its first step, and add its accuracy.

    Raises:
        DataLensError: settings out of range; nothing was added.
    """
    started = time.monotonic()
    tell(f"training, {cell.num_steps():,} steps")
    accuracy, event = train_and_score(cell, records)
    facts = {
        "privacy": cost_of(event) if cell.is_private else None,
        "steps": event.count,
        "training_seconds": round(time.monotonic() - started, 1),
        "environment": {
            **environment("cpu"),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
        },
        "command": f"datalens reproduce (cell {cell.key})",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    store.add(cell, {ACCURACY: {"last_accuracy": accuracy}}, facts)


def train_and_score(cell: DpsgdCell, records: Records) -> tuple[float, PoissonGaussianEvent]:
    """Accuracy on the test records after the last step, and what all steps cost."""
    from datalens.dpsgd.training import train_classifier

    used = cell.settings
    network = network_of(cell)
    event = train_classifier(
        network,
        torch.optim.SGD(network.parameters(), lr=used.learning_rate),
        records.inputs,
        records.labels,
        noise_multiplier=used.noise_multiplier if cell.is_private else 0.0,
        sampling_rate=cell.sampling_rate,
        num_steps=cell.num_steps(),
        max_grad_norm=used.max_grad_norm,
        keep=cell.keep,
        method=cell.method,
        select_by=cell.select_by,
        seed=cell.seed,
    )
    return accuracy_of(network, records.test_inputs, records.test_labels), event


def network_of(cell: DpsgdCell) -> nn.Module:
    """What learns, with initial weights of the cell's seed."""
    if cell.features is None:
        network = small_classifier(SmallKind.CNN, (1, 28, 28), NUM_CLASSES)
    else:
        network = small_classifier(SmallKind.LINEAR, (EXTRACTORS[cell.features].used, 1, 1), NUM_CLASSES)
    set_weights(network, Streams.from_insecure_seed(cell.seed, "dp-sgd network").torch("weights"))
    return network


@torch.inference_mode()
def accuracy_of(network: nn.Module, inputs_N: Tensor, labels_N: Tensor) -> float:
    """Share of records whose class is the likeliest."""
    parts = zip(inputs_N.split(_SCORED_AT_ONCE), labels_N.split(_SCORED_AT_ONCE), strict=True)
    right = sum(int((network(inputs).argmax(1) == labels).sum()) for inputs, labels in parts)
    return right / len(labels_N)


def require_opacus() -> None:
    """Refuse where Opacus is not installed.

    Raises:
        MissingExtraError: how to install it.
    """
    if importlib.util.find_spec("opacus") is None:
        raise MissingExtraError(
            "DP-SGD needs Opacus, which is not installed; run: pip install 'datalens-dp[dpsgd]'"
        )
