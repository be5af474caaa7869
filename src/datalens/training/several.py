"""What a run of several processes must have, and what it cannot have."""

from __future__ import annotations

from pathlib import Path

from datalens.distributed.ranks import Ranks
from datalens.errors import RunError
from datalens.training.warm_settings import WarmStart, refuse_warm

NEEDS_FOLDER = "a run of several processes keeps its secrets in a folder that all of them see; give one (out)"


def check_ranks(ranks: Ranks | None, root: Path | None, warm_start: WarmStart) -> None:
    """Refuse several processes where they cannot train a run together.

    Raises:
        RunError: they have no folder.
        ConfigError: the run has a warm start.
    """
    if ranks is None or ranks.world_size == 1:
        return
    if root is None:
        raise RunError(NEEDS_FOLDER)
    refuse_warm(warm_start, "is made by one process", "start it without torchrun")
