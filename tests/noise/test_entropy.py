"""Bits are fresh, also after a fork, and never come from NumPy's or PyTorch's generators."""

from __future__ import annotations

import hashlib
import os

import numpy as np
import pytest
import torch

from datalens.errors import ConfigError
from datalens.noise import OsEntropy, SeededEntropy, make_noise
from datalens.privacy.events import NoiseKind


@pytest.mark.parametrize("entropy", [OsEntropy(), SeededEntropy(b"key")])
def test_words_are_fresh_64_bit_words(entropy: OsEntropy | SeededEntropy) -> None:
    words = entropy.words(20_000)
    assert (words.shape, words.dtype) == ((20_000,), np.uint64)
    assert len(set(words.tolist())) == 20_000
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(0)
    assert (abs(bits - 0.5) < 5 * 0.5 / np.sqrt(20_000)).all()
    assert not set(words.tolist()) & set(entropy.words(20_000).tolist())
    assert entropy.words(0).shape == (0,)


def test_operating_system_entropy_keeps_no_state() -> None:
    assert not vars(OsEntropy())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_draws_other_noise_than_its_parent() -> None:
    noise = make_noise(NoiseKind.ROUNDED)
    noise.sample((4,), 5000.0)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, noise.sample((64,), 5000.0).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(reader, 64 * 8), dtype=np.int64)
    os.close(reader)
    os.close(writer)
    assert (theirs == noise.sample((64,), 5000.0)).mean() < 0.1


@pytest.mark.parametrize("kind", [NoiseKind.ROUNDED, NoiseKind.CONTINUOUS, NoiseKind.DISCRETE])
def test_library_seeds_do_not_reach_the_noise(kind: NoiseKind) -> None:
    draws = []
    for _ in range(2):
        np.random.seed(0)
        torch.manual_seed(0)
        draws.append(make_noise(kind).sample((200,), 5000.0))
    assert (draws[0] == draws[1]).mean() < 0.05


def test_seeded_streams_depend_on_key_and_call() -> None:
    first, second = SeededEntropy(b"a"), SeededEntropy(b"a")
    assert first.words(4).tolist() == second.words(4).tolist()
    assert first.words(4).tolist() == second.words(4).tolist()
    assert SeededEntropy(b"a").words(4).tolist() != SeededEntropy(b"b").words(4).tolist()
    assert not SeededEntropy(b"a").secure
    assert OsEntropy().secure


def test_a_seeded_stream_is_that_of_every_version() -> None:
    """Equal seeds give equal runs: SHAKE-256 of the key's length, the key and the number of the call."""
    entropy = SeededEntropy(b"key")
    for call in range(2):
        header = bytes([0] * 7 + [3]) + b"key" + bytes([0] * 7 + [call])
        expected = np.frombuffer(hashlib.shake_256(header).digest(40), "<u8")
        np.testing.assert_array_equal(entropy.words(5), expected)


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="key is empty"):
        SeededEntropy(b"")
