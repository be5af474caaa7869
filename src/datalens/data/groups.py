"""From the name of a group, such as a person, to a number that is a function of that name alone.

Never the place of a name among those in the data: taking a group out would then rename others.
"""

from __future__ import annotations

import hashlib

_PERSON = b"datalens group"


def group_id(text: str) -> int:
    """The number of a group: 63 bits of BLAKE2b of its name, so from 0 to 2**63 - 1.

    Two names share one with chance below 2**-62, and would then count as one group.

    >>> group_id("ann") == group_id("ann"), group_id("ann") == group_id("bob"), 0 <= group_id("") < 2**63
    (True, False, True)
    """
    word = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=_PERSON).digest()
    return int.from_bytes(word, "big") >> 1
