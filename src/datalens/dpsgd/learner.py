"""A classifier in training, as a run holds it: charged steps of DP-SGD, and all that the next one needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor, nn, optim

from datalens.dpsgd.integer import IntegerTopAggOptimizer
from datalens.dpsgd.steps import LotSteps
from datalens.methods.method import Context
from datalens.methods.pricing import NoiseOnPaper
from datalens.methods.sampled import Lot, drawn_lot
from datalens.methods.sharding import draw_record_slots, packed_slots, restored_slots
from datalens.methods.state import pack, unpack
from datalens.models.small_classifiers import set_weights

if TYPE_CHECKING:
    from datalens.dpsgd.plan import DPSGD
    from datalens.teachers.partition import Partition

WHAT = "gradient"
"""What a step releases."""


class ClassifierLearner:
    """DP-SGD in training. Its weights are functions of released sums and public draws.

    Records lie in secret slots, and a lot is drawn among slots, empty ones too. So a record that is removed leaves
    every other record of the lot in its row, in batches of the same shape.

    Args:
        method: settings and noise.
        context: what it may use. Private.
    """

    def __init__(self, method: DPSGD, context: Context) -> None:
        self._method, self._context = method, context
        self.slots: Partition = draw_record_slots(method.size, context, method.privacy.insecure_seed)
        settings = method.settings
        self._network = method.network()
        set_weights(self._network, context.public.torch("classifier-weights"))
        self._network.to(context.device)
        self._sgd = optim.SGD(self._network.parameters(), settings.learning_rate, settings.momentum)
        self._optimizer = IntegerTopAggOptimizer(
            self._sgd,
            noise_multiplier=method.noise_stddev / method.grid.units,
            max_grad_norm=settings.max_grad_norm,
            expected_batch_size=settings.batch_size,
            rule=method.rule,
            noise=NoiseOnPaper(method.privacy.noise),
        )
        self._steps = LotSteps(self._network, self._optimizer)

    def step(self, step: int) -> None:
        """One lot, one release, one step of the classifier.

        Raises:
            BudgetError: the step does not fit; nothing was released and nothing learned.
        """
        context = self._context
        mechanism = self._method.mechanism(context.noise_for(WHAT, step))
        context.budget.check(mechanism.event())  # before any work
        self._optimizer.release = lambda sum_D: (
            mechanism.release(sum_D, context.budget, {"step": step, "what": WHAT}).value
        )
        self._steps.step(*self.lot(step))

    def lot(self, step: int) -> Lot:
        """The lot of a step; private."""
        mechanism = self._method.mechanism(NoiseOnPaper(self._method.privacy.noise))
        return drawn_lot(mechanism, self.slots, self._context, self._method.privacy, step)

    def state_dict(self) -> dict[str, Tensor]:
        """The classifier with its optimiser, and who has which slot."""
        return pack({"classifier": self._network}, {"classifier": self._sgd}) | packed_slots(self.slots)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from :meth:`state_dict`.

        Raises:
            CheckpointError: a state of another run.
        """
        self.slots = restored_slots(state, self.slots)
        unpack(state, {"classifier": self._network}, {"classifier": self._sgd})

    def classifier(self) -> nn.Sequential:
        """The network that may be shared: a function of what was released."""
        finished = self._method.network()
        finished.load_state_dict(self._network.state_dict())
        return finished.eval().requires_grad_(False)
