"""Settings of the smallest run of each baseline, for drawn shapes."""

from __future__ import annotations

from typing import Any

MERF_TOML = """
[settings]
num_features = 64
num_steps = 3
images_per_class = 2
latent_dim = 4
hidden_units = 16
channels = 4
"""
"""Of dp-merf for the command line, as a file of settings: three steps."""
NETWORK = {"latent_dim": 4, "hidden_units": 16, "channels": 4}
SMALL: dict[str, dict[str, Any]] = {
    "dc-gan": {"num_steps": 4, "batch_size": 8, "critic_channels": 2, **NETWORK},
    "dp-merf": {"num_features": 64, "num_steps": 4, "images_per_class": 2, **NETWORK},
    "moments": {"low_frequencies": 3, "rank": 4},
    "judged": {"num_steps": 5, "low_frequencies": 3, "rank": 4, "judge_images": 60, "judge_size": 12},
    "pate-gan": {
        "num_teachers": 20,
        "num_steps": 4,
        "batch_size": 4,
        "teacher_steps": 1,
        "student_steps": 2,
        "generator": NETWORK,
    },
    "g-pate": {"num_teachers": 20, "num_steps": 4, "batch_size": 4, "num_projected": 3, "generator": NETWORK},
    "dp-gan": {
        "num_steps": 4,
        "critic_steps": 2,
        "batch_size": 40,
        "generated_batch": 8,
        "images_per_class": 2,
        "critic_channels": 2,
        **NETWORK,
    },
    "gs-wgan": {
        "num_steps": 4,
        "batch_size": 4,
        "num_critics": 5,
        "critic_steps": 1,
        "records_per_step": 4,
        "critic_channels": 2,
        **NETWORK,
    },
}
