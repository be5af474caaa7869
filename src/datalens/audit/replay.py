"""The ledger replayed: what was spent, in which order, under a second reader and a second accountant.

Reading and pricing are those of ``datalens verify``, which share no code with what wrote the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from datalens.audit.direction_reader import read_direction_records
from datalens.audit.findings import Finding, failed
from datalens.audit.ledger_reader import Difference, Entry, read_entries
from datalens.audit.second_curves import epsilon_again
from datalens.audit.second_sampling import most_of
from datalens.privacy.accountant import Accountant
from datalens.privacy.events import event_from_json

AGREEMENT = 1e-4
"""Relative difference between the two accountants that counts as none; of sampled steps, from the nearer end."""
_ROUNDING = 1e-6
_PAID = ("release", "recovered")


def replay_ledger(path: Path, directions: Path | None = None, *, one_a_step: bool = True) -> list[Finding]:
    """Chain, order and cost of a ledger file; with a record of directions, that each was paid for once.

    The chain comes first; where it is broken, nothing else is looked at.

    Args:
        path: of the ledger.
        directions: of what was released, where that is kept.
        one_a_step: a step is charged once; without, it may hold several releases, and steps never go back.
    """
    try:
        entries = read_entries(path)
    except Difference as error:
        return [failed("ledger-chain", str(error))]
    findings = [Finding("ledger-chain", True, f"{len(entries)} lines, each hashed with the one before")]
    order = partial(_check_order, one_a_step=one_a_step)
    for name, check in (("ledger-order", order), ("ledger-cost", _check_cost)):
        try:
            findings.append(check(entries))
        except (Difference, KeyError, TypeError, ValueError) as error:
            findings.append(
                failed(name, f"a line cannot be understood ({' '.join(str(error).split()):.120})")
            )
    if directions is not None:
        findings.append(_check_directions(entries, directions))
    return findings


def _check_order(entries: Sequence[Entry], *, one_a_step: bool) -> Finding:
    """Authorised before it is spent; every step charged once where that is the rule, and in order."""
    wrong: list[str] = []
    authorised = "authorisation" in entries[0].body
    last_step, late, releases = -1, 0, 0
    for entry in entries[1:]:
        if entry.kind == "authorisation":
            authorised = True
            late += releases > 0
        if entry.kind in _PAID:
            releases += 1
            if not authorised:
                wrong.append(f"line {entry.number} spends before anything is authorised")
        step = entry.body.get("note", {}).get("step") if entry.kind == "release" else None
        if step is not None:
            if step < last_step or (one_a_step and step == last_step):
                wrong.append(f"line {entry.number} charges step {step} after step {last_step}")
            last_step = step
    text = wrong[0] if wrong else f"{releases} releases, each after what authorises it and in order of steps"
    if late:
        text += f"; {late} authorisations were decided after a release, which no proof covers"
    return Finding("ledger-order", not wrong, text, {"releases": releases, "late_authorisations": late})


def _check_cost(entries: Sequence[Entry]) -> Finding:
    """What was spent is below what was in force whenever that changed, and at the end; both accountants agree."""
    in_force: dict[str, Any] | None = entries[0].body.get("authorisation")
    spent: list[dict[str, Any]] = []
    for entry in entries[1:]:
        if entry.kind == "authorisation":
            over = _over(spent, in_force)
            if over is not None:
                return over
            in_force = entry.body["authorisation"]
        spent += entry.charges
    if in_force is None:
        return failed("ledger-cost", "the ledger authorises nothing")
    if in_force["epsilon"] is None:
        return failed("ledger-cost", "the run was authorised without a guarantee")
    return _over(spent, in_force) or _agreement(spent, in_force)


def _over(spent: list[dict[str, Any]], in_force: dict[str, Any] | None) -> Finding | None:
    if in_force is None or in_force["epsilon"] is None:
        return None
    cost = epsilon_again(spent, in_force["delta"], in_force["accountant"])
    ceiling = in_force["epsilon"]
    if cost <= ceiling * (1 + _ROUNDING):
        return None
    count = sum(event.get("count", 1) for event in spent)
    text = f"{count} releases cost epsilon {cost:.4f}, above {ceiling:.4f} authorised"
    return failed("ledger-cost", text, spent=cost, authorised=ceiling)


def _agreement(spent: list[dict[str, Any]], in_force: dict[str, Any]) -> Finding:
    delta, kind, ceiling = in_force["delta"], in_force["accountant"], in_force["epsilon"]
    ours = Accountant(kind).epsilon([event_from_json(event) for event in spent], delta)
    second = epsilon_again(spent, delta, kind)
    most = most_of(second)  # sampled steps: what passes is a range, since an account may try few orders
    agree = second * (1 - AGREEMENT) <= ours <= most * (1 + AGREEMENT)
    by_second = f"{second:.4f}" if most == second else f"{second:.4f} to {most:.4f}"
    text = f"epsilon {by_second} by a second accountant, {ours:.4f} by ours, {ceiling:.4f} authorised"
    numbers = {
        "second": float(second),
        "ours": ours,
        "authorised": ceiling,
        "delta": delta,
        "accountant": kind,
    }
    return Finding("ledger-cost", agree, text, numbers)


def _check_directions(entries: Sequence[Entry], path: Path) -> Finding:
    """Every released direction has a paid line of its own."""
    try:
        named = [record.paid_by for record in read_direction_records(path)]
    except Difference as error:
        return failed("ledger-directions", str(error))
    paid = {entry.digest for entry in entries if entry.kind == "release"}
    unpaid = sum(digest not in paid for digest in named)
    tuned = {
        entry.digest for entry in entries if any(event.get("type") == "tuning" for event in entry.charges)
    }  # one line pays for all the steps of the try that was chosen
    shared = len(named) - len(set(named)) if not set(named) <= tuned else 0
    text = (
        f"{len(named)} directions released, {unpaid} without a line of the ledger, {shared} that share one with "
        "another"
    )
    return Finding("ledger-directions", not (unpaid or shared), text, {"unpaid": unpaid, "shared": shared})
