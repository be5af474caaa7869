"""What ``verify`` and the audit find of a warm start, in a ledger that was written anew with hashes that fit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forged import chained
from small_runs import released_alone, small_data, train

from datalens.audit.any_run import audit_run
from datalens.audit.second_warm import warm_charges
from datalens.audit.twin import audit_twin
from datalens.audit.verify import verify_run
from datalens.moments.measuring import STATES, Measures
from datalens.privacy.events import GaussianEvent
from datalens.training.facts import read_facts
from datalens.training.run_folder import RunFolder
from datalens.training.warm_plan import PARTS, WarmTerms

FILE = "warm-start.safetensors"
WARM = {"warm_start__enabled": True, "warm_start__steps": 4, "warm_start__batch_size": 6}
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("warm") / "run"
    train(root, **WARM)
    return root


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A finished run of which only ``release/`` is left, on another machine."""
    return released_alone(whole, tmp_path / "run")


def forge(root: Path, change: Callable[[Lines], Any]) -> None:
    """The ledger written anew, every line numbered and hashed as it should be."""
    path = root / "release" / "ledger.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    for number, line in enumerate(lines):
        line["index"] = number
    path.write_text(chained(lines))


def of_warm(lines: Lines) -> Lines:
    return [line for line in lines if "warm_start" in (line["body"].get("note") or {})]


def every_event(lines: Lines, what: int) -> Lines:
    """All places where one of the two releases is priced."""
    found = [lines[0]["body"]["planned_events"][1 + what], of_warm(lines)[what]["body"]["event"]]
    coordinates = found[0]["coordinates"]
    return found + [
        line["body"]["event"]
        for line in lines
        if line["kind"] == "planned" and line["body"]["event"]["coordinates"] == coordinates
    ]


def cheapen(what: int, **numbers: float) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        for event in every_event(lines, what):
            event.update(numbers)

    return change


def more_noise_everywhere(lines: Lines) -> None:
    """The claim is the same in every place, the first line's terms among them."""
    for number, what in enumerate(STATES):
        stddev = 4 * lines[0]["body"]["warm_start"]["noise_stddev"][what]
        lines[0]["body"]["warm_start"]["noise_stddev"][what] = stddev
        for event in every_event(lines, number):
            event["noise_stddev"] = stddev


def drop(what: int) -> Callable[[Lines], None]:
    return lambda lines: lines.remove(of_warm(lines)[what])


def late(lines: Lines) -> None:
    line = of_warm(lines)[1]
    lines.remove(line)
    lines.append(line)


def swapped(lines: Lines) -> None:
    one, two = (lines.index(line) for line in of_warm(lines))
    lines[one], lines[two] = lines[two], lines[one]


def twice(lines: Lines) -> None:
    line = of_warm(lines)[0]
    lines.insert(lines.index(line) + 1, json.loads(json.dumps(line)))


FORGED: dict[str, tuple[Callable[[Lines], Any], str]] = {
    "half the sensitivity of means": (cheapen(0, sensitivity=512.0), "line 1: charges (512.0, "),
    "half the sensitivity of moments": (cheapen(1, sensitivity=512.0), "line 3: charges (512.0, "),
    "a plan with half of it": (
        lambda lines: lines[0]["body"]["planned_events"][1].update(sensitivity=512.0),
        "the class means that were planned are not what they cost",
    ),
    "more noise in a line": (
        lambda lines: of_warm(lines)[0]["body"]["event"].update(noise_stddev=1e5),
        "line 2: charges (1024.0, 100000.0",
    ),
    "more noise in all lines": (
        more_noise_everywhere,
        "the noise of the class moments is not what config.json",
    ),
    "means dropped": (drop(0), "charged twice or in another order"),
    "moments dropped": (drop(1), f"{FILE}: no line of ledger.jsonl of its own pays for its class moments"),
    "both dropped": (
        lambda lines: [lines.remove(line) for line in of_warm(lines)],
        f"{FILE}: no line of ledger.jsonl of its own pays for its class means",
    ),
    "in another order": (swapped, "charged twice or in another order"),
    "after the votes": (late, "is charged after something else"),
    "twice": (twice, "charged twice or in another order"),
    "no plan": (lambda lines: lines[0]["body"]["planned_events"].pop(), "plans 1 sums of a warm start"),
    "no terms": (lambda lines: lines[0]["body"].pop("warm_start"), "says of another warm start"),
    "another share": (
        lambda lines: lines[0]["body"]["warm_start"].update(share=0.1),
        "says of another warm start",
    ),
    "of something else": (
        lambda lines: of_warm(lines)[0]["body"]["note"].update(what="votes"),
        "charged twice or in another order",
    ),
}


