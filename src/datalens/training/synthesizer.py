"""The façade: settings and images in, a generator with a guarantee out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from datalens.data.images import LabelledImages
from datalens.distributed.ranks import Ranks
from datalens.errors import ConfigError, RunError
from datalens.privacy.ledger import Ledger
from datalens.training.config import Config
from datalens.training.directions import (
    DirectionRecord,
    note_of_no_update,
    read_directions,
    write_directions,
)
from datalens.training.facts import PublicFacts
from datalens.training.files import write_atomically, write_json
from datalens.training.following import follow
from datalens.training.given import given_records
from datalens.training.progress import Progress
from datalens.training.release import (
    certify,
    environment,
    read_environment,
    read_facts,
    read_generator,
    write_network,
)
from datalens.training.run_folder import RunFolder
from datalens.training.session import Session
from datalens.training.several import NEEDS_FOLDER
from datalens.training.shared_budget import budget_for
from datalens.training.start_file import PublicStart
from datalens.training.starting import PublicSource, note_of_shared, require_used, start_maker, start_of
from datalens.training.trained import Trained
from datalens.training.warm_file import Tables, file_of, read_tables
from datalens.training.warm_settings import ONE_START, refuse_warm

Tell = Callable[[Progress], None]


class DataLens(Trained[Config, PublicFacts]):
    """Trains a generator of images under differential privacy, and draws from it.

    Args:
        config: settings; see :mod:`datalens.recipes` for named ones.

    Guarantee:
        The generator, and whatever is drawn from it, is (epsilon, delta)-differentially private for adding or
        removing one record (all records of one group, where ``groups`` are given), where ``config.privacy`` sets
        both, unless noise is 'none', an insecure seed is
        set, or noise is floating point; see :meth:`is_publishable`.

    Attributes:
        was_stopped: whether the training ended early, as it was asked to.

    >>> from datalens import recipes
    >>> DataLens(recipes.mnist_quick(epsilon=1)).config.privacy.epsilon
    1.0
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._records: list[DirectionRecord] = []
        self._start: PublicStart | None = None
        self._tables: Tables = {}

    # -- training -----------------------------------------------------------------------------------------------

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
        public_init: PublicSource | None = None,
        tell: Tell | None = None,
        tell_note: Callable[[str], None] = lambda _: None,
        tell_public_init: Callable[[int, int], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
        ranks: Ranks | None = None,
    ) -> DataLens:
        """Train on sensitive images.

        Args:
            images: uint8 [R, H, W], [R, C, H, W] or [R, H, W, C] (other types with ``value_range``), or data
                as :func:`datalens.data.load` reads them (then leave out labels and classes).
            labels: one class for each image.
            classes: the public list of classes: names, or how many. Left out, it is found in the labels, which
                is for experiments, or for labels that are public.
            labels_are_public: the class list found in the labels may be known (``privacy.labels_are_public``).
            value_range: what counts as black and white where images are not uint8, such as (0, 1).
            groups: the name of each image's group, such as its person, as text or whole numbers [R]: each group is
                then protected as a whole. Left out, the data's own ``group_ids``, if they have any.
            out: a new folder for the run; left out, nothing is written and nothing can be resumed.
            budget_file: the data set's budget (see ``datalens budget``), charged before the run's own.
            data_name: the name that the budget file must have; left out, any.
            public_init: what generator and trained discriminators begin with: public images (with ``public=True``),
                on which they learn before the run as ``config.public_init`` says, or the folder of a run on public
                images with the same networks. Left out, they begin at random.
            tell: called with a :class:`Progress` after every step.
            tell_note: called before the first step with every line for the owner, as :attr:`notes` has them.
            tell_public_init: called with (steps done, of how many) while the start is learned from public images.
            stop: asked before every step; True ends the training early (resumable where ``out`` is given).
            ranks: where several processes train the run together, each of which calls this; they need ``out``.

        Raises:
            DataLensError: settings or data that do not fit; raised before anything is trained.
            NotBegunError: it was asked to stop while it learned from public images; nothing is left.

        Warns:
            PrivacyWarning: delta is not below one over the number of records.
        """
        data = given_records(images, labels, classes=classes, value_range=value_range, groups=groups)
        if data_name is not None and budget_file is None:
            raise ConfigError(
                f"data_name = {data_name!r}: belongs to a budget file; give one, or leave it out"
            )
        config = self.config.replace(privacy__labels_are_public=True) if labels_are_public else self.config
        if ranks is not None and not ranks.is_first:
            return self._follow(None if out is None else Path(out), data, ranks, stop)
        make_start, note = None, None
        if public_init is None:
            require_used(config.public_init)
        else:
            refuse_warm(config.warm_start, *ONE_START)
            make_start = start_maker(public_init, data, stop=stop, tell=tell_public_init)
            note = note_of_shared(public_init, data) if isinstance(public_init, LabelledImages) else None
        with budget_for(budget_file, data_name) as shared:
            root = None if out is None else Path(out)
            session = Session.begin(config, data, root, shared, ranks=ranks, make_start=make_start)
        session.notes += filter(None, [note])
        return self._train(session, tell, tell_note, stop)

    @classmethod
    def resume(
        cls,
        folder: str | os.PathLike[str],
        data: LabelledImages,
        *,
        changes: Mapping[str, Any] | None = None,
        tell: Tell | None = None,
        tell_note: Callable[[str], None] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
        ranks: Ranks | None = None,
    ) -> DataLens:
        """Go on with a run that was interrupted; what was charged stays charged.

        Args:
            folder: of the run.
            data: the same records, with the same groups if they have any (``data.with_groups(names)``).
            changes: settings that may change: epsilon, noise_stddev, top_k, vote_threshold, num_steps. A higher
                epsilon is recorded as decided after looking, and the proof does not cover it. Also performance
                settings: device, chunk_size, teacher_store, teacher_memory, checkpoint_every.
            tell: called with a :class:`Progress` after every step.
            tell_note: called before the first step with every line for the owner.
            stop: asked before every step; True ends the training early.
            ranks: where several processes go on with the run together; it may have begun with another number.

        Raises:
            DataLensError: the folder lacks what is needed, or disagrees with the data or itself.
        """
        if ranks is not None and not ranks.is_first:
            return cls._follow(Path(folder), data, ranks, stop)
        session = Session.resume(Path(folder), data, changes, ranks=ranks)
        return cls(session.facts.config)._train(session, tell, tell_note, stop)

    def _train(
        self,
        session: Session,
        tell: Tell | None,
        tell_note: Callable[[str], None],
        stop: Callable[[], bool],
    ) -> DataLens:
        try:
            for line in session.notes:
                tell_note(line)
            session.run(tell=tell, stop=stop)
            self._facts = session.facts
            self._ledger = session.ledger
            self._generator = session.student.finished_generator()
            self._records = session.records
            self._start = session.start
            self._tables = {} if session.warm is None else session.warm.tables
            self._made_in = environment(session.student.device)
            self._notes = (*session.notes, *filter(None, [note_of_no_update(session.records)]))
            if session.folder is not None:
                write_release(session.folder, self)
            self.was_stopped: bool = session.was_stopped
            session.dismiss()
        finally:
            session.close()
        return self

    @classmethod
    def _follow(
        cls, root: Path | None, data: LabelledImages, ranks: Ranks, stop: Callable[[], bool]
    ) -> DataLens:
        """The model on a rank that does not lead: what the first one has written when all is done."""
        if root is None:
            raise RunError(NEEDS_FOLDER)
        was_stopped = follow(root, data, ranks, stop)
        model = cls.load(root)
        model.was_stopped = was_stopped
        return model

    # -- files --------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write what may be shared to ``folder/release`` (``folder/release-NOT-FOR-PUBLICATION`` where it
        is unfit): generator, settings, ledger, directions, certificate.

        Raises:
            RunError: nothing was trained, or the folder exists with something in it.
        """
        self.generator  # noqa: B018  refuses before anything is made
        target = RunFolder.create(Path(folder), publishable=self.is_publishable)
        try:
            write_json(target.config, self.facts.to_json())
            lines = b"".join(line.encode() for line in self.ledger.lines)
            write_atomically(target.ledger, lines)
            write_directions(target.directions, self._records)
            if self._start is not None:
                write_atomically(target.public_init, self._start.content)
            if self._tables:
                write_atomically(target.warm_start, file_of(self._tables))
            write_release(target, self)
        except BaseException:
            target.discard()
            raise

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> DataLens:
        """A trained run, from its ``release/`` alone.

        Raises:
            DataLensError: the folder holds no finished run, or a damaged one.
        """
        source = RunFolder.open(Path(folder))
        facts = read_facts(source)
        if not source.generator.is_file():
            raise RunError(f"{folder}: the run has no generator yet; resume the training first")
        loaded = cls(facts.config)
        loaded._facts = facts
        loaded._generator = read_generator(source.generator, facts)
        loaded._ledger = Ledger.read(source.ledger)
        if source.directions.is_file():
            loaded._records = read_directions(source.directions)
        loaded._start = start_of(source, facts)
        loaded._tables = read_tables(source.warm_start, facts.measures, loaded._ledger)
        loaded._made_in = read_environment(source.generator)
        return loaded


def write_release(folder: RunFolder, model: DataLens) -> None:
    """Write what a finished (or stopped) run shares besides ledger and settings."""
    write_network(folder.generator, model.generator, model._made_in)
    certify(folder, model.ledger)
