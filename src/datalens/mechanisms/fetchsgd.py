"""FetchSGD for DataLens (Algorithm 7): votes in a count sketch, as published, and in a form that can be proved.

Both take the votes of Algorithm 2. As published, noise is added after the k largest coordinates of the unsketched
sum were chosen: the choice itself depends on every record and is not covered by any noise, so there is no
guarantee. In the sound form the noise is on the table, and reading it, choosing and all else is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from torch import Tensor

from datalens.compression.count_sketch import count_sketch, keep_top
from datalens.mechanisms.topagg import TopAgg
from datalens.mechanisms.vote_sum import check_counts
from datalens.privacy.events import GaussianEvent, NoiseKind, SamplerSlack
from datalens.privacy.sensitivity import images_voted, sketch_sensitivity


@dataclass(frozen=True)
class SketchedSum(TopAgg):
    """The sound form: Gaussian noise on every bucket of the sketch of the tally.

    The direction is the threshold of the ``top_k`` largest entries of the unsketched noisy table.

    Attributes:
        rows: of the sketch, odd.
        buckets: of a row.
        others: as of :class:`~datalens.mechanisms.topagg.TopAgg`; noise_stddev is that on a bucket.

    Guarantee:
        The table is linear in the votes, so a teacher that changes moves the joint tables of m images by at most
        what :func:`~datalens.privacy.sensitivity.sketch_sensitivity` proves. A release is a Gaussian mechanism
        with mu = that over ``noise_stddev``; the rest is post-processing.
    """

    rows: int = 5
    buckets: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts({"rows": self.rows, "buckets": self.buckets})

    def event(self, batch_size: int, dim: int) -> GaussianEvent:
        """What one joint release of ``batch_size`` images with ``dim`` coordinates each costs."""
        super().event(batch_size, dim)  # checks the sizes
        images = images_voted(batch_size, self.images_per_teacher)
        sensitivity = sketch_bound(dim, self.rows, self.buckets, self.top_k, images, self.group_size)
        return self._event(sensitivity, batch_size * self.rows * self.buckets)

    def summed(self, tally_BD: Tensor) -> Tensor:
        """The sketch of the tally: int64 [B, rows, buckets]."""
        return count_sketch(tally_BD.shape[1], self.rows, self.buckets).sketch(tally_BD)

    def direction_of(self, noisy: Tensor, dim: int) -> Tensor:
        """Unsketch a noisy table, keep the ``top_k`` largest of each image, and take the threshold."""
        estimate_BD = count_sketch(dim, self.rows, self.buckets).unsketch(noisy)
        return self.threshold(keep_top(estimate_BD, self.top_k))


@dataclass(frozen=True)
class PublishedFetchSGD(SketchedSum):
    """Algorithm 7 as it is printed: **no guarantee**. For the comparison of Tables 5 and 6 alone.

    The noisy sum is ``top-k(unsketch(sketch)) + noise``; TopAgg's threshold follows, since the student takes
    directions in {-1, 0, 1}. Line 9 adds its noise to k coordinates that were chosen without any: two neighbouring
    data sets can give two disjoint choices, and with them sums that lie apart by up to the votes of all teachers.

    Guarantee: none. Its event says so: it is charged as a release without noise, whose epsilon is infinite.
    """

    def event(self, batch_size: int, dim: int) -> GaussianEvent:
        """A release that costs everything."""
        return replace(self.printed_event(batch_size, dim), noise=NoiseKind.NONE, slack=SamplerSlack())

    def printed_event(self, batch_size: int, dim: int) -> GaussianEvent:
        """What the paper charges, TopAgg's 2 sqrt(k) an image: to find its noise, and for nothing else."""
        return TopAgg.event(self, batch_size, dim)

    def summed(self, tally_BD: Tensor) -> Tensor:
        """The k largest entries of what the sketch gives back: not of bounded sensitivity."""
        sketch = count_sketch(tally_BD.shape[1], self.rows, self.buckets)
        return keep_top(sketch.unsketch(sketch.sketch(tally_BD)), self.top_k)

    def direction_of(self, noisy: Tensor, dim: int) -> Tensor:
        """The threshold of the noisy sum."""
        return self.threshold(noisy)


@lru_cache(maxsize=32)
def sketch_bound(dim: int, rows: int, buckets: int, top_k: int, images: int, group_size: int) -> float:
    """:func:`~datalens.privacy.sensitivity.sketch_sensitivity` of the public sketch of these sizes."""
    sketch = count_sketch(dim, rows, buckets)
    return sketch_sensitivity(sketch.bucket_JD, sketch.sign_JD, buckets, top_k, images, group_size)
