"""``datalens audit``: attack a run's own guarantee, one verdict line, exit status 0 or 1."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from datalens.cli.known import DATALENS, SOURCES
from datalens.cli.options import data_options, data_settings, json_option, quiet_option
from datalens.cli.output import STDOUT, Output, refuse_released
from datalens.cli.params import Once, Text, Whole
from datalens.errors import ConfigError

if TYPE_CHECKING:
    from datalens.audit.findings import Finding, Report
    from datalens.data.images import LabelledImages
    from datalens.training.facts import PublicFacts

CAUGHT = 1
"""Exit status where a check failed."""
_MOST_TRIALS = 50_000_000


@click.command(cls=Once, short_help="Attack a run's own guarantee.")
@click.argument("run", type=Text(paths=True))
@click.option(
    "--self-test", is_flag=True, help="Also break the product on purpose: all of it must be caught."
)
@click.option("--twin", is_flag=True, help="Also train a second model with canaries, never to be released.")
@click.option(
    "--data",
    "source",
    type=Text(*SOURCES, paths=True),
    metavar="SOURCE",
    help="With --twin: records beside the canaries.",
)
@click.option(
    "--trials",
    type=Whole(1000),
    metavar="N",
    show_default="4000000; 20000 for discrete noise",
    help="Releases a side of the attack on the mechanism.",
)
@data_options
@quiet_option
@json_option
def audit(run: str, source: str | None, **options: Any) -> int:
    """Try to catch RUN leaking more than it claims; exit with 0 (nothing found) or 1 (caught).

    Checks the ledger under a second accountant, the partition, the budget, the isolation of teachers, the noise,
    and attacks the mechanism with the worst votes there are; of a baseline, each kind of release that it plans. RUN
    is not changed, but that a failure withdraws an earlier verdict of passing under RUN/release. A low bound is
    what an attack could show, never a proof. A run without a guarantee fails. A file under RUN/release gets no
    finding that was drawn from people's records, and `datalens report` shows its verdict.

    \b
    datalens audit runs/mnist
    datalens audit runs/mnist --self-test --json audit.json
    datalens audit runs/mnist --twin --data mnist
    """  # fmt: skip
    from datalens.audit.any_run import audit_run
    from datalens.audit.findings import Report
    from datalens.baselines.facts import facts_of
    from datalens.cli.fitness import unfit_line
    from datalens.training.facts import PublicFacts

    _check_options(run, source, options)
    output = Output(options["json_target"], quiet=options["quiet"])
    facts = facts_of(Path(run))
    if source is not None and not isinstance(facts, PublicFacts):
        raise ConfigError(
            f"--twin: is for runs of {DATALENS}, and {run} is one of {facts.config.method}; leave it out"
        )

    def tell(finding: Finding) -> None:
        output.say(f"{'ok  ' if finding.passed else 'FAIL'} {finding.name}: {finding.text}")

    data = _twin_data(source, facts, options) if source and isinstance(facts, PublicFacts) else None
    found = audit_run(run, trials=options["trials"], sabotage=options["self_test"], tell=tell)
    findings = list(found.findings)
    if data is not None and isinstance(facts, PublicFacts):
        from datalens.audit.twin import audit_twin
        from datalens.cli.progress import TrainingProgress
        from datalens.training.run_folder import RunFolder
        from datalens.training.starting import start_of

        with TrainingProgress(quiet=output.quiet) as progress:
            start = start_of(RunFolder.open(Path(run)), facts)
            findings.append(audit_twin(facts, data, start=start, tell=progress.tell))
        tell(findings[-1])
    report = Report(tuple(findings))
    last = unfit_line(facts.config)
    told = _told(report, Path(run), options["json_target"])
    if told is None:
        output.insist(f"{options['json_target']}: not written, as a check on people's records failed")
    else:
        is_shared = _is_released(options["json_target"], Path(run))
        place = {} if is_shared else {"run": run}  # a path of this machine
        output.finish({**place, "ledger_head": _head(Path(run)), **told.to_json(), "note": last})
    _withdraw(report, Path(run), output)
    if last is not None:
        output.insist(last)
    output.insist(report.verdict)
    return 0 if report.passed else CAUGHT


def _told(report: Report, run: Path, target: str | None) -> Report | None:
    """What is written to ``target``: under ``release/`` without what was drawn from people's records.

    None where that would say less than the truth, since one of those checks failed.
    """
    from datalens.audit.findings import Report

    if not _is_released(target, run):
        return report
    if any(finding.private for finding in report.failures):
        return None
    return Report(tuple(finding for finding in report.findings if not finding.private))


def _withdraw(report: Report, run: Path, output: Output) -> None:
    """After a failed audit no earlier verdict that the run passed stays published, nor the page that shows it."""
    from datalens.reports.facts import AUDIT
    from datalens.training.files import read_json
    from datalens.training.run_folder import RunFolder

    folder = RunFolder.open(run)
    published = folder.release / AUDIT
    if report.passed or not published.is_file() or read_json(published).get("passed") is not True:
        return
    folder.report.unlink(missing_ok=True)
    published.unlink()
    output.insist(
        f"{published}: withdrawn, as it said that the run passed, and {folder.report.name} with it; audit again when "
        "the failure is understood"
    )


def _is_released(target: str | None, run: Path) -> bool:
    """Whether a file lies in what a run shares, be it this one or another."""
    from datalens.training.run_folder import RunFolder

    if target in (None, STDOUT):
        return False
    return RunFolder.shares(run, Path(target)) or RunFolder.is_shared(Path(target))


def _head(run: Path) -> str | None:
    """The hash of the ledger's last line: which state of the run was audited; None of a damaged ledger."""
    from datalens.errors import LedgerError
    from datalens.privacy.ledger import Ledger
    from datalens.training.run_folder import RunFolder

    try:
        return Ledger.read(RunFolder.open(run).ledger).head[1]
    except LedgerError:  # which the audit has found
        return None


def _check_options(run: str, source: str | None, options: dict[str, Any]) -> None:
    if options["twin"] != (source is not None):
        raise ConfigError("--twin and --data SOURCE go together: give both, or neither")
    if (options["trials"] or 0) > _MOST_TRIALS:
        raise ConfigError(f"--trials {options['trials']}: give at most {_MOST_TRIALS}")
    if options["twin"]:
        refuse_released("--json", options["json_target"], [run])


def _twin_data(source: str, facts: PublicFacts, options: dict[str, Any]) -> LabelledImages:
    from datalens.audit.twin import check_twin_data
    from datalens.data import list_sources, load

    settings = data_settings(options)
    if source not in [known.name for known in list_sources()]:
        settings.setdefault("classes", facts.classes)
    data = load(source, split="train", **settings)
    check_twin_data(facts, data)
    return data
