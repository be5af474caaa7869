"""How far one person can move what is summed: the one place where a sensitivity is written down."""

from __future__ import annotations

import math


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
