"""Any small labelled images: compact teachers and a neutral prior, minutes on two cores."""

from __future__ import annotations

from datalens.training.config import Config, parse_config


def quick(epsilon: float = 1.0, delta: float = 1e-5) -> Config:
    """Compact matching teachers and three kinds a class. Not the paper's networks.

    The default for people's own images: its last layer only shifts and turns images a little. It is made for
    some 60,000 records; with fewer use fewer teachers (``datalens privacy plan --records`` helps).
    """
    return parse_config(
        {
            "recipe": "quick",
            "privacy": {"epsilon": float(epsilon), "delta": delta},
            "voting": {
                "num_teachers": 4000,
                "top_k": 200,
                "batch_size": 30,
                "images_per_teacher": 15,
                "num_steps": 149,
            },
            "teachers": {"kind": "matching", "first_bandwidth": 100.0, "bandwidth": 5.0, "annealing": 0.6},
            "student": {
                "latent_law": "codes",
                "latent_dim": 3,
                "learning_rate": 3e-3,
                "final_learning_rate": 0.0,
                "weight_average": 0.9,
                "jitter": 0.5,
                "smoothing": 2,
                "finish": {"jitter": 0.5},
            },
        }
    )
