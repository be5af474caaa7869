"""Work in a process of its own: its memory is its own, and what goes wrong arrives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from datalens.errors import ConfigError, RunError
from datalens.experiments import trials
from datalens.experiments.apart import in_fresh_process, peak_memory_mib


def test_a_training_in_a_process_of_its_own_tells_its_own_peak_of_memory() -> None:
    mine = peak_memory_mib()
    ballast = bytearray(os.urandom(1024)) * (400 * 1024)  # 400 MiB, which the new process must not count
    theirs = in_fresh_process(peak_memory_mib)
    assert len(ballast) == 400 * 2**20 and peak_memory_mib() >= max(mine, 400.0)
    assert 5 < theirs < peak_memory_mib() - 200


def test_an_error_of_a_process_of_its_own_arrives_whole() -> None:
    with pytest.raises(ConfigError, match="no trials of 'dp-sinkhorn'"):
        in_fresh_process(trials.trial_cells, "dp-sinkhorn")
    with pytest.raises(RunError, match="process was killed"):
        in_fresh_process(os.abort)


WAITS = """
import os, signal, sys, time
from pathlib import Path
from datalens.experiments.apart import in_fresh_process

def wait(path):
    Path(path).write_text(str(os.getpid()))
    time.sleep(120)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have begun this with Ctrl-C ignored
    in_fresh_process(wait, sys.argv[1])
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_process_of_its_own_does_not_outlive_who_began_it(tmp_path: Path, sent: signal.Signals) -> None:
    script, told = tmp_path / "waits.py", tmp_path / "pid"
    script.write_text(WAITS)
    with subprocess.Popen(
        [sys.executable, str(script), str(told)], stderr=subprocess.PIPE, text=True
    ) as parent:
        _until(lambda: told.exists() and told.read_text() != "")
        parent.send_signal(sent)
        _, said = parent.communicate(timeout=60)
    _until(lambda: not _is_alive(int(told.read_text())))
    assert said.count("Traceback") == (sent == signal.SIGINT), "one process speaks of Ctrl-C"


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
