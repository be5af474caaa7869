"""One audit from a run's folder (or any :class:`Subject`) to a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from datalens.audit.bookkeeping import audit_budget, audit_partition
from datalens.audit.findings import Finding, Report, gathered
from datalens.audit.isolation import audit_isolation, audit_shards
from datalens.audit.mechanism import audit_mechanism, audit_sensitivity
from datalens.audit.noise_law import audit_noise, default_draws
from datalens.audit.replay import replay_ledger
from datalens.audit.subject import Subject
from datalens.audit.verify import verify_run
from datalens.privacy.ledger import Ledger
from datalens.training.facts import PublicFacts, read_facts
from datalens.training.run_folder import RunFolder
from datalens.training.terms import terms_in_force


def audit_datalens(
    folder: Path,
    *,
    trials: int | None = None,
    draws: int | None = None,
    tell: Callable[[Finding], None] = lambda _: None,
) -> Report:
    """Audit a run of DataLens: its files, and the product with the run's settings on this machine.

    Needs ``release/`` only; where ``private/`` is still there, the slot map is checked too. Nothing in the
    folder is changed.

    Args:
        folder: of the run.
        trials: trials a side of the attack on the mechanism.
        draws: of noise at the run's own standard deviation.
        tell: hears of every finding as it is made.

    Raises:
        DataLensError: there is no run in the folder.
    """
    source = RunFolder.open(folder)
    findings = audit_files(source)
    for finding in findings:
        tell(finding)
    if findings[0].passed:  # the settings in force are read from a ledger that can be trusted to be whole
        findings += audit_subject(subject_of(source), trials, draws, tell)
    return Report(tuple(findings))


def audit_files(source: RunFolder) -> list[Finding]:
    """The ledger against other eyes and an independent accountant, all that is released against the ledger."""
    findings = replay_ledger(source.ledger, source.directions if source.directions.exists() else None)
    if source.partition.is_file():
        findings.append(audit_partition(source.partition))
    if source.certificate.is_file():
        findings.append(verified(source.root))
    return findings


def verified(root: Path) -> Finding:
    """What ``datalens verify`` says, so that an audit passes nothing that it would not."""
    differences = verify_run(root).differences
    text = (
        differences[0]
        if differences
        else "what is released agrees with the ledger, the certificate with both"
    )
    return Finding("verify", not differences, text, {"differences": differences})


def audit_subject(
    subject: Subject,
    trials: int | None = None,
    draws: int | None = None,
    tell: Callable[[Finding], None] = lambda _: None,
) -> list[Finding]:
    """Every check that looks at the product itself, cheap ones first; the self-test's entry too."""
    draws = draws or default_draws(subject.config.privacy.noise)
    checks: tuple[Callable[[], Finding | list[Finding]], ...] = (
        lambda: audit_budget(subject),
        lambda: audit_shards(subject),
        lambda: audit_isolation(subject),
        lambda: audit_sensitivity(subject),
        lambda: audit_noise(subject, draws),
        lambda: audit_mechanism(subject, trials),
    )
    return gathered(checks, tell)


def subject_of(source: RunFolder) -> Subject:
    """The product as the run uses it, on the terms in force."""
    facts: PublicFacts = read_facts(source)
    config = terms_in_force(Ledger.read(source.ledger)).config(facts.config)
    return Subject(config, facts.image_shape, len(facts.classes), of_groups=facts.of_groups)
