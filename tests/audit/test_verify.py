"""Verification finds every kind of change, by code that shares nothing with what it checks."""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_runs import copy, released_alone, small_data, train

from datalens import DataLens
from datalens.audit.second_curves import epsilon_again
from datalens.audit.verify import verify_run
from datalens.errors import RunError
from datalens.privacy import promises
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.data_card import data_card
from datalens.privacy.events import GaussianEvent, NoiseKind, SamplerSlack
from datalens.training.directions import MAGIC
from datalens.training.heads import heads_file

SOURCES = Path(__file__).parents[2] / "src" / "datalens"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verify") / "run"
    train(root)
    return root


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("scored") / "run"
    train(root, privacy__score_noise=30.0)
    return root


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A finished run of which only ``release/`` is left, on another machine."""
    return released_alone(whole, tmp_path / "run")


def test_an_untouched_release_agrees_and_replays_bit_for_bit(run: Path) -> None:
    found = verify_run(run, replay=True)
    assert found.differences == []
    assert found.replay is not None
    assert found.replay["bit_for_bit"]
    assert found.certificate["guarantee"]["epsilon"] <= 2.0


@pytest.mark.parametrize("noise", ["continuous-gaussian", "none"])
def test_unfit_runs_agree_and_say_so(tmp_path: Path, noise: str) -> None:
    train(tmp_path / "run", privacy__noise=noise, privacy__insecure_seed=3)
    found = verify_run(tmp_path / "run")
    assert found.differences == []
    assert not found.certificate["fit_for_publication"]


def test_groups_and_other_accountants_agree(tmp_path: Path) -> None:
    train(tmp_path / "run", privacy__group_size=3, privacy__accountant="rdp", privacy__epsilon=9.0)
    found = verify_run(tmp_path / "run")
    assert found.differences == []
    guarantee = found.certificate["guarantee"]
    assert guarantee["epsilon_for_one_record"] < guarantee["epsilon"] <= 9.0
    assert guarantee["group_size"] == 3


def test_a_stopped_run_agrees(tmp_path: Path) -> None:
    train(tmp_path / "run", steps=3)
    assert verify_run(tmp_path / "run", replay=True).agrees


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no run"):
        verify_run(tmp_path)


def _certificate(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def tamper(release: Path) -> None:
        path = release / "certificate.json"
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value, indent=2) + "\n")

    return tamper


def _bytes(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def tamper(release: Path) -> None:
        path = release / name
        path.write_bytes(change(path.read_bytes()))

    return tamper


def _flipped(place: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def _rechained(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Path], None]:
    """Somebody who rewrites the ledger, with all its hashes right."""

    def tamper(release: Path) -> None:
        path = release / "ledger.jsonl"
        lines = [json.loads(raw) for raw in path.read_text().splitlines()]
        change(lines)
        last, out = "0" * 64, []
        for index, line in enumerate(lines):
            signed = {"index": index, "kind": line["kind"], "body": line["body"]}
            text = json.dumps(signed, sort_keys=True, separators=(",", ":"))
            digest = hashlib.sha256((last + text).encode()).hexdigest()
            whole = {**signed, "previous": last, "hash": digest}
            out.append(json.dumps(whole, sort_keys=True, separators=(",", ":")) + "\n")
            last = digest
        path.write_text("".join(out))

    return tamper


def _set_event(name: str, value: Any) -> Callable[[list[dict[str, Any]]], None]:
    def change(lines: list[dict[str, Any]]) -> None:
        for line in lines:
            if line["kind"] == "release":
                line["body"]["event"][name] = value

    return change


def _header(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    return _rechained(lambda lines: change(lines[0]["body"]))


def _raise_ceiling(lines: list[dict[str, Any]]) -> None:
    lines[0]["body"]["authorisation"] |= {"epsilon": 1.0, "num_releases": None, "planned": None}


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (_certificate(lambda c: c["guarantee"].update(epsilon=1.0)), "guarantee: epsilon is 1.0"),
        (_certificate(lambda c: c["guarantee"].update(delta=1e-9)), "guarantee: delta"),
        (_certificate(lambda c: c["guarantee"].update(adjacency="something")), "adjacency"),
        (_certificate(lambda c: c["spent"].update(epsilon=0.1)), "spent: epsilon"),
        (_certificate(lambda c: c["spent"].update(releases=1)), "spent: releases"),
        (_certificate(lambda c: c["noise"].update(slack_eta=0.0)), "noise: slack_eta"),
        (_certificate(lambda c: c["noise"].update(source="dice")), "noise: source"),
        (_certificate(lambda c: c["mechanism"].update(top_k=1)), "mechanism: top_k"),
        (_certificate(lambda c: c["assumed_public"].update(bound_on_records=9)), "bound_on_records"),
        (_certificate(lambda c: c["not_covered"].pop()), "not_covered"),
        (_certificate(lambda c: c["files"].update({"generator.safetensors": "0" * 64})), "files"),
        (_certificate(lambda c: c["ledger"].update(head="0" * 64)), "ledger: head"),
        (_certificate(lambda c: c.pop("later_authorisations")), "later_authorisations is missing"),
        (_certificate(lambda c: c.update(extra=1)), "extra is unknown"),
        (_certificate(lambda c: c.update(fit_for_publication=1)), "fit_for_publication"),
        (_bytes("README.md", lambda text: text.replace(b"Epsilon 2", b"Epsilon 1")), "README.md"),
        (_bytes("generator.safetensors", _flipped(-1)), "generator.safetensors"),
        (_bytes("config.json", lambda text: text.replace(b'"top_k": 5', b'"top_k": 4')), "top_k 4"),
        (_bytes("ledger.jsonl", _flipped(40)), "line 0"),
        (_bytes("ledger.jsonl", lambda text: text[: text.rindex(b"\n", 0, -1) + 1]), "ledger: head"),
        (_bytes("ledger.jsonl", lambda text: text[:-1]), "cut-off line"),
        (_bytes("directions.bin", _flipped(len(MAGIC) + 60)), "step 0 has changed"),
        (_bytes("directions.bin", lambda content: content[:-1]), "cut-off record"),
        (_rechained(_set_event("noise_stddev", 1e6)), "the mechanism costs"),
        (_rechained(_set_event("sensitivity", 1.0)), "the mechanism costs"),
        (_rechained(_set_event("coordinates", 1)), "the mechanism costs"),
        (_rechained(_set_event("noise", "discrete-gaussian")), "another noise"),
        (_rechained(_set_event("type", "magic")), "cannot be verified"),
        (_rechained(_raise_ceiling), "above the 1 authorised"),
        (_rechained(lambda lines: lines.pop(-1)), "pays for step 7"),
        (_rechained(lambda lines: lines.insert(3, lines[2])), "charged twice"),
        (_rechained(lambda lines: lines[0]["body"].pop("authorisation")), "authorises nothing"),
        (_header(lambda h: h.update(adjacency="one-record-blanked")), "says adjacency"),
        (_header(lambda h: h.update(publishable=False)), "says publishable"),
        (_header(lambda h: h.update(data="other")), "says data"),
        (_header(lambda h: h.update(score_noise=5.0)), "says score_noise"),
        (_header(lambda h: h["mechanism"].update(shard_size=1000)), "says shard_size 1000"),
        (_header(lambda h: h["mechanism"].update(shard_size=7)), "10 teachers of 7 slots do not fit into 60"),
        (_header(lambda h: h["mechanism"].update(shard_size=5)), "says shard_size 5"),
        (_header(lambda h: h["mechanism"].update(num_records=10**6)), "says num_records 60"),
        (_header(lambda h: h["mechanism"].update(name="magic")), "says name"),
        (_header(lambda h: h["authorisation"].update(epsilon=3.0)), "authorises epsilon 3.0"),
        (_header(lambda h: h["authorisation"].update(num_releases=9)), "plans another number"),
        (_header(lambda h: h["authorisation"]["planned"].update(coordinates=3)), "what was planned is not"),
        (_header(lambda h: h["authorisation"]["planned"].update(noise="discrete-gaussian")), "plans another noise"),
        (lambda release: release.rename(release.with_name("release-NOT-FOR-PUBLICATION")), "folder is called"),
    ],
)  # fmt: skip
def test_every_change_is_found_and_named(run: Path, tamper: Callable[[Path], None], words: str) -> None:
    tamper(run / "release")
    found = verify_run(run)
    assert any(words in text for text in found.differences), found.differences
    assert all("\n" not in text for text in found.differences)


FORGED = {"adjacency": "add-or-remove-one", "publishable": True, "data": "other"}


def test_an_insecure_run_that_claims_to_be_secure_is_named_in_all_it_claims(tmp_path: Path) -> None:
    """Its first line is written anew, all hashes and the certificate with it, and the folder renamed."""
    train(tmp_path / "run", privacy__insecure_seed=3)
    heads_file().unlink(missing_ok=True)
    unfit = tmp_path / "run" / "release-NOT-FOR-PUBLICATION"

    def forge(header: dict[str, Any]) -> None:
        header.update(FORGED)
        header["mechanism"]["shard_size"] = 1000

    _header(forge)(unfit)
    release = unfit.rename(tmp_path / "run" / "release")
    expected = verify_run(tmp_path / "run").certificate
    (release / "certificate.json").write_text(json.dumps(expected))
    (release / "README.md").write_text(data_card(expected))
    differences = verify_run(tmp_path / "run").differences
    for name in FORGED:
        assert any(f"says {name} " in text for text in differences), (name, differences)
    for words in ("says shard_size 1000", "do not fit into 60 records", "the folder is called release"):
        assert any(words in text for text in differences), (words, differences)


def test_the_size_of_a_shard_is_the_one_that_was_asked_for(tmp_path: Path) -> None:
    train(tmp_path / "run", voting__shard_size=4)
    assert verify_run(tmp_path / "run").agrees
    _header(lambda header: header["mechanism"].update(shard_size=6))(tmp_path / "run" / "release")
    heads_file().unlink(missing_ok=True)
    assert any("says shard_size 6" in text for text in verify_run(tmp_path / "run").differences)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda header: header["planned_events"][0].update(count=3), "plans 3 releases, but 8 steps"),
        (lambda header: header["planned_events"][0].update(sensitivity=1.0), "what was planned is not"),
        (lambda header: header["planned_events"][1].update(noise_stddev=1e9), "the score that was planned"),
        (lambda header: header["planned_events"].pop(), "plans 0 scores"),
        (lambda header: header["planned_events"][1].update(noise="none"), "plans another noise"),
    ],
)
def test_a_plan_with_a_score_agrees_and_a_forged_one_does_not(
    scored: Path, tmp_path: Path, change: Callable[[dict[str, Any]], Any], words: str
) -> None:
    root = copy(scored, tmp_path / "run")
    assert verify_run(root).agrees
    heads_file().unlink(missing_ok=True)
    _header(change)(root / "release")
    assert any(words in text for text in verify_run(root).differences), verify_run(root).differences


@pytest.mark.parametrize(
    "name", ["certificate.json", "README.md", "generator.safetensors", "directions.bin", "load_generator.py"]
)
def test_a_missing_file_is_named(run: Path, name: str) -> None:
    (run / "release" / name).unlink()
    assert any(name in text for text in verify_run(run).differences)


def test_the_replay_finds_a_generator_that_was_trained_on_something_else(run: Path) -> None:
    from safetensors.numpy import load_file, save_file

    path = run / "release" / "generator.safetensors"
    tensors = load_file(path)
    name = next(name for name, value in tensors.items() if value.ndim > 1)
    tensors[name] = tensors[name] * (1 + 1e-6)
    save_file(tensors, path)
    assert any(
        "not what the released directions give" in text for text in verify_run(run, replay=True).differences
    )


def test_on_another_platform_the_replay_keeps_a_tolerance(run: Path) -> None:
    path = run / "release" / "certificate.json"
    value = json.loads(path.read_text())
    value["environment"]["instructions"] = "ABACUS"
    path.write_text(json.dumps(value))
    found = verify_run(run, replay=True).replay
    assert found is not None
    assert not found["same_platform"]
    assert found["mean_difference"] <= found["tolerance"]


OWN = ("_reader", "second_", "tuned")
WORDS_ONLY = {"datalens.errors", "datalens.privacy.promises"}
"""Exceptions and sentences: nothing there computes."""


def _imports_of(path: Path) -> set[str]:
    """Dotted names of this package that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "datalens"}


