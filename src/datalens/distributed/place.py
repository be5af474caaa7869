"""Which of how many processes this one is, as ``torchrun`` says in the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass

from datalens.errors import RunError

LAST_PORT = 2**16 - 1
RESTARTS = "TORCHELASTIC_RESTART_COUNT"
_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Place:
    """Which of how many processes this one is, as its starter says.

    Attributes:
        rank: from 0, which leads.
        world_size: processes in all.
        local_rank: from 0, on this machine.
        local_size: processes on this machine.
        restarts: how often the starter has started them again.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_size: int = 1
    restarts: int = 0

    @classmethod
    def from_environment(cls) -> Place:
        """What ``torchrun`` says of this process; alone where it says nothing of a world.

        Raises:
            RunError: what was said makes no sense, or is not all that several processes need: one of them must
                never take itself for the only one.
        """
        world_size = _number("WORLD_SIZE", 1)
        missing = [name for name in _NEEDED if not os.environ.get(name)]
        if missing and world_size == 1:
            return cls()
        if missing:
            raise RunError(
                f"WORLD_SIZE is {world_size}, but the environment has no {' and no '.join(missing)}; start with "
                "torchrun, or unset WORLD_SIZE for a single process"
            )
        rank, port = _number("RANK"), _number("MASTER_PORT")
        local_rank, local_size = _number("LOCAL_RANK", rank), _number("LOCAL_WORLD_SIZE", world_size)
        restarts = _number(RESTARTS, 0)
        if not 0 <= port <= LAST_PORT:
            raise RunError(f"MASTER_PORT is {port}: must be from 0 to {LAST_PORT}; start with torchrun")
        if not (0 <= rank < world_size and 0 <= local_rank < local_size <= world_size):
            raise RunError(f"rank {rank} of {world_size}: is none; start the processes with torchrun")
        if not 0 <= port < 2**16:
            raise RunError(f"MASTER_PORT {port}: must be below 65536; start the processes with torchrun")
        return cls(rank, world_size, local_rank, local_size, restarts)


def _number(name: str, otherwise: int | None = None) -> int:
    """A whole number of the environment.

    Raises:
        RunError: it is none.
    """
    text = os.environ.get(name)
    if text is None and otherwise is not None:
        return otherwise
    try:
        return int(text or "")
    except ValueError:
        raise RunError(f"{name} is {text!r:.40}: must be a whole number; start with torchrun") from None
