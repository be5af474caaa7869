"""The text of a ledger: what a line is, how it is hashed, and what stands for a line that was cut off."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from datalens.errors import LedgerError
from datalens.privacy.events import (
    Event,
    GaussianEvent,
    NoiseKind,
    NoisyEvent,
    PoissonGaussianEvent,
    SamplerSlack,
    TuningEvent,
    event_from_json,
)

FORMAT = "datalens-ledger/1"
GENESIS = "0" * 64
CUT = b" #cut-off"

Head = tuple[int, str]


class LineKind(StrEnum):
    """What a line of a ledger says; other words may be written too, and charge nothing."""

    HEADER = "header"
    AUTHORISATION = "authorisation"
    PLANNED = "planned"
    RELEASE = "release"
    RECOVERED = "recovered"
    SETTINGS = "settings"


OWN_KINDS = frozenset({LineKind.HEADER, LineKind.PLANNED, LineKind.RECOVERED})
"""Kinds that the ledger alone writes."""
CHARGING = frozenset({LineKind.RELEASE, LineKind.RECOVERED})
"""Kinds that are charged: something was released, or may have been."""


@dataclass(frozen=True)
class LedgerLine:
    """One intact line. ``hash`` commits to it and to every line before it."""

    index: int
    kind: str
    body: dict[str, Any]
    previous: str
    hash: str

    def encode(self) -> bytes:
        """The line as it stands in the file, with its newline."""
        return (canonical_json(self.__dict__) + "\n").encode()


def canonical_json(value: Any) -> str:
    """The one JSON text of ``value``: sorted keys, no spaces, ASCII, floats by repr (read back exactly).

    Raises:
        LedgerError: NaN, an infinity, or something JSON has no form for.

    >>> canonical_json({"b": 0.1, "a": 1})
    '{"a":1,"b":0.1}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise LedgerError(f"ledger cannot hold {value!r:.80} ({error}): give plain finite values") from error


