"""``datalens report``, and the pages that every training leaves."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest
from html_pages import check_page

MOMENTS = "[settings]\nlow_frequencies = 3\nrank = 4\n"


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of a finished run on drawn shapes."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def page_of(run: Path) -> Path:
    return run / "release" / "report.html"


def test_a_training_leaves_both_pages(trained: Path) -> None:
    page = check_page(page_of(trained).read_text())
    assert "DataLens on shapes" in page.text and len(page.of("img")) == 4
    own = trained / "private" / "report.html"
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert "Never to be shared" in check_page(own.read_text()).text


def test_the_page_is_a_function_of_what_was_released(call, run: Path, tmp_path: Path) -> None:
    """The same bytes without private/, from another place, with another time on every file."""
    shared = page_of(run).read_bytes()
    alone = tmp_path / "elsewhere" / "name <b>"
    shutil.copytree(run / "release", alone / "release", copy_function=shutil.copy)
    page_of(alone).unlink()
    answer = call("report", alone, "--json", "-")
    assert answer.status == 0, answer.err
    assert json.loads(answer.out)["private_page"] is None and not (alone / "private").exists()
    assert page_of(alone).read_bytes() == shared
    assert call("report", alone, "--replay").status == 0
    replayed = page_of(alone).read_bytes()
    assert call("report", run, "--replay").status == 0
    assert page_of(run).read_bytes() == replayed != shared


def test_private_scores_stand_on_the_private_page_alone(call, run: Path) -> None:
    before = page_of(run).read_bytes()
    words = ("evaluate", run, "--data", "shapes", "-n", "40", "--classifier", "logistic", "--epochs", "1")
    answer = call(*words, "--json", "-")
    accuracy = json.loads(answer.out)["utility"]["logistic"]["last_accuracy"]
    assert f"{100 * accuracy:.2f}%" in check_page((run / "private" / "report.html").read_text()).text
    assert page_of(run).read_bytes() == before
    assert call("report", run).status == 0 and page_of(run).read_bytes() == before


def test_a_released_score_brings_the_page_anew(call, run: Path) -> None:
    words = (
        "evaluate",
        run,
        "--data",
        "shapes",
        "-n",
        "40",
        "--classifier",
        "logistic",
        "--epochs",
        "1",
        "--charge",
    )
    assert call(*words).status == 0
    page = check_page(page_of(run).read_text())
    assert "The test images are public." in page.text and "private/report.html" not in page.text
    assert call("verify", run).status == 0


def test_the_page_is_no_difference_and_survives_a_purge(call, run: Path) -> None:
    (run / "release" / "foreign.txt").write_text("of somebody's own")
    assert call("verify", run).status == 0
    assert call("purge", run, "--yes").status == 0
    assert page_of(run).is_file() and not (run / "private").exists()


def test_its_time_is_the_certificates(run: Path, call) -> None:
    """When a tuning ended is a secret, so what is written later tells no time either."""
    import os

    certificate = run / "release" / "certificate.json"
    for path in (certificate, run / "release"):
        os.utime(path, (0, 0))
    assert call("report", run).status == 0
    assert page_of(run).stat().st_mtime == certificate.stat().st_mtime == 0
    assert (run / "release").stat().st_mtime == 0


def test_a_new_certificate_removes_the_page_of_the_old_one(run: Path) -> None:
    from datalens.privacy.ledger import Ledger
    from datalens.training.release import certify
    from datalens.training.run_folder import RunFolder

    folder = RunFolder.open(run)
    with Ledger.open(folder.ledger) as ledger:
        certify(folder, ledger)
    assert not folder.report.exists()


def test_an_audit_beside_it_is_shown(call, run: Path) -> None:
    target = run / "release" / "audit.json"
    assert call("audit", run, "--trials", "2000", "-q", "--json", target).status == 0
    findings = json.loads(target.read_text())["findings"]
    assert findings and not any(finding["private"] for finding in findings)
    assert call("report", run).status == 0
    text = check_page(page_of(run).read_text()).text
    assert "Audit" in text and json.loads(target.read_text())["verdict"] in text
    target.write_text(json.dumps(json.loads(target.read_text()) | {"ledger_head": "0" * 64}))
    assert call("report", run).status == 0
    assert "of an earlier state of this run" in check_page(page_of(run).read_text()).text


def test_a_failed_look_at_records_is_not_written_under_release(
    call, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datalens.audit import any_run
    from datalens.audit.findings import Finding, Report

    report = Report((Finding("ledger", True, "fine"), Finding("partition", False, "torn", private=True)))
    monkeypatch.setattr(any_run, "audit_run", lambda *_, **__: report)
    target = run / "release" / "audit.json"
    answer = call("audit", run, "--json", target)
    assert answer.status == 1 and "not written" in answer.out and not target.exists()
    assert call("audit", run, "--json", run / "private" / "audit.json").status == 1
    assert len(json.loads((run / "private" / "audit.json").read_text())["findings"]) == 2


def test_a_baseline_leaves_a_page(call, tmp_path: Path) -> None:
    (tmp_path / "moments.toml").write_text(MOMENTS)
    words = (
        "train",
        "shapes",
        "--method",
        "moments",
        "--epsilon",
        "9",
        "--config",
        tmp_path / "moments.toml",
    )
    answer = call(*words, "--out", tmp_path / "run")
    assert answer.status == 0 and f"report: {page_of(tmp_path / 'run')}" in answer.out
    page = check_page(page_of(tmp_path / "run").read_text())
    assert "By moments" in page.text and "class means" in page.text and len(page.of("img")) == 4
    complaint = call("report", tmp_path / "run", "--replay").complaint
    assert "--replay is for runs of DataLens" in complaint


def test_a_classifier_leaves_a_page(call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ("--epsilon", "8", "--num-steps", "2", "--batch-size", "64")
    assert call("dpsgd", "shapes", *words, "--out", run).status == 0
    page = check_page(page_of(run).read_text())
    assert (
        "A classifier of images" in page.text and "DPSGDClassifier.load" in page.text and not page.of("img")
    )
    assert "made a classifier" in call("report", run, "--replay").complaint


def test_a_run_that_is_not_there_is_one_line(call, tmp_path: Path) -> None:
    assert "holds no run" in call("report", tmp_path).complaint


def test_a_page_that_cannot_be_written_fails_no_training(call, quick, tmp_path: Path, monkeypatch) -> None:
    from datalens.cli import reporting
    from datalens.errors import RunError

    def refuse(run: Path) -> None:
        raise RunError(f"{run}: the disk is full; make room")

    monkeypatch.setattr(reporting, "write_pages", refuse)
    answer = call("train", "shapes", "--out", tmp_path / "run", *quick)
    assert answer.status == 0 and "no report was written" in answer.err


def test_what_the_paper_prints_stands_beside() -> None:
    from datalens.cli.paper_numbers import printed_for

    table = printed_for("mnist", 1.0)
    assert table is not None and table.header == ("Method", "epsilon 1", "epsilon 10")
    assert table.rows[0] == ("DataLens", "71.23%", "80.66%")
    assert table.rows[-1] == ("DC-GAN, without privacy", "96.53%", "96.53%")
    small = printed_for("fashion-mnist", 0.2)
    assert small is not None and small.header[1:] == tuple(
        f"epsilon {e:g}" for e in (0.2, 0.4, 0.6, 0.8, 1.0)
    )
    assert {row[0]: row[1:] for row in small.rows}["G-PATE"][-1] == "55.67%"
    assert printed_for("shapes", 1.0) is None is printed_for("private", None)


def _with(value: object, path: tuple[str | int, ...], new: object) -> object:
    """Plain values with one of them changed."""
    whole = json.loads(json.dumps(value))
    place = whole
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = new
    return whole


@pytest.mark.parametrize(
    ("path", "new"),
    [
        (("mechanism",), 1),
        (("noise", "releases"), None),
        (("spent",), {}),
        (("assumed_public",), []),
        (("guarantee", "replace_one", "epsilon"), "x"),
        (("not_covered",), 3),
        (("tuning",), 5),
        (("ledger",), {"run_id": "r"}),
        (("environment",), "<x>\n"),
    ],
)
def test_a_damaged_certificate_is_one_line(call, run: Path, path: tuple[str | int, ...], new: object) -> None:
    certificate = run / "release" / "certificate.json"
    certificate.write_text(json.dumps(_with(json.loads(certificate.read_text()), path, new)))
    before = page_of(run).read_bytes()
    answer = call("report", run)
    assert answer.status == 2 and "cannot be understood" in answer.err and len(answer.err.splitlines()) == 1
    assert page_of(run).read_bytes() == before


@pytest.mark.parametrize(
    ("path", "new"),
    [
        (("guarantee", "epsilon"), 0.01),
        (("guarantee", "epsilon"), float("nan")),
        (("guarantee", "epsilon"), None),
        (("guarantee", "delta"), 1e-9),
        (("guarantee", "adjacency"), "add-or-remove-one-group"),
        (("guarantee", "group_size"), 100),
        (("not_fit_because",), ["nothing"]),
        (("fit_for_publication",), False),
    ],
)
def test_no_page_promises_what_the_ledger_does_not(
    call, run: Path, tmp_path: Path, path: tuple[str, ...], new: object
) -> None:
    certificate = run / "release" / "certificate.json"
    certificate.write_text(json.dumps(_with(json.loads(certificate.read_text()), path, new)))
    before = page_of(run).read_bytes()
    for words in (("report", run), ("compare", run, shutil.copytree(run, tmp_path / "b"))):
        answer = call(*words)
        assert answer.status == 2 and f"says another {path[-1]} than its ledger gives" in answer.err
    assert page_of(run).read_bytes() == before


def test_a_page_that_fails_leaves_no_time(call, run: Path) -> None:
    import os

    page_of(run).unlink()
    page_of(run).mkdir()
    os.utime(run / "release", (0, 0))
    assert call("report", run).status == 2
    assert (run / "release").stat().st_mtime == 0
