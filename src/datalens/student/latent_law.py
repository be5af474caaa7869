"""How latents are drawn; apart, so that settings need no PyTorch."""

from __future__ import annotations

from enum import StrEnum


class LatentLaw(StrEnum):
    """How latents are drawn.

    The paper's text says normal, its code says uniform on [-1, 1]. Codes are a few kinds a class: a latent is
    one of ``latent_dim`` unit vectors (times 4), each equally likely, as in InfoGAN's categorical latents.
    """

    NORMAL = "normal"
    UNIFORM = "uniform"
    CODES = "codes"
