"""The worst case against the mechanism: one teacher turns every vote it has, and an attacker looks at the sum.

Votes come from training's own ensemble and compression, noise from the function that training releases with,
before the threshold hides anything. The noise is scaled down until one release shows something (mu of 1 to 3):
what is checked is sensitivity against noise, which scales along.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from datalens.audit import bounds
from datalens.audit.findings import NOT_A_PROOF, Finding, failed
from datalens.audit.subject import Subject, mechanism_at, puppet_tally
from datalens.compression.count_sketch import count_sketch
from datalens.mechanisms.d2p_fed import D2PFed
from datalens.mechanisms.fetchsgd import SketchedSum
from datalens.mechanisms.vote_sum import VoteSum
from datalens.privacy.accountant import Accountant
from datalens.privacy.events import NoiseKind
from datalens.training.algorithm import Parts

SCALES = {1.0: 0.25, 2.0: 1.0, 3.0: 0.25}
"""From the mu of one release to its part of the trials: epsilon at mu 2 is the hardest to show."""
DELTA = 1e-2
RATE = 1e-3
"""Chance that one reported bound exceeds the truth."""
ALARM_RATE = 1e-6
"""The same for the bounds that raise the alarm: two at each scale."""
TOP_K, DIM, IMAGES = 2, 3, 2
ROWS, BUCKETS = 1, 2
"""Of the scaled releases: more coordinates than votes, more than one image, and cheap to repeat."""
DEFAULT_TRIALS = 4_000_000
SLOW_TRIALS = 20_000
"""For the discrete Gaussian, whose draws take a hundred times as long."""
_CHUNK = 100_000
_CHOOSING = 10
"""One trial in so many chooses the attacker's set; the others count."""
_GRID = np.linspace(0, 1, 101)
_TAILS = (1e-4, 1e-3, 0.01, 0.02, 0.98, 0.99, 0.999, 0.9999)


@dataclass(frozen=True)
class ScaledTrial:
    """What was measured at one scale.

    Attributes:
        claimed_mu: sensitivity over noise, as the mechanism's own event has it.
        mu: lower bound.
        claimed_epsilon: at delta 1e-2.
        epsilon: lower bound there, assuming nothing.
        epsilon_at_run: lower bound at the run's own delta.
        largest_at_run: the largest that so many trials could have shown there.
        alarm: a bound that is wrong only once in a million such audits exceeds its claim.
    """

    claimed_mu: float
    mu: float
    claimed_epsilon: float
    epsilon: float
    epsilon_at_run: float
    largest_at_run: float
    alarm: bool


def audit_sensitivity(subject: Subject) -> Finding:
    """Whether the event charges for the farthest that one teacher can move the votes, at the run's own sizes.

    Exact, for both notions: a teacher whose votes all turn, and a teacher that falls silent, who may move them
    half as far. With groups, as many teachers as one person can own.
    """
    parts = subject.parts()
    voting = parts.config.voting
    claimed = parts.mechanism.event(voting.batch_size, subject.dim).sensitivity
    turned = silent = 0.0
    for before, after in _hard_gradients(voting.batch_size, subject.dim):
        turned = max(turned, _distance(parts, before, after))
        silent = max(silent, _distance(parts, before, torch.full_like(before, torch.nan)))
    numbers = {"claimed": claimed, "turned": turned, "silent": silent}
    text = (
        f"{_who(parts)} the votes by {turned:.6g} (turned) or {silent:.6g} (silent); "
        f"{claimed:.6g} is charged for"
    )
    passed = max(turned, 2 * silent) <= claimed * (1 + 1e-12)
    return Finding("sensitivity", passed, text, numbers)


