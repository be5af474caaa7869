"""How far one person can move what is summed: the one place where a sensitivity is written down."""

from __future__ import annotations

import math

import numpy as np

_SPARE = 1 + 1e-9
"""Above the rounding of an eigenvalue of a matrix of small integers, which is below one part in 10^11."""
_LARGEST_SIDE = 2048
"""Up to this size a spectral norm is computed; beyond it a bound that is looser stands in."""


def topagg_sensitivity(top_k: int, images: int, group_size: int = 1) -> float:
    """L2 sensitivity of a step's tally: ``g * 2 * sqrt(k * m)``.

    Proof. A teacher casts at most k votes of -1 or +1 on an image, and votes on at most m images of a step, so
    its votes are a vector with at most ``k * m`` entries other than 0, of L2 norm at most ``sqrt(k * m)``. A
    record sits with one teacher. Adding, removing or exchanging it changes that teacher's votes from one such
    vector to another, and no other teacher's; the tally, their sum, moves by the difference of the two, whose
    norm is at most ``2 * sqrt(k * m)`` by the triangle inequality. It is reached where the two vectors are
    opposite. The g records of one person sit with at most g teachers: g times as much.

    Args:
        top_k: most votes of one teacher on one image, k.
        images: most images of a step that one teacher votes on, m; see :func:`images_voted`.
        group_size: records that one person may own, g.

    Source: Wang et al. 2021, Lemma 1, for one image.

    >>> round(topagg_sensitivity(200, 15), 4)
    109.5445
    """
    return group_size * 2.0 * math.sqrt(top_k * images)


def images_voted(batch_size: int, images_per_teacher: int | None) -> int:
    """Images of a step on which one teacher may vote, m: all of them where there is no cap.

    >>> images_voted(30, 15), images_voted(30, None), images_voted(8, 15)
    (15, 30, 8)
    """
    return batch_size if images_per_teacher is None else min(batch_size, images_per_teacher)


def binary_votes_sensitivity(queries: int, counts: int = 1, group_size: int = 1) -> float:
    """L2 sensitivity of the counts of one yes-or-no vote a query: ``g * sqrt(counts * queries)``.

    Proof. A teacher says yes or no to each query, or nothing. A record sits with one teacher, so adding, removing
    or exchanging it changes the answers of that teacher alone. The count of yes answers to a query then moves by
    at most 1, and over all queries the vector of those counts by at most ``sqrt(queries)``. Where the count of no
    answers is released beside it, a teacher's answer is (1, 0), (0, 1) or (0, 0), two of which differ by at most
    ``sqrt(2)``: ``sqrt(2 * queries)``. Both are reached by a teacher that turns every answer round. The g records
    of one person sit with at most g teachers: g times as much. (In L1 norm: 1 or 2 a query.)

    Args:
        queries: answered jointly.
        counts: 1 where the count of yes alone is released, 2 where both are.
        group_size: records that one person may own, g.

    >>> binary_votes_sensitivity(64), binary_votes_sensitivity(32, counts=2)
    (8.0, 8.0)
    """
    return group_size * math.sqrt(counts * queries)


def histogram_votes_sensitivity(queries: int, group_size: int = 1) -> float:
    """L2 sensitivity of histograms to which a teacher adds one vote each: ``g * sqrt(2 * queries)``.

    Proof. A teacher's vote on a query is a unit vector, or zero. One record changes the votes of one teacher;
    two such vectors differ by at most ``sqrt(2)`` (two different bins), so all histograms together move by at most
    ``sqrt(2 * queries)``, whatever the number of bins. It is reached where every vote goes to another bin.

    >>> histogram_votes_sensitivity(8)
    4.0
    """
    return group_size * math.sqrt(2 * queries)


def fullest_bins_sensitivity(queries: int, group_size: int = 1) -> float:
    """L2 sensitivity of the largest count of each histogram: ``g * sqrt(queries)``.

    Proof. One changed vote changes every count of a histogram by at most 1, so also the largest of them: over all
    queries by at most ``sqrt(queries)``. It is reached where a vote joins or leaves each fullest bin.

    >>> fullest_bins_sensitivity(9)
    3.0
    """
    return group_size * math.sqrt(queries)


