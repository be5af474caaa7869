"""One audit of a baseline's run, or of any :class:`BaselineSubject`, to a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from datalens.audit.baseline_budget import audit_budget
from datalens.audit.baseline_checks import (
    audit_mechanism,
    audit_noise,
    audit_releases,
    audit_sampling,
    audit_sensitivity,
)
from datalens.audit.baseline_doors import DOORS
from datalens.audit.baseline_isolation import audit_crossing, audit_isolation
from datalens.audit.baseline_subject import BaselineSubject
from datalens.audit.findings import Finding, Report, failed, gathered
from datalens.audit.replay import replay_ledger
from datalens.audit.run import verified
from datalens.baselines.facts import BaselineFacts
from datalens.training.files import read_json
from datalens.training.run_folder import RunFolder

NOTHING_TO_AUDIT = "there is no guarantee to audit"

Tell = Callable[[Finding], None]


def audit_baseline(
    folder: Path,
    *,
    trials: int | None = None,
    draws: int | None = None,
    tell: Tell = lambda _: None,
) -> Report:
    """Audit a baseline's run: its files, and the product with the run's settings on this machine.

    Needs ``release/`` only, and changes nothing. A run without a guarantee fails in one line.

    Args:
        folder: of the run.
        trials: trials a side of the attack on each kind of release.
        draws: of noise of each kind, at the run's own standard deviation.
        tell: hears of every finding as it is made.

    Raises:
        DataLensError: there is no run in the folder.
    """
    source = RunFolder.open(folder)
    facts = BaselineFacts.from_json(read_json(source.config), source.config)
    refusal = without_guarantee(facts)
    if refusal is not None:
        tell(refusal)
        return Report((refusal,))
    findings = replay_ledger(source.ledger, one_a_step=False)
    if source.certificate.is_file():
        findings.append(verified(source.root))
    for finding in findings:
        tell(finding)
    if findings[0].passed:
        config = facts.config
        subject = BaselineSubject.of(config.settings, config.privacy, facts.size)
        findings += audit_baseline_subject(subject, trials, draws, tell)
    return Report(tuple(findings))


def without_guarantee(facts: BaselineFacts) -> Finding | None:
    """The one line about a run that promises nothing, or whose releases the audit has no eyes for."""
    method = facts.config.method
    if not facts.config.privacy.is_private:
        why = "runs without noise" if facts.config.privacy.adds_noise is False else "runs as published"
        return failed("guarantee", f"{method} {why}: {NOTHING_TO_AUDIT}")
    if method not in DOORS:
        return failed("guarantee", f"{method}: the audit does not know its releases")
    return None


def audit_baseline_subject(
    subject: BaselineSubject,
    trials: int | None = None,
    draws: int | None = None,
    tell: Tell = lambda _: None,
) -> list[Finding]:
    """Every check that looks at the product itself, cheap ones first; the self-test's entry too."""
    checks: tuple[Callable[[], Finding | list[Finding]], ...] = (
        lambda: audit_releases(subject),
        lambda: audit_budget(subject),
        lambda: audit_crossing(subject),
        lambda: audit_isolation(subject),
        lambda: audit_sensitivity(subject),
        lambda: audit_sampling(subject),
        lambda: audit_noise(subject, draws),
        lambda: audit_mechanism(subject, trials),
    )
    return gathered(checks, tell)
