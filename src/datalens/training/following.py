"""A rank that does not lead: the run's folder opened for reading, and its share of the teachers put to work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from datalens.data.images import LabelledImages
from datalens.distributed.ranks import Ranks
from datalens.errors import RunError
from datalens.privacy.ledger import Head, Ledger
from datalens.training.assembly import make_teachers
from datalens.training.config import Config, Performance
from datalens.training.facts import read_facts
from datalens.training.private_files import Secrets, fingerprint, load_partition, require_private
from datalens.training.run_folder import RunFolder
from datalens.training.starting import start_of


def announce(ranks: Ranks, performance: Performance, head: Head) -> None:
    """Say that the run's folder is ready, to the others who wait in :func:`follow`; for the first rank.

    Args:
        ranks: of the run.
        performance: settings of this stretch of it.
        head: its ledger's, which no other run has.
    """
    ranks.tell({"do": "open", "performance": performance.model_dump(mode="json"), "head": head[1]})


def follow(root: Path, data: LabelledImages, ranks: Ranks, stop: Callable[[], bool]) -> bool:
    """Take part in a run that the first rank begins or resumes; secrets come from its folder, not over the network.

    Args:
        root: the run's folder, on a file system that all ranks see.
        data: the same records as the first rank's.
        ranks: of the run; this is not the first.
        stop: asked after every step; True ends the training early, on all ranks.

    Returns:
        Whether the run was stopped early. All that it shares is in the folder then.

    Raises:
        DataLensError: the first rank has ended, the folder cannot be read, or run or data are others.
    """
    match ranks.hear():
        case {"do": "open", "performance": {**settings}, "head": str(head)}:
            performance = Config().replace(performance=settings).performance
        case {"do": "end"}:
            return False
        case other:
            raise RunError(f"the first rank says {other!r:.60}; run one version of datalens on all ranks")
    folder = RunFolder.open(root)
    facts = read_facts(folder)
    require_private(folder)
    if Ledger.read(folder.ledger).head[1] != head:  # its slot map would give a record to two teachers
        raise RunError(
            f"{root}: rank {ranks.rank} sees another run there than the first rank; give all ranks one folder, on a "
            "file system that they share"
        )
    kept = Secrets.read(folder.secrets)
    if kept.fingerprint != fingerprint(data):
        raise RunError(f"rank {ranks.rank} reads other data than the first rank; give all ranks the same")
    partition = load_partition(folder.partition)
    start = start_of(folder, facts)
    crew = make_teachers(facts, data, partition, kept.streams, performance, folder.private, ranks, start)
    try:
        return crew.follow(folder.checkpoints, stop)
    finally:
        crew.close()