def test_verification_computes_with_nothing_of_what_it_checks() -> None:
    """Its own files use each other, exceptions and sentences; ``verify`` besides what is said below."""
    folder = SOURCES / "audit"
    own = [path for path in folder.glob("*.py") if any(word in path.stem for word in OWN)]
    assert len(own) >= 9
    besides = {
        "datalens.privacy.data_card.data_card",  # the page is compared as a text of the certificate
        "datalens.privacy.data_card.is_card_of",
        "datalens.privacy.card_front.licence_of",  # and of the licence that its owner may have named in it
        "datalens.version.__version__",  # to say which version worded a page
        "datalens.training.heads.known_head",  # what this machine saw before
        "datalens.audit.student_replay.replay_student",  # the student itself, trained again
    }
    for path in [*own, folder / "verify.py"]:
        for name in _imports_of(path) - (besides if path.stem == "verify" else set()):
            room = name.rsplit(".", 1)[0]
            allowed = {name, room} & WORDS_ONLY or any(word in room for word in OWN)
            assert allowed, f"{path.name} uses {name}"


@pytest.mark.parametrize("noise", [NoiseKind.ROUNDED, NoiseKind.DISCRETE])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("mu", [1e-3, 0.2, 1.0, 5.0])
def test_both_calculations_of_epsilon_agree(mu: float, delta: float, noise: NoiseKind) -> None:
    event = GaussianEvent(mu * 10, 10.0, 1000, noise, SamplerSlack(1e-17, 1e-38))
    for kind in AccountantKind:
        first = Accountant(kind).epsilon(event, delta)
        assert epsilon_again([event.to_json()], delta, str(kind)) == pytest.approx(first, rel=1e-6, abs=1e-9)


