"""Chunks of teachers on several threads, each computing alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import torch

Chunk = tuple[int, int]


def run_in_threads(
    chunks: Sequence[Chunk],
    work: Callable[[int, int], None],
    prefetch: Callable[[int, int], None],
    device: torch.device,
) -> None:
    """``work`` on every chunk, and ``prefetch`` on the one that a thread will take next.

    On a CPU there are as many threads as PyTorch may use in the calling one, and each of them computes on one
    core: products of small matrices gain less from a second core than chunks do, and results do not depend on
    the number of threads. Elsewhere the calling thread does it all.

    Raises:
        Exception: the first that ``work`` raised; chunks not begun by then are left out.
    """
    allowed = torch.get_num_threads() if device.type == "cpu" else 1
    threads = max(1, min(allowed, len(chunks)))
    queue = _Queue(chunks, ahead=threads, prefetch=prefetch)
    if allowed == 1:
        _drain(queue, work)
        return
    with ThreadPoolExecutor(threads, "teachers", initializer=_compute_alone) as pool:
        running = [pool.submit(_drain, queue, work) for _ in range(threads)]
        try:
            for one in running:
                one.result()
        except BaseException:
            queue.stop()
            raise


class _Queue:
    """Chunks in order, for several threads."""

    def __init__(self, chunks: Sequence[Chunk], ahead: int, prefetch: Callable[[int, int], None]) -> None:
        self._chunks = list(chunks)
        self._next = 0
        self._ahead = ahead
        self._prefetch = prefetch
        self._lock = Lock()

    def stop(self) -> None:
        """Hand out no more."""
        with self._lock:
            self._next = len(self._chunks)

    def __iter__(self) -> Iterator[Chunk]:
        while True:
            with self._lock:
                if self._next >= len(self._chunks):
                    return
                chunk = self._chunks[self._next]
                self._next += 1
                coming = self._chunks[self._next - 1 + self._ahead : self._next + self._ahead]
                for later in coming:
                    self._prefetch(*later)
            yield chunk


def _drain(queue: _Queue, work: Callable[[int, int], None]) -> None:
    try:
        with torch.no_grad():
            for start, stop in queue:
                work(start, stop)
    except BaseException:
        queue.stop()
        raise


def _compute_alone() -> None:
    torch.set_num_threads(1)
