"""``datalens audit``: one verdict line, and an exit status for continuous integration."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from small_runs import config_to_audit

from datalens import DataLens
from datalens.cli.main import main
from datalens.data.shapes import draw_shapes

QUICK = ["--trials", "2000"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit") / "run"
    DataLens(config_to_audit()).fit(draw_shapes(60, image_size=8), out=folder)
    return folder


def test_sound_run_passes_and_stays_as_it_is(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert main(["audit", str(run), *QUICK, "--json", "-"]) == 0
    captured = capsys.readouterr()
    answer = json.loads(captured.out)
    assert answer["passed"]
    assert captured.err.strip().splitlines()[-1] == answer["verdict"]
    names = {finding["name"] for finding in answer["findings"]}
    assert {"ledger-chain", "ledger-cost", "ledger-directions", "partition", "mechanism", "shards"} <= names
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_quiet_says_the_verdict_alone(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(run), *QUICK, "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("PASS: ")


def test_changed_ledger_fails_with_status_1(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    copy = shutil.copytree(run, tmp_path / "copy")
    ledger = copy / "release" / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"step":1', b'"step":9'))
    assert main(["audit", str(copy), *QUICK, "-q"]) == 1
    assert capsys.readouterr().out.startswith("FAIL: ledger-chain: ")


def test_twin_is_reported(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["audit", str(run), *QUICK, "--twin", "--data", "shapes", "--image-size", "8", "--json", "-"])
        == 0
    )
    twin = json.loads(capsys.readouterr().out)["findings"][-1]
    assert twin["name"] == "twin"
    assert twin["private"]
    assert twin["numbers"]["canaries"] == 10


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--twin"], "go together"),
        (["--data", "shapes"], "go together"),
        (["--trials", "5"], "too small"),
        (["--twin", "--data", "shapes"], "images of size"),
        (["--trials", "999999999999"], "at most"),
    ],
)
def test_mistakes_exit_with_status_2(
    run: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(run), *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("error: ")
    assert said in error
    assert "\n" not in error


def test_twin_is_not_written_under_release(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = run / "release" / "audit.json"
    assert main(["audit", str(run), "--twin", "--data", "shapes", "--json", str(target)]) == 2
    assert not target.exists()
    assert "release/" in capsys.readouterr().err


def test_no_run_is_a_mistake(tmp_path: Path) -> None:
    assert main(["audit", str(tmp_path)]) == 2


def test_what_lies_under_release_names_no_place(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = run / "release" / "audit.json"
    try:
        main(["audit", str(run), *QUICK, "--json", str(target)])
        assert str(run) not in target.read_text() and "run" not in json.loads(target.read_text())
    finally:
        target.unlink(missing_ok=True)


def test_private_findings_go_under_nobodys_release(run: Path, tmp_path: Path) -> None:
    target = shutil.copytree(run, tmp_path / "other") / "release" / "audit.json"
    assert main(["audit", str(run), *QUICK, "--json", str(tmp_path / "whole.json")]) == 0
    whole = json.loads((tmp_path / "whole.json").read_text())
    assert any(finding["private"] for finding in whole["findings"])
    assert main(["audit", str(run), *QUICK, "--json", str(target)]) == 0
    assert not any(finding["private"] for finding in json.loads(target.read_text())["findings"])
    twin = ["audit", str(run), "--twin", "--data", "shapes", "--json", str(target)]
    assert main(twin) == 2


def test_a_failed_audit_withdraws_an_earlier_verdict(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from datalens.audit import any_run
    from datalens.audit.findings import Finding, Report

    copy = Path(shutil.copytree(run, tmp_path / "other"))
    target, page = copy / "release" / "audit.json", copy / "release" / "report.html"

    def audited(*, passes: bool, private: bool = True) -> int:
        found = Report((Finding("partition", passes, "so", {}, private=private),))
        monkeypatch.setattr(any_run, "audit_run", lambda *_, **__: found)
        return main(["audit", str(copy), "--json", str(target)])

    assert audited(passes=True, private=False) == 0
    page.write_text("passed")
    assert audited(passes=False) == 1
    assert not target.exists() and not page.exists()
    assert f"{target}: withdrawn" in capsys.readouterr().out
    assert audited(passes=False, private=False) == 1
    assert json.loads(target.read_text())["passed"] is False
    assert main(["audit", str(copy)]) == 1 and target.exists()  # it says what is so
