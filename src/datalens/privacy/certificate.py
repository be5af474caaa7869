"""What ships with a release: every number of the guarantee, what was assumed, and what is not covered.

A certificate is a function of the ledger, the public settings and the digests of released files; ``datalens
verify`` recomputes it with other code. An epsilon that depends on the data is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from datalens.errors import LedgerError, NotPrivateError
from datalens.privacy import promises
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.assumed_public import assumed_public
from datalens.privacy.authorisation import Authorisation, authorisations
from datalens.privacy.baseline_card import is_of_own_method
from datalens.privacy.events import (
    Event,
    GaussianEvent,
    NoiseKind,
    NoisyEvent,
    PoissonGaussianEvent,
    TuningEvent,
    compact,
    event_from_json,
)
from datalens.privacy.guarantee import binding, counted, planned_events
from datalens.privacy.ledger import Ledger, LineKind
from datalens.privacy.neighbours import adjacency_means, finite, replace_one


def build_certificate(
    ledger: Ledger, config: Mapping[str, Any], files: Mapping[str, str], environment: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of ``certificate.json``: plain values, no NaN, null for what is infinite or unknown.

    Args:
        ledger: of the run.
        config: the content of ``release/config.json``.
        files: SHA-256 of each released file that belongs to the guarantee, by name.
        environment: versions and platform of the training.

    Raises:
        NotPrivateError: a cost that depends on the data is among the values.
        LedgerError: the ledger holds no authorisation, or several at different delta.
    """
    refuse_unpublishable([ledger.header, config, files, environment])
    recorded = authorisations(ledger)
    if not recorded:
        raise LedgerError(f"ledger {ledger.path or 'in memory'} authorises nothing: it has no certificate")
    events = ledger.events()
    mechanism = dict(ledger.header.get("mechanism", {}))
    guarantee = _guarantee(ledger, events, int(mechanism.get("group_size", 1)))
    drawn = _drawn(events, ledger)
    reasons = reasons_against(drawn, config)
    return {
        "format": promises.CERTIFICATE_FORMAT,
        "fit_for_publication": not reasons,
        "not_fit_because": reasons,
        "guarantee": guarantee,
        "spent": _spent(ledger, recorded[-1].authorisation, events),
        "mechanism": {**mechanism, "changed_on_resume": _changes(ledger)},
        "noise": {**_noise(drawn, config), "releases": _releases(ledger)},
        "assumed_public": assumed_public(ledger, config),
        "not_covered": [
            *promises.NOT_COVERED,
            *([promises.FLOATING_POINT] if _has(events, NoiseKind.CONTINUOUS) else []),
            promises.SEVERAL_NAMES
            if guarantee["adjacency"] == promises.ADD_OR_REMOVE_GROUP
            else promises.BEYOND_GROUP_SIZE,
        ],
        "later_authorisations": [
            {**item.authorisation.to_json(), "decided_after_looking": True}
            for item in recorded
            if item.decided_after_release
        ],
        "tuning": ledger.header.get("tuning"),
        "dataset_budget": ledger.header.get("dataset_budget"),
        "ledger": {
            "run_id": ledger.header.get("run_id"),
            "last_line": ledger.head[0],
            "head": ledger.head[1],
        },
        "files": dict(files),
        "environment": dict(environment),
    }


def reasons_against(events: Iterable[Event], config: Mapping[str, Any]) -> list[str]:
    """Why a release is not fit for publication; empty where it is."""
    events = tuple(events)
    settings = config.get("config", {}).get("privacy", {})
    reasons = []
    if settings.get("as_published"):
        reasons.append(promises.AS_PUBLISHED)
    elif _has(events, NoiseKind.NONE) or settings.get("noise") == NoiseKind.NONE:
        reasons.append(promises.NO_NOISE)
    if settings.get("insecure_seed") is not None:
        reasons.append(promises.INSECURE_SEED)
    if _has(events, NoiseKind.CONTINUOUS) or settings.get("noise") == NoiseKind.CONTINUOUS:
        reasons.append(promises.CONTINUOUS)
    return reasons


