"""A cell whose training is DP-SGD of a classifier: what decides it, and how many steps its budget allows."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, TypeAlias

from datalens.errors import BudgetError, ConfigError
from datalens.experiments.baseline_cells import AnyCell
from datalens.experiments.cells import DATA_SETS
from datalens.experiments.dpsgd_costs import DELTA, PAPERS, most_steps
from datalens.experiments.dpsgd_paper import Settings

NUM_RECORDS = {"mnist": 60_000, "cifar10": 50_000}
"""Public; a lot holds each with probability ``batch_size / num_records``."""
ACCURACY = "accuracy"
"""The one score of such a cell: on the test images, after the last step."""

_WHOLE = {"topagg": "gm-dp", "topk-gm-dp": "gm-dp", "topk-sgd": "clipped-sgd"}
_PROTOCOL = 1


@dataclass(frozen=True)
class DpsgdCell:
    """One training by DP-SGD, with an insecure seed so that anyone gets it again.

    What equals is one cell: a method that keeps everything is GM-DP, or clipped SGD.

    Attributes:
        data_set: ``mnist``, by the network of Opacus's example, or ``cifar10``, by a linear head on features.
        epsilon: what the steps may cost; without noise, as many steps all the same.
        settings: of the training.
        keep: share that stays of a gradient.
        method: a name of ``datalens.dpsgd.Method``.
        select_by: ``norm``, ``tensor-norm`` or ``dimension``.
        features: a name of :data:`~datalens.experiments.extractors.EXTRACTORS`, of CIFAR-10 alone.
        accountant: that counts the steps, by its name in :mod:`~datalens.experiments.dpsgd_costs`.
        seed: of everything.
    """

    data_set: str
    epsilon: float
    settings: Settings
    keep: float = 1.0
    method: str = "topagg"
    select_by: str = "norm"
    features: str | None = None
    accountant: str = PAPERS
    seed: int = 0
    held_out: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.keep == 1.0:
            object.__setattr__(self, "method", _WHOLE.get(self.method, self.method))
        if self.method in _WHOLE.values():
            object.__setattr__(self, "keep", 1.0)
            object.__setattr__(self, "select_by", "norm")

    @property
    def recipe(self) -> str:
        """The method's name: such a cell can run wherever its files are."""
        return self.method

    @property
    def is_private(self) -> bool:
        """Whether noise is added."""
        return self.method not in ("topk-sgd", "clipped-sgd")

    @property
    def sampling_rate(self) -> float:
        """Chance of a record to be in a lot."""
        return self.settings.batch_size / NUM_RECORDS[self.data_set]

    def num_steps(self) -> int:
        """The most that cost at most epsilon.

        Raises:
            BudgetError: not even one does.
        """
        used = self.settings.noise_multiplier
        return most_steps(self.sampling_rate, used, self.epsilon, self.accountant)

    def refusal(self) -> str | None:
        """Why it cannot be trained; None where it can."""
        try:
            self.num_steps()
        except (BudgetError, ConfigError) as error:
            return str(error)
        return None

    def with_seed(self, seed: int) -> DpsgdCell:
        """The same with another seed."""
        return replace(self, seed=seed)

    @property
    def key(self) -> str:
        """Digest of everything that decides the result: equal settings are run once.

        >>> cell = DpsgdCell("mnist", 0.2, Settings(10, 3.6, 512, 0.1))
        >>> cell.key == replace(cell, method="gm-dp", select_by="dimension").key, cell.key == cell.with_seed(1).key
        (True, False)
        """
        what = ["dp-sgd", _PROTOCOL, DELTA, asdict(self)]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """One line for people.

        >>> DpsgdCell("mnist", 0.2, Settings(10, 3.6, 512, 0.1), keep=0.8).title
        'MNIST, epsilon 0.2, seed 0, topagg, keep 0.8, C 10, sigma 3.6, batch 512, rate 0.1'
        """
        used = self.settings
        kept = (
            []
            if self.keep == 1
            else [f"keep {self.keep:g}" + f" by {self.select_by}" * (self.select_by != "norm")]
        )
        words = [
            DATA_SETS[self.data_set].title,
            f"epsilon {self.epsilon:g}",
            f"seed {self.seed}",
            *([self.features] if self.features else []),
            self.method,
            *kept,
            f"C {used.max_grad_norm:g}",
            f"sigma {used.noise_multiplier:g}",
            f"batch {used.batch_size}",
            f"rate {used.learning_rate:g}",
            *([] if self.accountant == PAPERS else [f"steps by {self.accountant}"]),
        ]
        return ", ".join(words)

    def to_json(self) -> dict[str, Any]:
        """The cell as plain values."""
        return {**asdict(self), "recipe": self.recipe}


TableCell: TypeAlias = AnyCell | DpsgdCell
"""What a row of a table can be of."""
