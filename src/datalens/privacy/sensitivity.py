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
