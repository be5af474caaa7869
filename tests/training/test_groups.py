"""A whole group reaches one teacher, and nobody else can tell whether it was there; settings and files say so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from forged import chained
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runs import NUM_STEPS, crash_after, same_weights, small_config, small_data, stop_after

from datalens import DataLens
from datalens.audit.run import audit_files
from datalens.audit.verify import verify_run
from datalens.data import group_ids_of
from datalens.data.images import LabelledImages
from datalens.errors import ConfigError, DataLensError, RunError
from datalens.privacy import promises
from datalens.privacy.accountant import Accountant
from datalens.privacy.data_card import data_card
from datalens.teachers.families import TeacherKind
from datalens.teachers.family import Fakes
from datalens.teachers.groups import GroupPartition
from datalens.training.private_files import load_partition
from datalens.training.run_folder import RunFolder
from datalens.training.session import Session

NAMES = [f"person {number % 17}" for number in range(60)]


def grouped(names: list[str] | None = None) -> LabelledImages:
    return small_data().with_groups(NAMES if names is None else names)


def without(data: LabelledImages, group: int) -> LabelledImages:
    assert data.group_ids is not None
    stays = data.group_ids != group
    return replace(
        data, images=data.images[stays], labels=data.labels[stays], group_ids=data.group_ids[stays]
    )


@dataclass
class Seen:
    """What every teacher held, kept and voted in some steps on the same images."""

    shards: list[torch.Tensor]
    states: dict[str, torch.Tensor]
    votes: list[torch.Tensor]
    tallies: list[torch.Tensor]


def seen_of(data: LabelledImages, kind: TeacherKind, **changes: Any) -> Seen:
    """Three steps of a session's own teachers, on public images that are the same every time."""
    config = small_config(
        privacy__insecure_seed=1, teachers__kind=str(kind), performance__chunk_size=10, **changes
    )
    session = Session.begin(config, data, None)
    try:
        teachers = session.teachers
        compress, votes, tallies = teachers.compress, [], []

        def remembered(grad_TBD: torch.Tensor, k: int, clip: float, rng: torch.Generator) -> Any:
            made = compress(grad_TBD, k, clip, rng)
            votes.append(made.vote_TBD.clone())
            return made

        teachers.compress = remembered
        rng = torch.Generator().manual_seed(5)
        for step in range(3):
            fakes = Fakes(torch.rand(3, 1, 8, 8, generator=rng), torch.arange(3) % 2)
            tallies.append(teachers.tally(fakes, step, 2, 5, 1e-5).tally_BD.double())
        shards = teachers._shards.chunk(0, 10, torch.device("cpu"))
        [part] = teachers.parts()
        held = [shards.images_TRCHW, shards.labels_TR, shards.present_TR]
        return Seen(held, dict(part.tensors), votes, tallies)
    finally:
        session.close()


def changed_teachers(one: Seen, two: Seen) -> set[int]:
    """Teachers of whom anything differs, bit for bit."""
    pairs = [*zip(one.shards, two.shards, strict=True), *zip(one.votes, two.votes, strict=True)]
    pairs += [(one.states[name], two.states[name]) for name in one.states]
    found: set[int] = set()
    for mine, theirs in pairs:
        found |= {t for t in range(10) if not torch.equal(mine[t], theirs[t])}
    return found


@pytest.mark.parametrize("kind", list(TeacherKind))
@settings(max_examples=6, deadline=None)
@given(
    groups=st.lists(st.integers(0, 14), min_size=59, max_size=59),
    gone=st.integers(0, 14),
    slots=st.sampled_from([None, 2, 9, 60]),
)
def test_a_group_that_is_taken_out_changes_one_teacher_and_its_votes_alone(
    kind: TeacherKind, groups: list[int], gone: int, slots: int | None
) -> None:
    """Shards, weights, optimisers and votes of all others are the same to the last bit, also where slots are few."""
    data = small_data().with_groups([*groups, 15])  # somebody stays
    other = without(data, int(group_ids_of([gone])[0]))
    one, two = (seen_of(some, kind, voting__shard_size=slots) for some in (data, other))
    assert len(changed_teachers(one, two)) <= 1
    for before, after in zip(one.tallies, two.tallies, strict=True):
        assert float((before - after).norm()) <= 2 * (5 * 3) ** 0.5 + 1e-9


