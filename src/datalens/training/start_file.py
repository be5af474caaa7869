"""The file of a public start, ``release/public-init.safetensors``: weights, and in its header their origin."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from datalens.errors import CheckpointError
from datalens.models.stacked import PaperDiscriminator
from datalens.student.update import StudentPlan
from datalens.training.public_init import Origin, StartFacts

GENERATOR, DISCRIMINATOR = "generator/", "discriminator/"
"""What the names of tensors begin with."""
ORIGIN = "origin"


@dataclass(frozen=True, eq=False)
class PublicStart:
    """Weights that a run begins with. A function of public images and public randomness alone.

    Attributes:
        origin: where they come from.
        generator: state of the student's generator.
        discriminator: stacked parameters ``[1, ...]`` of one discriminator, from which every teacher starts.
    """

    origin: Origin
    generator: Mapping[str, Tensor]
    discriminator: Mapping[str, Tensor] | None = None

    @cached_property
    def content(self) -> bytes:
        """The file."""
        tensors = {GENERATOR + name: value for name, value in self.generator.items()}
        tensors |= {DISCRIMINATOR + name: value for name, value in (self.discriminator or {}).items()}
        plain = {name: value.detach().cpu().contiguous() for name, value in sorted(tensors.items())}
        return safetensors.torch.save(plain, {ORIGIN: json.dumps(self.origin.to_json(), sort_keys=True)})

    @property
    def facts(self) -> StartFacts:
        """What the run's settings say of it."""
        return StartFacts(self.origin, hashlib.sha256(self.content).hexdigest())


def read_start(path: Path, facts: StartFacts, plan: StudentPlan) -> PublicStart:
    """The public start of a run.

    Args:
        path: its file.
        facts: what the run's settings say of it.
        plan: of the run's student.

    Raises:
        CheckpointError: the file is missing, changed, or of other networks.
    """
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != facts.sha256:
            raise ValueError("its SHA-256 is not the one in config.json")
        tensors = safetensors.torch.load(content)
        start = PublicStart(
            facts.origin,
            _part(tensors, GENERATOR),
            _part(tensors, DISCRIMINATOR) if facts.origin.discriminators else None,
        )
        check_start(start, plan)
    except (OSError, RuntimeError, ValueError, MemoryError, safetensors.SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"{path}: cannot be used ({reason:.120}); restore the file") from None
    return start


def check_start(start: PublicStart, plan: StudentPlan) -> None:
    """Refuse weights that are not a run's networks', or not finite.

    Raises:
        ValueError: says which.
    """
    with torch.device("meta"):
        expected = {name: value.shape for name, value in plan.generator(training=True).state_dict().items()}
    _check_shapes("generator", start.generator, expected)
    if start.discriminator is not None:
        network = PaperDiscriminator(plan.image_shape, plan.latent.num_classes)
        stacked = {name: torch.Size((1, *shape)) for name, shape in network.shapes().items()}
        _check_shapes("discriminator", start.discriminator, stacked)


def _check_shapes(what: str, found: Mapping[str, Tensor], expected: Mapping[str, torch.Size]) -> None:
    if {name: value.shape for name, value in found.items()} != dict(expected):
        raise ValueError(f"its {what} is another network than the run's")
    for name, value in found.items():
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise ValueError(f"{name} of its {what} is not finite")


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
