"""What is left of a run whose process died before it had begun: a folder without settings, from which no run goes on.

The settings are written last (:meth:`datalens.training.session.Session.begin`), after the ledger, which its process
holds locked. So a folder without them, whose ledger nobody holds and nothing was charged to, has released nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

from datalens.privacy.ledger import Ledger
from datalens.training.run_folder import RunFolder

_TEMPORARY = re.compile(r"\.(secrets|partition|config|ledger|public-init)\..*\.(tmp|new)")


def clear_unbegun(root: Path) -> bool:
    """Remove a run's folder in which nothing has begun; any other folder is left as it is.

    Args:
        root: the folder.

    Returns:
        Whether it was one and is gone.

    Raises:
        RunError: another process is about to begin a run there.
        LedgerError: the ledger is damaged.
    """
    for folder in (RunFolder(root), RunFolder(root, publishable=False)):
        if folder.private.is_dir() and _holds_a_beginning(folder):
            return _discarded(folder)
    return False


def _holds_a_beginning(folder: RunFolder) -> bool:
    """Whether all files are such as are written before the settings; until there is ``release/``, there are none."""
    parts = {folder.private, folder.release} if folder.release.exists() else {folder.private}
    if len(parts) == 1 and any(folder.private.iterdir()):
        return False
    known = {folder.secrets, folder.partition, folder.ledger, folder.public_init}
    if set(folder.root.iterdir()) != parts or any(part.is_symlink() for part in parts):
        return False
    return all(
        path.is_file() and not path.is_symlink() and (path in known or _TEMPORARY.fullmatch(path.name))
        for part in parts
        for path in part.iterdir()
    )


def _discarded(folder: RunFolder) -> bool:
    if not folder.ledger.is_file():
        folder.discard()
        return True
    with Ledger.open(folder.ledger) as ledger:
        if len(ledger.lines) > 1:
            return False
        folder.discard()
    return True
