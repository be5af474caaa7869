"""Whole small trainings: images in, a generator with a certificate out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from datalens import DataLens, recipes
from datalens.audit.verify import verify_run
from datalens.data import load
from datalens.data.arrays import labelled_images
from datalens.errors import BudgetError, ConfigError, RunError
from datalens.evaluation import evaluate_utility
from datalens.student.update import Proposal, Student
from datalens.training.config import Config
from datalens.training.directions import read_directions
from datalens.training.run_folder import RunFolder


def tiny(**changes) -> Config:
    settings = {
        "privacy__insecure_seed": 4,
        "privacy__record_count_is_public": True,
        "voting__num_teachers": 20,
        "voting__num_steps": 4,
        "voting__top_k": 20,
        "voting__batch_size": 8,
    }
    return recipes.shapes_quick(epsilon=5).replace(**(settings | changes))


@pytest.fixture(scope="module")
def few() -> tuple[np.ndarray, np.ndarray]:
    data = load("shapes")
    return data.images[:200], data.labels[:200]


@pytest.mark.timeout(240)
def test_shapes_are_learned_under_privacy(tmp_path: Path) -> None:
    """The whole way in seconds: at epsilon 10 a classifier taught by the samples beats chance by far."""
    train, test = load("shapes"), load("shapes", split="test")
    out = tmp_path / "run"
    model = DataLens(recipes.shapes_quick().replace(privacy__insecure_seed=0)).fit(train, out=out)
    assert 9.5 < model.epsilon(1e-5) <= 10
    images, labels = model.sample(2000, seed=0)
    result = evaluate_utility(images, labels, test.images, test.labels, num_classes=4)
    assert result.last_accuracy > 0.55
    again = DataLens.load(out)
    assert again.epsilon(1e-5) == model.epsilon(1e-5)
    assert (again.sample(20, seed=1)[0] == model.sample(20, seed=1)[0]).all()
    chunks = [chunk for chunk, _ in again.iter_samples(20, [1] * 20, seed=1, chunk=8)]
    assert (np.concatenate(chunks) == model.sample(20, [1] * 20, seed=1)[0]).all()


SKEWED = {
    "nine_to_one": [0] * 180 + [1] * 20,
    "one_to_nine": [0] * 20 + [1] * 180,
    "one_to_nine_of_others": [2] * 20 + [3] * 180,
    "fewer_records_of_one_class": [3] * 120,
}


@pytest.mark.parametrize(
    "steps", [{"voting__num_steps": 4}, {"voting__num_steps": None, "voting__noise_stddev": 64.0}], ids=str
)
def test_r49_data_sets_that_differ_in_everything_are_asked_the_same(
    steps: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels asked and sampled, number of steps and epsilon are no function of the data."""
    asked: list[list[int]] = []
    propose = Student.propose

    def spy(student: Student, step: int) -> Proposal:
        proposal = propose(student, step)
        asked.append(proposal.labels_B.tolist())
        return proposal

    monkeypatch.setattr(Student, "propose", spy)
    small = {"student__hidden_units": 8, "student__channels": 4}
    config = tiny(privacy__record_count_is_public=False, privacy__num_records=200, **steps, **small)
    rng = np.random.default_rng(0)
    seen = []
    for name, labels in SKEWED.items():
        asked.clear()
        images = rng.integers(0, 256, (len(labels), 1, 16, 16), dtype=np.uint8)
        model = DataLens(config).fit(labelled_images(images, np.array(labels), classes=4, name=name))
        seen.append((asked.copy(), model.epsilon(1e-5), model.sample(50, seed=3)[1].tolist()))
    assert len(seen[0][0]) == 4 or steps["voting__num_steps"] is None
    assert len(seen[0][0]) > 2
    assert all(other == seen[0] for other in seen)


def test_an_insecure_seed_repeats_everything_and_real_entropy_nothing(few) -> None:
    def weights(config: Config) -> torch.Tensor:
        generator = DataLens(config).fit(*few, classes=4).generator
        return torch.cat([value.flatten().float() for value in generator.state_dict().values()])

    assert torch.equal(weights(tiny()), weights(tiny()))
    secure = tiny(privacy__insecure_seed=None)
    assert not torch.equal(weights(secure), weights(secure))


