"""The student: proposes images, is told a public direction for each, and moves towards it.

Everything here is a function of the public random streams and of released directions. :func:`replay` is that
sentence as code: no data, no teachers, the same generator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from datalens.errors import CheckpointError
from datalens.models.finish import Finish, FinishedGenerator
from datalens.models.generators import ConditionalGenerator
from datalens.randomness import Streams
from datalens.student.latent import LatentSpace
from datalens.student.sampling import rows_of_classes

SETTLING_IMAGES = 4000


@dataclass(frozen=True)
class StudentPlan:
    """What the student is and how it learns; public, and enough to rebuild it.

    Attributes:
        image_shape: (C, H, W).
        latent: what it is fed.
        hidden_units: width of the generator's dense layer.
        channels: channels of its smallest map.
        training_finish: its last layer while it learns.
        finish: its last layer when it is done.
        smoothing: passes of a 3x3 binomial filter before its sigmoid.
        batch_size: images proposed in a step, m.
        num_steps: steps over which the learning rate decays.
        step_size: gamma.
        learning_rate: Adam's, at the first step.
        final_learning_rate: fraction of it left at the last step.
        beta1: Adam's.
        weight_average: decay of the averaged weights; 0 for the last weights.
    """

    image_shape: tuple[int, int, int]
    latent: LatentSpace
    hidden_units: int
    channels: int
    training_finish: Finish
    finish: Finish
    smoothing: int
    batch_size: int
    num_steps: int
    step_size: float
    learning_rate: float
    final_learning_rate: float
    beta1: float
    weight_average: float

    def generator(self, *, training: bool = False) -> FinishedGenerator[ConditionalGenerator]:
        """The generator's network, its weights all zero, with the last layer of training or of the end."""
        inner = ConditionalGenerator(
            self.latent.latent_dim,
            self.latent.num_classes,
            self.image_shape,
            self.hidden_units,
            self.channels,
            smoothing=self.smoothing,
        )
        return FinishedGenerator(inner, self.training_finish if training else self.finish)


@dataclass(frozen=True)
class Proposal:
    """The images of one step, as teachers may see them. Public.

    Attributes:
        step: the generator step, from 0.
        images_BCHW: float32 in [0, 1], detached.
        labels_B: int64.
    """

    step: int
    images_BCHW: Tensor
    labels_B: Tensor


