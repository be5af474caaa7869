"""What is printed for the methods that DataLens is compared with, there and elsewhere: percent, at delta 1e-5.

Accuracies are of protocols of their own, most of them the best test epoch, so they stand beside ours and never in one
column.
"""

from __future__ import annotations

import math

Printed = dict[str, dict[float, dict[str, float]]]

TABLE_1: Printed = {
    "mnist": {
        math.inf: {"dc-gan": 96.53},
        1.0: {"dp-gan": 40.36, "pate-gan": 41.68, "g-pate": 58.10, "gs-wgan-as-published": 14.32},
        10.0: {"dp-gan": 80.11, "pate-gan": 66.67, "g-pate": 80.92, "gs-wgan-as-published": 80.75},
    },
    "fashion-mnist": {
        math.inf: {"dc-gan": 80.32},
        1.0: {"dp-gan": 10.53, "pate-gan": 42.22, "g-pate": 55.67, "gs-wgan-as-published": 16.61},
        10.0: {"dp-gan": 60.98, "pate-gan": 62.18, "g-pate": 69.34, "gs-wgan-as-published": 65.79},
    },
    "celeba-gender": {
        math.inf: {"dc-gan": 81.49},
        1.0: {"dp-gan": 53.30, "pate-gan": 60.68, "g-pate": 67.02, "gs-wgan-as-published": 59.01},
        10.0: {"dp-gan": 52.11, "pate-gan": 65.35, "g-pate": 68.97, "gs-wgan-as-published": 61.36},
    },
    "celeba-hair": {
        math.inf: {"dc-gan": 76.78},
        1.0: {"dp-gan": 34.47, "pate-gan": 37.89, "g-pate": 49.85, "gs-wgan-as-published": 42.03},
        10.0: {"dp-gan": 39.20, "pate-gan": 39.00, "g-pate": 62.17, "gs-wgan-as-published": 52.25},
    },
    "places365": {
        math.inf: {"dc-gan": 74.04},
        1.0: {"dp-gan": 32.00, "pate-gan": 32.38, "g-pate": 34.83, "gs-wgan-as-published": 33.75},
        10.0: {"dp-gan": 32.92, "pate-gan": 37.96, "g-pate": 38.83, "gs-wgan-as-published": 37.25},
    },
}
"""Wang et al. 2021, Table 1, by data set, epsilon and method."""

TABLE_2: Printed = {
    "mnist": {
        0.2: {"dp-gan": 11.04, "pate-gan": 21.76, "g-pate": 22.30, "gs-wgan-as-published": 9.72},
        0.4: {"dp-gan": 15.24, "pate-gan": 23.99, "g-pate": 24.78, "gs-wgan-as-published": 10.29},
        0.6: {"dp-gan": 10.22, "pate-gan": 34.84, "g-pate": 41.84, "gs-wgan-as-published": 10.44},
        0.8: {"dp-gan": 37.32, "pate-gan": 35.71, "g-pate": 53.77, "gs-wgan-as-published": 11.70},
    },
    "fashion-mnist": {
        0.2: {"dp-gan": 10.21, "pate-gan": 16.05, "g-pate": 18.74, "gs-wgan-as-published": 10.00},
        0.4: {"dp-gan": 13.02, "pate-gan": 29.77, "g-pate": 30.20, "gs-wgan-as-published": 10.01},
        0.6: {"dp-gan": 9.98, "pate-gan": 36.98, "g-pate": 42.83, "gs-wgan-as-published": 11.44},
        0.8: {"dp-gan": 12.10, "pate-gan": 36.59, "g-pate": 52.58, "gs-wgan-as-published": 12.42},
    },
}
"""The same paper, Table 2, likewise. Its row for epsilon 1 repeats Table 1, but for DP-GAN on MNIST: 40.46."""

TABLE_12: dict[str, dict[float, dict[str, tuple[float, float]]]] = {
    "mnist": {
        1.0: {
            "dp-gan": (1.00, 470.20),
            "pate-gan": (1.19, 231.54),
            "g-pate": (3.60, 153.38),
            "gs-wgan-as-published": (1.00, 489.75),
        },
        10.0: {
            "dp-gan": (1.00, 304.86),
            "pate-gan": (1.46, 253.55),
            "g-pate": (5.16, 150.62),
            "gs-wgan-as-published": (8.59, 58.77),
        },
    },
    "fashion-mnist": {
        1.0: {
            "dp-gan": (1.03, 472.03),
            "pate-gan": (1.69, 253.19),
            "g-pate": (3.41, 214.78),
            "gs-wgan-as-published": (1.00, 587.31),
        },
        10.0: {
            "dp-gan": (1.05, 433.38),
            "pate-gan": (2.35, 229.25),
            "g-pate": (4.33, 171.90),
            "gs-wgan-as-published": (5.87, 135.47),
        },
    },
    "celeba-gender": {
        1.0: {
            "dp-gan": (1.00, 485.92),
            "pate-gan": (1.15, 434.47),
            "g-pate": (1.11, 302.45),
            "gs-wgan-as-published": (1.00, 437.33),
        },
        10.0: {
            "dp-gan": (1.00, 485.41),
            "pate-gan": (1.16, 424.60),
            "g-pate": (1.12, 323.95),
            "gs-wgan-as-published": (1.00, 432.58),
        },
    },
}
"""The same paper, Table 12: Inception Score and FID."""

BEYOND: dict[str, dict[float, dict[str, float]]] = {
    "mnist": {
        0.2: {"DPDM": 86.3},
        1.0: {"DPDM": 95.3, "DP-MERF": 83.9, "DataLens": 71.2, "DP-Sinkhorn": 61.9},
        10.0: {"DPDM": 98.1, "DPGANr": 95.0, "DP-MERF": 83.2, "DP-Sinkhorn": 83.2, "DataLens": 80.7},
    },
    "fashion-mnist": {
        0.2: {"DPDM": 72.3},
        1.0: {"DPDM": 79.4, "DP-MERF": 72.4, "DataLens": 64.8, "DP-Sinkhorn": 56.3},
        10.0: {"DPDM": 86.2, "DP-MERF": 71.7, "DP-Sinkhorn": 71.1, "DataLens": 70.6},
    },
}
"""The best accuracies of a CNN that others print without public data: Dockhorn et al. 2023 (DPDM), Bie et al. 2023,
and the re-runs of SoK-PPDS, IEEE S&P 2024; at epsilon 10 DP-Sinkhorn's own paper."""

RERUNS: Printed = {
    "mnist": {1.0: {"dp-merf": 83.9}, 10.0: {"dp-merf": 83.2, "datalens": 53.9}},
    "fashion-mnist": {1.0: {"dp-merf": 72.4}, 10.0: {"dp-merf": 71.7}},
}
"""Independent runs of the published code: SoK-PPDS, IEEE S&P 2024. Noise of DP-MERF there: replacing one record."""
