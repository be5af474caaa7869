"""Judged: what one record moves, that only releases are learnt from, how the budget is split, and checkpoints."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from baseline_scene import SpyNoise, budget_of, context_for, context_of, same_state
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_records import CLASSES, DELTA, SHAPE, SIZE, noisy_images, only

from datalens.baselines.judged import Judged, JudgedSettings
from datalens.baselines.judged_learner import GRADIENT, JudgedLearner
from datalens.baselines.moments import STATES
from datalens.data.images import LabelledImages
from datalens.data.shapes import draw_shapes
from datalens.errors import BudgetError, CheckpointError, ConfigError, RunError
from datalens.mechanisms.vector_sum import VectorSum
from datalens.methods.method import PublicSize
from datalens.privacy.accountant import Accountant
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import GaussianEvent, times
from datalens.privacy.ledger import Ledger
from datalens.training.sections import Privacy

STEPS = 5
SMALL = JudgedSettings(num_steps=STEPS, low_frequencies=3, rank=4, judge_images=60, judge_size=12)
EXTREME = {
    "black": np.zeros(SHAPE, np.uint8),
    "white": np.full(SHAPE, 255, np.uint8),
    "chequered": (255 * (np.indices(SHAPE).sum(0) % 2)).astype(np.uint8),
    "a dot": np.eye(1, 64, 27, dtype=np.uint8).reshape(SHAPE) * 255,
}
State = dict[str, torch.Tensor]
RELEASE = VectorSum.release


@cache
def usual() -> Judged:
    return method_of()


def method_of(
    privacy: Privacy | None = None, size: PublicSize = SIZE, chosen: JudgedSettings = SMALL
) -> Judged:
    return chosen.plan(privacy or Privacy(), size)


def learner_of(data: LabelledImages, steps: int = 0, **parts: Any) -> JudgedLearner:
    learner = usual().begin(context_of(data, SIZE, **parts))
    for step in range(steps):
        learner.step(step)
    return learner


def with_record(data: LabelledImages, place: int, image: np.ndarray, label: int) -> LabelledImages:
    return dataclasses.replace(
        data,
        images=np.insert(data.images, place, image, axis=0),
        labels=np.insert(data.labels, place, label),
    )


@cache
def past(steps: int = 4, head: float = 1.0) -> State:
    """Of a public past; its judge's answers as sharp as asked."""
    state = learner_of(noisy_images(99, 60), steps, noise=SpyNoise(7)).state_dict()
    if "velocity" in state:
        state["module/judge/head_YK"] *= head
    return state


def after(data: LabelledImages, released: State | None = None) -> JudgedLearner:
    learner = learner_of(data)
    learner.load_state_dict(past() if released is None else released)
    return learner


def length_squared(sums: torch.Tensor) -> int:
    return sum(number**2 for row in sums.tolist() for number in row)


