"""Colour images of 64x64: the paper's settings for CelebA and Places365, and quick ones that fit them and emoji.

Source of the paper's settings: Section 5 and Appendix; what they leave open is chosen in docs/reproduction.md.
"""

from __future__ import annotations

from datalens.recipes.quick import quick
from datalens.training.config import Config, parse_config

QUICK_STEPS = 138
"""Steps that the exact accountant allows at epsilon 1 with the paper's noise for CelebA, 15 images a teacher."""


def colour_quick(epsilon: float = 1.0, delta: float = 1e-5) -> Config:
    """:func:`~datalens.recipes.quick.quick` for some 100,000 colour images of 64x64. Not the paper's networks.

    As many teachers and kept coordinates as the paper has for CelebA. The teachers' bandwidths grow with the number
    of coordinates; the filter before the sigmoid is as wide for the image as that of ``quick`` for 28x28.
    """
    return quick(epsilon, delta).replace(
        recipe="colour-quick",
        voting__num_teachers=6000,
        voting__top_k=700,
        voting__num_steps=QUICK_STEPS,
        voting__sketch_buckets=8000,
        teachers__first_bandwidth=1500.0,
        teachers__bandwidth=75.0,
        student__smoothing=8,
    )


def emoji_quick(epsilon: float = 10.0, delta: float = 1e-5) -> Config:
    """As :func:`colour_quick`, for the 12,509 pictures of ``emoji``: 800 teachers, so epsilon is 10 unless asked."""
    return colour_quick(epsilon, delta).replace(recipe="emoji-quick", voting__num_teachers=800)


def celeba_gender_paper(epsilon: float = 1.0, delta: float = 1e-5) -> Config:
    """The paper's networks and settings for CelebA-Gender, with exact accounting.

    The states of 6000 such teachers with Adam are about 83 GB; see :func:`~datalens.recipes.mnist.mnist_paper` for
    what that means for checkpoints.
    """
    small = epsilon < 10
    return parse_config(
        {
            "recipe": "celeba-gender-paper",
            "privacy": {"epsilon": float(epsilon), "delta": delta},
            "voting": {
                "num_teachers": 6000,
                "batch_size": 27,
                "top_k": 700 if small else 500,
                "noise_stddev": 9000.0 if small else 700.0,
                "vote_threshold": 0.85 if small else 0.2,
                "sketch_buckets": 8000,
            },
            "teachers": {"kind": "paper", "steps": 2, "first_steps": 10, "learning_rate": 1e-3},
            "student": {"latent_dim": 100, "learning_rate": 1e-3, "step_size": 1e-3},
            "performance": {"checkpoint_every": 1000},
        }
    )


def celeba_hair_paper(epsilon: float = 1.0, delta: float = 1e-5) -> Config:
    """The paper's networks and settings for CelebA-Hair; see :func:`celeba_gender_paper`."""
    return celeba_gender_paper(epsilon, delta).replace(
        recipe="celeba-hair-paper",
        voting__num_teachers=8000,
        voting__vote_threshold=0.9 if epsilon < 10 else 0.2,
    )


def places365_paper(epsilon: float = 1.0, delta: float = 1e-5) -> Config:
    """The paper's networks for Places365, with its top-k and latents; the rest is CelebA-Gender's."""
    return celeba_gender_paper(epsilon, delta).replace(
        recipe="places365-paper", voting__batch_size=20, voting__top_k=700
    )


def emoji_paper(epsilon: float = 10.0, delta: float = 1e-5) -> Config:
    """The paper's networks for 64x64 on the pictures of ``emoji``, which the paper does not have.

    800 teachers of 15 pictures, 60 steps, the least noise that they need.
    """
    return celeba_gender_paper(epsilon, delta).replace(
        recipe="emoji-paper",
        voting__num_teachers=800,
        voting__batch_size=15,
        voting__top_k=700,
        voting__noise_stddev=None,
        voting__vote_threshold=None,
        voting__num_steps=60,
        performance__checkpoint_every=20,
    )
