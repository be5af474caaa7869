"""One value at a time: whatever is changed in a release, verification notices.

What a forger changes with all hashes, the certificate and its page made anew must be noticed too, but for what
nothing else in a release can contradict; those places are named here with their reasons.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_runs import resume, train

from datalens.audit.verify import verify_run
from datalens.privacy.data_card import data_card
from datalens.training.charged_score import charge_score
from datalens.training.directions import MAGIC
from datalens.training.heads import heads_file

Where = tuple[str | int, ...]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run that was resumed on other terms and charged for a score: every kind of line but a cut-off one."""
    root = tmp_path_factory.mktemp("tampering") / "run"
    train(root, steps=3, privacy__score_noise=30.0)
    resume(root, top_k=4, noise_stddev=60.0, epsilon=5.0, num_steps=6)
    charge_score(root, 7, 10, {"classifier": "cnn", "epochs": 4})
    shutil.rmtree(root / "private")
    return root / "release"


@pytest.fixture(autouse=True)
def _another_machine() -> None:
    heads_file().unlink(missing_ok=True)


def leaves(value: Any, where: Where = ()) -> Iterator[tuple[Where, Any]]:
    if isinstance(value, dict | list) and value:
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*where, name))
    else:
        yield where, value


def changed(value: Any, where: Where, leaf: Any) -> Any:
    value = copy.deepcopy(value)
    part = value
    for name in where[:-1]:
        part = part[name]
    part[where[-1]] = leaf
    return value


def other(leaf: Any) -> Any:
    match leaf:
        case bool():
            return not leaf
        case int() | None:
            return (leaf or 0) + 1
        case float():
            return leaf * 0.99 if leaf else 1.0
        case str():
            return leaf + "x"
    return [1]


def unnoticed(path: Path, contents: Iterator[tuple[Any, bytes]]) -> list[Any]:
    """Names of those contents of one file with which the release still verifies."""
    before = path.read_bytes()
    try:
        found = []
        for name, content in contents:
            assert content != before
            path.write_bytes(content)
            if verify_run(path.parents[1]).agrees:
                found.append(name)
        return found
    finally:
        path.write_bytes(before)


def test_the_release_agrees_as_it_is(release: Path) -> None:
    assert verify_run(release.parent).differences == []


@pytest.mark.parametrize("name", ["certificate.json", "config.json", "scores.json"])
def test_no_value_can_be_changed(release: Path, name: str) -> None:
    value = json.loads((release / name).read_bytes())
    found = list(leaves(value))
    assert len(found) >= 8
    changes = ((where, json.dumps(changed(value, where, other(leaf))).encode()) for where, leaf in found)
    assert unnoticed(release / name, changes) == []


def test_no_number_of_the_page_can_be_changed(release: Path) -> None:
    text = (release / "README.md").read_text()
    numbers = list(re.finditer(r"\d+", text))
    assert len(numbers) > 40
    changes = (
        (text[found.start() - 20 : found.end()], f"{text[: found.start()]}9{text[found.start() :]}".encode())
        for found in numbers
    )
    assert unnoticed(release / "README.md", changes) == []


@pytest.mark.parametrize(
    "name", ["ledger.jsonl", "directions.bin", "generator.safetensors", "README.md", "load_generator.py"]
)
def test_no_region_of_bytes_can_be_changed(release: Path, name: str) -> None:
    """A bit in every hundredth of the file, at its ends, and a byte more or less."""
    content = (release / name).read_bytes()
    places = {0, 7, 8, 9, len(content) - 1, *range(0, len(content), max(1, len(content) // 100))}
    flips = ((at, content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]) for at in sorted(places))
    assert unnoticed(release / name, flips) == []
    assert unnoticed(release / name, iter([("less", content[:-1]), ("more", content + b" ")])) == []


FREE = {
    ("header", "run_id"): "a name drawn by lot",
    ("authorisation", "authorisation", "epsilon"): "how much more is authorised is up to the owner",
    ("authorisation", "reason"): "words of the owner",
    ("settings", "vote_threshold"): "may be chosen anew; thresholding costs nothing",
    ("settings", "num_steps"): "may be chosen anew, and a run may stop before; what was released is charged",
}
"""What a forger of everything may change: nothing else in a release follows from it."""


def test_a_forger_of_everything_is_noticed_but_for_what_nothing_contradicts(
    release: Path, tmp_path: Path
) -> None:
    forged = tmp_path / "run" / "release"
    shutil.copytree(release, forged)
    lines = [json.loads(raw) for raw in (release / "ledger.jsonl").read_bytes().splitlines()]
    passed: set[Where] = set()
    kinds: set[Where] = set()
    for where, leaf in leaves([line["body"] for line in lines]):
        line = lines[int(where[0])]
        kind: Where = (line["kind"], "score" in line["body"].get("note", {}), *where[1:])
        if kind in kinds:
            continue
        kinds.add(kind)
        bodies = changed([line["body"] for line in lines], where, other(leaf))
        forge(release, forged, [{**line, "body": body} for line, body in zip(lines, bodies, strict=True)])
        if verify_run(forged.parent).agrees:
            passed.add((kind[0], *where[1:]))
    assert len(kinds) > 60
    assert passed == set(FREE)


def forge(release: Path, forged: Path, lines: list[dict[str, Any]]) -> None:
    """Write the ledger with these lines, and make everything anew that follows from it."""
    last, renamed, text = "0" * 64, {}, ""
    for index, line in enumerate(lines):
        signed = {"index": index, "kind": line["kind"], "body": line["body"]}
        digest = hashlib.sha256((last + _json(signed)).encode()).hexdigest()
        renamed[line["hash"]] = digest
        text += _json({**signed, "previous": last, "hash": digest}) + "\n"
        last = digest
    (forged / "ledger.jsonl").write_text(text)
    scores = (release / "scores.json").read_text()
    directions, at = (release / "directions.bin").read_bytes(), len(MAGIC)
    out = directions[:at]
    while at < len(directions):
        images, coordinates = (int.from_bytes(directions[at + i : at + i + 4], "big") for i in (8, 12))
        end = at + 48 + (images * coordinates + 3) // 4
        paid_by = bytes.fromhex(renamed[directions[at + 16 : at + 48].hex()])
        record = directions[at : at + 16] + paid_by + directions[at + 48 : end]
        out, at = out + record + hashlib.sha256(record).digest(), end + 32
    (forged / "directions.bin").write_bytes(out)
    for before, after in renamed.items():
        scores = scores.replace(before, after)
    (forged / "scores.json").write_text(scores)
    expected = verify_run(forged.parent).certificate
    if expected:
        (forged / "certificate.json").write_text(json.dumps(expected))
        (forged / "README.md").write_text(data_card(expected))


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
