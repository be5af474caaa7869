"""What a run shares: network, certificate, page for people; loading a run runs no code that came with it."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import nn

from datalens.errors import CheckpointError
from datalens.models.finish import AnyGenerator
from datalens.privacy.card_front import Licence, licence_of
from datalens.privacy.certificate import build_certificate
from datalens.privacy.data_card import data_card
from datalens.privacy.ledger import Ledger
from datalens.training.facts import GeneratorFacts, read_facts
from datalens.training.files import file_digest, read_json, write_atomically, write_json
from datalens.training.heads import note_head
from datalens.training.run_folder import RunFolder
from datalens.version import __version__

Network = TypeVar("Network", bound=nn.Module)

__all__ = [
    "certify",
    "environment",
    "read_environment",
    "read_facts",
    "read_generator",
    "read_network",
    "write_network",
]


ENVIRONMENT = "environment"
"""Where a network's file names what it was made in: its hash then vouches for that too."""


def certify(folder: RunFolder, ledger: Ledger) -> dict[str, Any]:
    """Write ``certificate.json`` and ``README.md`` from what lies in ``release/``, and return the certificate.

    Beside a generator a program is laid that draws from it without this package.
    A page for browsers was about the state before, so it is removed, for the command line to draw anew.

    Args:
        folder: of the run; its network and settings are in place.
        ledger: of the run.

    Raises:
        DataLensError: files are missing, or the ledger certifies nothing.
    """
    config = read_json(folder.config)
    if folder.generator.is_file():
        loader = resources.files("datalens.models").joinpath(folder.loader.name)
        write_atomically(folder.loader, loader.read_bytes())
    certified = (
        folder.config,
        folder.directions,
        folder.network,
        folder.scores,
        folder.public_init,
        folder.warm_start,
        folder.loader,
    )
    files = {path.name: file_digest(path) for path in certified if path.is_file()}
    certificate = build_certificate(ledger, config, files, read_environment(folder.network))
    page = data_card(certificate, read_licence(folder.data_card)).encode()
    folder.report.unlink(missing_ok=True)
    write_json(folder.certificate, certificate)
    write_atomically(folder.data_card, page)
    note_head(str(ledger.header.get("run_id", "")), ledger.head)
    return certificate


def read_licence(page: Path) -> Licence:
    """The licence that the owner has named in a page; unknown where there is none."""
    return licence_of(page.read_bytes().decode(errors="replace")) if page.is_file() else Licence.UNKNOWN


def environment(device: str | torch.device) -> dict[str, Any]:
    """Versions and platform, on which alone a replay is bit for bit the same; nothing that names a machine."""
    kind = torch.device(device).type
    return {
        "datalens": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "device": torch.cuda.get_device_name(device) if kind == "cuda" else kind,
        "threads": torch.get_num_threads(),
    }


def write_network(path: Path, network: nn.Module, made_in: Mapping[str, Any]) -> None:
    """Write the weights and batch-norm statistics, and the environment of the training in the file's header."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    header = {ENVIRONMENT: json.dumps(dict(made_in), sort_keys=True)}
    write_atomically(path, safetensors.torch.save(tensors, header))


def read_environment(path: Path) -> dict[str, Any]:
    """What a network was made in, from its file's header; empty where that does not say.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    try:
        with safetensors.safe_open(path, "numpy") as file:
            made_in = json.loads((file.metadata() or {}).get(ENVIRONMENT, "{}"))
        if not isinstance(made_in, dict):
            raise ValueError("its environment is no object")
    except (OSError, ValueError, RecursionError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read ({_reason(error)}); restore the file") from None
    return made_in


def read_generator(path: Path, facts: GeneratorFacts) -> AnyGenerator:
    """The generator in evaluation mode.

    Raises:
        CheckpointError: the file is missing, damaged, or of another network.
    """
    return read_network(path, facts.blank_generator, facts.least_numbers)


def read_network(path: Path, blank: Callable[[], Network], least_numbers: int) -> Network:
    """A network in evaluation mode.

    Args:
        path: what :func:`write_network` wrote.
        blank: makes the network, whatever its weights are.
        least_numbers: fewest numbers that its weights can be.

    Raises:
        CheckpointError: the file is missing, damaged, or of another network.
    """
    try:
        tensors = safetensors.torch.load(path.read_bytes())
        _check_size(tensors, least_numbers)
        network = blank()
        network.load_state_dict(tensors)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, MemoryError) as error:
        raise CheckpointError(f"{path}: cannot be loaded ({_reason(error)}); restore the file") from None
    except safetensors.SafetensorError as error:
        raise CheckpointError(f"{path}: is not a safetensors file ({_reason(error)}); restore it") from None
    return network.eval().requires_grad_(False)


def _check_size(tensors: Mapping[str, torch.Tensor], least_numbers: int) -> None:
    """Before memory is taken for what the settings ask: both files may come from anywhere."""
    held = sum(tensor.numel() for tensor in tensors.values())
    if least_numbers > held:
        raise ValueError(f"{held} numbers do not fit the run's settings")


def _reason(error: BaseException) -> str:
    words: Sequence[str] = str(error).split()
    return f"{' '.join(words) or type(error).__name__:.160}"