def test_the_command_exits_with_1_on_a_difference(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from datalens.cli.main import main

    assert main(["verify", str(run)]) == 0
    assert "verified: epsilon" in capsys.readouterr().out
    card = (run / "release" / "README.md").read_text()
    (run / "release" / "README.md").write_text(card.replace("**Epsilon ", "**epsilon "))
    (line,) = verify_run(run).differences
    number = next(number for number, text in enumerate(card.splitlines(), 1) if "**Epsilon" in text)
    assert line.startswith(f"README.md line {number} does not say what certificate.json says")
    assert "it was changed);" in line  # this very version wrote it
    assert main(["verify", str(run), "--json", str(run / "out.json")]) == 1
    assert "NOT VERIFIED: 1 difference" in capsys.readouterr().out
    assert json.loads((run / "out.json").read_text())["agrees"] is False


def test_what_is_not_proved_or_not_fit_is_said_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from datalens.cli.main import main

    train(tmp_path / "raised", steps=2)
    DataLens.resume(tmp_path / "raised", small_data(), changes={"epsilon": 5.0})
    train(tmp_path / "seeded", privacy__insecure_seed=3)
    for name, last in (
        ("raised", "verified, NOT PROVED: epsilon 5 "),
        ("seeded", "verified, NOT FIT FOR PUBLICATION: epsilon "),
    ):
        capsys.readouterr()
        assert main(["verify", str(tmp_path / name), "--quiet"]) == 0
        out = capsys.readouterr().out.splitlines()
        assert out[-1].startswith(last)
        assert any(promises.RAISED_TEXT in line for line in out) is (name == "raised")


def test_a_folder_with_two_runs_is_refused(run: Path) -> None:
    shutil.copytree(run / "release", run / "release-NOT-FOR-PUBLICATION")
    with pytest.raises(RunError, match="two runs"):
        verify_run(run)
    with pytest.raises(RunError, match="two runs"):
        DataLens.load(run)


def test_sampling_needs_only_release(run: Path) -> None:
    command = [sys.executable, "-m", "datalens.cli.main", "sample", str(run), "-n", "3", "--out"]
    done = subprocess.run([*command, str(run / "s.npz")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
