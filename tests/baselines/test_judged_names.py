"""Judged: names that a judge gives, what it learns of them from the records, limits of settings, and runs."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from baseline_scene import context_of
from forged import chained
from small_baselines import SMALL

from datalens.audit.verify import verify_run
from datalens.baselines.judged import JudgedSettings
from datalens.baselines.judged_fitting import _widest, fit_judge
from datalens.baselines.judged_learner import GRADIENT, JudgedLearner
from datalens.baselines.model import Baseline
from datalens.baselines.registry import baseline
from datalens.data.images import LabelledImages
from datalens.data.shapes import draw_shapes
from datalens.errors import ConfigError
from datalens.methods.method import PublicSize
from datalens.models.judge import JudgedGenerator
from datalens.noise import make_noise
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind
from datalens.privacy.ledger import Ledger
from datalens.randomness import Streams
from datalens.student.sampling import sample_images
from datalens.training.config import Finishing
from datalens.training.heads import heads_file
from datalens.training.sections import Privacy

SHAPE, CLASSES, RECORDS = (1, 8, 8), 4, 600
CHOSEN = JudgedSettings(
    num_steps=32, low_frequencies=2, rank=3, judge_images=150, judge_size=40, finish=Finishing(jitter=0.0)
)
"""A law so coarse that there is something left to learn."""


def learnt(
    records: LabelledImages, chosen: JudgedSettings = CHOSEN, steps: int | None = None
) -> JudgedLearner:
    """A learner without noise."""
    size = PublicSize(records.num_records, records.image_shape, records.num_classes)
    method = chosen.plan(Privacy(noise=NoiseKind.NONE), size)
    free = Budget(Ledger.in_memory(), Authorisation.not_private())
    learner = method.begin(context_of(records, size, noise=make_noise(NoiseKind.NONE), budget=free))
    for step in range(chosen.num_steps if steps is None else steps):
        learner.step(step)
    return learner


def accuracy(generator: JudgedGenerator, data: LabelledImages) -> float:
    images = torch.from_numpy(data.images).float() / 255
    names = generator.named(images, torch.full((len(images),), -1))
    return float((names.numpy() == data.labels).mean())


def before_it_learns(records: LabelledImages) -> JudgedGenerator:
    """A judge that knows the law's labels alone."""
    learner = learnt(records, steps=2)
    return fit_judge(learner.generator(), learner._method, Streams.from_insecure_seed(3, "public"))


@cache
def taught() -> JudgedLearner:
    return learnt(draw_shapes(RECORDS, image_size=8))


def test_a_judge_learns_of_records_what_the_law_does_not_say() -> None:
    records, test = draw_shapes(RECORDS, image_size=8), draw_shapes(400, image_size=8, seed=9)
    of_law = accuracy(before_it_learns(records), test)
    of_records = accuracy(taught().generator(), test)
    assert of_records > of_law + 0.02 and of_records > 0.7, (of_law, of_records)


def test_from_labels_that_mean_nothing_it_learns_nothing() -> None:
    records, test = draw_shapes(RECORDS, image_size=8), draw_shapes(400, image_size=8, seed=9)
    order = np.random.default_rng(1).permutation(RECORDS)
    shuffled = learnt(dataclasses.replace(records, labels=records.labels[order]))
    assert accuracy(shuffled.generator(), test) < 0.45  # a quarter by chance


# Names


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_before_its_first_step_images_are_called_what_was_asked_for(steps: int) -> None:
    records = draw_shapes(60, image_size=8)
    learner = learnt(records, steps=steps)
    generator, latent = learner.generator(), CHOSEN.latent(PublicSize(60, SHAPE, CLASSES))
    assert not generator.judge.knows
    asked = np.arange(20) % CLASSES
    images, labels = sample_images(generator, latent, 20, labels=asked, seed=1)
    assert np.array_equal(labels, asked) and images.shape == (20, *SHAPE)
    _, drawn = sample_images(generator, latent, 400, seed=1)
    assert np.bincount(drawn, minlength=CLASSES).min() > 60


