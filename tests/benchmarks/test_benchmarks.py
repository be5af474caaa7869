"""Every benchmark runs, at sizes that say nothing, and prints what it promises."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest
import torch
from scripts_here import REPOSITORY, program, said
from torch.utils.flop_counter import FlopCounterMode

from datalens.mechanisms.kinds import MechanismKind
from datalens.models.stacked import PaperDiscriminator
from datalens.teachers.family import Fakes
from datalens.training.config import Config

ENVIRONMENT = {
    "torch",
    "numpy",
    "python",
    "processor",
    "cores",
    "threads",
    "system",
    "device",
    "command",
    "seed",
}
NOT_RUN_IN_THIS_PROCESS = {"accuracy.py", "measuring.py", "noise_share.py", "ranks.py"}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def call(name: str, *words: str) -> dict[str, Any]:
        assert program(f"benchmarks/{name}.py", monkeypatch).main(list(words)) == 0
        found = said(capsys.readouterr().out)
        assert found.keys() >= ENVIRONMENT
        return found

    return call


def ordered(values: dict[str, float]) -> bool:
    """Whether a spread is one, of numbers above 0."""
    return 0 < values["least"] <= values["median"] <= values["largest"]


def test_every_benchmark_is_run_here() -> None:
    text = (REPOSITORY / "tests/benchmarks/test_benchmarks.py").read_text()
    names = {path.name for path in (REPOSITORY / "benchmarks").glob("*.py")} - NOT_RUN_IN_THIS_PROCESS
    assert [name for name in names if f'run("{name.removesuffix(".py")}"' not in text] == []


def test_share_of_the_peak(run) -> None:
    found = run("peak_share", "--teachers", "2", "--images", "3", "--size", "64", "--repeats", "2",
                "--image-size", "8")  # fmt: skip
    assert (
        ordered(found["share"]) and ordered(found["peak_gflops"]) and ordered(found["milliseconds_a_teacher"])
    )
    assert found["share_with_votes"]["median"] < found["share"]["median"]


def test_operations_are_no_more_than_were_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's own count of the same step is larger, since it holds the label planes: by little."""
    peak = program("benchmarks/peak_share.py", monkeypatch)
    network, batch = PaperDiscriminator((1, 28, 28), 10), 15
    family = peak.PaperTeachers(network.image_shape, 10)
    rng = torch.Generator().manual_seed(0)
    images, labels = torch.rand(1, batch, 1, 28, 28, generator=rng), torch.arange(batch)[None] % 10
    shards = peak.Shards(images, labels, torch.ones(1, batch, dtype=torch.bool))
    fakes = peak.Fakes(images[0], labels[0])
    state = family.init(1, rng, torch.device("cpu"))
    with FlopCounterMode(display=False) as counter:
        family.train(state, shards, fakes, 2)
        family.input_gradient(state, shards, fakes)
    counted = peak.operations(network, batch, batch, 2)
    assert 0.75 * counter.get_total_flops() < counted < counter.get_total_flops()
    assert doctest.testmod(peak).failed == 0


def test_milliseconds_and_bytes_a_teacher(run) -> None:
    found = run("teachers", "shapes", "--recipe", "shapes-quick", "--counts", "3", "6", "--reference", "6",
                "--disk", "6", "--rounds", "2", "--shard-size", "700", "--least-asked", "9")  # fmt: skip
    assert found["teachers"].keys() == {"3", "6", "6 on disk"}
    for one in found["teachers"].values():
        assert ordered(one["milliseconds_a_teacher"]) and one["peak_resident_mib"] > 0
    assert found["teachers"]["6"]["ratio"] == {"least": 1.0, "median": 1.0, "largest": 1.0}
    sizes = found["bytes_of_state_a_teacher"]
    assert sizes["kernel"] == 0 < sizes["matching"] < sizes["paper"]


def test_seconds_of_the_compressions(run) -> None:
    found = run("compressions", "shapes", "--recipe", "shapes-quick", "--teachers", "25", "--batch-size", "4",
                "--top-k", "9", "--sketch", "3", "20", "--rounds", "2")  # fmt: skip
    assert found["compressions"].keys() == {*MechanismKind, "each sketched"}
    for one in found["compressions"].values():
        assert one.keys() == {"compress", "release", "both"}
        assert all(ordered(part["seconds"]) and ordered(part["ratio"]) for part in one.values())
        whole, parts = one["both"]["seconds"], (one["compress"]["seconds"], one["release"]["seconds"])
        assert whole["largest"] <= sum(part["largest"] for part in parts) * (1 + 1e-9)
    assert found["compressions"]["topagg"]["both"]["ratio"] == {"least": 1.0, "median": 1.0, "largest": 1.0}