def test_the_same_comparison_sees_a_partition_by_record() -> None:
    """Otherwise the test above could not fail."""
    data = grouped()
    other = without(data, int(group_ids_of([NAMES[0]])[0]))
    one, two = (seen_of(replace(some, group_ids=None), TeacherKind.KERNEL) for some in (data, other))
    assert len(changed_teachers(one, two)) > 1


@pytest.mark.parametrize("kind", list(TeacherKind))
def test_a_teacher_without_records_votes_for_nothing(kind: TeacherKind) -> None:
    seen = seen_of(grouped(["all together"] * 60), kind, voting__shard_size=60)
    present_TR = seen.shards[2]
    assert int(present_TR.any(1).sum()) == 1
    for vote_TBD in seen.votes:
        assert int(vote_TBD[:10][~present_TR.any(1)].abs().sum()) == 0
    assert any(vote_TBD.any() for vote_TBD in seen.votes)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("groups") / "run"
    data = small_data()
    DataLens(small_config()).fit(data, groups=NAMES, out=root)
    return root


def test_files_say_what_is_protected_and_verify_agrees(run: Path) -> None:
    release = run / "release"
    config, certificate = (read(release / name) for name in ("config.json", "certificate.json"))
    assert config["unit"] == "group"
    guarantee = certificate["guarantee"]
    assert guarantee["adjacency"] == promises.ADD_OR_REMOVE_GROUP
    assert guarantee["adjacency_means"] == promises.ADJACENCY_TEXT[promises.ADD_OR_REMOVE_GROUP]
    assert certificate["assumed_public"]["slots_of_each_teacher"] == 12
    assert promises.SEVERAL_NAMES in certificate["not_covered"]
    page = (release / "README.md").read_text()
    assert "adding or removing one group" in page
    assert "If a group is exchanged" in page
    assert verify_run(run).differences == []
    [partition] = [finding for finding in audit_files(RunFolder.open(run)) if finding.name == "partition"]
    assert partition.passed
    assert partition.numbers["torn"] == 0


def test_another_group_instead_costs_two_teachers(run: Path) -> None:
    certificate = read(run / "release" / "certificate.json")
    model = DataLens.load(run)
    twice = [replace(event, sensitivity=2 * event.sensitivity) for event in model.ledger.events()]  # pyright: ignore
    expected = Accountant().epsilon(twice, 1e-5)
    assert certificate["guarantee"]["replace_one"]["epsilon"] == pytest.approx(expected)
    assert expected > 2 * certificate["guarantee"]["epsilon"]


def test_one_step_costs_what_it_costs_without_groups() -> None:
    config = small_config(voting__noise_stddev=40.0, privacy__epsilon=50.0)
    [alone, together] = [DataLens(config).fit(data) for data in (small_data(), grouped())]
    assert alone.ledger.events() == together.ledger.events()
    assert alone.epsilon(1e-5) == together.epsilon(1e-5)


def test_files_of_a_run_without_groups_say_nothing_of_them(tmp_path: Path) -> None:
    DataLens(small_config()).fit(small_data(), out=tmp_path / "run")
    release = tmp_path / "run" / "release"
    assert "unit" not in read(release / "config.json")
    guarantee = read(release / "certificate.json")["guarantee"]
    assert guarantee["adjacency"] == promises.ADD_OR_REMOVE
    assert promises.SEVERAL_NAMES not in read(release / "certificate.json")["not_covered"]


def test_a_first_line_that_claims_the_other_relation_is_found(run: Path, tmp_path: Path) -> None:
    """Also where the hashes, the certificate and the page were made anew."""
    for name, claim in (("adjacency", promises.ADD_OR_REMOVE), ("adjacency", promises.BLANKED)):
        assert found_in(run, tmp_path / claim, {name: claim})


def test_settings_without_their_unit_are_found(run: Path, tmp_path: Path) -> None:
    release = copied(run, tmp_path / "run")
    config = read(release / "config.json")
    for changed in ({k: v for k, v in config.items() if k != "unit"}, {**config, "unit": "household"}):
        (release / "config.json").write_text(json.dumps(changed))
        (release / "certificate.json").write_text(json.dumps(verify_run(release.parent).certificate))
        assert any("adjacency" in line for line in verify_run(release.parent).differences)


