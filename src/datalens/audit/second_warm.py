"""A warm start once more: what its two sums cost, that they were charged before the first vote, and their file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from datalens.audit.ledger_reader import Difference, Entry
from datalens.audit.second_curves import epsilon_again
from datalens.audit.second_header import header_of
from datalens.privacy import promises

Json = Mapping[str, Any]
FILE, LEDGER, CONFIG = promises.WARM_START_FILE, "ledger.jsonl", "config.json"
NOTE = "warm_start"
PARTS = {"class means": 0.15, "class moments": 0.85}
"""What is released, in order, and what each has of the warm start's mu squared."""
TENSORS = {"class means": "means", "class moments": "moments"}
_TOLERANCE = 3e-3
"""Of mu squared: noise is rounded up to four digits."""


def has_warm_start(config: Json) -> bool:
    """Whether the settings say of one."""
    return bool(config["config"].get(NOTE, {}).get("enabled"))


def warm_charges(header: Json, config: Json) -> dict[str, tuple[float, float, int]]:
    """Sensitivity, noise and coordinates of each of the two sums; nothing where there are none.

    A class's row: of means one number a pixel and channel and a count; of moments the products of all pairs of the
    lowest cosines, and sixty energies. Charged for an exchange, which moves twice the longest vector.
    """
    if not has_warm_start(config):
        return {}
    channels, height, width = config["image_shape"]
    side = min(max(1, math.isqrt(200 // channels)), height, width)
    low = channels * side**2
    dims = {"class means": channels * height * width + 1, "class moments": low * (low + 1) // 2 + 60}
    moved = 2 * config["config"]["privacy"].get("group_size", 1)
    noise = header[NOTE]["noise_stddev"]
    return {
        what: (float(moved * _units(dim)), float(noise[what]), dim * len(config["classes"]))
        for what, dim in dims.items()
    }


def warm_differences(header: Json, config: Json, planned: Sequence[Json]) -> Iterator[str]:
    """One line for each thing in which the first line's warm start is not what the settings give.

    Args:
        header: the ledger's first line.
        config: the settings.
        planned: the events of it that were planned beforehand.
    """
    said = header.get(NOTE)
    if not has_warm_start(config):
        if said is not None or planned:
            yield f"{LEDGER}: says of a warm start, but {CONFIG} does not"
        return
    settings, privacy = config["config"][NOTE], config["config"]["privacy"]
    if not isinstance(said, dict) or said.get("share") != settings["share"]:
        yield f"{LEDGER}: says of another warm start than {CONFIG}"
        return
    charges = warm_charges(header, config)
    if privacy["noise"] == "none":
        if planned or any(stddev for _, stddev, _ in charges.values()):
            yield f"{LEDGER}: a warm start with noise in a run without"
        return
    if len(planned) != len(charges):
        yield f"{LEDGER}: plans {len(planned)} sums of a warm start, which releases {len(charges)}"
        return
    most = _largest_mu(privacy) ** 2
    for (what, charge), event in zip(charges.items(), planned, strict=True):
        numbers = (event["sensitivity"], event["noise_stddev"], event["coordinates"])
        if numbers != charge or event["count"] != 1 or event["noise"] != privacy["noise"]:
            yield f"{LEDGER}: the {what} that were planned are not what they cost"
        found, wanted = (charge[0] / charge[1]) ** 2, settings["share"] * PARTS[what] * most
        if not wanted * (1 - _TOLERANCE) <= found <= wanted * (1 + 1e-5):
            yield (
                f"{LEDGER}: the noise of the {what} is not what {CONFIG} gives (warm_start.share {settings['share']})"
            )


def check_warm(entries: Sequence[Entry], config: Json, release: Path) -> None:
    """Both sums were charged once, in order, before the first vote, and those in the file were paid for.

    A sum may be missing where a crash cut its line off, or where the one before it was lost.

    Raises:
        Difference: it is not so.
    """
    enabled, path = has_warm_start(config), release / FILE
    notes = [(entry.digest, entry.body.get("note") or {}) for entry in entries if entry.kind == "release"]
    made = {note["what"]: digest for digest, note in notes if NOTE in note}
    if not enabled and (made or path.exists()):
        raise Difference(f"{FILE}: is there or in {LEDGER}, but {CONFIG} says of no warm start")
    if not enabled:
        return
    order = [(note["what"], note[NOTE]) for _, note in notes if NOTE in note]
    if order != [(what, number) for number, what in enumerate(PARTS)][: len(order)]:
        raise Difference(f"{LEDGER}: a warm start's sums are charged twice or in another order")
    if any(NOTE in note for _, note in notes[len(order) :]):
        raise Difference(f"{LEDGER}: a sum of the warm start is charged after something else")
    kept = _kept(path)
    for what, digest in kept.items():
        if made.get(what) != digest:
            raise Difference(f"{FILE}: no line of {LEDGER} of its own pays for its {what}")
    is_cut = any(entry.kind == "recovered" for entry in entries)
    lost = len(kept) < len(made)
    if len(notes) > len(order) and len(order) < len(PARTS) and not (is_cut or lost):
        raise Difference(f"{LEDGER}: votes were released, but not the sums of the warm start before them")


def _kept(path: Path) -> dict[str, str]:
    """The tables in the file, and the hash of the line that each names."""
    if not path.is_file():
        return {}
    try:
        names, lines = header_of(path.read_bytes(), "lines")
        if not isinstance(lines, dict) or set(lines) != set(names) or not set(lines) <= set(TENSORS.values()):
            raise ValueError("other tables")
    except ValueError:
        raise Difference(f"{FILE}: its header does not say what paid for its tables") from None
    return {what: str(lines[name]) for what, name in TENSORS.items() if name in lines}


def _largest_mu(privacy: Json) -> float:
    """The most that a single Gaussian release may be to cost all of epsilon."""

    def costs(mu: float) -> float:
        event = {
            "type": "gaussian",
            "sensitivity": mu,
            "noise_stddev": 1.0,
            "coordinates": 1,
            "count": 1,
            "noise": privacy["noise"],
            "slack": {"eta": 0.0, "tau": 0.0},
        }
        return epsilon_again([event], privacy["delta"], privacy["accountant"])

    low, high = 0.0, 1e-3
    while costs(high) <= privacy["epsilon"]:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if costs(middle) <= privacy["epsilon"] else (low, middle)
    return low


def _units(dim: int) -> int:
    """Length of a vector on the grid of whole numbers: a power of two near 4 sqrt(dim)."""
    units = 512
    while units < 4 * math.sqrt(dim):
        units *= 2
    return units
