"""What depends on the mechanism that the settings name: its cost, its units, its teachers' votes. No noise here."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from datalens.compression.klevel import stochastic_levels
from datalens.compression.rotation import padded_dim
from datalens.compression.topk_sign import SignVotes
from datalens.errors import ConfigError
from datalens.mechanisms.fetchsgd import sketch_bound
from datalens.mechanisms.kinds import MechanismKind
from datalens.privacy.sensitivity import d2p_fed_sensitivity, topagg_sensitivity
from datalens.teachers.ensemble import TeacherEnsemble
from datalens.training.config import Config, Voting


def step_bound(config: Config, dim: int) -> tuple[float, int]:
    """Sensitivity of one step, and the numbers that noise is put on; as printed for what is run as published."""
    voting, group = config.voting, config.privacy.group_size
    images, batch = voting.images_voted, voting.batch_size
    match voting.mechanism:
        case MechanismKind.D2P_FED:
            width = padded_dim(dim)
            return d2p_fed_sensitivity(voting.levels, width, images, group), batch * width
        case MechanismKind.FETCHSGD_SOUND:
            rows, buckets = voting.sketch_rows, voting.sketch_buckets
            return sketch_bound(dim, rows, buckets, voting.top_k, images, group), batch * rows * buckets
        case MechanismKind.TOPAGG | MechanismKind.FETCHSGD:
            return topagg_sensitivity(voting.top_k, images, group), batch * dim


def units_a_vote(voting: Voting) -> int:
    """How many units of the summed integers, and so of the noise, one whole vote of a teacher is."""
    return voting.levels - 1 if voting.mechanism is MechanismKind.D2P_FED else 1


def set_compression(teachers: TeacherEnsemble, voting: Voting) -> None:
    """Let the teachers vote in the way that the mechanism takes; all but one take Algorithm 2's votes."""
    if voting.mechanism is MechanismKind.D2P_FED:
        teachers.compress = partial(_levels, levels=voting.levels)
        teachers.width_of = padded_dim
        teachers.largest_vote = voting.levels - 1


def check_mechanism(config: Config, dim: int) -> None:
    """Refuse a mechanism that is not sound unless it was asked for in so many words, and votes that do not fit.

    Raises:
        ConfigError: says which.
    """
    voting, published = config.voting, config.voting.mechanism is MechanismKind.FETCHSGD
    if published and not config.privacy.as_published:
        raise ConfigError(
            "mechanism = fetchsgd: as published it has no guarantee; choose fetchsgd-sound, or add --as-published "
            "(privacy.as_published) to run it for a comparison, with 'no guarantee' on everything it writes"
        )
    if config.privacy.as_published and not published:
        raise ConfigError(
            f"--as-published (privacy.as_published) with mechanism = {voting.mechanism}: is for fetchsgd, which has "
            "no guarantee; leave it out"
        )
    if voting.mechanism is not MechanismKind.D2P_FED and voting.top_k > dim:
        raise ConfigError(f"top_k = {voting.top_k}: an image has {dim} coordinates; choose at most {dim}")


def _levels(
    grad_TBD: Tensor, top_k: int, clip_bound: float, rng: torch.Generator, *, levels: int
) -> SignVotes:
    """Algorithm 5 in the place of Algorithm 2: all coordinates vote, so ``top_k`` is not used."""
    return stochastic_levels(grad_TBD, levels, clip_bound, rng)
