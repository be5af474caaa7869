"""The few settings that each baseline was tried with, and which of them its cells in the tables have.

A trial learns on the first five sixths of MNIST's training images at epsilon 1 and is scored on the last sixth, with
one seed. No epsilon covers the choice: the images are published ones.
"""

from __future__ import annotations

from typing import Any

from datalens.errors import ConfigError
from datalens.experiments.baseline_cells import BaselineCell
from datalens.experiments.settings import SHORT
from datalens.experiments.table import Column, Row, Table

Settings = tuple[tuple[str, Any], ...]
TRIED_ON, TRIED_AT = "mnist", 1.0

_SMALLER: Settings = (("channels", 64),)
"""Half the generator's maps: a step of the method itself, not of the generator, is then most of the time."""

TRIALS: dict[str, tuple[Settings, ...]] = {
    "dp-merf": (
        (),
        (("num_steps", 1200),),
        (("length_scale", 10.2),),
        (("length_scale", 8.0), ("num_steps", 1200)),
    ),
    "pate-gan": tuple(
        (("num_teachers", teachers), ("num_steps", steps), ("teacher_steps", 2), ("student_steps", 2), *more)
        for teachers, steps, more in (
            (1000, 100, ()),
            (500, 100, ()),
            (2000, 50, ()),
            (1000, 100, (("instance_noise", 0.1),)),
        )
    ),
    "g-pate": (
        (),
        (("num_teachers", 4000),),
        (("num_teachers", 4000), ("num_steps", 50)),
        (("num_teachers", 4000), ("num_steps", 50), ("vote_threshold", 0.2)),
    ),
    "dp-gan": (
        (("num_steps", 400), *_SMALLER),
        (("num_steps", 400), ("batch_size", 512), ("critic_steps", 1), *_SMALLER),
        (("num_steps", 400), ("batch_size", 512), ("critic_steps", 1), ("critic_rate", 3e-4), *_SMALLER),
        (("num_steps", 800), ("batch_size", 256), ("critic_steps", 1), ("critic_rate", 3e-4), *_SMALLER),
    ),
    "gs-wgan": (
        (("num_steps", 25), *_SMALLER),
        (("num_steps", 5), ("num_critics", 100), *_SMALLER),
        (("num_steps", 1), ("num_critics", 500), ("batch_size", 8), *_SMALLER),
        (("num_steps", 1), ("num_critics", 500), ("batch_size", 8), ("critic_steps", 10), *_SMALLER),
    ),
}
"""By contender, each over the method's defaults."""

CHOSEN = {"dp-merf": 3, "pate-gan": 2, "g-pate": 2, "dp-gan": 2, "gs-wgan": 2}
"""Which of them, counted from 0: the one with the best score. GS-WGAN's are all at chance, 8 to 10%."""


TRIALS_NOTE = (
    "Settings of other methods: those of the table `trials`, tried on MNIST at epsilon 1 and used on every data set "
    "at every epsilon; dc-gan and gs-wgan-as-published have their defaults. DataLens has its recipe, which was made "
    "on the data set that it is named after, so the comparison favours it."
)


def chosen(name: str) -> Settings:
    """The settings that a contender's cells have; its method's defaults where none were tried."""
    return TRIALS[name][CHOSEN[name]] if name in TRIALS else ()


def trial_cells(name: str) -> tuple[BaselineCell, ...]:
    """The cells of a contender's trials.

    Raises:
        ConfigError: nothing was tried for it.
    """
    if name not in TRIALS:
        raise ConfigError(f"no trials of {name!r}; there are some of {', '.join(TRIALS)}")
    return tuple(
        BaselineCell(TRIED_ON, name, TRIED_AT, settings=settings, held_out=True) for settings in TRIALS[name]
    )


def table_trials() -> Table:
    """Every trial with its score, the chosen one marked."""
    rows = []
    for name in TRIALS:
        for number, cell in enumerate(trial_cells(name)):
            said = ", ".join(f"{setting} {value}" for setting, value in cell.settings) or "defaults"
            mark = "chosen" if CHOSEN[name] == number else ""
            rows.append(Row((name, said, mark), cell, (0,), "", (SHORT,)))
    return Table(
        "trials",
        "Settings tried for the baselines: MNIST, epsilon 1",
        ("method", "settings", ""),
        (Column("CNN, 10,000", SHORT), Column("seconds", "run", "training_seconds", percent=False)),
        "paper",
        tuple(rows),
        (
            "Trained on the first 50,000 training images, tested on the last 10,000 of them; the test images chose "
            "nothing. One insecure seed each. These choices are not covered by epsilon: on people's data use "
            "settings that were chosen on public ones, as here.",
        ),
    )
