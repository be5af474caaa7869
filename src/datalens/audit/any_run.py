"""The audit of a run of any method that makes generators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from datalens.audit.baseline_run import audit_baseline
from datalens.audit.baseline_self_test import baseline_self_test
from datalens.audit.findings import Finding, Report
from datalens.audit.run import audit_datalens
from datalens.audit.self_test import self_test
from datalens.baselines.facts import facts_of
from datalens.training.facts import PublicFacts


def audit_run(
    folder: Path | str,
    *,
    trials: int | None = None,
    draws: int | None = None,
    sabotage: bool = False,
    tell: Callable[[Finding], None] = lambda _: None,
) -> Report:
    """Attack the guarantee of a run of DataLens or of a method that it is compared with.

    Needs ``release/`` only, and changes nothing. A low bound is what an attack could show, never a proof.

    Args:
        folder: of the run.
        trials: trials a side of the attack on each kind of release; left out, the audit's own choice.
        draws: of noise, at the run's own standard deviation; left out, the audit's own choice.
        sabotage: also break the product on purpose, each time so that the audit must catch it.
        tell: hears of every finding as it is made.

    Returns:
        All findings; ``passed`` and a ``verdict`` of one line.

    Raises:
        DataLensError: there is no run in the folder, or it is one of a classifier.
    """
    root = Path(folder)
    facts = facts_of(root)
    if isinstance(facts, PublicFacts):
        found = audit_datalens(root, trials=trials, draws=draws, tell=tell).findings
        return Report((*found, *(self_test(tell=tell).findings if sabotage else ())))
    found = audit_baseline(root, trials=trials, draws=draws, tell=tell).findings
    method = facts.config.method
    return Report((*found, *(baseline_self_test((method,), tell=tell).findings if sabotage else ())))
