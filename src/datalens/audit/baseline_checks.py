"""The checks of a baseline's releases, one finding or more for each kind that it plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import binomtest

from datalens.audit.adversaries import ADVERSARIES
from datalens.audit.attack import (
    CHUNK,
    DELTA,
    SCALES,
    ScaledTrial,
    attack_finding,
    default_trials,
    judge,
)
from datalens.audit.baseline_doors import Door
from datalens.audit.baseline_subject import BaselineSubject, charged, events
from datalens.audit.findings import Finding
from datalens.audit.noise_law import FEWEST_RELEASES, RATE, check_noise, default_draws
from datalens.audit.sum_doors import SILENT, SampledDoor
from datalens.noise import OsEntropy
from datalens.privacy.events import PoissonGaussianEvent

SMALL_RELEASE = 4
"""Questions or images of a scaled release."""
OWN_PART = 0.25
"""Of the trials, for the run's own noise."""
MOST_RELEASES = 4000
"""Whose noise is looked at, where a release is so small that more would take long."""
_COINS = 1_000_000


def audit_releases(subject: BaselineSubject) -> Finding:
    """Whether there is a door for every kind of release that the plan has, and no other."""
    planned, seen = sorted(events(subject.method)), sorted(door.what for door in subject.doors)
    text = f"the plan releases {', '.join(planned)}; looked at: {', '.join(seen)}"
    return Finding("releases", planned == seen, text, {"planned": planned, "seen": seen})


def audit_sensitivity(subject: BaselineSubject) -> list[Finding]:
    """Whether each kind of release is charged for the farthest that one person can move its whole numbers.

    Through the learner's own step (:mod:`datalens.audit.adversaries`), at the run's own sizes of a release.
    """
    moved = dict.fromkeys((door.what for door in subject.doors), 0.0)
    for before, after in ADVERSARIES[subject.method.name](subject):
        for door in subject.doors:
            for one, other in zip(before, after, strict=True):
                distance = float((door.summed(one) - door.summed(other)).norm())
                moved[door.what] = max(moved[door.what], distance)
    planned = events(subject.method)
    findings = []
    for door in subject.doors:
        claimed, most = charged(planned[door.what], door.stddev), moved[door.what]
        share = most / claimed
        text = (
            f"{door.what}: one person moves the sum by {most:.6g}, {share:.1%} of the {claimed:.6g} that is charged "
            + ("for" if share > 0.999 else "for: the bound was not reached")
        )
        kept = 0 < most <= claimed * (1 + 1e-12)
        found = {"release": door.what, "claimed": claimed, "moved": most, "share": share}
        findings.append(Finding("sensitivity", kept, text, found))
    return findings


def audit_sampling(subject: BaselineSubject) -> list[Finding]:
    """Whether a lot takes records no likelier than is charged, where a method samples."""
    findings = []
    for door in subject.doors:
        event = events(subject.method)[door.what]
        if not isinstance(door, SampledDoor) or not isinstance(event, PoissonGaussianEvent):
            continue
        mechanism = door.make(SILENT)
        taken = len(mechanism.lot(_COINS, OsEntropy()))
        rate = mechanism.sampling_probability
        group = subject.privacy.group_size
        pays = event.sampling_probability >= 1 - (1 - rate) ** group - 1e-12
        chance = float(binomtest(taken, _COINS, rate).pvalue)
        text = (
            f"{door.what}: a lot took {taken} of {_COINS} slots, {rate:.6g} each expected (p {chance:.2g}); "
            f"{event.sampling_probability:.6g} a person charged"
        )
        found = {"release": door.what, "taken": taken, "coins": _COINS, "p": chance}
        findings.append(Finding("sampling", pays and chance >= RATE, text, found, RATE))
    return findings


def audit_noise(subject: BaselineSubject, draws: int | None = None) -> list[Finding]:
    """Standard deviation, shape, independence and freshness of the noise of each kind of release."""
    kind = subject.privacy.noise
    findings = []
    for door in subject.doors:
        found = []
        for number in range(MOST_RELEASES):
            found.append(door.drawn(subject.noise_for(door.stream, number)))
            enough = len(found) * len(found[0]) >= (draws or default_draws(kind))
            if len(found) >= FEWEST_RELEASES and enough:
                break
        for finding in check_noise(np.stack(found), door.stddev, kind):
            findings.append(_about(door, finding))
    return findings


def audit_mechanism(subject: BaselineSubject, trials: int | None = None) -> list[Finding]:
    """Attack each kind of release: scaled to mu 1, 2 and 3, and at its own size with the run's own noise."""
    kind = subject.privacy.noise
    trials = trials or default_trials(kind)
    delta = subject.privacy.delta
    findings = []
    for door in subject.doors:
        measured = []
        claimed = charged(
            door.event(SMALL_RELEASE, door.stddev, subject.noise_for(door.stream, 0)), door.stddev
        )
        for mu, part in SCALES.items():
            tries = max(20, round(part * trials))
            measured.append(_attack(subject, door, SMALL_RELEASE, claimed / mu, tries, delta))
        tries = max(20, round(OWN_PART * trials * SMALL_RELEASE / max(SMALL_RELEASE, door.questions)))
        own = _attack(subject, door, door.questions, door.stddev, tries, delta)
        found = attack_finding([*measured, own], measured[1], trials, delta)
        text = (
            f"{found.text}; with the run's own noise mu >= {own.mu:.3g} of {own.claimed_mu:.3g}, epsilon >= "
            f"{own.epsilon:.3g} of {own.claimed_epsilon:.3g} at delta {DELTA:g} ({tries} trials)"
        )
        findings.append(_about(door, replace(found, text=text)))
    return findings


def _attack(
    subject: BaselineSubject, door: Door, questions: int, stddev: float, trials: int, run_delta: float
) -> ScaledTrial:
    """Trials of both neighbours with noise of so much, and the best linear statistic of each."""
    ends = [door.tried(side, questions, stddev, SILENT, 1)[0] for side in (False, True)]
    if isinstance(door, SampledDoor):  # a silent trial may miss the lot; one coordinate has one direction
        ends = [np.zeros(1), np.ones(1)]
    weight = ends[1] - ends[0]
    chunk = max(1, SMALL_RELEASE * CHUNK // max(SMALL_RELEASE, questions))
    scores = []
    for side in (True, False):
        found = []
        for number, start in enumerate(range(0, trials, chunk)):
            tries = min(chunk, trials - start)
            source = subject.noise_for(door.stream, 2 * number + side)
            found.append(door.tried(side, questions, stddev, source, tries) @ weight)
        scores.append(np.concatenate(found))
    event = door.event(questions, stddev, subject.noise_for(door.stream, 0))
    return judge(scores, event, run_delta)


def _about(door: Door, finding: Finding) -> Finding:
    """The same, with the release that it is about."""
    found = {"release": door.what, **finding.numbers}
    return replace(finding, text=f"{door.what}: {finding.text}", numbers=found)