def test_nothing_private_lies_under_release(few, tmp_path: Path) -> None:
    out = tmp_path / "run"
    DataLens(tiny()).fit(*few, classes=4, out=out)
    folder = RunFolder.open(out)
    assert oct(folder.private.stat().st_mode & 0o777) == "0o700"
    names = {path.name for path in folder.release.rglob("*")}
    assert names == {
        "config.json",
        "ledger.jsonl",
        "directions.bin",
        "generator.safetensors",
        "certificate.json",
        "README.md",
        "load_generator.py",
    }
    secret = folder.secrets.read_text()
    released = b"".join(path.read_bytes() for path in folder.release.rglob("*") if path.is_file())
    hidden = [value for value in json.loads(secret).values() if isinstance(value, str)]
    assert hidden
    assert not any(value.encode() in released for value in hidden)
    for record in read_directions(folder.directions):
        assert set(record.direction_BD.unique().tolist()) <= {-1, 0, 1}


def test_epsilon_too_small_for_a_step_is_refused_before_anything_is_made(few, tmp_path: Path) -> None:
    config = tiny(
        privacy__epsilon=1e-4, voting__noise_stddev=50.0, voting__num_steps=None, privacy__insecure_seed=None
    )
    with pytest.raises(BudgetError, match=r"use epsilon \S+ or more"):
        DataLens(config).fit(*few, classes=4, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_number_of_records_must_be_declared(few) -> None:
    with pytest.raises(ConfigError, match="--num-records"):
        DataLens(tiny(privacy__record_count_is_public=False)).fit(*few, classes=4)
    bounded = tiny(privacy__record_count_is_public=False, privacy__num_records=500)
    model = DataLens(bounded).fit(*few, classes=4)
    assert model.facts.num_records == 500


def test_without_noise_nothing_is_promised(few) -> None:
    model = DataLens(tiny(privacy__noise="none")).fit(*few, classes=4)
    assert model.epsilon(1e-5) == float("inf")
    assert not model.is_publishable


def test_an_untrained_model_has_nothing_to_give() -> None:
    with pytest.raises(RunError, match="nothing was trained"):
        DataLens(tiny()).sample(1)


def test_a_used_folder_is_left_alone(few, tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    with pytest.raises(RunError, match="exists already"):
        DataLens(tiny()).fit(*few, classes=4, out=out)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]


def test_a_class_list_found_in_the_records_is_published_only_where_declared_public(few, tmp_path) -> None:
    """A class that one record alone has would show that record to everybody."""
    images, labels = few
    config = tiny(privacy__insecure_seed=None)
    with pytest.raises(ConfigError, match=r"class list was found.*classes=\[.*labels_are_public") as caught:
        DataLens(config).fit(images, labels, out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
    for how in ({"classes": 4}, {"labels_are_public": True}):
        model = DataLens(config).fit(images, labels, **how, out=tmp_path / next(iter(how)))
        assert model.is_publishable
        assert model.notes == ()
        assert model.facts.classes_from_data is ("labels_are_public" in how)
        assert verify_run(tmp_path / next(iter(how))).agrees


def test_an_experiment_may_find_its_class_list_and_is_told_what_that_would_give_away(few) -> None:
    images, labels = few
    model = DataLens(tiny()).fit(images, labels)
    assert not model.is_publishable
    assert ["--labels-are-public" in note for note in model.notes] == [True]
    assert DataLens(tiny()).fit(images, labels, classes=4).notes == ()


def test_published_data_have_a_public_class_list(few) -> None:
    images, labels = few
    found = labelled_images(images, labels, public=True)
    assert found.classes_from_data
    model = DataLens(tiny(privacy__insecure_seed=None)).fit(found)
    assert (model.is_publishable, model.notes) == (True, ())


def test_verify_finds_a_release_whose_class_list_nobody_declared(few, tmp_path: Path) -> None:
    """Were the refusal left out, somebody else's verify would still see it."""
    out = tmp_path / "run"
    DataLens(tiny(privacy__insecure_seed=None)).fit(*few, labels_are_public=True, out=out)
    path = RunFolder.open(out).config
    path.write_text(path.read_text().replace('"labels_are_public": true', '"labels_are_public": false'))
    assert any("not declared public" in difference for difference in verify_run(out).differences)
