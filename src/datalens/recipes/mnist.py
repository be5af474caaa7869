"""MNIST and Fashion-MNIST: the paper's settings, and quick ones for two processor cores."""

from __future__ import annotations

from datalens.recipes.quick import quick
from datalens.training.config import Config, parse_config


def mnist_quick(epsilon: float = 1.0, delta: float = 1e-5) -> Config:
    """:func:`~datalens.recipes.quick.quick` with the prior of ink on paper.

    Strokes lean and shift a little and are thick or thin. Not the paper's networks.
    """
    finish = {"jitter": 1.2, "contrast": 4.0, "lightness": 1.0, "lightness_spread": 1.0, "outside": "black"}
    return quick(epsilon, delta).replace(recipe="mnist-quick", student__finish=finish)


def fashion_quick(epsilon: float = 1.0, delta: float = 1e-5) -> Config:
    """As :func:`mnist_quick`, for Fashion-MNIST: cloth has greys, so the last layer changes less."""
    finish = {"jitter": 0.5, "contrast": 2.0, "lightness": 1.0, "lightness_spread": 0.5, "outside": "black"}
    return quick(epsilon, delta).replace(recipe="fashion-quick", student__finish=finish)


def mnist_paper(epsilon: float = 1.0, delta: float = 1e-5) -> Config:
    """The paper's networks and settings for MNIST, with exact accounting.

    The states of 4000 such teachers with Adam are about 27 GB, and that is a checkpoint's size; two are kept. So
    one is written every 1000 steps only, besides at the end and where a run is stopped: with fewer steps than
    that, after a crash all steps are replayed from the released directions. Nothing is charged twice, time is
    lost. Set ``performance.checkpoint_every`` lower where disk and patience allow.

    Source: paper, Section 5 and Appendix; docs/reproduction.md.
    """
    small = epsilon < 10
    return parse_config(
        {
            "recipe": "mnist-paper",
            "privacy": {"epsilon": float(epsilon), "delta": delta},
            "voting": {
                "num_teachers": 4000,
                "shard_size": 15,
                "batch_size": 15,
                "top_k": 200 if small else 350,
                "noise_stddev": 5000.0 if small else 900.0,
                "vote_threshold": 0.7 if small else 0.2,
            },
            "teachers": {"kind": "paper", "steps": 2, "first_steps": 10, "learning_rate": 1e-3},
            "student": {"latent_dim": 50, "learning_rate": 1e-3, "step_size": 1e-3},
            "performance": {"checkpoint_every": 1000},
        }
    )


def fashion_paper(epsilon: float = 1.0, delta: float = 1e-5) -> Config:
    """The paper's networks and settings for Fashion-MNIST, with exact accounting; see :func:`mnist_paper`."""
    small = epsilon < 10
    return mnist_paper(epsilon, delta).replace(
        recipe="fashion-paper",
        voting__vote_threshold=0.9 if small else 0.27,
        student__latent_dim=50 if small else 64,
    )