def test_labels_are_the_judges_names() -> None:
    generator, latent = taught().generator(), CHOSEN.latent(PublicSize(RECORDS, SHAPE, CLASSES))
    images, labels = sample_images(generator, latent, 300, seed=1)
    found = generator.named(torch.from_numpy(images).float() / 255, torch.zeros(300).long())
    assert np.array_equal(found.numpy(), labels) and set(labels) == set(range(CLASSES))
    more, names = sample_images(generator, latent, 520, seed=1)
    assert np.array_equal(more[:300], images) and np.array_equal(names[:300], labels), (
        "a longer sample begins alike"
    )


def test_images_of_classes_that_were_asked_for_are_drawn_until_the_judge_agrees() -> None:
    generator, latent = taught().generator(), CHOSEN.latent(PublicSize(RECORDS, SHAPE, CLASSES))
    asked = np.arange(240) % CLASSES

    def agreed(images: np.ndarray) -> np.ndarray:
        names = generator.named(torch.from_numpy(images).float() / 255, torch.zeros(240).long())
        return names.numpy() == asked

    images, labels = sample_images(generator, latent, 240, labels=asked, seed=1)
    unnamed = learnt(draw_shapes(RECORDS, image_size=8), steps=2).generator()
    once, _ = sample_images(unnamed, latent, 240, labels=asked, seed=1)
    assert np.array_equal(labels, asked)
    assert agreed(once).mean() < 0.9 < agreed(images).mean()
    assert np.array_equal(images[agreed(once)], once[agreed(once)]), "what the judge agreed with stays"


# What the judge looks at


@pytest.mark.parametrize("count", [1, 2, 40, 90])
def test_the_frame_is_of_the_widest_directions_however_many_images_there_are(count: int) -> None:
    rng, dim = np.random.default_rng(count), 60
    rows = torch.from_numpy(rng.normal(size=(count, dim)) * np.linspace(5, 1, dim))
    value_K, direction_FK = _widest(rows, 50)
    _, singular, right = np.linalg.svd(rows.numpy(), full_matrices=False)
    known = min(50, int((singular > 1e-6 * singular[0]).sum()))
    np.testing.assert_allclose(value_K[:known], singular[:known] ** 2 / len(rows), rtol=1e-8)
    np.testing.assert_allclose(np.abs((right[:known] * direction_FK.T[:known].numpy()).sum(1)), 1, rtol=1e-8)
    assert value_K.shape == (50,) and direction_FK.shape == (dim, 50)
    assert float(value_K[known:].sum()) < 1e-6


def test_rows_of_coordinates_are_never_longer_than_one() -> None:
    judge = taught().generator().judge
    wild = torch.cat([torch.rand(6, *SHAPE) * 10.0**power for power in (0, 3, 18)])
    assert float(judge.coordinates(wild).norm(dim=1).max()) <= 1 + 1e-12


# Settings and sizes


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_steps", 2),
        ("num_steps", 10_001),
        ("judge_share", 0.0),
        ("judge_share", 1.0),
        ("judge_size", 0),
        ("judge_size", 3001),
        ("judge_images", 0),
        ("error_length", 0.0),
        ("error_length", 1e300),
        ("learning_rate", 0.0),
        ("learning_rate", float("inf")),
        ("learning_rate", 1e30),
        ("learning_rate", float("nan")),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{name} = "):
        baseline("judged", {name: value})


@pytest.mark.parametrize("shape", [(1, 7, 28), (3, 28, 7), (1, 4, 4)])
def test_images_too_small_for_it_are_refused_with_a_remedy(shape: tuple[int, int, int]) -> None:
    words = f"images of {shape[1]}x{shape[2]} are too small .*; use larger images, or the method moments"
    with pytest.raises(ConfigError, match=words) as found:
        JudgedSettings().plan(Privacy(), PublicSize(60, shape, 2))
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("judge_images", "judge_size", "rate"), [(1, 1, 1e6), (1, 300, None), (2, 3, 1e-6)], ids=str
)
def test_the_ends_of_what_is_allowed_stay_finite(
    judge_images: int, judge_size: int, rate: float | None
) -> None:
    chosen = CHOSEN.model_copy(
        update={"num_steps": 5, "judge_images": judge_images, "judge_size": judge_size, "learning_rate": rate}
    )
    state = learnt(draw_shapes(9, image_size=8), chosen).state_dict()
    assert all(bool(value.isfinite().all()) for value in state.values())


