"""The drawn shapes: a first try in seconds."""

from __future__ import annotations

from datalens.training.config import Config, parse_config


def shapes_quick(epsilon: float = 10.0, delta: float = 1e-5) -> Config:
    """Kernel teachers on 4,000 drawn shapes of 16x16; seconds on one core, to see the whole way work.

    So few records can teach little at epsilon 1, so it is 10 unless asked otherwise.
    """
    return parse_config(
        {
            "recipe": "shapes-quick",
            "privacy": {"epsilon": float(epsilon), "delta": delta},
            "voting": {"num_teachers": 400, "top_k": 60, "batch_size": 16, "num_steps": 60},
            "teachers": {"kind": "kernel", "bandwidth": 1e4, "steps": 1, "first_steps": 1},
            "student": {
                "hidden_units": 128,
                "channels": 32,
                "learning_rate": 5e-3,
                "final_learning_rate": 0.1,
                "jitter": 0.5,
                "smoothing": 1,
                "finish": {"jitter": 1.0},
            },
        }
    )
