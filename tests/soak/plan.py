"""What one round does: a small sound configuration and one disturbance, drawn from seed and number alone."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from small_baselines import SMALL

EPSILON = 50.0
RECORDS, CLASSES = 200, 4
METHODS = (
    "datalens",
    "datalens",
    "datalens",
    "moments",
    "judged",
    "dp-merf",
    "g-pate",
    "pate-gan",
    "dp-gan",
    "gs-wgan",
)
"""DataLens three times, as most of what can be lost is its."""


class Disturbance(StrEnum):
    """What goes wrong in a round."""

    KILL = "kill"
    INTERRUPT = "interrupt"
    FULL_DISK = "full-disk"
    DAMAGED_RUN = "damaged-run"
    DAMAGED_RELEASE = "damaged-release"
    OTHER_SETTINGS = "other-settings"
    OTHER_DATA = "other-data"
    NEW_TERMS = "new-terms"
    INSIDE = "inside"


@dataclass(frozen=True)
class Plan:
    """One round.

    Attributes:
        seed: of the soak.
        number: of the round, from 0.
        disturbance: what goes wrong.
        method: as ``--method`` names it, or "datalens".
        by_name: train on the drawn shapes by their name (4000 records) instead of an .npz with 200 of them.
        insecure_seed: of the run's noise; None: the operating system's entropy.
        settings: sections of the configuration file.
    """

    seed: int
    number: int
    disturbance: Disturbance
    method: str
    by_name: bool
    insecure_seed: int | None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def rng(self) -> random.Random:
        """For moments, places and choices within the round; the same at every call."""
        return random.Random(f"{self.seed}/{self.number}/moments")

    def to_json(self) -> dict[str, Any]:
        """What the log says of it."""
        source = "shapes" if self.by_name else "own.npz"
        secret = "entropy" if self.insecure_seed is None else self.insecure_seed
        return {"method": self.method, "source": source, "noise_from": secret, "settings": self.settings}


def draw(seed: int, number: int) -> Plan:
    """The round of that number; in every block of as many rounds as there are disturbances each comes once."""
    kinds = list(Disturbance)
    block, place = divmod(number, len(kinds))
    random.Random(f"{seed}/block/{block}").shuffle(kinds)
    return plan_of(seed, number, kinds[place])


def plan_of(seed: int, number: int, disturbance: Disturbance) -> Plan:
    """The round of that number with this disturbance."""
    rng = random.Random(f"{seed}/{number}/plan")
    method = "datalens" if disturbance is Disturbance.NEW_TERMS else rng.choice(METHODS)
    settings = _own_settings(rng) if method == "datalens" else _baseline_settings(method, rng)
    settings["performance"] = {**settings.get("performance", {}), "checkpoint_every": rng.randint(1, 5)}
    by_name = rng.random() < 0.25
    insecure = rng.randint(0, 999) if rng.random() < 0.6 else None
    return Plan(seed, number, disturbance, method, by_name, insecure, settings)


def _own_settings(rng: random.Random) -> dict[str, Any]:
    store = rng.choice(("auto", "disk"))
    return {
        "voting": {
            "num_teachers": rng.choice((10, 20)),
            "top_k": rng.choice((5, 20)),
            "batch_size": rng.choice((3, 8)),
            "num_steps": rng.randint(4, 24),
        },
        "teachers": {"kind": rng.choice(("kernel", "kernel", "paper")), "steps": 1, "first_steps": 1},
        "student": {"latent_dim": 4, "hidden_units": 8, "channels": 4},
        "performance": {"teacher_store": store},
    }


def _baseline_settings(method: str, rng: random.Random) -> dict[str, Any]:
    settings = dict(SMALL[method])
    if "num_steps" in settings:
        settings["num_steps"] = rng.randint(3, 16)
    return {"settings": settings}


def as_toml(settings: dict[str, Any]) -> str:
    """The text of a configuration file.

    >>> print(as_toml({"a": {"b": 1, "c": {"d": "e"}}}), end="")
    [a]
    b = 1
    [a.c]
    d = "e"
    """
    lines: list[str] = []

    def write(name: str, table: dict[str, Any]) -> None:
        lines.append(f"[{name}]")
        lines.extend(
            f"{key} = {json.dumps(value)}" for key, value in table.items() if not isinstance(value, dict)
        )
        for key, value in table.items():
            if isinstance(value, dict):
                write(f"{name}.{key}", value)

    for section, values in settings.items():
        write(section, values)
    return "".join(line + "\n" for line in lines)
