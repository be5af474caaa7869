"""Seconds of generator steps with different settings, in turns in one process, so that all meet the same machine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack

from datalens.data.images import LabelledImages
from datalens.experiments.cells import Cell
from datalens.training.algorithm import generator_step
from datalens.training.session import Session


def seconds_in_turns(cells: Mapping[str, Cell], data: LabelledImages, steps: int) -> dict[str, list[float]]:
    """Seconds of each step of each cell, by its name.

    Args:
        cells: what is compared; each has a session of its own in memory.
        data: the records.
        steps: timed for each, after one that is thrown away, in which tables are built and teachers made.

    Raises:
        DataLensError: settings and data that do not fit.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cells}
    with ExitStack() as stack:
        sessions = {}
        for name, cell in cells.items():
            sessions[name] = Session.begin(cell.config(), data, None, signal_matters=False)
            stack.callback(sessions[name].close)
        for step in range(steps + 1):
            for name, session in sessions.items():
                started = time.perf_counter()
                generator_step(session.parts, step)
                if step > 0:
                    seconds[name].append(time.perf_counter() - started)
    return seconds
