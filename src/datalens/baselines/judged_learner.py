"""The steps of ``judged``: two releases for the law, then gradients of the judge's last layer over all records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from datalens.baselines.judged_fitting import fit_judge
from datalens.baselines.moments import MomentsLearner
from datalens.errors import CheckpointError
from datalens.methods.method import Context
from datalens.methods.state import pack, unpack
from datalens.models.judge import JudgedGenerator
from datalens.moments.limits import ROWS
from datalens.moments.measuring import MEANS, STATES

if TYPE_CHECKING:
    from datalens.baselines.judged import Judged

GRADIENT = "judge gradient"
MOMENTUM = 0.9
_LAST_RATE = 0.1
"""Of the last step, over that of the first."""
_HEAD_BITS = 24
"""Binary places that the head's numbers are rounded to, so that logits are sums of whole numbers."""
_PLACES = 2**20
"""Largest whole number that a feature or an entry of the frame becomes."""
_STEPS_OF_FEATURES = 2**12
"""Whole numbers that a feature's 1 becomes."""


class JudgedLearner:
    """The law's releases and the judge's steps. The judge is a function of released sums and of public draws.

    Args:
        method: settings and noise.
        context: what it may use. Private.
    """

    def __init__(self, method: Judged, context: Context) -> None:
        self._method, self._context = method, context
        self._law = MomentsLearner(method.law, context)
        self._generator = method.settings.network(method.size)
        self._velocity_YK = torch.zeros(method.size.num_classes, method.settings.judge_size + 1).double()
        self._coordinates_RK: Tensor | None = None

    def step(self, step: int) -> None:
        """One of the law's releases, or one step of the judge.

        Raises:
            RunError: a crash lost the class means; nothing was charged for what would follow them.
        """
        if step < len(STATES):
            self._law.step(step)
            return
        method, context, number = self._method, self._context, step - len(STATES)
        self._law.require_means()
        if not self._generator.judge.knows:
            self._generator = fit_judge(self._with_law(), method, context.public)
        mechanism = method.mechanism(context.noise_for(GRADIENT, number))
        note = {"step": step, "what": GRADIENT}
        sum_YK = mechanism.release(self.gradient(), context.budget, note).value
        self._descend(sum_YK, 1 - (1 - _LAST_RATE) * number / method.settings.judge_steps)

    def gradient(self) -> Tensor:
        """int64 [Y, K + 1]: the sum over all records of error x coordinates, each on its grid. Private.

        A record's logits are sums of whole numbers, so they do not depend on who else is there; errors are put on
        their grid equally many at a time.
        """
        grid, (_, label_R) = self._method.grid, self._context.data.tensors()
        if self._coordinates_RK is None:
            self._coordinates_RK = self._coordinates()
        head_YK = self._whole_head()
        total = torch.zeros(grid.left.dim, grid.right.dim, dtype=torch.int64)
        for row_RK, few_R in zip(self._coordinates_RK.split(ROWS**2), label_R.split(ROWS**2), strict=True):
            logit_RY = torch.zeros(ROWS**2, grid.left.dim, dtype=torch.float64)
            logit_RY[: len(few_R)] = (row_RK.double() @ head_YK.T) / (grid.right.scale * 2**_HEAD_BITS)
            error_RY = -torch.softmax(logit_RY, 1)
            error_RY[: len(few_R)] += functional.one_hot(few_R, grid.left.dim)
            total += grid.sums(grid.left.put(error_RY)[: len(few_R)], row_RK)
        return total

    def _whole_head(self) -> Tensor:
        """Whole numbers float64 [Y, K + 1]: the head's, cut so that every record's logit is an exact sum."""
        right = self._method.grid.right
        most = 2**53 // (right.units * (math.isqrt(right.dim) + 1))
        whole_YK = (self._generator.judge.head_YK.double() * 2**_HEAD_BITS).round()
        return whole_YK.nan_to_num(nan=0.0).clamp(-most, most)

    @torch.no_grad()
    def _coordinates(self) -> Tensor:
        """Whole numbers int16 [R, K + 1]: each record's coordinates, the same at every step. Private.

        Features are computed record by record, so that nobody else is in the arithmetic; what follows are sums of
        whole numbers below 2^53 (3328 features of 20 binary places each), and rows put equally many at a time.
        """
        judge, right = self._generator.judge, self._method.grid.right
        images, _ = self._context.data.tensors()
        places = _PLACES / max(float(judge.frame_FK.abs().max()), 1e-30)
        frame_FK = (judge.frame_FK.double() * places).round()
        found = []
        for few_RCHW in images.split(ROWS):
            apart_RF = torch.zeros(ROWS, len(judge.centre_F), dtype=torch.float64)
            for row, image_CHW in enumerate(few_RCHW):
                apart_RF[row] = (
                    judge.features(image_CHW[None].float() / 255)[0].double() - judge.centre_F.double()
                )
            whole_RF = (apart_RF * _STEPS_OF_FEATURES).round().nan_to_num(nan=0.0).clamp(-_PLACES, _PLACES)
            along_RK = (whole_RF @ frame_FK) / (_STEPS_OF_FEATURES * places)
            found.append(right.put(judge.cut(along_RK))[: len(few_RCHW)].to(torch.int16))
        return torch.cat(found) if found else torch.zeros(0, right.dim, dtype=torch.int16)

    @torch.no_grad()
    def _descend(self, sum_YK: Tensor, share: float) -> None:
        """The judge's move along a noisy sum; post-processing."""
        settings, head = self._method.settings, self._generator.judge.head_YK
        mean_YK = sum_YK / (settings.error_length * self._method.size.num_records)
        self._velocity_YK = MOMENTUM * self._velocity_YK + mean_YK
        head += (self._method.rate * share * self._velocity_YK).to(head.dtype)

    def _with_law(self) -> JudgedGenerator:
        """The generator with what is known of the law by now."""
        law = self._law.generator().inner
        self._generator.inner.law.load_state_dict(law.state_dict())
        return self._generator

    def state_dict(self) -> dict[str, Tensor]:
        """What was released for the law, and from the judge's first step on all that followed."""
        state = self._law.state_dict()
        if self._generator.judge.knows:
            state |= pack({"judge": self._generator.judge}, {}) | {"velocity": self._velocity_YK.clone()}
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from :meth:`state_dict`.

        Raises:
            CheckpointError: a state of another run.
        """
        self._law.load_state_dict({name: state[name] for name in STATES.values() if name in state})
        self._with_law()
        velocity = state.get("velocity")
        if velocity is None:
            if set(state) - set(STATES.values()):
                raise CheckpointError("the checkpoint lacks the judge's velocity: use one of this method")
            return
        if velocity.shape != self._velocity_YK.shape or velocity.dtype != torch.float64:
            raise CheckpointError(
                f"the judge in the checkpoint has shape {tuple(velocity.shape)} and this run's "
                f"{tuple(self._velocity_YK.shape)}: use the settings it was made with"
            )
        if STATES[MEANS] not in state:  # products may be lost in a crash
            raise CheckpointError("the checkpoint lacks the law that its judge is of: use one of this method")
        unpack(state, {"judge": self._generator.judge}, {})
        if not all(bool(value.isfinite().all()) for value in (velocity, *self._generator.judge.parameters())):
            raise CheckpointError("the judge in the checkpoint is not finite: restore it")
        self._velocity_YK, self._coordinates_RK = velocity.clone(), None

    def generator(self) -> JudgedGenerator:
        """The law of what was released, and the judge; before its first step labels are those asked for."""
        return deepcopy(self._with_law()).eval().requires_grad_(False)
