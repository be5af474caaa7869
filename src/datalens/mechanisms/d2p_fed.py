"""D2P-Fed for DataLens (Algorithm 6): a noisy sum of k-level votes on rotated coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from datalens.compression.rotation import padded_dim, rotate_back
from datalens.errors import ConfigError
from datalens.mechanisms.vote_sum import VoteSum, check_counts
from datalens.noise.base import NoiseSource
from datalens.privacy.events import GaussianEvent
from datalens.privacy.sensitivity import d2p_fed_sensitivity, images_voted


@dataclass(frozen=True)
class D2PFed(VoteSum):
    """Differentially private sum of the votes of :func:`datalens.compression.klevel.stochastic_levels`.

    The noisy sum of all P rotated coordinates is rotated back, cut to D, divided by k - 1, so that a teacher counts
    for at most one vote on a rotated coordinate, and only then compared with the threshold.

    Attributes:
        num_teachers: N.
        levels: of a vote, k.
        dim: coordinates of an image before rotation, D.
        noise_stddev: on each rotated coordinate of the sum, in the quantiser's integers: (k - 1) to a vote.
        vote_threshold: fraction of N.
        noise: where the noise comes from.
        images_per_teacher: most images of a step that one teacher may vote on; None for all of them.
        group_size: records that one person may own.

    Guarantee:
        Changing all votes of one teacher moves the joint tally of m images by at most ``2 (k - 1) sqrt(P m)``
        (proof: :func:`~datalens.privacy.sensitivity.d2p_fed_sensitivity`), so a release is a Gaussian mechanism
        with mu = that over ``noise_stddev``. Rotating back and all that follows is post-processing.

    Raises:
        ConfigError: a setting out of range.

    Source: Wang et al. 2021, Algorithm 6, put right as ``docs/baselines.md`` says.
    """

    num_teachers: int
    levels: int
    dim: int
    noise_stddev: float
    vote_threshold: float
    noise: NoiseSource
    images_per_teacher: int | None = None
    group_size: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts({"levels": self.levels, "dim": self.dim})
        if self.levels < 2:
            raise ConfigError(f"levels is {self.levels}: one level says nothing; choose 2 or more")

    @property
    def noise_in_votes(self) -> float:
        """Standard deviation of the noise, in whole votes of a teacher."""
        return self.noise_stddev / (self.levels - 1)

    def event(self, batch_size: int, dim: int) -> GaussianEvent:
        """What one joint release of ``batch_size`` images with ``dim`` coordinates each costs."""
        check_counts({"batch_size": batch_size, "dim": dim})
        width = padded_dim(dim)
        images = images_voted(batch_size, self.images_per_teacher)
        return self._event(
            d2p_fed_sensitivity(self.levels, width, images, self.group_size), batch_size * width
        )

    def check_tally(self, tally_BD: Tensor) -> None:
        """Refuse what teachers with ``levels`` levels on each rotated coordinate cannot have cast."""
        width, largest = padded_dim(self.dim), self.levels - 1
        self._check_magnitude(tally_BD, largest, most_an_image=largest * width, remedy="these levels")
        if tally_BD.shape[1] != width:
            raise ValueError(
                f"the tally has {tally_BD.shape[1]} coordinates, but {self.dim} are padded to {width}; rotate first"
            )

    def direction_of(self, noisy: Tensor, dim: int) -> Tensor:
        """The noisy sum rotated back, cut to D and counted in votes, then the threshold. Post-processing."""
        return self.threshold(rotate_back(noisy.to(torch.float64), dim) / (self.levels - 1))

    def _dim_of(self, tally_BD: Tensor) -> int:
        return self.dim