def refuse_unpublishable(value: Any) -> None:
    """Walk through plain values and refuse anything that says of itself that it may not be published.

    Raises:
        NotPrivateError: such as a data-dependent cost.
    """
    if getattr(value, "publishable", True) is False:
        raise NotPrivateError(
            f"{type(value).__name__} depends on the records and may not be published: certify the "
            "data-independent cost"
        )
    if isinstance(value, Mapping):
        for part in value.values():
            refuse_unpublishable(part)
    elif isinstance(value, list | tuple):
        for part in value:
            refuse_unpublishable(part)


def _guarantee(ledger: Ledger, events: tuple[Event, ...], group_size: int) -> dict[str, Any]:
    first, *later = (item.authorisation for item in binding(ledger))
    if any((item.delta, item.accountant) != (first.delta, first.accountant) for item in later):
        raise LedgerError("authorisations differ in delta or accountant: there is no single guarantee")
    promised = max(item.guarantee() for item in [first, *later])
    proved = promised == first.guarantee()
    accountant = Accountant(first.accountant)
    spent = accountant.epsilon(events, first.delta)
    cautions = [] if proved else [promises.RAISED_TEXT]
    if spent > promised:
        if accountant.epsilon(_without_recovered(ledger), first.delta) > promised:
            raise LedgerError("more was released than was authorised: there is no guarantee to certify")
        cautions.append(promises.CUT_OFF_TEXT)
        promised, proved = spent, False
    if promises.WEAK_ABOVE < promised < math.inf:
        cautions.append(promises.WEAK_TEXT)
    if is_of_own_method(ledger.header):
        cautions.append(promises.OWN_METHOD)
    plan = planned_events(ledger, first) if promised == first.guarantee() else ()
    adjacency = str(ledger.header.get("adjacency", promises.BLANKED))
    one_record = tuple(_for_one_record(event, group_size) for event in plan)
    return {
        "epsilon": finite(promised),
        "delta": first.delta,
        "adjacency": adjacency,
        "adjacency_means": adjacency_means(ledger.header),
        "replace_one": replace_one(ledger, accountant, promised, plan, events, first.delta),
        "group_size": group_size,
        "epsilon_for_one_record": finite(accountant.epsilon(one_record, first.delta)) if plan else None,
        "accountant": str(first.accountant),
        "accountant_used": str(accountant.used_for(plan or events)),
        "under_other_accountants": _all_accountants(plan or counted(events, first), first.delta),
        "other_accountants_speak": promises.OF_PLAN if plan else promises.OF_SPENT,
        "planned_releases": first.num_releases,
        "ceiling_fixed_beforehand": proved,
        "cautions": cautions,
    }


def _spent(ledger: Ledger, authorisation: Authorisation, events: tuple[Event, ...]) -> dict[str, Any]:
    accountant, events = Accountant(authorisation.accountant), counted(events, authorisation)
    return {
        "epsilon": finite(accountant.epsilon(events, authorisation.delta)),
        "under_other_accountants": _all_accountants(events, authorisation.delta),
        "releases": sum(line.kind == LineKind.RELEASE for line in ledger.lines),
        "cut_off_lines_charged": sum(line.kind == LineKind.RECOVERED for line in ledger.lines)
        + ledger.was_cut_off,
        "mu": finite(_mu(events)),
        "note": promises.SPENT_TEXT,
    }