def d2p_fed_sensitivity(levels: int, padded_dim: int, images: int, group_size: int = 1) -> float:
    """L2 sensitivity of a step's tally of k-level votes: ``g * 2 * (k - 1) * sqrt(P * m)``.

    Proof. A teacher's votes on an image are P integers, of which none exceeds k - 1 in magnitude, whether they come
    of a gradient's own coordinates, of padding, or of a gradient that failed. So they have L2 norm at most
    ``(k - 1) sqrt(P)``, those on m images at most ``(k - 1) sqrt(P m)``, and a teacher that changes moves the sum by
    at most twice that; it is reached where all of them turn from one end to the other.

    Args:
        levels: of the quantiser, k.
        padded_dim: rotated coordinates, P: the padded ones are votes like the others.
        images: of a step that one teacher votes on, m.
        group_size: records that one person may own, g.

    >>> d2p_fed_sensitivity(8, 1024, 1)
    448.0
    """
    return group_size * 2.0 * (levels - 1) * math.sqrt(padded_dim * images)


def sketch_sensitivity(
    bucket_JD: np.ndarray, sign_JD: np.ndarray, buckets: int, top_k: int, images: int, group_size: int = 1
) -> float:
    """L2 sensitivity of a step's sketched tally: a proved bound, ``g * 2 * sqrt(m) * min(a, b)``.

    Proof. Sketching is linear, one matrix S of -1, 0 and 1 for all. A teacher's votes v on an image have at most k
    entries, of -1 or +1. (a) ``|S v| <= |S| |v| <= |S| sqrt(k)`` with the spectral norm |S|. (b) Where n_b of the k
    coordinates fall into bucket b of a row, the bucket holds at most n_b in magnitude, n_b is at most the number
    of all coordinates that fall there, and all n_b of the row add up to at most k; the sum of their squares is
    convex, so it is largest where the fullest buckets are filled first. Summed over rows this bounds ``|S v|^2``.
    The norm of the tables of m images is at most ``sqrt(m)`` times that, and a teacher that changes goes from one
    such table to another: at most twice as far.

    Args:
        bucket_JD: the bucket of each coordinate in each row.
        sign_JD: -1 or 1.
        buckets: of a row.
        top_k: most votes of one teacher on one image, k.
        images: of a step that one teacher votes on, m.
        group_size: records that one person may own, g.
    """
    norm = min(
        _spectral_norm(bucket_JD, sign_JD, buckets) * math.sqrt(top_k), _fullest(bucket_JD, buckets, top_k)
    )
    return group_size * 2.0 * math.sqrt(images) * norm


def _spectral_norm(bucket_JD: np.ndarray, sign_JD: np.ndarray, buckets: int) -> float:
    """An upper bound on the spectral norm of the sketch's matrix, exact but for rounding where it is small."""
    rows, dim = bucket_JD.shape
    if min(rows * buckets, dim) > _LARGEST_SIDE:  # |S|^2 <= (largest column sum) (largest row sum)
        fullest = max(int(np.bincount(row, minlength=buckets).max()) for row in bucket_JD)
        return math.sqrt(rows * fullest)
    matrix = np.zeros((rows * buckets, dim))
    places = bucket_JD + buckets * np.arange(rows)[:, None]
    matrix[places.ravel(), np.tile(np.arange(dim), rows)] = sign_JD.ravel()
    gram = matrix.T @ matrix if dim <= rows * buckets else matrix @ matrix.T  # whole numbers: exact
    return math.sqrt(float(np.linalg.eigvalsh(gram)[-1])) * _SPARE


def _fullest(bucket_JD: np.ndarray, buckets: int, top_k: int) -> float:
    """The root of the sum over rows of the squared fills, ``top_k`` coordinates in the fullest buckets."""
    total = 0
    for row in bucket_JD:
        fills = np.sort(np.bincount(row, minlength=buckets))[::-1]
        before = np.concatenate([[0], np.cumsum(fills)[:-1]])
        total += int(np.square(np.clip(top_k - before, 0, fills)).sum())
    return math.sqrt(total)