def audit_mechanism(subject: Subject, trials: int | None = None) -> Finding:
    """Attack scaled releases and compare lower bounds with the claim."""
    parts = subject.parts()
    kind = parts.mechanism.noise.kind
    if kind is NoiseKind.NONE:
        return failed("mechanism", "the run adds no noise: it has no guarantee to audit")
    if parts.config.privacy.as_published:
        return failed("mechanism", "as published this mechanism is not sound: it has no guarantee to audit")
    trials = trials or (SLOW_TRIALS if kind is NoiseKind.DISCRETE else DEFAULT_TRIALS)
    delta = parts.config.privacy.delta
    measured = [_attack(parts, mu, max(20, round(part * trials)), delta) for mu, part in SCALES.items()]
    broken = [one for one in measured if one.alarm]
    worst = max(measured, key=lambda one: one.mu / one.claimed_mu)
    shown = broken[0] if broken else measured[1]
    text = (
        f"mu >= {shown.mu:.3f} of {shown.claimed_mu:.3f} claimed, epsilon >= {shown.epsilon:.3f} of "
        f"{shown.claimed_epsilon:.3f} at delta {DELTA:g} ({trials} trials a side; {NOT_A_PROOF})"
    )
    numbers = {
        "trials_a_side": trials,
        "confidence_of_each_bound": 1 - RATE,
        "largest_mu_ratio": worst.mu / worst.claimed_mu,
        "scales": [one.__dict__ | {"run_delta": delta, "delta": DELTA} for one in measured],
    }
    return Finding("mechanism", not broken, text, numbers, 2 * ALARM_RATE * len(SCALES))


def _attack(parts: Parts, mu: float, trials: int, run_delta: float) -> ScaledTrial:
    """Trials of both neighbours at one scale; a tenth chooses the attacker's set, the rest counts."""
    stddev = _scaled(parts, 0, 1.0).event(IMAGES, DIM).sensitivity / mu
    event = _scaled(parts, 0, stddev).event(IMAGES, DIM)
    gradient = _loudest(parts)
    turned = gradient.clone()
    turned[: parts.config.privacy.group_size] *= -1
    one_BD, two_BD = (puppet_tally(parts, grad_TBD, TOP_K) for grad_TBD in (gradient, turned))
    scaled = _scaled(parts, 0, stddev)
    weight = (scaled.summed(one_BD) - scaled.summed(two_BD)).double()
    scores = [_scores(parts, tally_BD, weight, stddev, trials) for tally_BD in (one_BD, two_BD)]
    chosen = [np.sort(part[::_CHOOSING]) for part in scores]
    counted = [np.sort(np.delete(part, slice(None, None, _CHOOSING))) for part in scores]

    def mu_at(rate: float) -> float:
        return _bound(chosen, counted, partial(bounds.mu_bound, rate=rate))

    def epsilon_at(delta: float, rate: float) -> float:
        measure = partial(bounds.epsilon_bound, delta=delta, rate=rate)
        return _bound(chosen, counted, measure)

    claimed_epsilon = Accountant().epsilon(event, DELTA)
    return ScaledTrial(
        claimed_mu=event.mu,
        mu=mu_at(RATE),
        claimed_epsilon=claimed_epsilon,
        epsilon=epsilon_at(DELTA, RATE),
        epsilon_at_run=epsilon_at(run_delta, RATE),
        largest_at_run=bounds.largest_epsilon(len(counted[0]), run_delta, RATE),
        alarm=mu_at(ALARM_RATE) > event.mu or epsilon_at(DELTA, ALARM_RATE) > claimed_epsilon,
    )


def _scaled(parts: Parts, step: int, stddev: float) -> VoteSum:
    """The mechanism at the small size of the attack."""
    mechanism = parts.mechanism
    size: dict[str, int] = {"dim": DIM} if isinstance(mechanism, D2PFed) else {"top_k": TOP_K}
    if isinstance(mechanism, SketchedSum):
        size |= {"rows": ROWS, "buckets": BUCKETS}
    return mechanism_at(parts, step, noise_stddev=stddev, **size)


