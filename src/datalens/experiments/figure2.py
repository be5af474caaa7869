"""Figure 2: the data-independent and the data-dependent privacy bound over the epochs.

Independent curves follow from settings alone. The data-dependent one (Theorems 4 and 5, corrected) needs votes
without noise: it may be made from published images only, and is marked as not publishable all the same, since
for anybody's own data it would be. The most favourable case, in which all teachers agree on k coordinates of
every image and vote on no other, reads no data: it shows how low that bound could ever come at these settings.

Ours is the smaller of Theorem 4 and the independent Rényi bound, as Papernot et al. use it, so it can be equal
and never above; the paper's own curve lies above.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from datalens.errors import ConfigError, NotPrivateError
from datalens.privacy.data_dependent import (
    DataDependentCost,
    log_miss_probability,
    log_outcome_chances,
    rdp_bound,
    running_costs,
)
from datalens.privacy.gaussian import epsilon_of, rdp, rdp_classic_epsilon, rdp_epsilon
from datalens.privacy.sensitivity import images_voted, topagg_sensitivity
from datalens.reports.plots import Curve

DEPENDENT = "data-dependent, from votes (not publishable)"
FAVOURABLE = "data-dependent, all teachers unanimous on k coordinates"
NO_VOTES = "no votes given"
_BETTER = 1 - 1e-6
"""A bound below this share of the other one is smaller, and not by rounding."""


@dataclass(frozen=True)
class Figure2Settings:
    """What the bounds depend on besides the votes.

    Attributes:
        name: of the data set.
        num_teachers: N.
        top_k: k.
        noise_stddev: sigma, in votes.
        vote_threshold: beta.
        batch_size: m, images of a step.
        dim: D, coordinates of an image.
        images_per_teacher: images of a step that a teacher votes on; None for all.
        delta: of the guarantee.
        target_epsilon: where training stops by the paper's accounting.
        steps_per_epoch: generator steps that the paper's figure calls an epoch.

    Raises:
        ConfigError: a count below 1.
    """

    name: str
    num_teachers: int
    top_k: int
    noise_stddev: float
    vote_threshold: float
    batch_size: int
    dim: int
    images_per_teacher: int | None = None
    delta: float = 1e-5
    target_epsilon: float = 1.0
    steps_per_epoch: int = 1

    def __post_init__(self) -> None:
        counts = (self.num_teachers, self.top_k, self.batch_size, self.dim, self.steps_per_epoch)
        if min(counts) < 1 or self.top_k > self.dim:
            raise ConfigError(f"{self}: counts must be 1 or more and top_k at most dim; correct it")
        if not self.noise_stddev > 0:
            raise ConfigError(f"noise_stddev is {self.noise_stddev!r}, but must be above 0: raise it")

    @property
    def step_mu(self) -> float:
        """Sensitivity over noise of a whole step."""
        images = images_voted(self.batch_size, self.images_per_teacher)
        return topagg_sensitivity(self.top_k, images) / self.noise_stddev

    @property
    def num_steps(self) -> int:
        """Steps until the paper's accounting reaches the target; at least 1."""
        log_inverse = -math.log(self.delta)
        reach = math.sqrt(2 * log_inverse + 2 * self.target_epsilon) - math.sqrt(2 * log_inverse)
        return max(1, math.floor((reach / self.step_mu) ** 2))


PAPER = {
    settings.name: settings
    for settings in (
        Figure2Settings("mnist", 4000, 200, 5000.0, 0.7, 15, 784),
        Figure2Settings("fashion-mnist", 4000, 200, 5000.0, 0.9, 15, 784),
        Figure2Settings("celeba-gender", 6000, 700, 9000.0, 0.85, 27, 12288),
        Figure2Settings("celeba-hair", 8000, 700, 9000.0, 0.9, 27, 12288),
    )
}
"""The paper's settings at epsilon 1. CelebA's images a step are our reading: see docs/reproduction.md."""


@dataclass(frozen=True)
class Figure2Result:
    """Both bounds over the epochs.

    Attributes:
        settings: what they were computed for.
        curves: epsilon over epochs, labelled by bound.
        not_publishable: labels of the curves that were made from votes.
        beaten: labels of the data-dependent curves that come anywhere below the data-independent bound of the
            same conversion and orders.
        log_miss: (label, smallest log q of a release): log of the chance of another than the likeliest outcome.
        note: what is missing, or empty.
        verdict: what comes out, in one sentence.
    """

    settings: Figure2Settings
    curves: tuple[Curve, ...]
    not_publishable: tuple[str, ...]
    beaten: tuple[str, ...]
    log_miss: tuple[tuple[str, float], ...]
    note: str
    verdict: str


