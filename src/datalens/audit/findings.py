"""What an audit found, in one shape for people, machines and continuous integration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

NOT_A_PROOF = "a low bound is what this attack could show, never a proof"


@dataclass(frozen=True)
class Finding:
    """One check.

    Attributes:
        name: short and fixed, such as ``mechanism``.
        passed: False only where the product does not do what it claims.
        text: one line: what was seen, beside what is claimed.
        numbers: the same for machines.
        false_alarm: chance that a correct product fails this check; 0 where nothing is drawn.
        private: drawn from people's records, so not to be published.
    """

    name: str
    passed: bool
    text: str
    numbers: dict[str, Any] = field(default_factory=dict)
    false_alarm: float = 0.0
    private: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "passed": self.passed,
            "text": self.text,
            "numbers": self.numbers,
            "false_alarm": self.false_alarm,
            "private": self.private,
        }


@dataclass(frozen=True)
class Report:
    """All findings of one audit."""

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether there are findings and none failed."""
        return bool(self.findings) and not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that failed."""
        return tuple(finding for finding in self.findings if not finding.passed)

    @property
    def false_alarm(self) -> float:
        """Bound on the chance that a correct product fails anywhere."""
        return min(1.0, sum(finding.false_alarm for finding in self.findings))

    @property
    def verdict(self) -> str:
        """One line.

        >>> Report((Finding("mechanism", True, "fine"),)).verdict
        'PASS: 1 check found nothing against the claim (false alarms: 0); not a proof'
        """
        if not self.findings:
            return "FAIL: nothing was checked"
        if self.failures:
            first = self.failures[0]
            more = len(self.failures) - 1
            return f"FAIL: {first.name}: {first.text}" + (f" (and {more} more)" if more else "")
        count = f"{len(self.findings)} check{'s' if len(self.findings) > 1 else ''}"
        return f"PASS: {count} found nothing against the claim (false alarms: {self.false_alarm:.1g}); not a proof"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "passed": self.passed,
            "verdict": self.verdict,
            "false_alarm": self.false_alarm,
            "findings": [finding.to_json() for finding in self.findings],
        }


def failed(name: str, text: str, **numbers: Any) -> Finding:
    """A finding of something certain that is wrong."""
    return Finding(name, False, text, numbers)


def gathered(
    checks: Iterable[Callable[[], Finding | list[Finding]]], tell: Callable[[Finding], None]
) -> list[Finding]:
    """What checks find, in their order; ``tell`` hears of every finding as it is made."""
    findings: list[Finding] = []
    for check in checks:
        found = check()
        for finding in found if isinstance(found, list) else [found]:
            findings.append(finding)
            tell(finding)
    return findings
