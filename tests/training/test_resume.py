"""Going on with a run: bit-equal where it can be, never charged less than what was released."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_runs import NUM_STEPS, copy, crash_after, resume, same_weights, small_config, small_data, train

from datalens import DataLens
from datalens.audit.verify import verify_run
from datalens.errors import BudgetError, CheckpointError, ConfigError, DataLensError, LedgerError, RunError
from datalens.privacy.ledger import Ledger
from datalens.privacy.signal import best_threshold
from datalens.teachers.store import MemoryStore
from datalens.training import session as session_module
from datalens.training.charged_score import charge_score
from datalens.training.checkpoint import save_checkpoint
from datalens.training.directions import MAGIC, read_directions
from datalens.training.heads import heads_file
from datalens.training.run_folder import RunFolder
from datalens.training.session import Session
from datalens.training.terms import terms_in_force


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> DataLens:
    """The run that was never stopped, on an insecure seed."""
    return train(tmp_path_factory.mktemp("straight") / "run", privacy__insecure_seed=7)


@pytest.mark.parametrize("steps", [0, 1, 3, 5, 7])
def test_r43_a_clean_stop_changes_no_bit(tmp_path: Path, straight: DataLens, steps: int) -> None:
    stopped = train(tmp_path / "run", steps=steps, privacy__insecure_seed=7)
    assert not same_weights(stopped, straight)
    resumed = resume(tmp_path / "run")
    assert same_weights(resumed, straight)
    assert (resumed.sample(20, seed=1)[0] == straight.sample(20, seed=1)[0]).all()


@pytest.mark.parametrize("steps", [1, 2, 4, 7])
def test_a_crash_after_a_recorded_step_changes_no_bit(tmp_path: Path, straight: DataLens, steps: int) -> None:
    crash_after(tmp_path / "run", steps, privacy__insecure_seed=7)
    assert same_weights(resume(tmp_path / "run"), straight)
    assert verify_run(tmp_path / "run").agrees


@pytest.mark.parametrize("kind", ["kernel", "paper"])
def test_where_teachers_live_changes_no_bit_and_may_change_on_the_way(tmp_path: Path, kind: str) -> None:
    settings = {"teachers__kind": kind, "privacy__insecure_seed": 7}
    in_memory = train(tmp_path / "memory", **settings)
    on_disk = train(tmp_path / "disk", performance__teacher_store="disk", **settings)
    assert same_weights(on_disk, in_memory)
    train(tmp_path / "run", steps=4, performance__teacher_store="disk", **settings)
    kept, usual = (
        {path.name for path in (tmp_path / run / "private").iterdir()} for run in ("run", "memory")
    )
    assert kept == usual  # the teachers' file has no name
    changes = {"teacher_store": "memory", "checkpoint_every": 1}
    session = Session.resume(tmp_path / "run", small_data(), changes)
    assert isinstance(session.parts.teachers._store, MemoryStore)
    assert session.performance.checkpoint_every == 1
    session.close()
    assert same_weights(DataLens.resume(tmp_path / "run", small_data(), changes=changes), in_memory)
    assert verify_run(tmp_path / "run").agrees
    config = json.loads((RunFolder.open(tmp_path / "run").config).read_text())["config"]["performance"]
    assert config["teacher_store"] == "disk"  # what concerns speed is this stretch's alone


def test_a_damaged_part_of_the_teachers_is_passed_over(tmp_path: Path) -> None:
    settings = {"teachers__kind": "paper", "privacy__insecure_seed": 7}
    straight = train(tmp_path / "straight", **settings)
    train(tmp_path / "run", steps=5, **settings)
    (part,) = (tmp_path / "run" / "private" / "checkpoints" / "step-00000005").glob("teachers-*")
    content = bytearray(part.read_bytes())
    content[-1] ^= 1
    part.write_bytes(content)
    session = Session.resume(tmp_path / "run", small_data())
    assert any("teachers-" in note or "damaged" in note for note in session.notes)
    session.close()
    assert same_weights(resume(tmp_path / "run"), straight)


def test_performance_settings_out_of_range_are_refused_when_a_run_goes_on(tmp_path: Path) -> None:
    train(tmp_path / "run", steps=2)
    for changes, said in (({"teacher_store": "tape"}, "known: auto"), ({"chunk_size": 0}, "chunk_size")):
        with pytest.raises(ConfigError, match=said):
            DataLens.resume(tmp_path / "run", small_data(), changes=changes)
    resume(tmp_path / "run")


def test_many_interruptions_change_no_bit(tmp_path: Path, straight: DataLens) -> None:
    crash_after(tmp_path / "run", 2, privacy__insecure_seed=7)
    for _ in range(3):
        session = Session.resume(tmp_path / "run", small_data())
        before = session.steps_done
        session.run(stop=lambda session=session, before=before: session.steps_done > before)
        session.close()
    assert same_weights(resume(tmp_path / "run"), straight)


def test_r01_what_was_spent_before_a_restart_stays_spent(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole")
    half = train(tmp_path / "run", steps=4)
    assert 0 < half.spent_epsilon(1e-5) < whole.spent_epsilon(1e-5)
    assert DataLens.load(tmp_path / "run").spent_epsilon(1e-5) == half.spent_epsilon(1e-5)
    assert resume(tmp_path / "run").spent_epsilon(1e-5) == pytest.approx(whole.spent_epsilon(1e-5), rel=1e-12)
    assert resume(tmp_path / "run").spent_epsilon(1e-5) == pytest.approx(whole.spent_epsilon(1e-5), rel=1e-12)


def test_epsilon_is_what_the_certificate_promises_whenever_the_run_stopped(tmp_path: Path) -> None:
    for name, changes in {"plain": {}, "score": {"privacy__score_noise": 50.0}}.items():
        root = tmp_path / name
        stopped = train(root, steps=3, **changes)
        certificate = json.loads((root / "release" / "certificate.json").read_text())
        assert stopped.spent_epsilon(1e-5) == certificate["spent"]["epsilon"]
        assert stopped.epsilon(1e-5) == certificate["guarantee"]["epsilon"] > stopped.spent_epsilon(1e-5)
        assert DataLens.load(root).epsilon(1e-7) == stopped.epsilon(1e-7) > stopped.epsilon(1e-5)
        raised = resume(root, epsilon=2.5, num_steps=5)
        certificate = json.loads((root / "release" / "certificate.json").read_text())
        assert raised.epsilon(1e-5) == certificate["guarantee"]["epsilon"] == 2.5


def test_r01_a_budget_between_stops_both_at_the_same_step(tmp_path: Path) -> None:
    limits = {"voting__noise_stddev": 40.0, "voting__num_steps": None, "privacy__epsilon": 1.5}
    whole = train(tmp_path / "whole", **limits)
    train(tmp_path / "run", steps=2, **limits)
    resumed = resume(tmp_path / "run")
    assert len(resumed.ledger.events()) == len(whole.ledger.events()) > 2
    assert resumed.spent_epsilon(1e-5) == whole.spent_epsilon(1e-5) <= 1.5


def test_a_charged_step_whose_record_was_lost_is_skipped_and_stays_charged(tmp_path: Path) -> None:
    root = tmp_path / "run"
    crash_after(root, 5, privacy__insecure_seed=7)
    _drop_last_record(root)
    model = resume(root)
    steps = [record.step for record in read_directions(RunFolder.open(root).directions)]
    assert steps == [0, 1, 2, 3, 5, 6, 7]
    charged = [line.body["note"]["step"] for line in model.ledger.lines if line.kind == "release"]
    assert charged == list(range(NUM_STEPS))
    found = verify_run(root, replay=True)
    assert found.agrees and found.lost_steps == 1


def test_a_cut_off_ledger_line_is_charged_and_its_step_is_not_taken(tmp_path: Path) -> None:
    root = tmp_path / "run"
    crash_after(root, 4)
    with (root / "release" / "ledger.jsonl").open("ab") as file:
        file.write(b'{"body":{"event":{"coord')
    model = resume(root)
    steps = [record.step for record in read_directions(root / "release" / "directions.bin")]
    assert steps == [0, 1, 2, 3, 5, 6, 7]
    assert sum(event.count for event in model.ledger.events()) == NUM_STEPS
    assert model.spent_epsilon(1e-5) <= 2.0
    assert verify_run(root).agrees


def test_r08_the_last_release_is_the_last_that_fits(tmp_path: Path) -> None:
    for epsilon in (0.75, 1.0, 1.7):
        model = train(None, voting__noise_stddev=40.0, voting__num_steps=None, privacy__epsilon=epsilon)
        events = model.ledger.events()
        from datalens.privacy.accountant import Accountant

        assert model.spent_epsilon(1e-5) <= epsilon < Accountant().epsilon([*events, events[0]], 1e-5)


def test_r08_nothing_is_done_where_not_even_one_step_fits() -> None:
    with pytest.raises(DataLensError, match=r"use epsilon"):
        train(None, voting__noise_stddev=1.0, voting__num_steps=None, privacy__epsilon=0.01)


# -- truncation and damage --------------------------------------------------------------------------------------


def test_a_ledger_cut_anywhere_is_refused_or_charged(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    crash_after(whole, 7)
    content = (whole / "release" / "ledger.jsonl").read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == 10]
    full = Ledger.read(whole / "release" / "ledger.jsonl").events()
    for cut in [0, 1, ends[0] - 1, ends[0], ends[1] + 5, ends[3], ends[-2], ends[-2] + 1, len(content) - 1]:
        root = copy(whole, tmp_path / f"cut{cut}")
        (root / "release" / "ledger.jsonl").write_bytes(content[:cut])
        if cut == len(content) - 1:  # only the last line was hurt, and it is charged
            with pytest.raises(CheckpointError, match="no line for it"):
                resume(root)
            assert Ledger.read(root / "release" / "ledger.jsonl").events() == full
            continue
        with pytest.raises(DataLensError, match=r"ledger|no line for it"):
            resume(root)


def test_a_ledger_cut_after_its_last_checkpoint_and_without_records_is_known_by_the_cache(
    tmp_path: Path,
) -> None:
    root = tmp_path / "run"
    train(root, steps=4)
    old = copy(root, tmp_path / "old")
    resume(root)
    shutil.rmtree(root)
    copy(old, root)
    with pytest.raises(LedgerError, match="was seen before"):
        resume(root)
    assert any("was seen here before" in text for text in verify_run(root).differences)
    heads_file().unlink()
    assert resume(root) is not None  # the cache is a guard against accidents, no more


def test_directions_cut_anywhere_lose_whole_steps_only(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    crash_after(whole, 2)  # no checkpoint yet, so any end is possible
    content = (whole / "release" / "directions.bin").read_bytes()
    size = (len(content) - len(MAGIC)) // 2
    for cut, kept in [
        (0, 0),
        (5, 0),
        (len(MAGIC), 0),
        (len(MAGIC) + 1, 0),
        (len(MAGIC) + 47, 0),
        (len(MAGIC) + size - 1, 0),
        (len(MAGIC) + size, 1),
        (len(content) - 1, 1),
    ]:
        root = copy(whole, tmp_path / f"cut{cut}")
        (root / "release" / "directions.bin").write_bytes(content[:cut])
        heads_file().unlink()  # copies of one run are one run to the cache
        model = resume(root)
        steps = [record.step for record in read_directions(root / "release" / "directions.bin")]
        assert steps == [*range(kept), *range(2, NUM_STEPS)], cut
        assert len(model.ledger.events()) == NUM_STEPS
        assert verify_run(root).agrees


def test_directions_that_a_checkpoint_has_seen_may_not_be_missing(tmp_path: Path) -> None:
    root = tmp_path / "run"
    crash_after(root, 3)
    _drop_last_record(root)
    with pytest.raises(CheckpointError, match="which a checkpoint has seen"):
        resume(root)


def test_a_changed_direction_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "run"
    crash_after(root, 5)
    path = root / "release" / "directions.bin"
    content = bytearray(path.read_bytes())
    content[len(MAGIC) + 60] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="step 0 is damaged"):
        resume(root)


@pytest.mark.parametrize("damage", ["half", "empty", "tail", "flipped", "no meta", "no head"])
def test_r17_a_damaged_checkpoint_is_named_and_the_older_one_is_used(
    tmp_path: Path, straight: DataLens, damage: str
) -> None:
    root = tmp_path / "run"
    crash_after(root, 7, privacy__insecure_seed=7)
    newest = RunFolder(root).checkpoints / "step-00000006"
    _damage(newest, damage)
    session = Session.resume(root, small_data())
    assert session.steps_done == 7
    assert any("step-00000006" in note and "damaged" in note for note in session.notes)
    session.close()
    assert same_weights(resume(root), straight)


def test_r17_no_silent_restart_where_every_checkpoint_is_damaged(tmp_path: Path) -> None:
    root = tmp_path / "run"
    crash_after(root, 7)
    for path in RunFolder(root).checkpoints.iterdir():
        _damage(path, "half")
    with pytest.raises(CheckpointError, match="every checkpoint is damaged"):
        resume(root)


def test_going_back_to_an_older_checkpoint_replays_what_was_released(
    tmp_path: Path, straight: DataLens
) -> None:
    root = tmp_path / "run"
    crash_after(root, 7, privacy__insecure_seed=7)
    shutil.rmtree(RunFolder(root).checkpoints / "step-00000006")
    model = resume(root)
    assert same_weights(model, straight)
    assert len(model.ledger.events()) == NUM_STEPS


def test_left_over_temporary_files_are_swept(tmp_path: Path) -> None:
    root = tmp_path / "run"
    crash_after(root, 4)
    folder = RunFolder(root)
    (folder.release / ".generator.safetensors.abc.tmp").write_bytes(b"half")
    (folder.checkpoints / ".step-00000005.tmp").mkdir()
    (folder.checkpoints / ".step-00000005.tmp" / "state.safetensors").write_bytes(b"half")
    resume(root)
    assert not [path for path in root.rglob("*") if path.name.endswith(".tmp")]


# -- what may change, and what may not --------------------------------------------------------------------------


def test_noise_votes_and_threshold_may_change_and_the_ceiling_holds(tmp_path: Path) -> None:
    root = tmp_path / "run"
    before = train(root, steps=3)
    promised = before.ledger.header["authorisation"]["planned"]["noise_stddev"]
    model = resume(root, noise_stddev=promised * 2, top_k=4, vote_threshold=0.5)
    events = model.ledger.events()
    assert {event.noise_stddev for event in events[3:]} == {promised * 2}
    assert {event.sensitivity for event in events[3:]} == {2 * (4 * 3) ** 0.5}
    assert model.spent_epsilon(1e-5) < 2.0
    assert verify_run(root, replay=True).agrees
    certificate = json.loads((root / "release" / "certificate.json").read_text())
    assert certificate["guarantee"]["ceiling_fixed_beforehand"]
    assert certificate["mechanism"]["changed_on_resume"][0]["from_step"] == 3
    assert "from step 3 on: 4 votes" in (root / "release" / "README.md").read_text()


def test_less_noise_means_fewer_steps_under_the_same_ceiling(tmp_path: Path) -> None:
    root = tmp_path / "run"
    promised = train(root, steps=3).ledger.header["authorisation"]["planned"]["noise_stddev"]
    model = resume(root, noise_stddev=promised / 1.5)
    assert 3 < len(model.ledger.events()) < NUM_STEPS
    assert model.spent_epsilon(1e-5) <= 2.0
    assert verify_run(root).agrees


@pytest.mark.parametrize("name", ["noise", "epsilon", "top_k"])
def test_changes_that_leave_no_step_are_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    root = tmp_path / "run"
    model = train(root, steps=None if name == "epsilon" else 7)
    noise = model.ledger.header["mechanism"]["noise_stddev"]
    changes = {
        "noise": {"noise_stddev": noise / 9},
        "epsilon": {"epsilon": 2.0001},
        "top_k": {"top_k": 64},
    }[name]
    before = {path: path.read_bytes() for path in (root / "release").iterdir()}
    with pytest.raises(BudgetError, match="not one step fits") as caught:
        resume(root, **changes)
    [(setting, value)] = changes.items()
    assert f"{setting} = {value}: " in str(caught.value)
    assert {path: path.read_bytes() for path in (root / "release").iterdir()} == before
    least = float(str(caught.value).split("use epsilon ")[1].split()[0])
    with pytest.raises(BudgetError, match="not one step fits"):
        resume(root, **{**changes, "epsilon": least * 0.998})
    resumed = resume(root, **{**changes, "epsilon": least})
    assert len(resumed.ledger.events()) == len(model.ledger.events()) + 1


def test_changes_to_a_run_that_has_all_its_steps_ask_for_more(tmp_path: Path) -> None:
    root = tmp_path / "run"
    train(root, steps=3)
    resume(root, num_steps=3)  # to end here is a wish like any other
    with pytest.raises(BudgetError, match="all 3 steps are taken; give --num-steps"):
        resume(root, vote_threshold=0.4)
    assert len(resume(root, vote_threshold=0.4, num_steps=5).ledger.events()) == 5


def test_a_higher_ceiling_is_recorded_as_decided_after_looking(tmp_path: Path) -> None:
    root = tmp_path / "run"
    train(root)
    model = resume(root, epsilon=2.5)
    assert len(model.ledger.events()) > NUM_STEPS
    assert 2.0 < model.spent_epsilon(1e-5) <= 2.5
    certificate = json.loads((root / "release" / "certificate.json").read_text())
    assert certificate["guarantee"]["epsilon"] == 2.5
    assert not certificate["guarantee"]["ceiling_fixed_beforehand"]
    assert [item["epsilon"] for item in certificate["later_authorisations"]] == [2.5]
    assert "not proved" in (root / "release" / "README.md").read_text()
    assert verify_run(root, replay=True).agrees


@pytest.mark.parametrize("name", ["num_teachers", "delta", "batch_size", "insecure_seed", "accountant"])
def test_other_settings_are_frozen(tmp_path: Path, name: str) -> None:
    root = tmp_path / "run"
    train(root, steps=2)
    with pytest.raises(ConfigError, match=f"{name} = 3: is frozen"):
        resume(root, **{name: 3})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"top_k": 1000}, "64 coordinates"),
        ({"num_steps": 500}, "num_steps = 500"),
        ({"epsilon": 0.001}, "spent"),
    ],
)
def test_changes_out_of_range_record_nothing(tmp_path: Path, changes: dict[str, float], words: str) -> None:
    root = tmp_path / "run"
    train(root, steps=2)
    before = (root / "release" / "ledger.jsonl").read_bytes()
    with pytest.raises(DataLensError, match=words):
        resume(root, **changes)
    assert (root / "release" / "ledger.jsonl").read_bytes() == before


def test_other_data_or_another_number_of_teachers_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "run"
    train(root, steps=2)
    with pytest.raises(RunError, match="not the data of this run"):
        DataLens.resume(root, small_data(seed=1))
    path = root / "release" / "config.json"
    config = json.loads(path.read_text())
    config["config"]["voting"]["num_teachers"] = 5
    path.write_text(json.dumps(config))
    with pytest.raises(RunError, match="num_teachers"):
        resume(root)


def test_nothing_that_comes_from_the_data_is_under_release(tmp_path: Path) -> None:
    root = tmp_path / "run"
    crash_after(root, 2)
    resume(root)
    secrets = json.loads(RunFolder(root).secrets.read_text())
    shared = b"".join(path.read_bytes() for path in (root / "release").iterdir()) + heads_file().read_bytes()
    for secret in (secrets["fingerprint"], secrets["private_root"], str(tmp_path)):
        assert secret.encode() not in shared
    assert bytes.fromhex(secrets["private_root"]) not in shared


def test_private_is_for_its_owner_alone(tmp_path: Path) -> None:
    root = tmp_path / "run"
    crash_after(root, 4)
    resume(root)
    folder = RunFolder(root)
    assert folder.private.stat().st_mode & 0o777 == 0o700
    for path in folder.private.rglob("*"):
        if path.is_file():
            assert path.stat().st_mode & 0o777 == 0o600, path


def test_a_run_in_use_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "run"
    session = Session.begin(small_config(), small_data(), root)
    with pytest.raises(RunError, match="in use"):
        resume(root)
    session.close()


def _drop_last_record(root: Path) -> None:
    path = RunFolder.open(root).directions
    content = path.read_bytes()
    records = read_directions(path)
    size = (len(content) - len(MAGIC)) // len(records)
    path.write_bytes(content[:-size])


def _damage(checkpoint: Path, how: str) -> None:
    state, meta = checkpoint / "state.safetensors", checkpoint / "meta.json"
    content = state.read_bytes()
    match how:
        case "half":
            state.write_bytes(content[: len(content) // 2])
        case "empty":
            state.write_bytes(b"")
        case "tail":
            state.write_bytes(content[:-8])
        case "flipped":
            state.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        case "no meta":
            meta.unlink()
        case "no head":
            value = json.loads(meta.read_text())
            del value["head"]
            meta.write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("top_k", 4.7),
        ("top_k", True),
        ("num_steps", 5.5),
        ("noise_stddev", -1.0),
        ("noise_stddev", float("nan")),
        ("vote_threshold", -0.1),
        ("epsilon", float("inf")),
        ("epsilon", "3"),
    ],
)
def test_a_change_is_checked_like_the_setting_itself(tmp_path: Path, name: str, value: object) -> None:
    root = tmp_path / "run"
    train(root, steps=2)
    before = (root / "release" / "ledger.jsonl").read_bytes()
    with pytest.raises(ConfigError, match=rf"{name} = "):
        resume(root, **{name: value})
    assert (root / "release" / "ledger.jsonl").read_bytes() == before


def test_an_automatic_threshold_follows_the_noise_and_a_chosen_one_stays(tmp_path: Path) -> None:
    root, other = tmp_path / "run", tmp_path / "other"
    noise = 2 * train(root, steps=2).ledger.header["mechanism"]["noise_stddev"]
    train(other, steps=2)
    assert terms_in_force(resume(root, noise_stddev=noise).ledger).vote_threshold == best_threshold(10, noise)
    resume(other, vote_threshold=0.4, num_steps=3)
    assert terms_in_force(resume(other, noise_stddev=noise, num_steps=4).ledger).vote_threshold == 0.4


def test_changes_leave_the_room_of_a_reserved_score(tmp_path: Path) -> None:
    root = tmp_path / "run"
    noise = train(root, steps=2, privacy__score_noise=20.0).ledger.header["mechanism"]["noise_stddev"]
    model = resume(root, noise_stddev=noise / 1.2)
    assert len(model.ledger.events()) < NUM_STEPS
    assert charge_score(root, 3, 10, {})["noise_stddev"] == 20.0


def test_no_state_is_saved_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither at the end nor at a stop right after a checkpoint, which takes as much disk as all teachers.

    Nor by a run that goes on and has nothing left to do: while its last checkpoint is exchanged it has none.
    """
    saved: list[int] = []

    def save(folder: Path, step: int, *words: Any, **options: Any) -> Path:
        saved.append(step)
        return save_checkpoint(folder, step, *words, **options)

    monkeypatch.setattr(session_module, "save_checkpoint", save)
    train(tmp_path / "run", performance__checkpoint_every=NUM_STEPS // 2)
    train(tmp_path / "stopped", steps=NUM_STEPS // 2, performance__checkpoint_every=NUM_STEPS // 2)
    resume(tmp_path / "run")
    assert saved == [NUM_STEPS // 2, NUM_STEPS, NUM_STEPS // 2]


def test_a_device_that_is_not_there_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="device nonsense: cannot be used here"):
        train(tmp_path / "none", performance__device="nonsense")
    assert not (tmp_path / "none").exists()
    train(tmp_path / "run", steps=2)
    with pytest.raises(ConfigError, match="device nonsense: cannot be used here"):
        resume(tmp_path / "run", device="nonsense")
    assert resume(tmp_path / "run").ledger.events()


def test_a_resume_that_fails_leaves_no_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "run"
    train(root, steps=2)
    opened = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(Session, "_catch_up", _fail)
        with pytest.raises(CheckpointError, match="on purpose"):
            resume(root)
    with pytest.raises(DataLensError):
        resume(root, epsilon=1e-4)
    assert len(os.listdir("/proc/self/fd")) == opened


def _fail(*_: object) -> None:
    raise CheckpointError("on purpose")