# Sensitivity


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 140),
    place=st.sampled_from(["first", "middle", "last"]),
    looks=st.sampled_from([*EXTREME, "noise"]),
    label=st.integers(0, CLASSES - 1),
    head=st.sampled_from([1.0, 1e-3, 1e3, 1e30]),
)
def test_a_record_moves_a_gradient_by_no_more_than_charged_and_nobody_else(
    seed: int, count: int, place: str, looks: str, label: int, head: float
) -> None:
    data, released = noisy_images(seed, count), past(head=head)
    image = EXTREME.get(looks, noisy_images(seed + 1, 1).images[0])
    at = {"first": 0, "middle": count // 2, "last": count}[place]
    more = with_record(data, at, image, label)
    rest, both, alone = (after(one, released) for one in (data, more, only(more, [at])))
    own = alone.gradient()
    assert torch.equal(both.gradient() - rest.gradient(), own)
    assert length_squared(own) <= usual().grid.units ** 2
    others = np.delete(np.arange(count + 1), at)
    assert torch.equal(both._coordinates()[others], rest._coordinates())
    named_otherwise = dataclasses.replace(more, labels=(more.labels + (np.arange(count + 1) == at)) % CLASSES)
    moved = both.gradient() - after(named_otherwise, released).gradient()
    assert length_squared(moved) <= (2 * usual().grid.units) ** 2


def test_a_gradient_of_many_is_the_sum_of_the_parts_in_any_order() -> None:
    """Of more records than are put on the grid at once."""
    data = noisy_images(1, 4100)
    whole = after(data).gradient()
    parts = [after(only(data, part)).gradient() for part in np.array_split(np.arange(4100), [1, 37, 4000])]
    assert torch.equal(whole, torch.stack(parts).sum(0))
    assert torch.equal(whole, after(only(data, np.random.default_rng(0).permutation(4100))).gradient())


def test_answers_that_are_no_numbers_move_nothing_too_far() -> None:
    """A head that overflowed is public; what a record adds stays within the charge."""
    for value in (torch.inf, -torch.inf, torch.nan, 3e38):
        learner = after(noisy_images(5, 1))
        learner._generator.judge.head_YK.data.fill_(value)
        assert length_squared(learner.gradient()) <= usual().grid.units ** 2


def test_the_judge_hears_of_records_through_the_releases_only() -> None:
    budget, noise = budget_of(), SpyNoise(5)
    learner = learner_of(draw_shapes(60, image_size=8), STEPS, budget=budget, noise=noise)
    method = method_of()
    assert budget.num_releases == STEPS
    assert [shape for shape, _ in noise.calls][len(STATES) :] == [(CLASSES, 13)] * method.settings.judge_steps
    assert [stddev for _, stddev in noise.calls][len(STATES) :] == [method.noise_stddev] * 3
    other = after(noisy_images(1, 7), learner.state_dict())
    assert same_state(dict(learner.generator().state_dict()), dict(other.generator().state_dict()))


@pytest.mark.parametrize("steps", [2, 3])
def test_a_judge_is_the_same_after_the_same_sums_whoever_is_there(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A known mistake: a frame, a length or a centre of the records' own features."""
    monkeypatch.setattr(
        "datalens.mechanisms.vector_sum.VectorSum.release",
        lambda self, sums, budget, note: dataclasses.replace(
            RELEASE(self, sums, budget, note), value=torch.full(sums.shape, 2.0).double()
        ),
    )
    one, other = (learner_of(data) for data in (draw_shapes(60, image_size=8), noisy_images(3, 1)))
    for learner in (one, other):
        for step in range(steps + 1):
            learner.step(step)
    assert same_state(one.state_dict(), other.state_dict())


# Plan


@pytest.mark.parametrize(("epsilon", "share"), [(0.3, 0.6), (1.0, 0.2), (10.0, 0.9)])
def test_the_plan_costs_epsilon_and_hardly_less_and_is_split_as_asked(epsilon: float, share: float) -> None:
    chosen = SMALL.model_copy(update={"judge_share": share})
    planned = method_of(Privacy(epsilon=epsilon), chosen=chosen).planned()
    spent = Accountant(Privacy().accountant).epsilon([times(one.event, one.count) for one in planned], DELTA)
    assert 0.99 * epsilon < spent <= epsilon
    squares = {
        one.what: one.count * one.event.mu**2 for one in planned if isinstance(one.event, GaussianEvent)
    }
    assert squares[GRADIENT] / sum(squares.values()) == pytest.approx(share, rel=1e-3)
    means, moments = (squares[what] for what in STATES)
    assert means / (means + moments) == pytest.approx(chosen.mean_share, rel=1e-3)


def test_replacing_a_record_and_groups_are_charged_for() -> None:
    for alone, many in zip(method_of().planned(), method_of(Privacy(group_size=3)).planned(), strict=True):
        assert isinstance(alone.event, GaussianEvent) and isinstance(many.event, GaussianEvent)
        assert isinstance(alone.replace_one, GaussianEvent)
        assert alone.replace_one.sensitivity == 2 * alone.event.sensitivity
        assert many.event.sensitivity == 3 * alone.event.sensitivity
        assert many.event.mu == pytest.approx(alone.event.mu, rel=1e-2)
        assert alone.count == (SMALL.judge_steps if alone.what == GRADIENT else 1)


@pytest.mark.parametrize(
    ("privacy", "chosen", "words"),
    [
        ({"epsilon": 1e-3}, {}, r"epsilon = 0.001: .* use a larger epsilon or delta, fewer num_steps than 5"),
        ({"epsilon": 0.05}, {"judge_share": 0.999}, r"judge_share = 0.999: .* use a smaller judge_share"),
    ],
)
def test_what_needs_more_noise_than_there_is_is_refused(
    privacy: dict[str, Any], chosen: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        method_of(Privacy(**privacy), chosen=SMALL.model_copy(update=chosen))


# Checkpoints


def test_going_on_from_every_checkpoint_ends_alike_and_releases_nothing_again() -> None:
    data, privacy = draw_shapes(60, image_size=8), Privacy(insecure_seed=1)
    size = PublicSize(60, SHAPE, CLASSES)
    method = SMALL.plan(privacy, size)

    def begun() -> tuple[JudgedLearner, Budget]:
        context = context_for(data, privacy, method.planned())
        return method.begin(context), context.budget

    whole, _ = begun()
    states = [whole.state_dict()]
    for step in range(STEPS):
        whole.step(step)
        states.append(whole.state_dict())
    assert all(not same_state(one, other) for one, other in pairwise(states))
    for done, state in enumerate(states):
        second, budget = begun()
        second.load_state_dict(state)
        for step in range(done, STEPS):
            second.step(step)
        assert budget.num_releases == STEPS - done
        assert same_state(second.state_dict(), states[-1]), done
        assert same_state(dict(second.generator().state_dict()), dict(whole.generator().state_dict()))


def test_a_release_that_does_not_fit_leaves_nothing() -> None:
    poor = Budget(Ledger.in_memory(), Authorisation(1e-3, DELTA))
    noise = SpyNoise()
    learner = learner_of(draw_shapes(8, image_size=8), noise=noise, budget=poor)
    with pytest.raises(BudgetError):
        learner.step(0)
    assert noise.calls == [] and not learner.state_dict()
    learner.load_state_dict(past(4))
    with pytest.raises(BudgetError):
        learner.step(4)
    assert noise.calls == [] and same_state(learner.state_dict(), past(4))


def set_to(name: str, value: Any) -> Callable[[State], State]:
    return lambda state: state | {name: value(state[name]) if callable(value) else value}


DAMAGED: dict[str, tuple[Callable[[State], State], str]] = {
    "no velocity": (
        lambda state: {k: v for k, v in state.items() if k != "velocity"},
        "lacks the judge's velocity",
    ),
    "no law": (lambda state: {k: v for k, v in state.items() if k not in STATES.values()}, "lacks the law"),
    "no judge": (
        lambda state: {k: v for k, v in state.items() if not k.startswith("module/")},
        "of other networks",
    ),
    "another velocity": (
        set_to("velocity", torch.zeros(CLASSES, 14).double()),
        r"shape \(4, 14\) and this run's",
    ),
    "single precision": (set_to("velocity", torch.Tensor.float), "use the settings it was made with"),
    "no finite velocity": (set_to("velocity", lambda value: value * torch.nan), "not finite"),
    "no finite head": (set_to("module/judge/head_YK", lambda value: value / 0), "not finite"),
    "no finite length": (set_to("module/judge/length", torch.tensor(torch.nan)), "not finite"),
    "another frame": (set_to("module/judge/frame_FK", lambda value: value[:, :3]), "of other networks"),
    "no finite means": (set_to("means", lambda value: value * torch.inf), "not finite"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_checkpoint_of_another_run_is_refused_in_one_line(name: str) -> None:
    damage, words = DAMAGED[name]
    with pytest.raises(CheckpointError, match=words) as found:
        learner_of(noisy_images(0, 3)).load_state_dict(damage(past(3)))
    assert "\n" not in str(found.value)


def test_a_checkpoint_of_other_settings_is_refused() -> None:
    other = method_of(chosen=SMALL.model_copy(update={"judge_size": 13}))
    with pytest.raises(CheckpointError, match="use the settings it was made with"):
        other.begin(context_of(noisy_images(0, 3), SIZE)).load_state_dict(past(3))


@pytest.mark.parametrize("step", [1, 2])
def test_lost_means_end_a_run_before_anything_more_is_charged(step: int) -> None:
    budget = budget_of()
    learner = learner_of(noisy_images(0, 20), budget=budget)
    with pytest.raises(RunError, match="class means were charged and lost"):
        learner.step(step)
    assert not budget.ledger.events()
