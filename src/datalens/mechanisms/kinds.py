"""The mechanisms on teachers' votes, by the names that settings and ledgers use."""

from __future__ import annotations

from enum import StrEnum


class MechanismKind(StrEnum):
    """How votes are compressed and released (Tables 5 and 6); see ``docs/baselines.md``."""

    TOPAGG = "topagg"
    D2P_FED = "d2p-fed"
    FETCHSGD = "fetchsgd"
    FETCHSGD_SOUND = "fetchsgd-sound"
