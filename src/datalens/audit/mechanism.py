"""The worst case against the mechanism: one teacher turns every vote it has, and an attacker looks at the sum.

Votes come from training's own ensemble and compression, noise from the function that training releases with,
before the threshold hides anything. The noise is scaled down until one release shows something (mu of 1 to 3):
what is checked is sensitivity against noise, which scales along.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from datalens.audit.attack import CHUNK, SCALES, ScaledTrial, attack_finding, default_trials, judge
from datalens.audit.findings import Finding, failed
from datalens.audit.subject import Subject, mechanism_at, puppet_tally
from datalens.compression.count_sketch import count_sketch
from datalens.mechanisms.d2p_fed import D2PFed
from datalens.mechanisms.fetchsgd import SketchedSum
from datalens.mechanisms.vote_sum import VoteSum
from datalens.privacy.events import NoiseKind
from datalens.training.algorithm import Parts

TOP_K, DIM, IMAGES = 2, 3, 2
ROWS, BUCKETS = 1, 2
"""Of the scaled releases: more coordinates than votes, more than one image, and cheap to repeat."""


def audit_sensitivity(subject: Subject) -> Finding:
    """Whether the event charges for the farthest that one teacher can move the votes, at the run's own sizes.

    Exact, for both notions: a teacher whose votes all turn, and a teacher that falls silent, who may move them
    half as far. With groups, as many teachers as one person can own.
    """
    parts = subject.parts()
    voting = parts.config.voting
    claimed = parts.mechanism.event(voting.batch_size, subject.dim).sensitivity
    turned = silent = 0.0
    for before, after in hard_gradients(voting.batch_size, subject.dim):
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
    trials = trials or default_trials(kind)
    delta = parts.config.privacy.delta
    measured = [_attack(parts, mu, max(20, round(part * trials)), delta) for mu, part in SCALES.items()]
    return attack_finding(measured, measured[1], trials, delta)


def _attack(parts: Parts, mu: float, trials: int, run_delta: float) -> ScaledTrial:
    """Trials of both neighbours at one scale."""
    stddev = _scaled(parts, 0, 1.0).event(IMAGES, DIM).sensitivity / mu
    event = _scaled(parts, 0, stddev).event(IMAGES, DIM)
    gradient = _loudest(parts)
    turned = gradient.clone()
    turned[: parts.config.privacy.group_size] *= -1
    one_BD, two_BD = (puppet_tally(parts, grad_TBD, TOP_K) for grad_TBD in (gradient, turned))
    scaled = _scaled(parts, 0, stddev)
    weight = (scaled.summed(one_BD) - scaled.summed(two_BD)).double()
    scores = [_scores(parts, tally_BD, weight, stddev, trials) for tally_BD in (one_BD, two_BD)]
    return judge(scores, event, run_delta)


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
    for number, start in enumerate(range(0, trials, CHUNK)):
        count = min(CHUNK, trials - start)
        mechanism = _scaled(parts, number, stddev)
        noisy = mechanism.noisy_tally(tally_BD.repeat(count, 1)).view(count, *weight.shape)
        found.append((noisy.double() * weight).flatten(1).sum(1).numpy())
    return np.concatenate(found)


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


def hard_gradients(batch_size: int, dim: int) -> list[tuple[Tensor, Tensor]]:
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
