"""Names that help and shell completion show: written out, since looking them up would import PyTorch.

A test compares them with the registries that decide.
"""

from __future__ import annotations

DATALENS = "datalens"
METHODS = (DATALENS, "dc-gan", "dp-merf", "moments", "judged", "pate-gan", "g-pate", "dp-gan", "gs-wgan")
"""Of ``datalens train --method``."""
RECIPES = (
    "quick",
    "mnist-quick",
    "mnist-paper",
    "fashion-quick",
    "fashion-paper",
    "shapes-quick",
    "colour-quick",
    "emoji-quick",
    "celeba-gender-paper",
    "celeba-hair-paper",
    "places365-paper",
    "emoji-paper",
)
CUSTOM = "custom"
"""The recipe that is none: every setting at its default."""
SOURCES = (
    "mnist",
    "fashion-mnist",
    "cifar10",
    "celeba-gender",
    "celeba-hair",
    "places365",
    "emoji",
    "shapes",
)
"""Data sets that have a name."""