def test_with_noise_alone_and_the_highest_rate_it_stays_finite_and_goes_on() -> None:
    records = draw_shapes(9, image_size=8)
    size = PublicSize(9, SHAPE, CLASSES)
    chosen = CHOSEN.model_copy(update={"num_steps": 12, "learning_rate": 1e6, "error_length": 1e-3})
    method = chosen.plan(Privacy(epsilon=0.06, insecure_seed=1), size)
    free = Budget(Ledger.in_memory(), Authorisation(1.0, 1e-5))
    context = context_of(records, size, noise=make_noise(NoiseKind.ROUNDED, b"x" * 32), budget=free)
    learner = method.begin(context)
    for step in range(12):
        learner.step(step)
    method.begin(context).load_state_dict(learner.state_dict())


@pytest.mark.parametrize("shape", [(3, 9, 14), (1, 20, 8)])
def test_images_of_any_shape_are_learnt_from_and_verified(
    tmp_path: Path, shape: tuple[int, int, int]
) -> None:
    images = np.random.default_rng(0).integers(0, 256, (60, *shape), dtype=np.uint8)
    data = LabelledImages(images, np.arange(60) % 3, ("a", "b", "c"), "any", public=True)
    model = Baseline(baseline("judged", SMALL["judged"], epsilon=3.0)).fit(data, out=tmp_path / "run")
    assert verify_run(tmp_path / "run").differences == []
    found, labels = model.sample(12, seed=1)
    assert found.shape == (12, *shape) and set(labels) <= {0, 1, 2}


# Verification


def gradients(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if (line["body"].get("note") or {}).get("what") == GRADIENT]


FORGED: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "a cheaper line": lambda lines: gradients(lines)[1]["body"]["event"].update(sensitivity=256.0),
    "more noise in a line": lambda lines: gradients(lines)[0]["body"]["event"].update(noise_stddev=1e5),
    "fewer numbers": lambda lines: gradients(lines)[2]["body"]["event"].update(coordinates=4),
    "a line dropped": lambda lines: lines.remove(gradients(lines)[1]),
    "a line twice": lambda lines: lines.insert(
        lines.index(gradients(lines)[2]), json.loads(json.dumps(gradients(lines)[2]))
    ),
    "of something else": lambda lines: gradients(lines)[0]["body"]["note"].update(what="class means"),
    "of another step": lambda lines: gradients(lines)[0]["body"]["note"].update(step=4),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("judged") / "run"
    Baseline(baseline("judged", SMALL["judged"], epsilon=3.0)).fit(draw_shapes(60, image_size=8), out=root)
    shutil.rmtree(root / "private")
    heads_file().unlink(missing_ok=True)
    assert verify_run(root).differences == []
    return root


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_ledger_whose_hashes_fit_is_found(run: Path, name: str) -> None:
    path = run / "release" / "ledger.jsonl"
    sound = path.read_text()
    lines = [json.loads(line) for line in sound.splitlines()]
    FORGED[name](lines)
    for number, line in enumerate(lines):
        line["index"] = number
    try:
        path.write_text(chained(lines))
        assert verify_run(run).differences
    finally:
        path.write_text(sound)
    assert verify_run(run).differences == []


def test_no_record_lies_in_what_is_released(run: Path) -> None:
    """Whatever depends on the records' own coordinates is nowhere beside the released sums."""
    names = {path.name for path in (run / "release").iterdir()}
    assert "generator.safetensors" in names and not {name for name in names if "coordinates" in name}
