"""A run's folder: ``private/`` for its owner alone, ``release/`` for everybody, and the one place for paths."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from datalens.errors import RunError
from datalens.privacy import promises
from datalens.privacy.promises import RELEASE_FOLDER, UNFIT_RELEASE_FOLDER


@dataclass(frozen=True)
class RunFolder:
    """Where the files of a run lie.

    ``release/`` is complete without ``private/``; nothing that saw un-noised votes, losses, teachers or a
    score on people's data is written there. Where the run is not fit for publication (an insecure seed,
    floating-point noise, or none), it is called ``release-NOT-FOR-PUBLICATION/`` instead.

    Attributes:
        root: holds both.
        publishable: whether what is shared may be published, which decides the name.
    """

    root: Path
    publishable: bool = True

    @classmethod
    def create(cls, root: Path, *, publishable: bool = True) -> RunFolder:
        """Make a new run's folder, ``private/`` readable by its owner alone.

        Raises:
            RunError: the folder exists with something in it, or cannot be made.
        """
        folder = cls(root, publishable)
        cls.require_new(root)
        try:
            root.mkdir(parents=True, exist_ok=True)
            folder.private.mkdir(mode=0o700)
            folder.private.chmod(0o700)
            folder.release.mkdir()
        except OSError as error:
            raise RunError(f"{root}: cannot be made ({error.strerror}); choose another --out") from None
        return folder

    @classmethod
    def require_new(cls, root: Path) -> None:
        """Refuse a folder with something in it, where a new run is to lie.

        Raises:
            RunError: it is there already, or cannot be looked into.
        """
        try:
            is_taken = root.exists() and (not root.is_dir() or any(root.iterdir()))
        except OSError as error:
            raise RunError(f"{root}: cannot be made ({error.strerror}); choose another --out") from None
        if is_taken:
            raise RunError(f"{root}: exists already; choose another --out, or resume that run")

    @classmethod
    def open(cls, root: Path) -> RunFolder:
        """An existing run's folder; ``private/`` may be gone.

        Raises:
            RunError: there is no run in it, or two.
        """
        found = cls._found(root)
        if not found:
            raise RunError(f"{root}: holds no run (no release/config.json); give the folder of a run")
        if len(found) > 1:
            names = " and ".join(folder.release.name for folder in found)
            raise RunError(f"{root}: holds two runs ({names}); keep the one that belongs there")
        return found[0]

    @classmethod
    def holds_run(cls, root: Path) -> bool:
        """Whether there is a run in it."""
        return bool(cls._found(root))

    @classmethod
    def _found(cls, root: Path) -> list[RunFolder]:
        return [folder for folder in (cls(root), cls(root, publishable=False)) if folder.config.is_file()]

    @classmethod
    def shares(cls, root: Path, path: Path) -> bool:
        """Whether a path lies in what the run in ``root`` shares, under either name."""
        folders = [cls(root).release, cls(root, publishable=False).release]
        return any(real_path(folder) in real_path(path).parents for folder in folders)

    @classmethod
    def is_shared(cls, path: Path) -> bool:
        """Whether a path lies in what any run shares."""
        above = [folder for folder in real_path(path).parents if cls.holds_run(folder)]
        return any(cls.shares(folder, path) for folder in above)

    @classmethod
    def is_kept(cls, path: Path) -> bool:
        """Whether a path is that of a file that a run is made of, and nothing else may replace."""
        place = real_path(path.absolute().parent) / path.name
        return any(place in folder._kept for folder in cls._found(place.parent.parent))

    @property
    def _kept(self) -> tuple[Path, ...]:
        begun = (self.config, self.ledger, self.directions, self.public_init, self.warm_start)
        shared = (*begun, self.generator, self.loader)
        told = (self.classifier, self.certificate, self.data_card, self.report, self.scores)
        return *shared, *told, self.private_report, self.secrets, self.partition, self.diagnostics

    def purge(self) -> bool:
        """Remove ``private/``; what is shared stays complete, but the run can never go on.

        Returns:
            Whether there was anything to remove.

        Raises:
            RunError: it is a link, or some of it cannot be removed.
        """
        if self.private.is_symlink():
            raise RunError(f"{self.private}: is a link; remove what it points to by hand")
        if not self.private.exists():
            return False
        try:
            shutil.rmtree(self.private)
        except OSError as error:
            raise RunError(
                f"{self.private}: cannot be removed whole ({error.strerror}); permit it and purge again"
            ) from None
        return True

    def discard(self) -> None:
        """Remove a folder that :meth:`create` made, where a run could not begin."""
        for part in (self.private, self.release):
            shutil.rmtree(part, ignore_errors=True)
        if self.root.is_dir() and not any(self.root.iterdir()):
            self.root.rmdir()

    @property
    def private(self) -> Path:
        """Teachers, checkpoints, diagnostics, scores on people's data: mode 0700, never to be shared."""
        return self.root / "private"

    @property
    def release(self) -> Path:
        """What may be shared."""
        return self.root / (RELEASE_FOLDER if self.publishable else UNFIT_RELEASE_FOLDER)

    @property
    def config(self) -> Path:
        """Settings and public root."""
        return self.release / "config.json"

    @property
    def ledger(self) -> Path:
        """What was authorised and released."""
        return self.release / "ledger.jsonl"

    @property
    def directions(self) -> Path:
        """The released directions."""
        return self.release / "directions.bin"

    @property
    def public_init(self) -> Path:
        """The public weights that the run begins with, if it does."""
        return self.release / promises.PUBLIC_INIT_FILE

    @property
    def warm_start(self) -> Path:
        """What a warm start has released, if there is one."""
        return self.release / promises.WARM_START_FILE

    @property
    def generator(self) -> Path:
        """A trained generator."""
        return self.release / "generator.safetensors"

    @property
    def loader(self) -> Path:
        """A program that draws from it without this package."""
        return self.release / promises.LOADER_FILE

    @property
    def classifier(self) -> Path:
        """A trained classifier."""
        return self.release / "classifier.safetensors"

    @property
    def network(self) -> Path:
        """The trained network, whichever it is."""
        return self.classifier if self.classifier.is_file() else self.generator

    @property
    def certificate(self) -> Path:
        """What is promised, for machines."""
        return self.release / "certificate.json"

    @property
    def data_card(self) -> Path:
        """What is promised, for people."""
        return self.release / "README.md"

    @property
    def report(self) -> Path:
        """The same with samples, for a browser; the command line writes it."""
        return self.release / "report.html"

    @property
    def scores(self) -> Path:
        """Scores that may be shared: on public data, or noisy and charged."""
        return self.release / "scores.json"

    @property
    def private_report(self) -> Path:
        """What the owner alone may see, for a browser."""
        return self.private / "report.html"

    @property
    def secrets(self) -> Path:
        """The private root key."""
        return self.private / "secrets.json"

    @property
    def partition(self) -> Path:
        """The slot map."""
        return self.private / "partition.safetensors"

    @property
    def checkpoints(self) -> Path:
        """Checkpoints of teachers and student."""
        return self.private / "checkpoints"

    @property
    def diagnostics(self) -> Path:
        """One line a step: agreement, failed teachers."""
        return self.private / "diagnostics.jsonl"


def real_path(path: Path) -> Path:
    """Where a path leads, links followed; unlike ``Path.resolve`` also where links lead in a circle."""
    return Path(os.path.realpath(path))