def _noise(events: tuple[Event, ...], config: Mapping[str, Any]) -> dict[str, Any]:
    insecure = config.get("config", {}).get("privacy", {}).get("insecure_seed") is not None
    noisy = [event for event in compact(events) if isinstance(event, NoisyEvent)]
    gaussian = [event for event in noisy if isinstance(event, GaussianEvent)]
    draws = [event.coordinates * event.count for event in noisy]
    return {
        "kinds": sorted({str(event.noise) for event in noisy}),
        "source": "insecure seed" if insecure else "operating system",
        "sensitivities": sorted({event.sensitivity for event in gaussian}),
        "stddevs": sorted({event.noise_stddev for event in gaussian}),
        "coordinates_drawn": sum(draws),
        "slack_eta": max((event.slack.eta for event in noisy), default=0.0),
        "slack_tau": max((event.slack.tau for event in noisy), default=0.0),
        "slack_in_epsilon": 2 * math.fsum(n * event.slack.eta for n, event in zip(draws, noisy, strict=True)),
        "slack_mass": math.fsum(n * event.slack.tau for n, event in zip(draws, noisy, strict=True)),
    }


def _releases(ledger: Ledger) -> list[dict[str, Any]]:
    """What was released, votes apart from scores, equal ones counted; of a tuning, by the best try."""
    made = []
    for line in ledger.lines:
        if line.kind != LineKind.RELEASE:
            continue
        event = event_from_json(line.body["event"])
        if isinstance(event, TuningEvent):
            chosen = map(event_from_json, ledger.header.get("tuning", {}).get("chosen", ()))
            made += zip(("votes", "score"), chosen, strict=False)
        else:
            made.append((_kind_of(line.body.get("note") or {}), event))
    return [
        {"what": what, **_terms(event), "count": event.count}
        for what in dict.fromkeys(["votes", "score", *(kind for kind, _ in made)])
        for event in compact(event for kind, event in made if kind == what)
    ]


def _terms(event: Event) -> dict[str, float]:
    """What decides the cost of one release."""
    if isinstance(event, GaussianEvent):
        return {"sensitivity": event.sensitivity, "noise_stddev": event.noise_stddev}
    if isinstance(event, PoissonGaussianEvent):
        return {
            "sampling_probability": event.sampling_probability,
            "noise_multiplier": event.noise_multiplier,
        }
    raise LedgerError("a tuning names no tries of its own: its header is damaged; restore the ledger")


def _kind_of(note: Mapping[str, Any]) -> str:
    """What a release line is of: a score, what a baseline says, or votes."""
    return "score" if "score" in note else str(note.get("what", "votes"))


def _drawn(events: Iterable[Event], ledger: Ledger) -> tuple[Event, ...]:
    """The releases whose noise lies in ``release/``; of a tuning, those of the best try."""
    events = tuple(events)
    found = tuple(event for event in events if not isinstance(event, TuningEvent))
    if len(found) == len(events):
        return found
    chosen = ledger.header.get("tuning", {}).get("chosen", ())
    return found + tuple(event_from_json(event) for event in chosen)


def _changes(ledger: Ledger) -> list[dict[str, Any]]:
    return [dict(line.body) for line in ledger.lines if line.kind == LineKind.SETTINGS]


def _without_recovered(ledger: Ledger) -> list[Event]:
    return [event_from_json(line.body["event"]) for line in ledger.lines if line.kind == LineKind.RELEASE]


def _for_one_record(event: Event, group_size: int) -> Event:
    if isinstance(event, TuningEvent):
        return replace(event, mu=event.mu / group_size)
    if isinstance(event, GaussianEvent):
        return replace(event, sensitivity=event.sensitivity / group_size)
    return event  # of a group, and no less than of one of its records


def _all_accountants(events: tuple[Event, ...], delta: float) -> dict[str, float | None]:
    return {str(kind): finite(Accountant(kind).epsilon(events, delta)) for kind in AccountantKind}


def _mu(events: tuple[Event, ...]) -> float:
    """Of all Gaussian releases together; infinite where there is none such number, as of sampled steps."""
    if any(isinstance(event, PoissonGaussianEvent) for event in events):
        return math.inf
    known = [event for event in compact(events) if isinstance(event, GaussianEvent | TuningEvent)]
    return math.sqrt(math.fsum(event.mu**2 * event.count for event in known)) if known else 0.0


def _has(events: Iterable[Event], noise: NoiseKind) -> bool:
    return any(isinstance(event, NoisyEvent) and event.noise is noise for event in events)
