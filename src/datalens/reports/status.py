"""How a run stands: trained, interrupted, in training or damaged. Read from its folder, which stays as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datalens.errors import DataLensError
from datalens.privacy.authorisation import authorisations
from datalens.privacy.ledger import Ledger
from datalens.privacy.ledger_file import is_locked
from datalens.reports.facts import CERTIFICATE, CONFIG, LEDGER, read_object
from datalens.reports.progress import Progress, progress_of

NETWORKS = ("generator.safetensors", "classifier.safetensors")
_CHECKPOINT = re.compile(r"step-(\d{8})")


@dataclass(frozen=True)
class RunStatus:
    """One run as a row of a list.

    Attributes:
        name: of its folder.
        status: a few words, such as ``trained``, ``interrupted at step 12 of 60`` or ``damaged``.
        method: as commands take it; empty where that cannot be read.
        recipe: likewise.
        data: name of a published data set, else ``private``.
        epsilon: authorised; None where nothing is promised, or that cannot be read.
        delta: at which.
        is_fit: whether it may be published.
        problem: what is damaged.
    """

    name: str
    status: str
    method: str = ""
    recipe: str = ""
    data: str = ""
    epsilon: float | None = None
    delta: float | None = None
    is_fit: bool = False
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "run": self.name,
            "status": self.status,
            "method": self.method,
            "recipe": self.recipe,
            "data": self.data,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "publishable": self.is_fit,
            "problem": self.problem,
        }


def run_status(name: str, release: Path, private: Path) -> RunStatus:
    """The status of one run; one that cannot be read says why, and raises nothing.

    Args:
        name: as the list calls it.
        release: its shared folder.
        private: its private folder, which may be gone.
    """
    try:
        config, ledger = read_object(release / CONFIG), Ledger.read(release / LEDGER)
        recorded = authorisations(ledger)
        authorised = recorded[-1].authorisation
        return RunStatus(
            name,
            _status(release, private, ledger),
            method=str(config.get("method", "datalens")),
            recipe=str(config["config"]["recipe"]),
            data=str(config["data"]),
            epsilon=authorised.guarantee() if authorised.is_private else None,
            delta=authorised.delta,
            is_fit=ledger.header.get("publishable") is True,
        )
    except DataLensError as error:
        return RunStatus(name, "damaged", problem=str(error))
    except (OSError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        problem = f"{release}: cannot be understood ({type(error).__name__}); see datalens verify"
        return RunStatus(name, "damaged", problem=problem)


def _status(release: Path, private: Path, ledger: Ledger) -> str:
    progress = progress_of(ledger)
    done = max(progress.charged, _last_checkpoint(private))
    steps = f"step {done:,}" + ("" if progress.planned is None else f" of {progress.planned:,}")
    if is_locked(release / LEDGER):
        return f"in training, at {steps}"
    if _is_whole(release, ledger) and _is_done(progress, done, private):
        return "trained" if private.is_dir() else "trained, private side gone"
    return f"interrupted at {steps}" + ("" if private.is_dir() else ", cannot go on: private side gone")


def _is_whole(release: Path, ledger: Ledger) -> bool:
    """Whether network and certificate are of this ledger's end."""
    if not (release / CERTIFICATE).is_file() or not any((release / name).is_file() for name in NETWORKS):
        return False
    return read_object(release / CERTIFICATE).get("ledger", {}).get("head") == ledger.head[1]


def _is_done(progress: Progress, done: int, private: Path) -> bool:
    """Whether all steps were taken; where some release nothing, the last checkpoint tells, and after a purge none."""
    if progress.planned is None or done >= progress.planned:
        return True
    return progress.is_paid and not private.is_dir()


def _last_checkpoint(private: Path) -> int:
    folder = private / "checkpoints"
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return max((int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))), default=0)
