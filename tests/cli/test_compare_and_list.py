"""``datalens compare`` and ``datalens list``."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest
from html_pages import check_page


@pytest.fixture
def two(trained: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two runs, the second without a private side."""
    one, other = tmp_path / "runs" / "one", tmp_path / "runs" / "deep" / "other"
    shutil.copytree(trained, one)
    shutil.copytree(trained / "release", other / "release")
    return one, other


def test_runs_are_set_side_by_side(call, two, tmp_path: Path) -> None:
    target = tmp_path / "compare.html"
    answer = call("compare", *two, "--out", target, "--json", tmp_path / "a.json")
    assert answer.status == 0, answer.err
    assert answer.out.splitlines()[1].split()[:2] == ["one", "DataLens"]
    page = check_page(target.read_text())
    assert len(page.of("img")) == 8 and str(tmp_path) not in page.source
    found = json.loads((tmp_path / "a.json").read_text())
    assert [run["run"] for run in found["runs"]] == ["one", "other"] and found["page"] == str(target)
    assert [run["measured"] for run in found["runs"]] == [None, None]


def test_private_scores_are_asked_for_and_kept_apart(call, two, tmp_path: Path) -> None:
    one, other = two
    words = ("evaluate", one, "--data", "shapes", "-n", "40", "--classifier", "logistic", "--epochs", "1")
    assert call(*words, "-q").status == 0
    target = tmp_path / "own.html"
    assert "logistic" not in call("compare", one, other).out
    answer = call("compare", one, other, "--private", "--out", target)
    assert "logistic" in answer.out and answer.last == "scores on people's data: not to be published"
    assert "Never to be shared" in check_page(target.read_text()).text
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    for option in ("--out", "--json"):
        shared = call("compare", one, other, "--private", option, other / "release" / "x.html").complaint
        assert "does not go under release/" in shared and not (other / "release" / "x.html").exists()


@pytest.mark.parametrize(
    ("count", "words", "said"),
    [
        (1, (), "two runs or more"),
        (0, (), "two runs or more, and got 0; name two at least"),
        (2, ("--out", "no/where.html"), "there is no folder"),
    ],
)
def test_mistakes_are_one_line(call, two, count: int, words: tuple[str, ...], said: str) -> None:
    assert said in call("compare", *two[:count], *words).complaint


def test_the_same_run_twice_is_refused(call, two) -> None:
    assert "names one run twice" in call("compare", two[0], two[0].parent / "." / "one").complaint


def test_runs_are_listed_and_rubbish_is_not(call, two, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    (runs / "notes").mkdir()
    (runs / ".hidden").mkdir()
    (runs / "samples.npz").write_text("")
    shutil.copytree(two[1], runs / "broken")
    (runs / "broken" / "release" / "ledger.jsonl").write_text("{\n")
    answer = call("list", runs, "--json", tmp_path / "list.json")
    assert answer.status == 0
    lines = answer.out.splitlines()
    assert [line.split()[0] for line in lines] == ["run", "broken", "deep/other", "one"]
    assert "damaged" in lines[1] and "trained, private side gone" in lines[2] and "trained  " in lines[3]
    assert answer.err.startswith("warning: ") and len(answer.err.splitlines()) == 1
    found = {run["run"]: run for run in json.loads((tmp_path / "list.json").read_text())["runs"]}
    assert found["one"]["data"] == "shapes" and 0 < found["one"]["epsilon"] <= 10
    assert found["broken"]["problem"] and found["one"]["problem"] is None


def test_a_run_itself_is_listed(call, two) -> None:
    assert call("list", two[0]).out.splitlines()[1].split()[0] == "one"


def test_nothing_to_list_and_nowhere_to_look(call, tmp_path: Path) -> None:
    assert call("list", tmp_path).last == f"{tmp_path}: holds no runs"
    assert "is no folder" in (complaint := call("list", tmp_path / "nowhere").complaint)
    assert "datalens train" in complaint


def test_runs_of_one_name_are_told_apart_without_saying_where_they_lay(call, two, tmp_path: Path) -> None:
    one, other = two
    twin = tmp_path / "runs" / "deep" / "one"
    shutil.move(other, twin)
    target = tmp_path / "compare.html"
    assert call("compare", one, twin, "--out", target).status == 0
    page = check_page(target.read_text())
    assert "runs/one" in page.text and "deep/one" in page.text and str(tmp_path) not in page.source


@pytest.mark.parametrize("name", ["certificate.json", "ledger.jsonl", "config.json", "report.html"])
def test_no_answer_replaces_a_file_of_a_run(call, two, name: str) -> None:
    one, other = two
    target = one / "release" / name
    before = target.read_bytes()
    for words in (("--out", target), ("--json", target)):
        answer = call("compare", one, other, *words)
        assert answer.status == 2 and "is a file of that run itself" in answer.err
    assert target.read_bytes() == before


def test_one_file_is_not_page_and_answer(call, two, tmp_path: Path) -> None:
    answer = call("compare", *two, "--out", tmp_path / "a", "--json", tmp_path / "." / "a")
    assert answer.status == 2 and "is the file of --out too" in answer.err and not (tmp_path / "a").exists()


def test_names_of_folders_mean_nothing_to_a_terminal(call, two, tmp_path: Path) -> None:
    one, _ = two
    shutil.copytree(one, tmp_path / "odd" / "a\x1b[31m\nb")
    answer = call("list", tmp_path / "odd")
    assert answer.status == 0 and "\x1b" not in answer.out
    assert len(answer.out.splitlines()) == 2


def test_a_private_side_that_cannot_be_looked_into_is_a_line(
    call, two, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datalens.reports import status

    def closed(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(status, "is_locked", closed)
    answer = call("list", two[0])
    assert answer.status == 0 and "damaged" in answer.out
