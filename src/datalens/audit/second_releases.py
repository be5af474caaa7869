"""What each method but DataLens's own releases, a second time, from settings and sizes: for ``datalens verify``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

Json = Mapping[str, Any]
LEAST_NOISE, _MOST_NOISE = 0.25, 131072.0
"""Standard deviations of the noise that can be drawn."""


@dataclass(frozen=True)
class Kind:
    """Releases of one kind, as settings give them.

    Attributes:
        sensitivity: what one person moves, all records of that person together.
        coordinates: of one release.
        count: in a whole training.
        each: in a step.
        exchanged: the sensitivity where records are replaced over that where they are added.
        sampled: with which probability a person is in a release; None where nothing is sampled.
        noise: standard deviation that was asked for; None where it follows from epsilon.
        share: of the plan's mu squared; None where settings do not split it.
    """

    sensitivity: float
    coordinates: int
    count: int
    each: int = 1
    exchanged: float = 1.0
    sampled: float | None = None
    noise: float | None = None
    share: float | None = None

    def charge(self, planned: Json) -> tuple[float, float, int]:
        """The three numbers that an event must say, with the noise that was planned."""
        if self.sampled is None:
            return self.sensitivity, planned["noise_stddev"], self.coordinates
        return self.sampled, planned["noise_multiplier"], self.coordinates

    def stddev(self, event: Json) -> float:
        """Standard deviation of the noise on each coordinate, by an event of this kind."""
        return event["noise_stddev"] if self.sampled is None else event["noise_multiplier"] * self.sensitivity


Kinds = dict[str, Kind]


def _merf(settings: Json, config: Json, group: int) -> Kinds:
    """One sum of joint features."""
    features = settings["num_features"]
    length = group * _units(features)
    return {"mean embedding": Kind(length, features * len(config["classes"]), 1, exchanged=2.0)}


def _moments(settings: Json, config: Json, group: int) -> Kinds:
    """A class's sum of images' cosines and a constant, then of products of low cosines and sixty energies."""
    channels, height, width = config["image_shape"]
    low = settings["low_frequencies"]
    low = max(1, math.isqrt(200 // channels)) if low is None else low
    low = channels * min(low, height, width) ** 2
    dims = {
        "class means": channels * height * width + 1,
        "class moments": low * (low + 1) // 2 + 60,
    }
    classes, of_means = len(config["classes"]), settings["mean_share"]
    shares = {"class means": of_means, "class moments": 1 - of_means}
    return {
        what: Kind(group * _units(dim), dim * classes, 1, exchanged=2.0, share=shares[what])
        for what, dim in dims.items()
    }


def _judged(settings: Json, config: Json, group: int) -> Kinds:
    """The two of moments with a part of the budget; then steps, each a sum of errors x coordinates and a constant."""
    share, steps = settings["judge_share"], settings["num_steps"] - 2
    classes, inputs = len(config["classes"]), settings["judge_size"] + 1
    law = _moments(settings, config, group)
    found = {what: replace(kind, share=(kind.share or 0.0) * (1 - share)) for what, kind in law.items()}
    length = group * max(16, _step_units(classes)) * max(32, _step_units(inputs))
    return found | {
        "judge gradient": Kind(float(length), classes * inputs, steps, exchanged=2.0, share=share)
    }


def _step_units(dim: int) -> int:
    """Length of one of the two vectors of an outer product: a power of two near 1.4 sqrt(dim)."""
    return 2 ** math.ceil(math.log2(1.4 * math.sqrt(dim)))


def _pate_gan(settings: Json, config: Json, group: int) -> Kinds:
    """A count of yes an image, which a teacher moves by one."""
    batch, each = settings["batch_size"], settings["student_steps"]
    votes = settings["num_steps"] * each
    return {"votes": Kind(group * math.sqrt(batch), batch, votes, each, noise=settings["noise_stddev"])}


def _g_pate(settings: Json, config: Json, group: int) -> Kinds:
    """A fullest count a question, and a histogram a question."""
    asked, steps = settings["batch_size"] * settings["num_projected"], settings["num_steps"]
    noise = settings["noise_stddev"]
    of_checks = noise and min(max(settings["threshold_noise"] * noise, LEAST_NOISE), _MOST_NOISE)
    return {
        "checks": Kind(group * math.sqrt(asked), asked, steps, noise=of_checks),
        "answers": Kind(group * math.sqrt(2 * asked), asked * settings["num_bins"], steps, noise=noise),
    }


def _dp_gan(settings: Json, config: Json, group: int) -> Kinds:
    """A sum of gradients of a critic's step, over a lot that each record is in with a public probability.

    The critic: 5x5 convolutions of the image and a plane a class, each halving the map, at least two and until it is
    8 wide or less or of odd width, channels doubling; then one number from the last map.
    """
    channels, side, _ = config["image_shape"]
    width, dim, halved = channels + len(config["classes"]), 0, 0
    while halved < 2 or (side > 8 and side % 2 == 0):
        wider = settings["critic_channels"] * 2**halved
        dim += (25 * width + 1) * wider
        width, side, halved = wider, side // 2, halved + 1
    dim += width * side**2 + 1
    each, rate = settings["critic_steps"], settings["batch_size"] / config["num_records"]
    steps, of_group = settings["num_steps"] * each, _of_group(rate, group)
    return {"critic gradient": Kind(group * _units(dim), dim, steps, each, sampled=of_group)}


def _dp_sgd(settings: Json, config: Json, group: int) -> Kinds:
    """A sum of gradients a step, over a lot that each record is in with a public probability.

    The network: one dense layer, or an 8x8 convolution to 16 and a 4x4 convolution to 32, each of stride 2 and before
    a pool that takes one row and column off, then 32 units and the classes.
    """
    (channels, *sides), classes = config["image_shape"], len(config["classes"])
    dim = (channels * math.prod(sides) + 1) * classes
    if settings["model"] != "linear":
        left = [
            (side // 2 - 1 - 4) // 2 for side in sides
        ]  # floor(side / 2) - 1, then floor((that - 4) / 2) + 1 - 1
        dim = (64 * channels + 1) * 16 + (16 * 16 + 1) * 32
        dim += (32 * math.prod(left) + 1) * 32 + (32 + 1) * classes
    records, batch, steps = config["num_records"], settings["batch_size"], settings["num_steps"]
    if steps is None:
        steps = math.ceil((settings["epochs"] or 10) * records / batch)
    if (settings["training"] in UNNOISED) is not (config["config"]["privacy"]["noise"] == "none"):
        raise ValueError(f"training {settings['training']!r:.40} with another noise than it has")
    return {"gradient": Kind(group * _units(dim), dim, steps, sampled=_of_group(batch / records, group))}


def _of_group(rate: float, group: int) -> float:
    """The chance that at least one record of a group is in a lot."""
    return 1.0 if rate == 1 else -math.expm1(group * math.log1p(-rate))


def _gs_wgan(settings: Json, config: Json, group: int) -> Kinds:
    """A round: an image's gradient an image of a batch, of every critic; a person's records change that many critics.

    As published it has no account, so nothing is planned and nothing charged.
    """
    if config["config"]["privacy"]["as_published"]:
        return {}
    batch, dim = settings["batch_size"], math.prod(config["image_shape"])
    moved, noise = 2 * _units(dim) * math.sqrt(batch * group), settings["noise_multiplier"]
    coordinates, rounds = settings["num_critics"] * batch * dim, settings["num_steps"]
    return {"critics' gradients": Kind(moved, coordinates, rounds, noise=noise and noise * _units(dim))}


def _units(dim: int) -> float:
    """Length of a vector on the grid of whole numbers: a power of two near 4 sqrt(dim)."""
    return float(max(512, 2 ** math.ceil(math.log2(4 * math.sqrt(dim)))))


KINDS: dict[str, Callable[[Json, Json, int], Kinds]] = {
    "dc-gan": lambda settings, config, group: {},
    "dp-merf": _merf,
    "moments": _moments,
    "judged": _judged,
    "pate-gan": _pate_gan,
    "g-pate": _g_pate,
    "dp-gan": _dp_gan,
    "gs-wgan": _gs_wgan,
    "dp-sgd": _dp_sgd,
}
UNNOISED = ("topk-sgd", "clipped-sgd")
"""Trainings of DP-SGD's kind that add no noise."""
PUBLISHED = ("gs-wgan",)
"""Methods that have a published form without a guarantee."""
