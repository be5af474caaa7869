"""The audit passes sound baselines, comes near to what they claim, and catches every broken one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from baseline_scene import shapes
from small_baselines import SMALL

from datalens import audit_run
from datalens.audit import baseline_checks as checks
from datalens.audit import noise_law
from datalens.audit.adversaries import ADVERSARIES
from datalens.audit.baseline_budget import audit_budget
from datalens.audit.baseline_doors import DOORS
from datalens.audit.baseline_isolation import ANSWERS, audit_crossing, audit_isolation
from datalens.audit.baseline_run import audit_baseline_subject
from datalens.audit.baseline_sabotage import BASELINE_SABOTAGES
from datalens.audit.baseline_self_test import SETTINGS, baseline_self_test, baseline_self_test_subject
from datalens.audit.baseline_subject import BaselineSubject
from datalens.audit.findings import Finding, Report
from datalens.audit.sabotage import ScaledNoise
from datalens.baselines.model import Baseline
from datalens.baselines.registry import METHODS, baseline
from datalens.cli.main import main
from datalens.training.sections import Privacy, validated

NEEDS_OPACUS = "dp-gan"
NEAR = {"judge gradient": 0.91}
"""Of the bound, where the grid is so coarse that room for its rounding is a larger part; else 0.97."""
Check = Callable[[BaselineSubject], Finding | list[Finding]]


def mechanism(subject: BaselineSubject) -> list[Finding]:
    return checks.audit_mechanism(subject, 10_000)


def noise(subject: BaselineSubject) -> list[Finding]:
    return checks.audit_noise(subject, 40_000)


CAUGHT_BY: dict[str, dict[Check, set[str]]] = {
    "half the noise": {noise: {"noise-stddev", "noise-shape"}, mechanism: {"mechanism"}},
    "division by the true number of records": {audit_crossing: {"crossing"}},
    "a repeated noise stream": {noise: {"noise-independence", "noise-fresh"}},
    "residuals from means that nobody released": {
        checks.audit_sensitivity: {"sensitivity"},
        audit_crossing: {"crossing"},
    },
    "votes charged by half": {checks.audit_sensitivity: {"sensitivity"}, mechanism: {"mechanism"}},
    "noise before the budget": {audit_budget: {"budget-first"}},
    "a teacher that sees another's record": {audit_isolation: {"isolation"}},
    "a moved vote charged as a withdrawn one": {
        checks.audit_sensitivity: {"sensitivity"},
        mechanism: {"mechanism"},
    },
    "gradients that nobody clips": {checks.audit_sensitivity: {"sensitivity"}, mechanism: {"mechanism"}},
    "a lot clipped as a whole": {checks.audit_sensitivity: {"sensitivity"}},
    "lots larger than charged": {checks.audit_sampling: {"sampling"}},
}


def subject_of(method: str, **privacy: Any) -> BaselineSubject:
    if method == NEEDS_OPACUS:
        pytest.importorskip("opacus")
    return baseline_self_test_subject(method, validated(Privacy, {"epsilon": 4.0, **privacy}))


def found_by(check: Check, subject: BaselineSubject) -> list[Finding]:
    found = check(subject)
    return found if isinstance(found, list) else [found]


def failures(check: Check, subject: BaselineSubject) -> set[str]:
    return {finding.name for finding in found_by(check, subject) if not finding.passed}


def test_every_sabotage_has_its_alarm() -> None:
    assert CAUGHT_BY.keys() == BASELINE_SABOTAGES.keys()


@pytest.mark.parametrize("name", BASELINE_SABOTAGES)
def test_a_broken_baseline_is_caught_and_by_what_should_catch_it(name: str) -> None:
    method, sabotage = BASELINE_SABOTAGES[name]
    broken = sabotage(subject_of(method))
    for check, alarms in CAUGHT_BY[name].items():
        assert alarms <= failures(check, broken), check


@pytest.mark.parametrize("method", SETTINGS)
def test_a_sound_baseline_passes_and_the_attacks_come_near(method: str) -> None:
    report = Report(tuple(audit_baseline_subject(subject_of(method), 20_000, 40_000)))
    assert report.passed, report.verdict
    for finding in report.findings:
        if finding.name == "sensitivity":
            assert finding.numbers["share"] > NEAR.get(finding.numbers["release"], 0.97), finding.text
        if finding.name == "mechanism":
            first, second, *_ = finding.numbers["scales"]
            assert 0.2 < second["epsilon"] / second["claimed_epsilon"] <= 1, finding.text
            if method != NEEDS_OPACUS:  # whose lots hide the record besides
                assert all(0.7 < scale["mu"] / scale["claimed_mu"] <= 1 for scale in (first, second))


@pytest.mark.parametrize("method", SETTINGS)
def test_all_records_of_a_person_are_charged_for(method: str) -> None:
    for finding in checks.audit_sensitivity(subject_of(method, group_size=3)):
        assert finding.passed and finding.numbers["share"] > NEAR.get(finding.numbers["release"], 0.97), (
            finding.text
        )


@pytest.mark.parametrize("changes", [{"noise": "continuous-gaussian"}, {"insecure_seed": 7}], ids=str)
def test_other_noise_passes(changes: dict[str, Any]) -> None:
    subject = subject_of("pate-gan", **changes)
    for check in (audit_budget, noise, mechanism):
        assert failures(check, subject) == set()


def test_releases_too_short_to_be_told_apart_alone_are_joined() -> None:
    rng = np.random.default_rng(0)
    short = np.round(rng.normal(0, 5.0, (4000, 4)))
    assert noise_law.check_fresh(short, 5.0).passed
    assert not noise_law.check_fresh(np.concatenate([short[:2000]] * 2), 5.0).passed
    assert not noise_law.check_fresh(np.repeat(short[:1], 4000, 0), 5.0).passed


@pytest.mark.parametrize("scale", [0.95, 1.05])
def test_a_little_more_or_less_noise_than_claimed_is_found(scale: float) -> None:
    sound = subject_of("g-pate")
    broken = replace(sound, noise_for=lambda what, number: ScaledNoise(sound.noise_for(what, number), scale))
    found = [finding for finding in noise(broken) if finding.name == "noise-stddev"]
    assert [finding.passed for finding in found] == [False, False], "checks and answers"


def test_every_private_method_can_be_audited() -> None:
    private = METHODS.keys() - {"dc-gan"}
    assert private <= DOORS.keys() and DOORS.keys() == ADVERSARIES.keys() == SETTINGS.keys()
    for method in SETTINGS.keys() - {NEEDS_OPACUS}:
        assert (subject_of(method).num_shards > 0) == (method in ANSWERS)


def test_the_self_test_reports_each_break_and_fails_where_one_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"nothing at all": ("dp-merf", lambda subject: subject)}
    monkeypatch.setattr("datalens.audit.baseline_self_test.BASELINE_SABOTAGES", broken)
    report = baseline_self_test(("dp-merf", "dc-gan"))
    assert [finding.passed for finding in report.findings] == [True, False]
    assert "nothing at all: nothing found" in report.verdict


def trained(method: str, out: Path) -> Path:
    privacy: dict[str, Any] = {"noise": "none"} if method == "dc-gan" else {"epsilon": 2.0, "delta": 1e-3}
    Baseline(baseline(method, SMALL[method], **privacy)).fit(shapes(100), out=out)
    return out


@pytest.mark.parametrize("method", [name for name in SMALL if name != "dc-gan"])
def test_a_run_is_audited_and_stays_as_it_is_and_a_changed_ledger_is_caught(
    tmp_path: Path, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained(method, tmp_path / "run")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert main(["audit", str(run), "--trials", "1000", "--json", "-"]) == 0
    answer = json.loads(capsys.readouterr().out)
    names = {finding["name"] for finding in answer["findings"]}
    assert answer["passed"] and {"ledger-order", "ledger-cost", "verify", "sensitivity", "mechanism"} <= names
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    ledger = run / "release" / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"step":0', b'"step":1'))
    assert main(["audit", str(run), "--quiet"]) == 1
    assert capsys.readouterr().out.startswith("FAIL: ledger-chain: ")


def test_a_run_without_a_guarantee_fails_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained("dc-gan", tmp_path / "run")
    report = audit_run(run)
    assert [finding.name for finding in report.findings] == ["guarantee"] and not report.passed
    assert main(["audit", str(run), "--quiet"]) == 1
    assert (
        "FAIL: guarantee: dc-gan runs without noise: there is no guarantee to audit"
        in capsys.readouterr().out
    )