def found_in(run: Path, root: Path, changes: dict[str, Any]) -> list[str]:
    """What verify finds of a run whose first line was changed by somebody who made all that follows from it anew."""
    release = copied(run, root)
    lines = [json.loads(line) for line in (release / "ledger.jsonl").read_text().splitlines()]
    lines[0]["body"] |= changes
    lines[0]["body"]["run_id"] = "another"  # so that no cache of heads knows it
    (release / "ledger.jsonl").write_text(chained(lines))
    expected = verify_run(root).certificate
    (release / "certificate.json").write_text(json.dumps(expected))
    (release / "README.md").write_text(data_card(expected))
    return [line for line in verify_run(root).differences if "adjacency" in line]


def copied(run: Path, root: Path) -> Path:
    (root / "release").mkdir(parents=True)
    for path in (run / "release").iterdir():
        (root / "release" / path.name).write_bytes(path.read_bytes())
    return root / "release"


def test_a_run_goes_on_with_the_same_groups_and_with_no_others(tmp_path: Path) -> None:
    whole = DataLens(small_config(privacy__insecure_seed=3)).fit(grouped(), out=tmp_path / "whole")
    root = tmp_path / "run"
    config = small_config(privacy__insecure_seed=3)
    DataLens(config).fit(grouped(), out=root, stop=stop_after(NUM_STEPS // 2))
    with pytest.raises(RunError, match=r"groups of records together.*--group-column"):
        DataLens.resume(root, small_data())
    with pytest.raises(RunError, match="not the data of this run"):
        DataLens.resume(root, grouped(NAMES[::-1]))
    assert same_weights(DataLens.resume(root, grouped()), whole)
    assert verify_run(root).differences == []


def test_a_run_without_groups_takes_none_later(tmp_path: Path) -> None:
    crash_after(tmp_path / "run", 4)
    with pytest.raises(RunError, match="not the data of this run"):
        DataLens.resume(tmp_path / "run", grouped())


def test_a_higher_epsilon_leaves_no_number_for_an_exchange(tmp_path: Path) -> None:
    """It is known for a plan that was fixed beforehand only."""
    root = tmp_path / "run"
    DataLens(small_config()).fit(grouped(), out=root, stop=stop_after(4))
    DataLens.resume(root, grouped(), changes={"epsilon": 3.0, "num_steps": NUM_STEPS + 2})
    guarantee = read(root / "release" / "certificate.json")["guarantee"]
    assert guarantee["replace_one"] == {"epsilon": None, "why": promises.REPLACE_ONE_GROUP_TEXT}
    assert verify_run(root).differences == []


def test_a_seed_gives_the_same_groups_to_the_same_teachers_and_the_system_others(tmp_path: Path) -> None:
    found: list[GroupPartition] = []
    for number, seed in enumerate((4, 4, None, None)):
        root = tmp_path / str(number)
        DataLens(small_config(privacy__insecure_seed=seed)).fit(grouped(), out=root)
        partition = load_partition(RunFolder.open(root).partition)
        assert isinstance(partition, GroupPartition)
        found.append(partition)
    assert found[0].key == found[1].key
    assert len({partition.key for partition in found}) == 3


def test_the_owner_alone_hears_how_many_were_left_out(tmp_path: Path) -> None:
    model = DataLens(small_config(voting__shard_size=2)).fit(grouped(), out=tmp_path / "run")
    [note] = [note for note in model.notes if "left out" in note]
    partition = load_partition(RunFolder.open(tmp_path / "run").partition)
    assert isinstance(partition, GroupPartition)
    assert "17 groups over 10 teachers" in note
    assert f"{partition.num_left_out} of 60 records are left out" in note
    assert partition.num_left_out >= 40
    shared = b"".join(path.read_bytes() for path in (tmp_path / "run" / "release").iterdir())
    assert b"are left out" not in shared
    assert b"17 groups" not in shared


def test_slots_may_outnumber_records_and_num_records_still_bounds_them() -> None:
    DataLens(small_config(voting__shard_size=60)).fit(grouped())
    with pytest.raises(DataLensError, match=r"--num-records 59.*data hold 60"):
        DataLens(small_config(privacy__num_records=59)).fit(grouped())
    with pytest.raises(ConfigError, match="--num-teachers 70"):
        DataLens(small_config(voting__num_teachers=70, voting__shard_size=1)).fit(grouped())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"privacy__group_size": 3}, r"--group-size 3.*leave it out"),
        ({"privacy__score_noise": 50.0}, r"--score-noise 50.*leave it out"),
    ],
)
def test_settings_that_count_records_are_refused(
    changes: Mapping[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        DataLens(small_config(**changes)).fit(grouped(), out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())
