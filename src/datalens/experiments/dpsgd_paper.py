"""What the paper prints of DP-SGD: accuracies in percent, mean and spread over ten runs, and settings, at delta 1e-5.

Source: Wang et al. 2021, Tables 8 to 11 and Figure 3, and for DPDL Abadi et al. 2016.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

KEEPS = (0.6, 0.7, 0.8, 1.0)
"""Columns of Tables 8 and 11; what is kept whole is GM-DP."""


@dataclass(frozen=True)
class Settings:
    """What the paper searched for, a row of Table 11.

    Attributes:
        max_grad_norm: C.
        noise_multiplier: sigma.
        batch_size: expected size of a lot.
        learning_rate: of plain SGD.
    """

    max_grad_norm: float
    noise_multiplier: float
    batch_size: int
    learning_rate: float


def _settings(*columns: tuple[float, float, int, float]) -> dict[float, Settings]:
    return {keep: Settings(*column) for keep, column in zip(KEEPS, columns, strict=True)}


TABLE_11 = {
    "mnist": {
        0.05: _settings((10, 5.8, 128, 0.01), (5, 6.6, 128, 0.01), (5, 7.4, 128, 0.01), (3, 8.2, 128, 0.01)),
        0.2: _settings((12, 3.6, 512, 0.1), (10, 3.6, 512, 0.1), (10, 3.6, 512, 0.1), (10, 3.4, 512, 0.08)),
        1.0: _settings((16, 1.6, 512, 0.08), (12, 1.6, 512, 0.1), (10, 1.6, 512, 0.1), (14, 1.8, 512, 0.04)),
    },
    "cifar10": {
        0.025: _settings((1, 6, 24, 0.0008), (1.5, 7, 32, 0.001), (0.8, 6, 24, 0.001), (0.3, 7, 32, 0.002)),
        0.4: _settings((1, 2.5, 96, 0.005), (1, 2.5, 96, 0.005), (1, 2.5, 96, 0.005), (1.5, 3, 96, 0.005)),
        8.0: _settings((0.5, 2.5, 2048, 0.2), (0.5, 2.5, 2048, 0.2), (0.5, 3, 2048, 0.2), (2.5, 2.5, 2048, 0.04)),
    },
}  # fmt: skip
"""By data set, epsilon and keep. Our copy of the paper has three headings for MNIST with two tables below them, in
the same order, and lacks the one for epsilon 1, which is from another copy."""

Score = tuple[float, float]
"""Mean and standard deviation."""


def _scores(*columns: Score) -> dict[float, Score]:
    return dict(zip(KEEPS, columns, strict=True))


TABLE_8 = {
    "mnist": {
        0.05: _scores((73.87, 4.77), (75.81, 3.59), (77.15, 2.89), (78.40, 4.00)),
        0.1: _scores((85.67, 1.48), (86.12, 1.39), (85.88, 1.97), (84.55, 0.98)),
        0.2: _scores((89.84, 0.64), (90.25, 0.40), (90.80, 1.04), (91.17, 0.37)),
        0.3: _scores((91.21, 0.53), (91.85, 0.21), (92.35, 0.53), (93.31, 0.42)),
        0.5: _scores((92.83, 0.52), (93.50, 0.75), (93.82, 0.46), (94.38, 0.24)),
        0.7: _scores((94.41, 0.19), (94.61, 0.24), (94.65, 0.27), (95.08, 0.10)),
        1.0: _scores((95.13, 0.33), (95.22, 0.20), (95.42, 0.20), (95.41, 0.26)),
        math.inf: _scores((97.94, 0.19), (98.58, 0.11), (98.79, 0.09), (99.08, 0.04)),
    },
    "cifar10": {
        0.025: _scores((42.18, 0.89), (44.32, 0.59), (45.87, 0.97), (41.58, 2.01)),
        0.05: _scores((65.10, 0.48), (71.47, 0.32), (72.03, 0.25), (71.29, 0.27)),
        0.075: _scores((74.70, 0.26), (75.22, 0.21), (75.62, 0.15), (75.13, 0.19)),
        0.1: _scores((75.56, 0.18), (76.91, 0.17), (77.65, 0.20), (77.05, 0.09)),
        0.2: _scores((79.44, 0.07), (80.23, 0.12), (80.76, 0.08), (80.37, 0.13)),
        0.3: _scores((80.19, 0.17), (81.70, 0.08), (82.15, 0.15), (82.19, 0.10)),
        0.4: _scores((81.91, 0.10), (82.86, 0.05), (82.82, 0.13), (82.80, 0.09)),
        0.6: _scores((82.56, 0.36), (82.91, 0.20), (83.44, 0.15), (83.46, 0.04)),
        0.8: _scores((83.40, 0.06), (83.67, 0.22), (84.10, 0.07), (84.44, 0.07)),
        2.0: _scores((84.34, 0.08), (84.80, 0.18), (85.18, 0.08), (85.97, 0.04)),
        4.0: _scores((84.82, 0.04), (85.11, 0.08), (85.40, 0.08), (86.63, 0.05)),
        8.0: _scores((85.13, 0.05), (85.37, 0.04), (85.62, 0.04), (87.05, 0.03)),
        math.inf: _scores((85.19, 0.30), (85.42, 0.02), (85.80, 0.03), (87.85, 0.02)),
    },
}
"""By data set, epsilon and keep."""

DIMENSIONS = (0.2, 0.4, 0.6)
TABLE_9 = {
    0.05: ((74.25, 3.25), (78.45, 2.89), (73.55, 1.97)),
    0.1: ((83.65, 0.73), (85.59, 1.39), (86.41, 0.70)),
    0.2: ((89.10, 1.22), (90.48, 0.73), (89.30, 0.74)),
}
"""On MNIST by epsilon, where a share of the coordinates is kept: :data:`DIMENSIONS`. The other columns: Table 8's."""

