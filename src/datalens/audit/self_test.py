"""Does the audit see anything? Break the product on purpose and look whether every break is caught."""

from __future__ import annotations

from collections.abc import Callable

from datalens.audit.findings import Finding, Report
from datalens.audit.run import audit_subject
from datalens.audit.sabotage import SABOTAGES
from datalens.audit.subject import Subject
from datalens.training.config import Config

TRIALS = 20_000
DRAWS = 60_000
SOUND = "nothing broken"


def self_test_subject() -> Subject:
    """A small product to break: kernel teachers on 12x12 images."""
    config = Config().replace(voting__top_k=40, voting__batch_size=4, voting__num_steps=40)
    return Subject.of(config, (1, 12, 12), 4)


def self_test(subject: Subject | None = None, tell: Callable[[Finding], None] = lambda _: None) -> Report:
    """Audit the sound product, which must pass, and every broken one, which must not.

    A finding fails where the audit is wrong. Seconds, not minutes: sizes are small, since whatever is broken
    here is broken by much.
    """
    subject = subject or self_test_subject()
    findings: list[Finding] = []
    for name, sabotage in {SOUND: lambda sound: sound, **SABOTAGES}.items():
        found = Report(tuple(audit_subject(sabotage(subject), TRIALS, DRAWS)))
        finding = told(name, found, wanted=name != SOUND)
        findings.append(finding)
        tell(finding)
    return Report(tuple(findings))


def told(name: str, found: Report, *, wanted: bool) -> Finding:
    """What an audit of the product came to; passes where it was caught as ``wanted``."""
    caught_by = [finding.name for finding in found.failures]
    said = f"caught by {', '.join(caught_by)}" if caught_by else "nothing found"
    return Finding(
        "self-test",
        bool(caught_by) == wanted,
        f"{name}: {said}",
        {"sabotage": name, "caught_by": caught_by},
        found.false_alarm if not wanted else 0.0,
    )
