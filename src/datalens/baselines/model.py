"""The façade of a baseline: settings and images in, a generator with its ledger out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from datalens.baselines.facts import BaselineFacts, method_of
from datalens.baselines.registry import BaselineConfig
from datalens.baselines.run import BaselineRun
from datalens.data.images import LabelledImages
from datalens.errors import RunError
from datalens.privacy.ledger import Ledger
from datalens.training.files import read_json
from datalens.training.progress import Progress
from datalens.training.release import (
    certify,
    environment,
    read_environment,
    read_generator,
    write_network,
)
from datalens.training.run_folder import RunFolder
from datalens.training.shared_budget import budget_for
from datalens.training.synthesizer import DataLens
from datalens.training.trained import Trained

Tell = Callable[[Progress], None]


class Baseline(Trained[BaselineConfig, BaselineFacts]):
    """Trains a generator by one of the methods that DataLens is compared with, and draws from it.

    Args:
        config: settings; see :func:`datalens.baselines.registry.baseline`.

    Guarantee:
        As :class:`datalens.DataLens`, with the releases that the method's page in ``docs/baselines.md`` names.
    """

    def fit(
        self,
        data: LabelledImages,
        *,
        out: str | os.PathLike[str] | None = None,
        budget_file: str | os.PathLike[str] | None = None,
        data_name: str | None = None,
        tell: Tell = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Baseline:
        """Train on sensitive images.

        Args:
            data: as :func:`datalens.data.load` reads them.
            out: a new folder for the run; left out, nothing is written and nothing can be resumed.
            budget_file: the data set's budget, charged before the run's own.
            data_name: the name that the budget file must have; left out, any.
            tell: called with a :class:`Progress` after every step.
            stop: asked before every step; True ends the training early.

        Raises:
            DataLensError: settings or data that do not fit; raised before anything is trained.
        """
        with budget_for(budget_file, data_name) as shared:
            run = BaselineRun.begin(self.config, data, None if out is None else Path(out), shared)
        return self._train(run, tell, stop)

    @classmethod
    def resume(
        cls,
        folder: str | os.PathLike[str],
        data: LabelledImages,
        *,
        tell: Tell = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Baseline:
        """Go on with a run that was interrupted; what was charged stays charged.

        Raises:
            DataLensError: the folder lacks what is needed, or disagrees with the data or itself.
        """
        run = BaselineRun.resume(Path(folder), data)
        return cls(run.facts.config)._train(run, tell, stop)

    def _train(self, run: BaselineRun, tell: Tell, stop: Callable[[], bool]) -> Baseline:
        try:
            run.run(tell=tell, stop=stop)
            self._facts, self._ledger = run.facts, run.ledger
            self._generator = run.learner.generator()
            self._made_in = environment(run.device)
            self._notes = tuple(run.notes)
            if run.folder is not None:
                write_network(run.folder.generator, self._generator, self._made_in)
                certify(run.folder, run.ledger)
            self.was_stopped = run.was_stopped
        finally:
            run.close()
        return self

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Baseline:
        """A trained run, from its ``release/`` alone.

        Raises:
            DataLensError: the folder holds no finished run, or a damaged one.
        """
        source = RunFolder.open(Path(folder))
        facts = BaselineFacts.from_json(read_json(source.config), source.config)
        if not source.generator.is_file():
            raise RunError(f"{folder}: the run has no generator yet; resume the training first")
        loaded = cls(facts.config)
        loaded._facts = facts
        loaded._generator = read_generator(source.generator, facts)
        loaded._ledger = Ledger.read(source.ledger)
        loaded._made_in = read_environment(source.generator)
        return loaded


def load_run(folder: str | os.PathLike[str]) -> DataLens | Baseline:
    """A trained run of any method.

    Raises:
        DataLensError: the folder holds no finished run, or a damaged one.
    """
    return DataLens.load(folder) if method_of(Path(folder)) == "datalens" else Baseline.load(folder)