def _loudest(parts: Parts) -> Tensor:
    """Gradients that move the small sum as far as can be: all ties, where a careless top-k keeps too many."""
    gradient = torch.ones(parts.teachers.num_teachers, IMAGES, DIM)
    if isinstance(parts.mechanism, D2PFed):
        gradient[..., 1:] = 0  # the rotation takes one coordinate alone to the ends of all
    if isinstance(parts.mechanism, SketchedSum):
        gradient *= torch.from_numpy(
            count_sketch(DIM, ROWS, BUCKETS).sign_JD[0]
        )  # nothing cancels in a bucket
    return gradient


def _scores(parts: Parts, tally_BD: Tensor, weight: Tensor, stddev: float, trials: int) -> np.ndarray:
    """The best linear statistic of each trial: the noisy tally along the difference of the neighbours."""
    found = []
    for number, start in enumerate(range(0, trials, _CHUNK)):
        count = min(_CHUNK, trials - start)
        mechanism = _scaled(parts, number, stddev)
        noisy = mechanism.noisy_tally(tally_BD.repeat(count, 1)).view(count, *weight.shape)
        found.append((noisy.double() * weight).flatten(1).sum(1).numpy())
    return np.concatenate(found)


def _bound(
    chosen: list[np.ndarray], counted: list[np.ndarray], measure: Callable[[int, int, int], float]
) -> float:
    """The bound at the cut and side that look best on the chosen trials, counted on the others; both sorted."""
    tails = [np.quantile(part, _TAILS) for part in chosen]
    cuts = np.unique(np.concatenate([np.quantile(np.concatenate(chosen), _GRID), *tails]))
    options = [(cut, above) for cut in cuts for above in (True, False)]
    best = max(options, key=lambda option: _measure(chosen, *option, measure))
    return _measure(counted, *best, measure)


def _measure(
    scores: list[np.ndarray], cut: float, above: bool, measure: Callable[[int, int, int], float]
) -> float:
    """The bound for the set of scores above (or below) the cut, which points to the first neighbour (second)."""
    one, two = (int(np.searchsorted(part, cut, "right" if above else "left")) for part in scores)
    total = len(scores[0])
    return measure(total - one, total - two, total) if above else measure(two, one, total)


def _distance(parts: Parts, before_BD: Tensor, after_BD: Tensor) -> float:
    """How far the tally moves in L2 norm when one person's teachers change; the others keep their gradients."""
    rest = torch.linspace(-1, 1, before_BD.numel()).view_as(before_BD)
    group = parts.config.privacy.group_size
    tallies = []
    for own in (before_BD, after_BD):
        grad_TBD = torch.stack([*[own] * group, *[rest] * (parts.teachers.num_teachers - group)])
        tallies.append(puppet_tally(parts, grad_TBD, parts.config.voting.top_k))
    before, after = (parts.mechanism.summed(tally_BD) for tally_BD in tallies)
    return float((before - after).double().norm())


def _who(parts: Parts) -> str:
    group = parts.config.privacy.group_size
    return "one teacher moves" if group == 1 else f"{group} teachers move"


def _hard_gradients(batch_size: int, dim: int) -> list[tuple[Tensor, Tensor]]:
    """Pairs (before, after) of one teacher's gradients that have broken compressions before, [B, D] each."""
    rng = torch.Generator().manual_seed(20211115)
    noise = torch.randn(batch_size, dim, generator=rng)
    ties = torch.ones(batch_size, dim)
    some_ties = noise.sign() * (1 + (torch.arange(dim) % 3 == 0))
    tiny = ties * 1e-42
    huge = noise * 1e37
    spoilt = noise.clone()
    spoilt[:, 0] = torch.nan
    endless = noise.clone()
    endless[:, -1] = torch.inf
    pairs = [(g, -g) for g in (ties, noise, some_ties, tiny, huge)]
    return [*pairs, (ties, spoilt), (ties, endless), (noise, ties), (noise, noise.flip(1))]
