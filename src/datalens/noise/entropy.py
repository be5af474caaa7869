"""Where random bits come from: the operating system, or an insecure key for experiments.

The operating system's source keeps nothing in this process: every call reads fresh bytes, so a fork, a
crash or a restored checkpoint cannot repeat a draw.
"""

from __future__ import annotations

import hashlib
import os
from typing import Protocol

import numpy as np

from datalens.errors import ConfigError

_WORD_BYTES = 8


class Entropy(Protocol):
    """A source of independent, evenly distributed 64-bit words."""

    @property
    def secure(self) -> bool:
        """Whether nobody can predict or repeat the words."""
        ...

    def words(self, count: int) -> np.ndarray:
        """``count`` fresh words, uint64."""
        ...


class OsEntropy:
    """Words from the operating system's cryptographic source, unbuffered.

    >>> OsEntropy().words(3).shape
    (3,)
    """

    secure = True

    def words(self, count: int) -> np.ndarray:
        """``count`` fresh words, uint64, from one read."""
        return np.frombuffer(os.urandom(_WORD_BYTES * count), dtype="<u8").astype(np.uint64, copy=False)


class SeededEntropy:
    """A repeatable stream for experiments and tests: SHAKE-256 of a key and a call counter.

    Not for publication: whoever has the key can take the noise off.

    >>> SeededEntropy(b"key").words(2).tolist() == SeededEntropy(b"key").words(2).tolist()
    True
    """

    secure = False

    def __init__(self, key: bytes) -> None:
        if not key:
            raise ConfigError("the insecure key is empty; give at least one byte")
        self._key = bytes(key)
        self._calls = 0

    def words(self, count: int) -> np.ndarray:
        """The next ``count`` words, uint64: a function of the key and of how many calls came before."""
        header = len(self._key).to_bytes(8, "big") + self._key + self._calls.to_bytes(8, "big")
        self._calls += 1
        digest = hashlib.shake_256(header).digest(_WORD_BYTES * count)
        return np.frombuffer(digest, dtype="<u8").astype(np.uint64, copy=False)