def test_an_honest_run_agrees_and_replays(run: Path) -> None:
    found = verify_run(run, replay=True)
    assert found.differences == []
    assert found.replay is not None and found.replay["bit_for_bit"]
    assert found.lost_steps == 0
    said = found.certificate
    assert [item["what"] for item in said["noise"]["releases"]] == ["votes", *STATES]
    assert FILE in said["files"]
    page = (run / "release" / "README.md").read_text()
    assert "Before the first vote" in page and "but for what it began with" in page


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_ledger_is_found(run: Path, what: str) -> None:
    change, words = FORGED[what]
    forge(run, lambda lines: None)  # a rewriting alone is not what is found
    assert verify_run(run).differences == []
    forge(run, change)
    differences = verify_run(run).differences
    assert any(words in text for text in differences), differences


def test_votes_without_the_sums_before_them_are_found(run: Path) -> None:
    """All of it taken out: lines, file and certificate agree, and the settings still say of a warm start."""
    forge(run, lambda lines: [lines.remove(line) for line in of_warm(lines)])
    (run / "release" / FILE).unlink()
    differences = verify_run(run).differences
    assert any("votes were released, but not the sums of the warm start" in text for text in differences)


def test_a_run_that_denies_it_is_found(run: Path) -> None:
    path = run / "release" / "config.json"
    config = json.loads(path.read_text())
    del config["config"]["warm_start"]
    path.write_text(json.dumps(config))
    differences = verify_run(run).differences
    assert any("config.json says of no warm start" in text for text in differences)
    assert any("says of a warm start, but config.json does not" in text for text in differences)


@pytest.mark.parametrize("how", ["gone", "flipped", "other"])
def test_a_file_that_is_another_is_found(run: Path, tmp_path: Path, how: str) -> None:
    path = run / "release" / FILE
    if how == "gone":
        path.unlink()
    elif how == "flipped":
        content = bytearray(path.read_bytes())
        content[-3] ^= 1
        path.write_bytes(content)
    else:
        train(tmp_path / "other", **WARM)
        shutil.copy(tmp_path / "other" / "release" / FILE, path)
    assert any(FILE in text for text in verify_run(run).differences)
    assert verify_run(run, replay=True).differences


def test_the_replay_uses_the_tables(run: Path) -> None:
    """Other numbers under the same line give another generator, whatever the certificate says."""
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    path = run / "release" / FILE
    with safe_open(path, "pt") as file:
        lines = file.metadata()
    save_file({name: value * 2 for name, value in load_file(path).items()}, path, lines)
    differences = verify_run(run, replay=True).differences
    assert any(
        "generator.safetensors is not what the released directions give" in text for text in differences
    )


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 32, 32), (3, 64, 64), (1, 12, 200)])
@pytest.mark.parametrize("group", [1, 3])
def test_the_second_account_comes_to_the_same_charges(
    run: Path, shape: tuple[int, int, int], group: int
) -> None:
    facts = read_facts(RunFolder.open(run))
    config = facts.config.replace(privacy__group_size=group)
    terms = WarmTerms.of(config, shape)
    assert terms is not None
    said = {
        "config": config.to_json(),
        "image_shape": list(shape),
        "classes": ["a", "b", "c"],
    }
    again = warm_charges({"warm_start": terms.to_json()}, said)
    measures = Measures(shape, 3)
    for what, event in zip(STATES, terms.events(config, measures), strict=True):
        assert isinstance(event, GaussianEvent)
        assert again[what] == (event.sensitivity, event.noise_stddev, event.coordinates)
    assert list(again) == list(PARTS)


def test_an_audit_of_such_a_run_passes_and_its_twin_has_one_too(run: Path) -> None:
    report = audit_run(run, trials=200, draws=2000)
    assert report.passed, [finding for finding in report.findings if not finding.passed]
    finding = audit_twin(read_facts(RunFolder.open(run)), small_data(3))
    assert finding.passed