def costliest(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events that together cost at least as much as the costliest of ``events``: one for each family.

    A family is a kind of noise, with or without Poisson sampling. Of Gaussian events it is the one with the
    largest mu squared times count, which decides its cost, with slack and coordinates raised to the largest.
    Poisson sampled ones have no such number, and there the largest of every parameter is taken (of noise the
    least).

    Guarantee: no event of a family costs more than what stands for it, at any delta and by any accountant.

    >>> step, score = GaussianEvent(4.0, 400.0, 64), GaussianEvent(1.0, 90.0, 1)
    >>> [event.mu for event in costliest([step, score])]
    [0.011111111111111112]
    """
    gaussians: dict[NoiseKind, list[GaussianEvent]] = {}
    sampled: dict[NoiseKind, list[PoissonGaussianEvent]] = {}
    tunings: list[TuningEvent] = []
    for event in events:
        if isinstance(event, GaussianEvent):
            gaussians.setdefault(event.noise, []).append(event)
        elif isinstance(event, TuningEvent):
            tunings.append(event)
        else:
            sampled.setdefault(event.noise, []).append(event)
    worst: list[Event] = [_worst_gaussian(gaussians[kind]) for kind in NoiseKind if kind in gaussians]
    worst += [_worst_sampled(sampled[kind]) for kind in NoiseKind if kind in sampled]
    if tunings:
        worst.append(
            TuningEvent(
                mu=max(event.mu for event in tunings),
                expected_tries=max(event.expected_tries for event in tunings),
                eta=max(event.eta for event in tunings),
                bad_mass=max(event.bad_mass for event in tunings),
                count=max(event.count for event in tunings),
            )
        )
    return tuple(worst)


def _worst_gaussian(events: list[GaussianEvent]) -> GaussianEvent:
    worst = max(events, key=_cost_order)
    return replace(worst, coordinates=_most_draws(events, worst.count), slack=_most_slack(events))


def _worst_sampled(events: list[PoissonGaussianEvent]) -> PoissonGaussianEvent:
    count = max(event.count for event in events)
    return PoissonGaussianEvent(
        sampling_probability=max(event.sampling_probability for event in events),
        noise_multiplier=min(event.noise_multiplier for event in events),
        count=count,
        noise=events[0].noise,
        coordinates=_most_draws(events, count),
        slack=_most_slack(events),
    )


def _most_draws(events: Sequence[NoisyEvent], count: int) -> int:
    """Coordinates with which ``count`` releases draw as much as any of these, rounded up."""
    return -(-max(event.coordinates * event.count for event in events) // count)


def _most_slack(events: Sequence[NoisyEvent]) -> SamplerSlack:
    return SamplerSlack(max(event.slack.eta for event in events), max(event.slack.tau for event in events))


def _cost_order(event: GaussianEvent) -> tuple[float, int, float]:
    """By cost; the rest makes the choice between equal ones the same in every process."""
    return event.mu**2 * event.count, event.count, event.sensitivity


def events_of(line: LedgerLine, *, charged_only: bool) -> list[Event]:
    """The events that a line charges, or (charged_only=False) every event it names."""
    if line.kind == LineKind.RELEASE or (line.kind == LineKind.PLANNED and not charged_only):
        return [event_from_json(line.body["event"])]
    if line.kind == LineKind.RECOVERED:
        return [event_from_json(event) for event in line.body["events"]]
    return []


def make_line(index: int, kind: str, body: dict[str, Any], previous: str) -> LedgerLine:
    """A line that commits to its content and to the line before."""
    text = canonical_json({"index": index, "kind": kind, "body": body})
    digest = hashlib.sha256((previous + text).encode()).hexdigest()
    return LedgerLine(index, str(kind), json.loads(canonical_json(body)), previous, digest)


def parse(content: bytes, path: Path) -> tuple[list[LedgerLine], bytes]:
    """All intact lines, and the bytes of a cut-off end (empty if there is none).

    Raises:
        LedgerError: a damaged line that is not a cut-off end.
    """
    lines: list[LedgerLine] = []
    cut = b""
    *complete, tail = content.split(b"\n")
    for number, raw in enumerate(complete, start=1):
        if raw.endswith(CUT) and lines:
            cut += raw + b"\n"
            continue
        try:
            line = _read_line(raw, lines)
            _check_recovery(line, cut)
        except LedgerError as error:
            raise LedgerError(
                f"ledger {path} is damaged at line {number} ({error}): restore it from a copy"
            ) from error
        lines.append(line)
        cut = b""
    if not lines:
        raise LedgerError(
            f"ledger {path} is damaged at line 1 (no whole header): nothing was released under it, remove it"
        )
    if tail.count(b'"kind":"release"') > 1:
        raise LedgerError(
            f"ledger {path} is damaged at line {len(complete) + 1} (two lines in one): restore it from a copy"
        )
    return lines, cut + tail


def _read_line(raw: bytes, before: list[LedgerLine]) -> LedgerLine:
    try:
        value = json.loads(raw.decode("ascii"))
        line = make_line(value["index"], value["kind"], value["body"], value["previous"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LedgerError(f"not a ledger line: {type(error).__name__}") from error
    previous = before[-1].hash if before else GENESIS
    if type(line.index) is not int or line.index != len(before):
        raise LedgerError(f"index {line.index!r:.20} where {len(before)} belongs")
    if line.previous != previous or line.encode() != raw + b"\n":
        raise LedgerError("its hash does not match its content or the line before")
    if (line.kind == LineKind.HEADER) != (not before) or (not before and line.body.get("format") != FORMAT):
        raise LedgerError(f"a header of format {FORMAT} belongs in line 1 and nowhere else")
    events_of(line, charged_only=False)
    return line


def _check_recovery(line: LedgerLine, cut: bytes) -> None:
    if (line.kind == LineKind.RECOVERED) != bool(cut):
        raise LedgerError("a cut-off line and the line that charges it must stand together")
    if cut and line.body.get("cut_sha256") != hashlib.sha256(cut).hexdigest():
        raise LedgerError("the cut-off line before it has changed")
