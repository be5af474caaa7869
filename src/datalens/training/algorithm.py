"""Algorithm 1 of the paper: training the student generator, to be read beside it.

Source: Wang et al. 2021, Algorithm 1; ``docs/algorithm.md`` lists every deviation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from datalens.mechanisms.vote_sum import VoteSum
from datalens.noise import NoiseSource
from datalens.privacy.budget import Budget
from datalens.student.update import Student
from datalens.teachers.ensemble import Diagnostics, TeacherEnsemble
from datalens.teachers.family import Fakes
from datalens.training.config import Config
from datalens.training.directions import DirectionRecord


@dataclass(frozen=True)
class Parts:
    """Everything that takes part in a generator step.

    Attributes:
        config: the run's settings.
        student: the generator in training. Public.
        teachers: the discriminators, each with its shard. Private.
        mechanism: TopAgg or another, where private becomes public.
        budget: asked before every release.
        noise_for_step: the noise source of a step; never the same draws for two steps.
        record: puts a released direction on disk. Public.
        diagnose: takes what only the owner may see. Private.
    """

    config: Config
    student: Student
    teachers: TeacherEnsemble
    mechanism: VoteSum
    budget: Budget
    noise_for_step: Callable[[int], NoiseSource]
    record: Callable[[DirectionRecord], None]
    diagnose: Callable[[Diagnostics], None]


def generator_step(parts: Parts, step: int) -> None:
    """One generator step (lines 3 to 18).

    Raises:
        BudgetError: the release does not fit; nothing was released and the student is as it was.
    """
    proposal = parts.student.propose(step)  # line 4
    tally_BD = _teachers_vote(parts, Fakes(proposal.images_BCHW, proposal.labels_B), step)  # lines 5 to 13
    mechanism = replace(parts.mechanism, noise=parts.noise_for_step(step))
    release = mechanism.release(tally_BD, parts.budget, {"step": step})  # line 14: private becomes public
    parts.record(DirectionRecord(step, release.value, release.line_hash))
    parts.student.learn(release.value)  # lines 16 and 18


def replayed_step(parts: Parts, record: DirectionRecord) -> None:
    """A step that was released before a crash: the teachers train again, the student takes the record.

    Nothing is released: the votes are dropped, and the direction on disk is used as it stands.
    """
    proposal = parts.student.propose(record.step)
    _teachers_vote(parts, Fakes(proposal.images_BCHW, proposal.labels_B), record.step)
    parts.student.learn(record.direction_BD)


def _teachers_vote(parts: Parts, fakes: Fakes, step: int) -> Tensor:
    """``tally_BD``: every teacher trains on its shard and the fakes, then votes. Private."""
    teachers, voting = parts.config.teachers, parts.config.voting
    result = parts.teachers.tally(
        fakes,
        step,
        num_teacher_steps=teachers.first_steps if step == 0 else teachers.steps,
        top_k=voting.top_k,
        clip_bound=voting.clip_bound,
        images_per_teacher=voting.images_per_teacher,
    )
    parts.diagnose(result.diagnostics)
    return result.tally_BD
