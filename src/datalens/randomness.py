"""Named random streams, each a function of a root key, a name and a number; nothing is shared or global.

A stream is derived, not advanced: ``streams.torch("latents", step)`` gives the same draws however many
draws were made before, so a resumed run needs the root key and the step number and no generator state.
Roots come from the operating system unless the user asks for an insecure seed. Two roots exist in a run:
the *public* one (latents, generated labels, generator initialisation; it is released, so that anyone can
replay the student's training) and the *private* one (slot map, teachers, stochastic signs; it never leaves
``private/``). Noise that protects people comes from neither: see :mod:`datalens.noise`.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

ROOT_BYTES = 32


@dataclass(frozen=True)
class Streams:
    """A family of independent random streams under one root key.

    Attributes:
        root: 32 bytes. Whoever knows them knows every draw.
    """

    root: bytes

    @classmethod
    def from_entropy(cls) -> Streams:
        """A family that no one can predict: the root is drawn from the operating system."""
        return cls(secrets.token_bytes(ROOT_BYTES))

    @classmethod
    def from_insecure_seed(cls, seed: int, name: str) -> Streams:
        """A repeatable family for experiments. Two names under one seed are independent families."""
        return cls(hashlib.sha256(f"datalens insecure seed {seed} {name}".encode()).digest())

    def key(self, name: str, number: int = 0) -> bytes:
        """32 bytes for one stream (SHA-256 of root, name and number)."""
        return hashlib.sha256(self.root + f"|{name}|{number}".encode()).digest()

    def numpy(self, name: str, number: int = 0) -> np.random.Generator:
        """A NumPy generator for one stream."""
        return np.random.default_rng(int.from_bytes(self.key(name, number), "big"))

    def torch(self, name: str, number: int = 0, device: str | torch.device = "cpu") -> torch.Generator:
        """A PyTorch generator for one stream, on ``device``."""
        import torch

        seed = int.from_bytes(self.key(name, number)[:8], "big", signed=True)
        return torch.Generator(device=device).manual_seed(seed)
