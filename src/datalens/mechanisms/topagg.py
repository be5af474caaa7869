"""TopAgg (Algorithm 3): sum the teachers' votes, add Gaussian noise, keep the signs of large coordinates.

:meth:`~datalens.mechanisms.vote_sum.VoteSum.release` is the one function in which votes become public. Left of it
names say ``tally`` (private), right of it ``noisy``, ``release``, ``direction`` (public).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from datalens.errors import ConfigError
from datalens.mechanisms.vote_sum import VoteSum, check_counts
from datalens.noise.base import NoiseSource
from datalens.privacy.events import GaussianEvent
from datalens.privacy.sensitivity import images_voted, topagg_sensitivity


@dataclass(frozen=True)
class TopAgg(VoteSum):
    """Differentially private sum of sparse votes with a threshold.

    Attributes:
        num_teachers: teachers that vote, N.
        top_k: most votes that one teacher may cast on one image, k.
        noise_stddev: standard deviation of the noise on each coordinate of the sum, in votes.
        vote_threshold: fraction of N, 0 or more, that a noisy sum must reach to count; 0 releases its sign.
            Above 1 only noise and votes together reach it, which loses least where noise exceeds all votes.
        noise: where the noise comes from.
        images_per_teacher: most images of a step that one teacher may vote on, s; None for all of them.
        group_size: records that one person may own, g; up to g teachers change then, and mu is g times as large.

    Guarantee:
        Changing all votes of one teacher moves the joint tally of m images by at most
        ``2 * sqrt(min(m, s) * top_k)`` in L2 norm, since its votes are at most that many entries of -1 or +1,
        before and after (proof: :func:`~datalens.privacy.sensitivity.topagg_sensitivity`). So a release is a
        Gaussian mechanism with mu = that over ``noise_stddev``; the threshold is post-processing. It covers one
        record, where every record sits with one teacher.

    Raises:
        ConfigError: a setting out of range.

    Source: Wang et al. 2021, Algorithm 3.
    """

    num_teachers: int
    top_k: int
    noise_stddev: float
    vote_threshold: float
    noise: NoiseSource
    images_per_teacher: int | None = None
    group_size: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts({"top_k": self.top_k})

    def event(self, batch_size: int, dim: int) -> GaussianEvent:
        """What one joint release of ``batch_size`` images with ``dim`` coordinates each costs.

        Depends on settings only, never on a vote.
        """
        check_counts({"batch_size": batch_size, "dim": dim})
        if self.top_k > dim:
            raise ConfigError(
                f"top_k is {self.top_k}, but an image has {dim} coordinates; choose at most {dim}"
            )
        images = images_voted(batch_size, self.images_per_teacher)
        return self._event(topagg_sensitivity(self.top_k, images, self.group_size), batch_size * dim)

    def check_tally(self, tally_BD: Tensor) -> None:
        """Refuse what ``num_teachers`` teachers with ``top_k`` votes an image cannot have cast."""
        self._check_magnitude(tally_BD, largest=1, most_an_image=self.top_k, remedy="this top_k")