def figure2(
    settings: Figure2Settings,
    tallies: Iterable[np.ndarray] | None = None,
    *,
    images_are_public: bool = False,
) -> Figure2Result:
    """The bounds over the epochs of one data set.

    Args:
        settings: those of the run that the tallies come from, or one of :data:`PAPER`.
        tallies: for each generator step integers [B, D], the votes before noise; see
            :func:`datalens.experiments.gradients.recorded_tallies`. None where there are none.
        images_are_public: the tallies come from published images.

    Returns:
        Curves as far as the tallies go; without any, until the paper's accounting reaches the target.

    Raises:
        NotPrivateError: tallies that are not said to come from published images.
        ConfigError: a tally of another shape than the settings say.

    Source: Wang et al. 2021, Figure 2 and Section 5.3; Theorems 3, 4 and 5.

    >>> result = figure2(PAPER["celeba-hair"])
    >>> result.note, result.beaten
    ('no votes given', ())
    """
    if tallies is not None and not images_are_public:
        raise NotPrivateError(
            "a data-dependent bound says something about the records: make Figure 2 from published images only"
        )
    votes = None if tallies is None else list(tallies)
    num_steps = settings.num_steps if not votes else len(votes)
    epochs = tuple(step / settings.steps_per_epoch for step in range(1, num_steps + 1))
    curves = list(_independent(settings, epochs))
    sources = {FAVOURABLE: [_releases(favourable_tally(settings), settings)] * num_steps}
    if votes:
        sources = {DEPENDENT: [_releases(tally, settings) for tally in votes], **sources}
    beaten, log_miss = [], []
    for label, releases in sources.items():
        costs = _per_step(releases, settings)
        curves.append(Curve(label, epochs, tuple(cost.epsilon for cost in costs)))
        log_miss.append((label, min(log_q for step in releases for _, log_q in step)))
        if any(cost.epsilon < _BETTER * cost.independent_epsilon for cost in costs):
            beaten.append(label)
    return Figure2Result(
        settings=settings,
        curves=tuple(curves),
        not_publishable=(DEPENDENT,) if votes else (),
        beaten=tuple(beaten),
        log_miss=tuple(log_miss),
        note="" if votes else NO_VOTES,
        verdict=_verdict(settings, beaten),
    )


def favourable_tally(settings: Figure2Settings) -> np.ndarray:
    """int64 [B, D]: every teacher votes +1 on the first k coordinates of each image, and on no other.

    With a cap on images, every teacher votes on the first of them.
    """
    tally_BD = np.zeros((settings.batch_size, settings.dim), dtype=np.int64)
    images = images_voted(settings.batch_size, settings.images_per_teacher)
    tally_BD[:images, : settings.top_k] = settings.num_teachers
    return tally_BD


def break_even_noise(settings: Figure2Settings) -> float:
    """The largest sigma at which the most favourable case costs less than the independent bound at all.

    For one image's release, at some Rényi order; found by halving between 1 vote and 100 N. 0 if there is none.
    """
    low, high = 0.0, math.log(100.0 * settings.num_teachers)
    if not _gains(replace(settings, noise_stddev=1.0)):
        return 0.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        if _gains(replace(settings, noise_stddev=math.exp(middle))):
            low = middle
        else:
            high = middle
    return math.exp(low)


def log_hit_of(tally_BD: np.ndarray, settings: Figure2Settings) -> np.ndarray:
    """Log probability of each image's likeliest outcome, float64 [B] (Theorem 5, corrected)."""
    chances = log_outcome_chances(
        tally_BD, settings.num_teachers, settings.vote_threshold, settings.noise_stddev
    )
    return np.minimum(chances.max(axis=0).sum(axis=1), 0.0)


def _gains(settings: Figure2Settings) -> bool:
    alone = replace(settings, batch_size=1, images_per_teacher=None)
    ((mu, log_q),) = _releases(favourable_tally(alone), alone)
    return any(rdp_bound(order, mu, log_q) < _BETTER * rdp(order, mu) for order in (1.5, 2.0, 4.0, 8.0, 32.0))


def _releases(tally_BD: np.ndarray, settings: Figure2Settings) -> list[tuple[float, float]]:
    """(mu, log q) of each image as a release of its own, which favours the data-dependent bound.

    With a cap on images the step is one joint release: only its joint sensitivity is below that of all images.
    """
    if tally_BD.shape != (settings.batch_size, settings.dim):
        raise ConfigError(
            f"a tally of shape {tally_BD.shape} does not fit {settings.batch_size} images of {settings.dim} "
            "coordinates: give the settings of the run that it comes from"
        )
    log_hit_B = log_hit_of(tally_BD, settings)
    if images_voted(settings.batch_size, settings.images_per_teacher) < settings.batch_size:
        return [(settings.step_mu, log_miss_probability(float(log_hit_B.sum())))]
    mu = topagg_sensitivity(settings.top_k, 1) / settings.noise_stddev
    return [(mu, log_miss_probability(float(log_hit))) for log_hit in log_hit_B]


def _per_step(
    releases: list[list[tuple[float, float]]], settings: Figure2Settings
) -> list[DataDependentCost]:
    """What the releases up to each step cost together."""
    costs = running_costs((release for step in releases for release in step), settings.delta)
    next(costs)  # of nothing
    return [list(islice(costs, len(step)))[-1] for step in releases]


def _independent(settings: Figure2Settings, epochs: tuple[float, ...]) -> Iterator[Curve]:
    """The data-independent epsilon after each step, by each accountant."""
    mus = [settings.step_mu * math.sqrt(step) for step in range(1, len(epochs) + 1)]
    delta = settings.delta
    yield Curve("data-independent, exact", epochs, tuple(epsilon_of(delta, mu) for mu in mus))
    yield Curve("data-independent, rdp", epochs, tuple(rdp_epsilon(mu, delta) for mu in mus))
    classic = tuple(rdp_classic_epsilon(mu, delta) for mu in mus)
    yield Curve("data-independent, rdp-classic (the paper's)", epochs, classic)


def _verdict(settings: Figure2Settings, beaten: list[str]) -> str:
    if not beaten:
        return (
            f"{settings.name}: at noise {settings.noise_stddev:g} of {settings.num_teachers} teachers the "
            "data-dependent bound never beats the data-independent one"
        )
    return f"{settings.name}: below the data-independent bound somewhere: {'; '.join(beaten)}"
