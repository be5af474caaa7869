"""Limits of moments: a setting that cannot work is named before anything is charged, and all that can is finite."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from baseline_scene import context_of, shapes
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.baselines.model import Baseline
from datalens.baselines.moments import MEANS, PRODUCTS, STATES, Moments, MomentsLearner, MomentsSettings
from datalens.baselines.registry import baseline
from datalens.data.images import LabelledImages
from datalens.errors import CheckpointError, ConfigError
from datalens.methods.method import PublicSize
from datalens.moments.limits import ROWS
from datalens.noise.table import MIN_STDDEV
from datalens.privacy.accountant import Accountant
from datalens.privacy.events import NoiseKind
from datalens.training.sections import Privacy

DELTA = 1e-5
GREY = PublicSize(1000, (1, 28, 28), 10)
LARGE = PublicSize(1000, (3, 256, 256), 2)
TINY = PublicSize(100, (1, 4, 4), 2)


def learner_of(method: Moments) -> MomentsLearner:
    shape, classes = method.size.image_shape, method.size.num_classes
    one = np.random.default_rng(0).integers(0, 256, (1, *shape), dtype=np.uint8)
    names = tuple(str(label) for label in range(classes))
    return method.begin(
        context_of(LabelledImages(one, np.zeros(1, np.int64), names, "one", public=True), method.size)
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mean_share", 1e-9),
        ("mean_share", 1 - 1e-9),
        ("mean_length", 1e-300),
        ("product_length", 1e300),
        ("energy_length", 1e160),
        ("count_weight", 1e300),
        ("energy_weight", 1e-300),
        ("energy_weight", math.nan),
    ],
)
def test_numbers_that_would_overflow_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{name} = "):
        baseline("moments", {name: value})


@pytest.mark.parametrize(
    ("size", "chosen", "words"),
    [
        (LARGE, {"low_frequencies": 64}, r"low_frequencies = 64 with 2 classes: .* fewer low_frequencies"),
        (PublicSize(9, (3, 256, 256), 1000), {}, r"images of 3x256x256 with 1000 classes: .* fewer classes"),
        (
            PublicSize(9, (1, 64, 64), 300),
            {"rank": 1024, "low_frequencies": 20},
            r"rank = 1024 with 300 classes: .* a lower rank",
        ),
        (PublicSize(9, (1, 5000, 8), 2), {}, r"images of 5000x8: .* at most 4096"),
    ],
)
def test_what_takes_many_gibibytes_is_refused(size: PublicSize, chosen: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        MomentsSettings(**chosen).plan(Privacy(epsilon=100.0), size)


def test_a_share_that_no_noise_gives_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"mean_share = 0.001: .* use a larger mean_share"):
        MomentsSettings(mean_share=0.001).plan(Privacy(epsilon=0.05), GREY)


def test_a_refused_plan_leaves_no_folder(tmp_path: Path) -> None:
    config = baseline("moments", {"mean_share": 0.001}, epsilon=0.1)
    with pytest.raises(ConfigError, match=r"mean_share = 0\.001"):
        Baseline(config).fit(shapes(20), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("size", [GREY, TINY, LARGE, PublicSize(1, (1, 28, 28), 1000)])
@pytest.mark.parametrize("epsilon", [0.3, 60.0, 100.0, 1e6])
def test_any_epsilon_costs_no_more_than_itself_with_all_that_is_drawn(
    size: PublicSize, epsilon: float
) -> None:
    """At large ones the sampler's slack decides, and it grows with every number of a table."""
    events = [part.event for part in MomentsSettings().plan(Privacy(epsilon=epsilon), size).planned()]
    assert Accountant(Privacy().accountant).epsilon(events, DELTA) <= epsilon


def test_means_never_have_less_noise_than_can_be_drawn() -> None:
    wide = MomentsSettings(mean_share=0.999, low_frequencies=28)
    assert Moments(wide, Privacy(), GREY, MIN_STDDEV).stddev(MEANS) == MIN_STDDEV
    assert Moments(wide, Privacy(noise=NoiseKind.NONE), GREY, 0.0).stddev(MEANS) == 0


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 1), (1, 1, 9), (3, 5, 17)])
@pytest.mark.parametrize("threads", [1, 5])
def test_a_record_gives_the_same_bits_at_every_place_of_a_block(
    shape: tuple[int, int, int], threads: int
) -> None:
    """Before rounding to a grid, which could hide it."""
    measures = MomentsSettings().measures(PublicSize(100, shape, 1))
    rng, usual = np.random.default_rng(3), torch.get_num_threads()
    image, block = (torch.from_numpy(rng.integers(0, 256, (n, *shape), dtype=np.uint8)) for n in (1, ROWS))
    found = set()
    try:
        torch.set_num_threads(threads)
        for place in (0, 1, 6, 31, ROWS - 2, ROWS - 1):
            for company in (block.clone(), torch.zeros_like(block)):
                company[place] = image[0]
                numbers_RD = measures.basis.of_bytes(company)
                vectors = measures.image_vectors(numbers_RD), measures.residual_vectors(numbers_RD - 0.1)
                found.add(b"".join(rows[place].numpy().tobytes() for rows in vectors))
    finally:
        torch.set_num_threads(usual)
    assert len(found) == 1


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    scales=st.tuples(st.floats(-12, 12), st.floats(-12, 12)),
    weights=st.tuples(st.floats(-3, 3), st.floats(-3, 3)),
)
def test_images_are_images_whatever_was_released(
    seed: int, scales: tuple[float, float], weights: tuple[float, float]
) -> None:
    count, energy = (10.0**weight for weight in weights)
    chosen = MomentsSettings(rank=6, count_weight=count, energy_weight=energy)
    method = chosen.plan(Privacy(), TINY)
    rng, learner = np.random.default_rng(seed), learner_of(method)
    tables = {
        name: rng.normal(size=(2, method.grid(what).dim)) * (rng.random((2, 1)) < 0.8) * 10.0**scale
        for (what, name), scale in zip(STATES.items(), scales, strict=True)
    }
    learner.load_state_dict({name: torch.from_numpy(table) for name, table in tables.items()})
    latents = method.latent.latents(8, torch.Generator().manual_seed(1))
    images = learner.generator()(latents, torch.arange(8) % 2)
    assert float(images.min()) >= 0 and float(images.max()) <= 1  # neither holds for a NaN


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: {"moments": state["moments"]}, "holds moments"),
        (lambda state: state | {"other": torch.zeros(1)}, "holds means, moments, other"),
        (lambda state: state | {"means": state["means"].float()}, r"type torch.float32, .* float64"),
        (lambda state: state | {"moments": state["moments"] * math.nan}, "the moments .* not finite"),
    ],
)
def test_a_state_that_no_run_wrote_is_refused(change: Any, words: str) -> None:
    method = MomentsSettings().plan(Privacy(), TINY)
    state = {
        STATES[what]: torch.zeros(2, method.grid(what).dim, dtype=torch.float64) for what in (MEANS, PRODUCTS)
    }
    learner_of(method).load_state_dict(state)
    with pytest.raises(CheckpointError, match=words):
        learner_of(method).load_state_dict(change(state))
