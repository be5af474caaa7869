"""Claims of the paper's text, tested: what the clip does to the votes, and how q grows with the dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from datalens.compression.topk_sign import topk_sign
from datalens.data.images import LabelledImages
from datalens.errors import ConfigError
from datalens.experiments.figure2 import PAPER, Figure2Settings, favourable_tally, log_hit_of
from datalens.experiments.gradients import Scene, require_public, teacher_gradients
from datalens.privacy.data_dependent import data_dependent_cost, log_miss_probability
from datalens.privacy.sensitivity import topagg_sensitivity
from datalens.teachers.families import TeacherKind

CLIPS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, math.inf)
KINDS = (TeacherKind.KERNEL, TeacherKind.MATCHING, TeacherKind.PAPER)
DIMENSIONS = (1, 10, 100, 784, 3072, 12288)
_STEPS = 20


@dataclass(frozen=True)
class ClipRow:
    """What one clip does to the votes of one kind of teachers.

    Attributes:
        teachers: kind of teachers.
        clip_bound: c; infinite for no clip.
        saturated: fraction of the kept coordinates with |g| >= c: their votes are certain.
        certainty: mean |g| of a kept coordinate after clip and division by the largest: 1 is a certain sign, 0 a
            fair coin.
        agreement: root mean square over images and coordinates of tally/N, as a run's diagnostics give it.
        agreement_by_chance: the same if every vote were a fair coin.
    """

    teachers: str
    clip_bound: float
    saturated: float
    certainty: float
    agreement: float
    agreement_by_chance: float


def clip_effect(
    images: LabelledImages,
    *,
    kinds: Sequence[TeacherKind] = KINDS,
    clips: Sequence[float] = CLIPS,
    top_k: int | None = None,
    scene: Scene | None = None,
) -> list[ClipRow]:
    """Votes at many clips, on the same gradients with the same coins.

    The paper (section 5.3) finds that a reasonably small c trains better, and lays it to the bias term
    c (d - k) M of Theorem 6. Algorithm 2 divides by the largest coordinate after the clip, so c does not scale the
    votes at all: it decides how many of them are certain.

    Args:
        images: published images.
        kinds: of teachers.
        clips: values of c; infinity for none.
        top_k: k; the paper's share of the coordinates (200 of 784) unless given.
        scene: teachers and what they are asked about; 100 compact teachers or 20 of the paper's unless given.

    Returns:
        A row for each kind and clip, in this order.

    Raises:
        NotPrivateError: images that are not public.
        ConfigError: a clip that is not above 0, or a k out of range.
    """
    require_public(images, "agreement of teachers")
    if not all(clip > 0 for clip in clips):
        raise ConfigError(f"clips {tuple(clips)} must be above 0: leave the others out")
    dim = math.prod(images.image_shape)
    kept = max(1, round(dim * 200 / 784)) if top_k is None else top_k
    rows = []
    for kind in kinds:
        default = Scene(num_teachers=20) if kind is TeacherKind.PAPER else Scene()
        grad_TBD = teacher_gradients(images, kind, scene or default)
        rows += [_clip_row(kind, grad_TBD, clip, kept) for clip in clips]
    return rows


def _clip_row(kind: TeacherKind, grad_TBD: np.ndarray, clip: float, top_k: int) -> ClipRow:
    grad = torch.from_numpy(grad_TBD).float()
    finite = clip if math.isfinite(clip) else float(torch.finfo(torch.float32).max)
    vote_TBD = topk_sign(grad, top_k, finite, torch.Generator().manual_seed(0)).vote_TBD
    voted = vote_TBD != 0
    size = grad.abs()
    scale = size.amax(2, keepdim=True).clamp(max=finite)
    share = (size.clamp(max=finite) / scale)[voted]
    num_teachers = len(grad)
    num_votes = max(1, int(voted.sum()))
    tally_BD = vote_TBD.sum(0, dtype=torch.int32).double()
    return ClipRow(
        teachers=str(kind),
        clip_bound=clip,
        saturated=float((size[voted] >= finite).sum()) / num_votes,
        certainty=float(share.double().sum()) / num_votes,
        agreement=float((tally_BD / num_teachers).square().mean().sqrt()),
        agreement_by_chance=math.sqrt(float(voted.sum()) / voted[0].numel()) / num_teachers,
    )


@dataclass(frozen=True)
class GrowthRow:
    """How likely the likeliest outcome of one image's release is, and what it is worth.

    Attributes:
        case: what the teachers vote.
        noise_share: sigma/N.
        dim: D.
        top_k: k, at most D.
        log_hit: log of the probability of the likeliest outcome, log(1 - q).
        q: the chance of any other.
        independent_epsilon, dependent_epsilon: of 20 such releases, by RDP.
        gains: whether the data-dependent one is smaller.
    """

    case: str
    noise_share: float
    dim: int
    top_k: int
    log_hit: float
    q: float
    independent_epsilon: float
    dependent_epsilon: float
    gains: bool


def q_growth(
    dimensions: Sequence[int] = DIMENSIONS,
    *,
    settings: Figure2Settings | None = None,
    noise_shares: Sequence[float] | None = None,
) -> list[GrowthRow]:
    """q of Theorem 5 (corrected) as the dimension grows, and whether Theorem 4 gains from it.

    The paper (section 4.2) says that q grows with the dimension of the output, so that a spike is very unlikely and
    the data-dependent bound brings nothing. Cases: no teacher votes ("silent"); all agree on min(k, D) coordinates
    and vote on no other ("unanimous on k"); all agree on every one ("unanimous on all", k = D).

    Args:
        dimensions: values of D.
        settings: N, k, threshold and sigma; MNIST's of the paper unless given.
        noise_shares: values of sigma/N; the settings' own and 0.05 unless given.

    >>> rows = q_growth((1, 784), noise_shares=(1.25,))
    >>> [round(row.q, 3) for row in rows if row.case == "unanimous on k"]
    [0.405, 1.0]
    """
    base = settings or PAPER["mnist"]
    share = base.noise_stddev / base.num_teachers
    rows = []
    for noise_share in noise_shares or (share, 0.05):
        for case in ("silent", "unanimous on k", "unanimous on all"):
            for dim in dimensions:
                at = replace(
                    base,
                    dim=dim,
                    top_k=dim if case == "unanimous on all" else min(base.top_k, dim),
                    batch_size=1,
                    images_per_teacher=None,
                    noise_stddev=noise_share * base.num_teachers,
                )
                rows.append(_growth_row(case, noise_share, at))
    return rows


def _growth_row(case: str, noise_share: float, at: Figure2Settings) -> GrowthRow:
    tally_BD = favourable_tally(at)
    if case == "silent":
        tally_BD = np.zeros_like(tally_BD)
    log_hit = float(log_hit_of(tally_BD, at)[0])
    mu = topagg_sensitivity(at.top_k, 1) / at.noise_stddev
    cost = data_dependent_cost([(mu, log_miss_probability(log_hit))] * _STEPS, at.delta)
    return GrowthRow(
        case=case,
        noise_share=noise_share,
        dim=at.dim,
        top_k=at.top_k,
        log_hit=log_hit,
        q=-math.expm1(log_hit),
        independent_epsilon=cost.independent_epsilon,
        dependent_epsilon=cost.epsilon,
        gains=cost.epsilon < (1 - 1e-6) * cost.independent_epsilon,
    )
