"""Work in a process of its own: its memory is its own, and what goes wrong arrives."""

from __future__ import annotations

import os

import pytest

from datalens.errors import ConfigError, RunError
from datalens.experiments import trials
from datalens.experiments.apart import in_fresh_process, peak_memory_mib


def test_a_training_in_a_process_of_its_own_tells_its_own_peak_of_memory() -> None:
    mine = peak_memory_mib()
    ballast = bytearray(os.urandom(1024)) * (400 * 1024)  # 400 MiB, which the new process must not count
    theirs = in_fresh_process(peak_memory_mib)
    assert len(ballast) == 400 * 2**20 and peak_memory_mib() > max(mine, 400.0)
    assert 5 < theirs < peak_memory_mib() - 200


def test_an_error_of_a_process_of_its_own_arrives_whole() -> None:
    with pytest.raises(ConfigError, match="no trials of 'dp-sinkhorn'"):
        in_fresh_process(trials.trial_cells, "dp-sinkhorn")
    with pytest.raises(RunError, match="process was killed"):
        in_fresh_process(os.abort)
