"""The released generator on disk: weights as safetensors beside the settings; loading one runs no code."""

from __future__ import annotations

from pathlib import Path

import safetensors
import safetensors.torch

from datalens.errors import CheckpointError, RunError
from datalens.models.warp import WarpedGenerator
from datalens.training.files import read_json, write_atomically
from datalens.training.run_folder import RunFolder
from datalens.training.session import PublicFacts


def write_generator(path: Path, generator: WarpedGenerator) -> None:
    """Write the weights and batch-norm statistics."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in generator.state_dict().items()}
    write_atomically(path, safetensors.torch.save(tensors))


def read_generator(path: Path, facts: PublicFacts) -> WarpedGenerator:
    """The generator in evaluation mode.

    Raises:
        CheckpointError: the file is missing, damaged, or of another network.
    """
    generator = facts.student_plan.generator()
    try:
        generator.load_state_dict(safetensors.torch.load_file(path))
    except (OSError, RuntimeError, safetensors.SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"{path}: cannot be loaded ({reason:.160}); restore the file") from None
    return generator.eval().requires_grad_(False)


def read_facts(folder: RunFolder) -> PublicFacts:
    """The public settings of a run.

    Raises:
        RunError: there are none.
    """
    if not folder.config.is_file():
        raise RunError(f"{folder.root}: holds no run (no release/config.json); give the folder of a run")
    return PublicFacts.from_json(read_json(folder.config), folder.config)
