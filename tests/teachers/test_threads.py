"""Chunks on threads: each computes alone, every chunk once, and what fails stops the rest."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Barrier, Lock, current_thread

import pytest
import torch

from datalens.teachers.threads import run_in_threads

CPU = torch.device("cpu")
CHUNKS = [(start, start + 2) for start in range(0, 20, 2)]


@pytest.fixture(autouse=True, params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_every_chunk_is_worked_on_once_by_a_thread_that_computes_alone(threads: int) -> None:
    meeting, lock = Barrier(threads), Lock()
    seen: list[tuple[tuple[int, int], int, bool, str]] = []

    def work(start: int, stop: int) -> None:
        if start < 2 * threads:
            meeting.wait(30)  # as many chunks at once as there are threads, or this never ends
        with lock:
            seen.append(
                ((start, stop), torch.get_num_threads(), torch.is_grad_enabled(), current_thread().name)
            )

    run_in_threads(CHUNKS, work, lambda start, stop: None, CPU)
    assert sorted(chunk for chunk, *_ in seen) == CHUNKS
    assert {own for _, own, *_ in seen} == {1}
    assert not any(has_grad for _, _, has_grad, _ in seen)
    assert len({name for *_, name in seen}) == threads
    assert torch.get_num_threads() == threads


def test_what_comes_next_is_asked_for_ahead_and_once(threads: int) -> None:
    asked: list[tuple[int, int]] = []
    run_in_threads(CHUNKS, lambda start, stop: None, lambda start, stop: asked.append((start, stop)), CPU)
    assert asked == CHUNKS[threads:]


def test_what_fails_is_raised_and_stops_the_rest(threads: int) -> None:
    begun: list[int] = []

    def work(start: int, stop: int) -> None:
        begun.append(start)
        raise ValueError(f"chunk {start}")

    with pytest.raises(ValueError, match="chunk"):
        run_in_threads(CHUNKS, work, lambda start, stop: None, CPU)
    assert len(begun) <= threads