def test_a_sum_of_sketches_is_the_sketch_of_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = program("benchmarks/compressions.py", monkeypatch)
    grad_TBD = torch.randn(45, 3, 16, generator=torch.Generator().manual_seed(0))
    config = Config().replace(
        voting={"mechanism": "fetchsgd-sound", "num_teachers": 45, "batch_size": 3, "top_k": 4,
                "sketch_rows": 3, "sketch_buckets": 5}, privacy__insecure_seed=0
    )  # fmt: skip
    fakes = Fakes(torch.zeros(3, 1, 4, 4), torch.arange(3))
    recorded = timed.Recorded(grad_TBD)
    of_sum = timed.contender(config, recorded, fakes)
    of_each = timed.contender(config, recorded, fakes, each_sketched=True)
    asked = (fakes, 0, 1, 4, config.voting.clip_bound)
    tally_BD, table = (one.teachers.tally(*asked).tally_BD for one in (of_sum, of_each))
    assert torch.equal(of_each.mechanism.summed(table), of_sum.mechanism.summed(tally_BD).to(table.dtype))
    assert int(tally_BD.abs().sum()) > 0


def test_share_of_the_student(run) -> None:
    found = run("student_share", "shapes", "--recipe", "shapes-quick", "--steps", "2")
    assert found["steps"] == 2
    assert 0 < found["share_of_a_step"]["least"] <= found["share"] <= found["share_of_a_step"]["largest"] < 1


def test_a_step_of_dp_sgd(run) -> None:
    found = run("dpsgd_step", "head", "--batch", "20", "--rounds", "2")
    assert found["ratio"] > 0 and found["seconds_of_topagg"] > found["seconds_of_topagg_in_the_optimizer"] > 0


def test_a_step(run) -> None:
    found = run("step", "shapes", "--recipe", "quick", "--steps", "1", "--teacher-store", "disk",
                "--num-teachers", "50", "--chunk-size", "20")  # fmt: skip
    assert ordered(found["seconds_a_step"]) and ordered(found["milliseconds_a_teacher"])
    assert found["teachers"] == 50
    assert found["disk_mib"] > 0 < found["peak_resident_mib"]


def test_a_step_on_images_drawn_by_lot(run) -> None:
    found = run("step", "random", "--recipe", "colour-quick", "--num-records", "40", "--num-teachers", "4",
                "--steps", "1")  # fmt: skip
    assert (found["source"], found["records"], found["teachers"]) == ("random", 40, 4)


def test_a_long_training_goes_on_where_it_was(run, tmp_path: Path) -> None:
    words = ("shapes", "--num-teachers", "50", "--run", str(tmp_path / "run"), "--out", str(tmp_path / "log.json"),
             "--samples", "40")  # fmt: skip
    first = run("long_training", *words, "--steps", "1")
    assert first["finished"] is False and first["steps"] == 1
    second = run("long_training", *words)
    assert second["finished"] is True and second["steps"] == second["planned_steps"]
    assert [len(stretch["seconds_of_steps"]) for stretch in second["stretches"]] == [1, second["steps"] - 1]
    assert second["run_folder_mib"] >= 0 and ordered(second["seconds_a_step"])
    assert 0 <= second["last_accuracy"] <= 1


def test_a_mistake_is_one_line_and_a_defect_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    explained = program("benchmarks/measuring.py", monkeypatch).explained
    step = program("benchmarks/step.py", monkeypatch)
    assert explained(lambda: step.main(["nowhere"])) == 2
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(ZeroDivisionError):
        explained(lambda: 1 // 0)


def test_two_ranks_against_one(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Its processes are its own, so that only the file descriptors hear what they print."""
    words = ["shapes", "--recipe", "shapes-quick", "--num-teachers", "80", "--steps", "1"]
    assert program("benchmarks/ranks.py", monkeypatch).main(words) == 0
    found = said(capfd.readouterr().out)
    assert found.keys() >= ENVIRONMENT
    assert found["ranks"] == 2
    assert found["ratio"] > 0 < found["ratio_of_processor_seconds"]
    assert all(0 < ratio < 8 for ratio in found["machine_ratio"].values())


def test_stages_before_and_after_training(run) -> None:
    found = run("pipeline", "shapes", "--recipe", "shapes-quick", "--samples", "20", "--tested", "20",
                "--repeats", "1", "--start-ups", "1")  # fmt: skip
    for one in found["stages"].values():
        assert ordered(one["per_image"]) and ordered(one["share"])
    shares = {stage: one["share"]["median"] for stage, one in found["stages"].items()}
    assert sum(share for stage, share in shares.items() if "at once" not in stage) == pytest.approx(1)
    assert [stage for stage, one in found["stages"].items() if "ratio" in one] == ["draw", "judge"]
    assert all(ordered(one["milliseconds"]) for one in found["start_up"].values())
