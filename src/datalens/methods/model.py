"""The façade that baselines and DP-SGD share: settings and images in, a trained network with its ledger out."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np
from torch import nn

from datalens.data.images import LabelledImages
from datalens.errors import RunError
from datalens.methods.facts import MethodConfig, MethodFacts
from datalens.methods.run import MethodRun
from datalens.privacy.dataset_budget import DatasetBudget
from datalens.privacy.ledger import Ledger
from datalens.training.given import given_records
from datalens.training.parameters import changed
from datalens.training.progress import Progress
from datalens.training.release import certify, environment, read_environment, write_network
from datalens.training.run_folder import RunFolder
from datalens.training.shared_budget import budget_for
from datalens.training.trained import Certified

Tell = Callable[[Progress], None]
Settings = TypeVar("Settings", bound=MethodConfig)
Facts = TypeVar("Facts", bound=MethodFacts)


class MethodModel(Certified[Settings, Facts], Generic[Settings, Facts]):
    """Trains by a planned method; a subclass says how its runs begin and what its network is.

    Args:
        config: settings.
    """

    def fit(
        self,
        images: np.ndarray | LabelledImages,
        labels: np.ndarray | Sequence[Any] | None = None,
        *,
        classes: Sequence[object] | int | None = None,
        labels_are_public: bool = False,
        value_range: tuple[float, float] | None = None,
        groups: Sequence[Any] | np.ndarray | None = None,
        out: str | os.PathLike[str] | None = None,
        budget_file: str | os.PathLike[str] | None = None,
        data_name: str | None = None,
        tell: Tell = lambda _: None,
        tell_note: Callable[[str], None] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Self:
        """Train on sensitive images.

        Args:
            images: arrays, or data as :func:`datalens.data.load` reads them, as for :meth:`datalens.DataLens.fit`.
            labels: one class for each image of an array.
            classes: the public list of classes: names, or how many.
            labels_are_public: the class list found in the labels may be known.
            value_range: what counts as black and white where images are not uint8, such as (0, 1).
            groups: the name of each image's group [R], for methods that protect groups; others refuse it.
            out: a new folder for the run; left out, nothing is written and nothing can be resumed.
            budget_file: the data set's budget, charged before the run's own.
            data_name: the name that the budget file must have; left out, any.
            tell: called with a :class:`Progress` after every step.
            tell_note: called before the first step with every line for the owner, as :attr:`notes` has them.
            stop: asked before every step; True ends the training early.

        Raises:
            DataLensError: settings or data that do not fit; raised before anything is trained.
        """
        data = given_records(images, labels, classes=classes, value_range=value_range, groups=groups)
        config = (
            changed(self.config, {"privacy__labels_are_public": True}) if labels_are_public else self.config
        )
        with budget_for(budget_file, data_name) as shared:
            run = self._begun(config, data, None if out is None else Path(out), shared)
        return self._train(run, tell, tell_note, stop)

    @classmethod
    def resume(
        cls,
        folder: str | os.PathLike[str],
        data: LabelledImages,
        *,
        tell: Tell = lambda _: None,
        tell_note: Callable[[str], None] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Self:
        """Go on with a run that was interrupted; what was charged stays charged.

        Raises:
            DataLensError: the folder lacks what is needed, or disagrees with the data or itself.
        """
        run = cls._reopened(Path(folder), data)
        facts: Any = run.facts
        return cls(facts.config)._train(run, tell, tell_note, stop)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """A trained run, from its ``release/`` alone.

        Raises:
            DataLensError: the folder holds no finished run of such a method, or a damaged one.
        """
        source = RunFolder.open(Path(folder))
        facts: Any = cls._facts_in(source)
        path = cls._file(source)
        if not path.is_file():
            raise RunError(f"{folder}: the run has no {path.stem} yet; resume the training first")
        loaded = cls(facts.config)
        loaded._facts = facts
        loaded._read(path, facts)
        loaded._ledger = Ledger.read(source.ledger)
        loaded._made_in = read_environment(path)
        return loaded

    def _train(
        self,
        run: MethodRun[Facts, Any],
        tell: Tell,
        tell_note: Callable[[str], None],
        stop: Callable[[], bool],
    ) -> Self:
        try:
            for line in run.notes:
                tell_note(line)
            run.run(tell=tell, stop=stop)
            self._facts, self._ledger = run.facts, run.ledger
            network = self._take(run.learner)
            self._made_in = environment(run.device)
            self._notes = tuple(run.notes)
            if run.folder is not None:
                write_network(self._file(run.folder), network, self._made_in)
                certify(run.folder, run.ledger)
            self.was_stopped: bool = run.was_stopped
        finally:
            run.close()
        return self

    @classmethod
    @abstractmethod
    def _begun(
        cls, config: Settings, data: LabelledImages, root: Path | None, shared: DatasetBudget | None
    ) -> MethodRun[Facts, Any]:
        """A new run."""

    @classmethod
    @abstractmethod
    def _reopened(cls, root: Path, data: LabelledImages) -> MethodRun[Facts, Any]:
        """A run that goes on."""

    @classmethod
    @abstractmethod
    def _facts_in(cls, folder: RunFolder) -> Facts:
        """What everybody may know of the run in a folder."""

    @staticmethod
    @abstractmethod
    def _file(folder: RunFolder) -> Path:
        """Where its network lies."""

    @abstractmethod
    def _take(self, learner: Any) -> nn.Module:
        """Keep what was learned, and return it."""

    @abstractmethod
    def _read(self, path: Path, facts: Facts) -> None:
        """Keep what a file holds."""
