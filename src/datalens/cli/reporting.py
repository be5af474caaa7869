"""Pages of a run: samples are drawn and facts read from ``release/``, and the pages put in their places."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from datalens.cli.output import Output
from datalens.errors import DataLensError, RunError

if TYPE_CHECKING:
    from datalens.baselines.model import Baseline
    from datalens.reports.facts import ReleaseFacts
    from datalens.reports.sheets import Sheet
    from datalens.training.run_folder import RunFolder
    from datalens.training.synthesizer import DataLens

IMAGES_OF_A_CLASS = 10
TIMES, IMAGES_OF_A_TIME = 4, 6
"""How often a replay stops to draw, the beginning and the end among them, and how much."""
_SEED = 0
"""Public: the same images each time, so that a page is a function of what was released."""


@dataclass(frozen=True)
class Pages:
    """Where the pages of a run lie.

    Attributes:
        release: for everybody.
        private: for the owner; None where the private side is gone.
    """

    release: Path
    private: Path | None


def write_pages(run: Path, *, replay: bool = False) -> Pages:
    """Write ``report.html`` into both sides of a run.

    Args:
        run: its folder.
        replay: also show samples of earlier steps, from a training once more on the released directions.

    Raises:
        DataLensError: no finished or stopped run, damaged files, or a page that cannot be written.
    """
    from datalens.cli.paper_numbers import printed_for
    from datalens.reports.facts import read_release, understood
    from datalens.reports.release_page import release_page
    from datalens.training.files import write_atomically
    from datalens.training.run_folder import RunFolder

    folder = RunFolder.open(run)
    facts = read_release(folder.release)
    if facts.is_classifier and replay:
        raise RunError(f"{run}: --replay is for generators, and this run made a classifier; leave it out")
    sheets = [] if facts.is_classifier else sheets_of(folder, replay=replay)
    with understood(folder.release):
        page = release_page(facts, sheets, printed_for(facts.data_set, facts.epsilon))
    with _times_kept(folder):
        write_atomically(folder.report, page.encode())
    return Pages(folder.report, _write_owner_page(folder, facts, sheets[-1:]))


def pages_after(run: Path, output: Output, *, of_owner_alone: bool = False) -> None:
    """Write the pages after a training, and say so; a page that fails is a warning and no failure.

    Args:
        run: its folder.
        output: who says it.
        of_owner_alone: something was measured and nothing released, so only the owner's page is another.
    """
    try:
        if of_owner_alone:
            write_owner_page(run)
        else:
            output.say(f"report: {write_pages(run).release}")
    except (DataLensError, OSError) as error:
        remedy = shlex.join(["datalens", "report", str(run)])
        output.warn(f"no report was written ({error}); `{remedy}` tries again")


def write_owner_page(run: Path) -> None:
    """Write the owner's page alone.

    Raises:
        DataLensError: as :func:`write_pages`.
    """
    from datalens.reports.facts import read_release
    from datalens.training.run_folder import RunFolder

    folder = RunFolder.open(run)
    facts = read_release(folder.release)
    _write_owner_page(folder, facts, [] if facts.is_classifier else sheets_of(folder))


def _write_owner_page(folder: RunFolder, facts: ReleaseFacts, sheets: Sequence[Sheet]) -> Path | None:
    """The owner's page where it was written; None where the private side is gone."""
    from datalens.reports.facts import understood
    from datalens.reports.owner_facts import read_private
    from datalens.reports.owner_page import owner_page
    from datalens.training.files import PRIVATE, write_atomically

    if not folder.private.is_dir():
        return None
    with understood(folder.root):
        page = owner_page(facts, read_private(folder.private), sheets)
    write_atomically(folder.private_report, page.encode(), mode=PRIVATE)
    return folder.private_report


def sheets_of(folder: RunFolder, *, replay: bool = False, each: int = IMAGES_OF_A_CLASS) -> list[Sheet]:
    """Samples of the released generator; with ``replay`` those of earlier steps before them.

    Raises:
        DataLensError: no generator, or one that cannot be replayed.
    """
    from datalens.baselines.model import load_run
    from datalens.training.synthesizer import DataLens

    model = load_run(folder.root)
    if not replay:
        return [_sheet(model, "", each)]
    if not isinstance(model, DataLens):
        raise RunError(
            f"{folder.root}: --replay is for runs of DataLens, whose directions are kept; leave it out"
        )
    few = min(each, IMAGES_OF_A_TIME)
    return [*_earlier(folder, model, few), _sheet(model, "at the end", few), _sheet(model, "", each)]


def _sheet(model: DataLens | Baseline, title: str, each: int) -> Sheet:
    from datalens.reports.sheets import SHOWN_CLASSES

    labels = _labels(min(len(model.classes), SHOWN_CLASSES), each)
    images, _ = model.sample(len(labels), labels, seed=_SEED)
    return _rows(title, images, model.classes, each)


def _earlier(folder: RunFolder, model: DataLens, each: int) -> Iterator[Sheet]:
    """Samples at even distances, before the first direction and on the way."""
    from datalens.reports.sheets import SHOWN_CLASSES
    from datalens.student.sampling import sample_images
    from datalens.student.update import Student
    from datalens.training.directions import read_directions
    from datalens.training.starting import start_of

    facts = model.facts
    start = start_of(folder, facts)
    records = list(read_directions(folder.directions)) if folder.directions.is_file() else []
    labels = _labels(min(len(model.classes), SHOWN_CLASSES), each)
    student = Student(facts.student_plan, facts.streams, "cpu", None if start is None else start.generator)
    stops = [len(records) * part // (TIMES - 1) for part in range(TIMES - 1)]
    for done in range(len(records) + 1):
        if done in stops:
            images, _ = sample_images(
                student.finished_generator(), facts.latent, len(labels), labels=labels, seed=_SEED
            )
            title = f"after {done:,} steps" if done else "before the first step"
            yield _rows(title, images, model.classes, each)
        if done == stops[-1]:
            return
        student.propose(records[done].step)
        student.learn(records[done].direction_BD)


def _labels(num_classes: int, each: int) -> np.ndarray:
    return np.repeat(np.arange(num_classes, dtype=np.int64), each)


def _rows(title: str, images: np.ndarray, classes: tuple[str, ...], each: int) -> Sheet:
    from datalens.reports.sheets import Row, Sheet

    count = len(images) // each
    rows = tuple(
        Row(name, images[number * each : (number + 1) * each]) for number, name in enumerate(classes[:count])
    )
    return Sheet(title, rows, len(classes) - count)


@contextlib.contextmanager
def _times_kept(folder: RunFolder) -> Iterator[None]:
    """What is written bears the certificate's time, and the folder its own: when a tuning ended is a secret."""
    before = folder.release.stat()
    try:
        yield
        stamp = folder.certificate.stat().st_mtime_ns
        os.utime(folder.report, ns=(stamp, stamp))
    finally:
        os.utime(folder.release, ns=(before.st_atime_ns, before.st_mtime_ns))