TABLE_10: Mapping[float, Mapping[str, Score]] = {
    0.1: {
        "topk-gm-dp": (83.86, 1.49),
        "topagg": (85.88, 1.97),
        "topk-sgd": (91.96, 0.61),
        "gm-dp": (85.05, 1.85),
        "clipped-sgd": (94.26, 0.43),
    },
    1.0: {"topk-gm-dp": (94.95, 0.25), "topagg": (95.42, 0.20), "topk-sgd": (98.03, 0.09)},
}
"""On MNIST with keep 0.8, by epsilon and method; our copy of the paper lacks the last row, of GM-DP at epsilon 1.

All methods have one C and one sigma. So GM-DP is not Table 8's at epsilon 0.1, which has its own: 85.05 and 84.55.
"""

DPDL = {
    "mnist": {0.5: 90.0, 2.0: 95.0, 8.0: 97.0},
    "cifar10": {2.0: 67.0, 4.0: 70.0, 8.0: 73.0},
}
"""Abadi et al. 2016, sections 5.2 and 5.3 (Figures 3 and 6), test accuracy by epsilon: the curve DPDL of Figure 3."""


def settings_for(data_set: str, epsilon: float, keep: float) -> Settings:
    """Table 11's settings; between its epsilons C, batch and rate of the nearest, and sigma between both neighbours'.

    The nearest in ratio, of two as near the smaller; sigma on a line in the logarithms, to two digits, since the
    nearest one may allow only a few steps. Without noise, those of the largest epsilon.

    >>> settings_for("mnist", 0.2, 0.8)
    Settings(max_grad_norm=10, noise_multiplier=3.6, batch_size=512, learning_rate=0.1)
    >>> settings_for("mnist", 0.1, 0.8)
    Settings(max_grad_norm=5, noise_multiplier=5.2, batch_size=128, learning_rate=0.01)
    """
    by_epsilon = TABLE_11[data_set]
    if epsilon in by_epsilon or math.isinf(epsilon):
        return by_epsilon[min(epsilon, max(by_epsilon))][keep]
    below, above = max(e for e in by_epsilon if e < epsilon), min(e for e in by_epsilon if e > epsilon)
    share = math.log(epsilon / below) / math.log(above / below)
    near = by_epsilon[below if share <= 0.5 + 1e-9 else above][keep]
    few, many = (by_epsilon[e][keep].noise_multiplier for e in (below, above))
    return replace(near, noise_multiplier=float(f"{few ** (1 - share) * many**share:.2g}"))