class Student:
    """The generator in training.

    Args:
        plan: what it is and how it learns.
        public: the public random streams of the run.
        device: where it computes.
        start: state of the generator to begin with, which must be public; None for weights at random.

    Guarantee: its state after any steps is a function of ``plan``, ``public``, ``start`` and the directions given
    to :meth:`learn`; by post-processing it is as private as those.
    """

    def __init__(
        self,
        plan: StudentPlan,
        public: Streams,
        device: torch.device | str = "cpu",
        start: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.plan = plan
        self.device: torch.device = torch.device(device)
        self._public = public
        self.generator: FinishedGenerator[ConditionalGenerator] = plan.generator(training=True)
        self.generator.inner.init_weights(public.torch("generator-weights"))
        if start is not None:
            self.generator.load_state_dict(start)
        self.generator.to(self.device).train()
        self._average = {name: value.clone() for name, value in self._parameters()}
        self._learned_steps = 0
        self._optimizer = torch.optim.Adam(
            self.generator.parameters(), plan.learning_rate, betas=(plan.beta1, 0.999)
        )
        self._proposed: tuple[int, Tensor] | None = None

    def propose(self, step: int) -> Proposal:
        """Draw the step's images (Algorithm 1, line 4)."""
        rng = self._public.torch("latents", step)
        latents_BZ, labels_B = self.plan.latent.batch(self.plan.batch_size, rng)
        images_BCHW = self.generator(
            latents_BZ.to(self.device, non_blocking=True), labels_B.to(self.device, non_blocking=True)
        )
        self._proposed = (step, images_BCHW)
        return Proposal(step, images_BCHW.detach(), labels_B)

    def learn(self, direction_BD: Tensor) -> None:
        """Move towards the proposed images plus ``step_size`` times the direction (lines 16 and 18).

        Args:
            direction_BD: {-1, 0, 1}, released.

        Raises:
            RuntimeError: nothing was proposed since the last call.
        """
        if self._proposed is None:
            raise RuntimeError("learn() was called without propose(): propose images first")
        step, images_BCHW = self._proposed
        self._proposed = None
        for group in self._optimizer.param_groups:
            group["lr"] = self._learning_rate(step)
        move_BCHW = direction_BD.to(self.device, torch.float32, non_blocking=True).view_as(images_BCHW)
        target_BCHW = images_BCHW.detach() + self.plan.step_size * move_BCHW
        self._optimizer.zero_grad(set_to_none=True)
        loss = (images_BCHW - target_BCHW).square().sum() / len(images_BCHW)
        (loss / self.plan.step_size).backward()
        self._optimizer.step()
        self._learned_steps += 1
        self._update_average()

    def finished_generator(self) -> FinishedGenerator[ConditionalGenerator]:
        """The generator to release: averaged weights, batch-norm statistics settled on public latents."""
        finished = self.plan.generator().to(self.device)
        finished.load_state_dict(self.generator.state_dict())
        with torch.no_grad():
            for name, parameter in finished.named_parameters():
                parameter.copy_(self._average[name])
        rng = self._public.torch("settling")
        latents_BZ = self.plan.latent.latents(SETTLING_IMAGES, rng).to(self.device)
        labels_B = self.plan.latent.labels(SETTLING_IMAGES, rng).to(self.device)
        finished.inner.settle_statistics(latents_BZ[:, : self.plan.latent.latent_dim], labels_B)
        return finished.eval().requires_grad_(False)

    def rows_of_classes(self, per_class: int) -> np.ndarray:
        """As many images of each class as it would draw if it were finished now, uint8 [Y, per_class, C, H, W]."""
        return rows_of_classes(self.finished_generator(), self.plan.latent, per_class)

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that learning changed, as flat tensors. Public."""
        tensors = {f"weights/{name}": value for name, value in self.generator.state_dict().items()}
        tensors |= {f"average/{name}": value for name, value in self._average.items()}
        names = [name for name, _ in self._parameters()]
        for index, state in self._optimizer.state_dict()["state"].items():
            tensors |= {f"adam/{names[index]}/{key}": value for key, value in state.items()}
        tensors["learned_steps"] = torch.tensor(self._learned_steps)
        return {name: value.detach().clone().contiguous() for name, value in tensors.items()}

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what :meth:`state_dict` gave.

        Raises:
            CheckpointError: a state of another student.
        """
        parts: dict[str, dict[str, Tensor]] = {"weights": {}, "average": {}, "adam": {}}
        try:
            for name, value in tensors.items():
                part, _, rest = name.partition("/")
                if rest:
                    parts[part][rest] = value
            self.generator.load_state_dict(parts["weights"])
            self._average = {name: parts["average"][name].to(self.device) for name, _ in self._parameters()}
            self._learned_steps = int(tensors["learned_steps"])
        except (KeyError, RuntimeError) as error:
            raise CheckpointError(
                f"the student's state does not fit this run ({' '.join(str(error).split()):.120}): "
                "use the settings it was made with"
            ) from None
        state: dict[int, dict[str, Tensor]] = {}
        for index, (name, _) in enumerate(self._parameters()):
            found = {
                k.rpartition("/")[2]: v for k, v in parts["adam"].items() if k.rpartition("/")[0] == name
            }
            if found:
                state[index] = found
        whole = self._optimizer.state_dict()
        self._optimizer.load_state_dict({"state": state, "param_groups": whole["param_groups"]})

    def _learning_rate(self, step: int) -> float:
        done = min(1.0, step / self.plan.num_steps)
        return self.plan.learning_rate * (1 - (1 - self.plan.final_learning_rate) * done)

    def _update_average(self) -> None:
        """Exponential average of the weights, its decay lower at first so that the start is forgotten."""
        decay = min(self.plan.weight_average, self._learned_steps / (self._learned_steps + 9))
        with torch.no_grad():
            for name, parameter in self._parameters():
                self._average[name].lerp_(parameter, 1 - decay)

    def _parameters(self) -> list[tuple[str, Tensor]]:
        return [(name, parameter.detach()) for name, parameter in self.generator.named_parameters()]


def replay(
    plan: StudentPlan,
    public: Streams,
    directions: Iterable[tuple[int, Tensor]],
    device: torch.device | str = "cpu",
    start: Mapping[str, Tensor] | None = None,
) -> Student:
    """Train a student from released directions alone, without data or teachers.

    Args:
        plan: as released.
        public: the released public root's streams.
        directions: ``(step, direction_BD)`` in the order of release.
        device: where to compute; bit-equal to the training on the same platform.
        start: as released, where the run began with public weights.
    """
    student = Student(plan, public, device, start)
    for step, direction_BD in directions:
        student.propose(step)
        student.learn(direction_BD)
    return student
