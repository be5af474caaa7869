"""A second model, never released, trained with canaries of fair coins: what would its release have betrayed?

One canary stands ready for each teacher; a coin decides whether it takes its slot or the slot stays empty. The
attacker knows the canaries and what a release shows (settings, public random streams, released directions),
and guesses the coins. What comes of it was measured on people's data, so it is not for publication.

Source: Steinke, Nasr and Jagielski 2023, "Privacy auditing with one (1) training run".
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from datalens.audit.canary_bound import canary_epsilon
from datalens.audit.findings import NOT_A_PROOF, Finding
from datalens.compression.topk_sign import keep_largest
from datalens.data.images import LabelledImages
from datalens.errors import DataError
from datalens.privacy.ledger import Ledger
from datalens.randomness import Streams
from datalens.student.update import Student
from datalens.teachers.partition import Partition
from datalens.training.algorithm import Parts
from datalens.training.directions import DirectionRecord
from datalens.training.facts import PublicFacts
from datalens.training.opening import OpenRun
from datalens.training.plan import plan_releases
from datalens.training.progress import Progress
from datalens.training.session import Session
from datalens.training.start_file import PublicStart
from datalens.training.terms import ledger_header

GUESSED = (0.05, 0.2, 1.0)
"""Fractions of the canaries guessed about, fixed beforehand; the error rate is divided among them."""
RATE = 0.05
"""Chance that the reported bound exceeds the truth."""
ALARM_RATE = 1e-3
"""The same for the bound that raises the alarm."""


SINGLE = "a canary is a single record: its bound holds for a whole group too, which may do more"
"""Of a run that protects all records of a group: one record is a group as well, or a part of what one may change."""


@dataclass(frozen=True, eq=False)
class Canaries:
    """Images nobody would draw, one for each teacher.

    Attributes:
        images: uint8 [T, C, H, W], every pixel black or white by a fair coin.
        labels: int64 [T].
        included: bool [T]: the coins.
    """

    images: np.ndarray
    labels: np.ndarray
    included: np.ndarray

    @classmethod
    def draw(cls, count: int, image_shape: tuple[int, int, int], num_classes: int) -> Canaries:
        """Fresh canaries and coins from the operating system."""
        rng = np.random.default_rng(secrets.randbits(128))
        images = rng.integers(0, 2, (count, *image_shape), dtype=np.uint8) * np.uint8(255)
        return cls(images, rng.integers(0, num_classes, count), rng.integers(0, 2, count).astype(bool))


@dataclass(frozen=True)
class Guesses:
    """How many guesses were made and right, for one fraction guessed about."""

    guesses: int
    correct: int


def audit_twin(
    facts: PublicFacts,
    data: LabelledImages,
    *,
    start: PublicStart | None = None,
    tell: Callable[[Progress], None] | None = None,
    alter: Callable[[Parts], Parts] = lambda parts: parts,
) -> Finding:
    """Train a twin of the run on these data and canaries, in memory alone, and attack it.

    Args:
        facts: of the run.
        data: records to stand beside the canaries, the run's own or others of the kind.
        start: the public weights that the run began with, if it did; the twin begins with them too.
        tell: hears of every step.
        alter: breaks the product on purpose (for tests of the audit).

    Raises:
        DataError: data of another size of image or number of classes.
    """
    check_twin_data(facts, data)
    canaries = Canaries.draw(facts.config.voting.num_teachers, facts.image_shape, len(facts.classes))
    session = _session(facts, data, canaries, start)
    session.parts = alter(session.parts)
    try:
        session.run(tell=tell)
        claimed = session.budget.authorised_epsilon()
        scores = score_canaries(session.facts, session.records, canaries, start)
    finally:
        session.close()
    found = finding_of(guess(scores, canaries.included), len(scores), claimed, facts.config.privacy.delta)
    more_than_one = facts.of_groups or facts.config.privacy.group_size > 1
    return replace(found, text=f"{found.text}; {SINGLE}") if more_than_one else found


def score_canaries(
    facts: PublicFacts,
    records: Sequence[DirectionRecord],
    canaries: Canaries,
    start: PublicStart | None = None,
) -> np.ndarray:
    """How much each canary's own wish shows in what was released; float64 [T]. Looks at nothing private.

    The attacker trains the student again from the released directions, which gives every fake that the
    teachers saw. A canary's wish for a fake of its class is the sign of its ``top_k`` largest differences; the
    score sums its products with the released direction, less the mean over the canaries of the class.
    """
    weights = None if start is None else start.generator
    student = Student(facts.student_plan, facts.streams, start=weights)
    wanted_TD = torch.from_numpy(canaries.images).flatten(1).float().div_(255)
    labels_T = torch.from_numpy(canaries.labels)
    scores_T = torch.zeros(len(labels_T), dtype=torch.float64)
    for record in records:
        proposal = student.propose(record.step)
        direction_BD = record.direction_BD.float()
        for fake_D, label, direction_D in zip(
            proposal.images_BCHW.flatten(1), proposal.labels_B.tolist(), direction_BD, strict=True
        ):
            own = (labels_T == label).nonzero().flatten()
            if len(own) < 2:
                continue
            move_TD = wanted_TD[own] - fake_D
            kept_TD = keep_largest(move_TD.abs(), facts.config.voting.top_k)
            agreement_T = (move_TD.sign() * kept_TD) @ direction_D
            scores_T[own] += (agreement_T - agreement_T.mean()).double()
        student.learn(record.direction_BD)
    return scores_T.numpy()


def guess(scores: np.ndarray, included: np.ndarray) -> list[Guesses]:
    """Say "in" of the highest scores and "out" of as many of the lowest, for each fraction."""
    order = np.argsort(scores, kind="stable")
    found = []
    for fraction in GUESSED:
        each = max(1, round(fraction * len(scores) / 2))
        each = min(each, len(scores) // 2)
        correct = int(included[order[-each:]].sum() + (~included[order[:each]]).sum())
        found.append(Guesses(2 * each, correct))
    return found


def finding_of(made: Sequence[Guesses], num_canaries: int, claimed: float, delta: float) -> Finding:
    """The bound, beside the claim and the largest bound that so many guesses could have shown."""

    def bound(one: Guesses, correct: int, rate: float) -> float:
        return canary_epsilon(correct, one.guesses, num_canaries, delta, rate / len(made))

    best = max(made, key=lambda one: (bound(one, one.correct, RATE), one.guesses))
    shown = bound(best, best.correct, RATE)
    largest = max(bound(one, one.guesses, RATE) for one in made)
    alarm = max(bound(one, one.correct, ALARM_RATE) for one in made) > claimed
    text = (
        f"{num_canaries} canaries, {best.guesses} guesses, {best.correct} right: epsilon >= {shown:.3f} of "
        f"{claimed:.3f} claimed; this audit could have shown {largest:.2f} at most ({NOT_A_PROOF})"
    )
    numbers = {
        "canaries": num_canaries,
        "guesses": best.guesses,
        "right": best.correct,
        "epsilon": shown,
        "confidence": 1 - RATE,
        "claimed": claimed,
        "largest": largest,
        "all_guesses": [[one.guesses, one.correct] for one in made],
    }
    return Finding("twin", not alarm, text, numbers, ALARM_RATE, private=True)


def _session(
    facts: PublicFacts, data: LabelledImages, canaries: Canaries, start: PublicStart | None
) -> Session:
    """The run again, with fresh secrets: canaries in the first slot of their teachers, records in the others.

    A canary is a group of its own, which one teacher has under either kind of slot map.
    """
    config = facts.config
    plan = plan_releases(config, facts.dim)
    num_teachers = config.voting.num_teachers
    shard_size = facts.num_records // num_teachers
    if config.voting.shard_size is not None and not facts.of_groups:
        shard_size = config.voting.shard_size
    slots_TS = np.arange(num_teachers * shard_size, dtype=np.int64).reshape(num_teachers, shard_size)
    rng = np.random.default_rng(secrets.randbits(128))
    free = rng.permutation(slots_TS[:, 1:].ravel())[: data.num_records]
    used = rng.permutation(data.num_records)[: len(free)]
    chosen = canaries.included
    both = replace(
        data,
        images=np.concatenate([canaries.images[chosen], data.images[used]]),
        labels=np.concatenate([canaries.labels[chosen], data.labels[used]]),
        group_ids=None,
    )
    partition = Partition(
        np.concatenate([slots_TS[chosen, 0], free]), facts.num_records, num_teachers, shard_size, True
    )
    twin = replace(facts, public_root=Streams.from_entropy().root, of_groups=False)
    ledger = Ledger.in_memory(ledger_header(twin, plan, partition, secrets.token_hex(16)))
    return Session(OpenRun(twin, partition, Streams.from_entropy(), ledger, start=start), both)


def check_twin_data(facts: PublicFacts, data: LabelledImages) -> None:
    """Refuse data that a twin of the run cannot be trained on.

    Raises:
        DataError: says what does not fit.
    """
    for what, theirs, ours in (
        ("images of size", data.image_shape, facts.image_shape),
        ("numbers of classes", data.num_classes, len(facts.classes)),
    ):
        if theirs != ours:
            raise DataError(
                f"{data.name}: {what} {theirs}, the run's {ours}; give data as the run was trained on"
            )
    if facts.config.voting.num_teachers < 2:
        raise DataError("the twin needs at least 2 teachers, one canary each; audit without --twin")
