"""A run that ``datalens tune`` made: it was charged as a whole, so nothing more can be asked of the records."""

from __future__ import annotations

from datalens.errors import RunError
from datalens.privacy.ledger import Ledger
from datalens.training.run_folder import RunFolder

METHOD = "datalens-tune"
"""What the first line of a tuned run's ledger says of itself."""


def is_tuned(ledger: Ledger) -> bool:
    """Whether the ledger is of a tuned run."""
    return ledger.header.get("method") == METHOD


def refuse_tuned(folder: RunFolder, wish: str) -> None:
    """Refuse to ask more of the records.

    Args:
        folder: of the run.
        wish: what was asked, after "it cannot".

    Raises:
        RunError: the run was tuned.
    """
    if folder.ledger.is_file() and is_tuned(Ledger.read(folder.ledger)):
        raise RunError(
            f"{folder.root}: was made by `datalens tune`, which spent all of its epsilon at once, so it cannot "
            f"{wish}; sample it as it is, or tune anew"
        )
