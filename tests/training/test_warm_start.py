"""A warm start: what a record moves, what it costs, what a crash leaves, and who is refused one."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runs import (
    NUM_STEPS,
    distance_to_real,
    resume,
    same_weights,
    small_config,
    small_data,
    stop_after,
    train,
)

from datalens import DataLens, recipes
from datalens.audit.verify import verify_run
from datalens.baselines.moments import MomentsSettings
from datalens.data.images import LabelledImages
from datalens.data.shapes import draw_shapes
from datalens.distributed.ranks import Ranks
from datalens.errors import CheckpointError, ConfigError
from datalens.methods.method import PublicSize
from datalens.models.gaussian import GaussianImages
from datalens.moments.measuring import MEANS, PRODUCTS, STATES, Measures
from datalens.privacy.accountant import Accountant
from datalens.privacy.dataset_budget import create_dataset_budget
from datalens.privacy.events import event_from_json
from datalens.privacy.ledger import Ledger, LineKind
from datalens.randomness import Streams
from datalens.student.latent_law import LatentLaw
from datalens.student.warming import Warming, warm_weights
from datalens.training import warm_start, warm_state
from datalens.training.charged_score import charge_score
from datalens.training.facts import read_facts
from datalens.training.heads import heads_file
from datalens.training.plan import check_plan, least_epsilon, plan_releases
from datalens.training.pricing import cost
from datalens.training.run_folder import RunFolder
from datalens.training.session import Session
from datalens.training.several import check_ranks
from datalens.training.tuning import tune
from datalens.training.tuning_plan import TuningSettings, plan_tuning
from datalens.training.warm_file import read_tables
from datalens.training.warm_plan import PARTS, WarmTerms, check_warm_start, stand_ins
from datalens.training.warm_settings import WarmStart
from datalens.training.warm_start import LOST

WARM = {"warm_start__enabled": True, "warm_start__steps": 4, "warm_start__batch_size": 6}
SHAPE = (1, 8, 8)
FILE = "warm-start.safetensors"


def warm(root: Path | None, *, steps: int | None = None, **changes: Any) -> DataLens:
    return train(root, steps=steps, **(WARM | changes))


def warm_lines(ledger: Ledger) -> list[dict[str, Any]]:
    notes = [line.body["note"] for line in ledger.lines if line.kind == LineKind.RELEASE]
    return [note for note in notes if "warm_start" in note]


def shared(root: Path) -> Path:
    return RunFolder.open(root).release


# -- what a record moves ------------------------------------------------------------------------------------------


def extreme_images(seed: int, count: int) -> LabelledImages:
    """White, black, checks and noise: what moves a sum of cosines, products or energies the most."""
    rng = np.random.default_rng(seed)
    checks = np.indices((8, 8)).sum(0) % 2 * 255
    kinds = [np.full(SHAPE, 255), np.zeros(SHAPE), checks[None], 255 - checks[None]]
    images = [kinds[n] if n < 4 else rng.integers(0, 256, SHAPE) for n in rng.integers(0, 6, count)]
    labels = rng.integers(0, 2, count)
    return LabelledImages(np.array(images, np.uint8), labels, ("a", "b"), "extreme", public=True)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 90),
    what=st.sampled_from(list(STATES)),
    group=st.integers(1, 4),
)
def test_a_person_who_is_removed_or_exchanged_moves_a_sum_by_no_more_than_charged(
    seed: int, count: int, what: str, group: int
) -> None:
    measures, rng = Measures(SHAPE, 2), np.random.default_rng(seed)
    config = small_config(privacy__group_size=group, **WARM)
    terms = WarmTerms.of(config, SHAPE)
    assert terms is not None
    (event,) = (
        event for event, name in zip(terms.events(config, measures), STATES, strict=True) if name == what
    )
    data, others = extreme_images(seed, count), extreme_images(seed + 1, count)
    mean_YD = None if what == MEANS else torch.from_numpy(rng.normal(size=(2, 64)))
    person = rng.choice(count, min(group, count), replace=False)

    def sums(images: np.ndarray, labels: np.ndarray) -> torch.Tensor:
        return measures.sums(what, (torch.from_numpy(images), torch.from_numpy(labels)), mean_YD)

    exchanged = data.images.copy(), data.labels.copy()
    for mine, theirs in zip(exchanged, (others.images, others.labels), strict=True):
        mine[person] = theirs[person]
    whole = sums(data.images, data.labels)
    without = sums(np.delete(data.images, person, 0), np.delete(data.labels, person))
    for other in (without, sums(*exchanged)):
        assert int((whole - other).square().sum()) <= event.sensitivity**2


def test_an_exchange_moves_further_than_adding_or_removing_is_charged() -> None:
    """A white image of one class for one of the other: what the method charges for a record would be too little."""
    config = small_config(**WARM)
    measures, terms = Measures(SHAPE, 2), WarmTerms.of(config, SHAPE)
    assert terms is not None
    white, label = torch.full((1, *SHAPE), 255, dtype=torch.uint8), torch.zeros(1, dtype=torch.int64)
    for what, mean_YD in ((MEANS, None), (PRODUCTS, torch.zeros(2, 64, dtype=torch.float64))):
        one, other = (measures.sums(what, (white, number), mean_YD) for number in (label, label + 1))
        moved = float((one - other).double().norm())
        charged = terms.mechanism(config, measures, what)
        once = dataclasses.replace(charged, of_replaced=False)
        assert once.event(1).sensitivity < moved <= charged.event(1).sensitivity
        assert charged.event(1) == once.replace_one_event(1)


def test_measures_are_those_of_the_method() -> None:
    assert MomentsSettings().measures(PublicSize(9, (3, 32, 32), 4)) == Measures((3, 32, 32), 4)


def test_where_the_records_lie_in_the_slots_does_not_matter() -> None:
    """A sum over the records that are there: the map is no part of it."""
    config = small_config(privacy__insecure_seed=3, **WARM)
    data = small_data()
    order = np.random.default_rng(1).permutation(60)
    turned = dataclasses.replace(data, images=data.images[order], labels=data.labels[order])
    tables = []
    for records in (data, turned):
        begun = Session.begin(config, records, None)
        begun.run(stop=stop_after(1))
        assert begun.warm is not None
        tables.append(begun.warm.tables)
        begun.close()
    for what in STATES:
        assert torch.equal(tables[0][what].sums_YS, tables[1][what].sums_YS)


# -- what it costs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"privacy__epsilon": 0.9, "warm_start__share": 0.5},
        {"privacy__score_noise": 40.0},
        {"privacy__group_size": 2, "privacy__epsilon": 6.0},
        {"privacy__accountant": "rdp"},
        {"voting__noise_stddev": 60.0, "voting__num_steps": None},
        {"privacy__noise": "discrete-gaussian"},
    ],
)
def test_all_that_is_planned_costs_epsilon_together_and_no_more_is_charged(changes: dict[str, Any]) -> None:
    if "discrete-gaussian" in changes.values():
        pytest.importorskip("opendp")
    model = warm(None, **changes)
    privacy, header = model.config.privacy, model.ledger.header
    planned = [event_from_json(event) for event in header["planned_events"]]
    accountant = Accountant(privacy.accountant)
    whole = accountant.epsilon(planned, privacy.delta)
    assert whole <= model.epsilon(privacy.delta) <= privacy.epsilon
    assert whole == pytest.approx(model.epsilon(privacy.delta), rel=1e-6)
    assert whole > 0.93 * privacy.epsilon
    charged = model.ledger.events()
    others = (
        planned if privacy.score_noise is None else [planned[0], *planned[2:]]
    )  # the score is still to come
    assert accountant.epsilon(charged, privacy.delta) == pytest.approx(
        accountant.epsilon(others, privacy.delta), rel=1e-9
    )
    assert [note["what"] for note in warm_lines(model.ledger)] == list(STATES)


def test_the_warm_start_has_its_share_of_mu_squared() -> None:
    config = small_config(**WARM, warm_start__share=0.3)
    whole = plan_releases(small_config(privacy__epsilon=2.0), 64).event
    events = stand_ins(config)
    for event, part in zip(events, PARTS.values(), strict=True):
        of_all = event.mu**2 / (whole.mu**2 * NUM_STEPS)
        assert of_all == pytest.approx(0.3 * part, rel=5e-3)
    assert sum(PARTS.values()) == pytest.approx(1)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 28, 28)])
@pytest.mark.parametrize("epsilon", [0.5, 8.0, 40.0])
def test_a_plan_without_sizes_costs_what_the_real_releases_do(
    shape: tuple[int, int, int], epsilon: float
) -> None:
    config = small_config(privacy__epsilon=epsilon, **WARM)
    terms = WarmTerms.of(config, shape)
    assert terms is not None
    accountant = Accountant()
    real = accountant.epsilon(terms.events(config, Measures(shape, 10)), 1e-5)
    on_paper = accountant.epsilon(stand_ins(config), 1e-5)
    assert real <= on_paper <= real * (1 + 1e-6)


def test_steps_have_more_noise_or_are_fewer_beside_it() -> None:
    config, cold = small_config(**WARM), small_config()
    assert plan_releases(config, 64).noise_stddev > plan_releases(cold, 64).noise_stddev
    free = {"voting__noise_stddev": 60.0, "voting__num_steps": None}
    assert (
        plan_releases(config.replace(**free), 64).num_steps
        < plan_releases(cold.replace(**free), 64).num_steps
    )


def test_the_smallest_epsilon_counts_it() -> None:
    config = small_config(
        **WARM, voting__noise_stddev=20.0, voting__num_teachers=200, privacy__num_records=4000
    )
    least = least_epsilon(config, 64)
    cold = least_epsilon(config.replace(warm_start=WarmStart().model_dump()), 64)
    assert least is not None and cold is not None and least > cold
    enough = config.replace(privacy__epsilon=least)
    assert cost(plan_releases(enough, 64).event, NUM_STEPS, enough) <= least
    with pytest.raises(ConfigError, match="num_steps"):
        plan_releases(config.replace(privacy__epsilon=least * 0.99), 64)


def test_a_share_that_leaves_no_step_is_refused() -> None:
    config = small_config(**WARM, warm_start__share=0.9, voting__noise_stddev=6.0, voting__num_steps=None)
    plain = plan_releases(config.replace(warm_start__share=0.001, privacy__epsilon=8.0), 64)
    assert plain.num_steps >= 1
    one = Accountant().epsilon(plain.event, 1e-5)
    with pytest.raises(ConfigError, match=r"warm_start.share = 0.9: leaves no room for a step"):
        plan_releases(config.replace(privacy__epsilon=1.05 * one), 64)


def test_without_it_nothing_is_written_of_it(tmp_path: Path) -> None:
    model = train(tmp_path / "run", privacy__insecure_seed=1)
    config = json.loads((shared(tmp_path / "run") / "config.json").read_text())
    assert "warm_start" not in config["config"] and "warm_start" not in model.ledger.header
    assert model.ledger.header["authorisation"]["planned"] is not None
    assert not (shared(tmp_path / "run") / FILE).exists()


def test_a_data_sets_budget_pays_for_it(tmp_path: Path) -> None:
    budget = tmp_path / "people.json"
    create_dataset_budget(budget, "people", 2.0, 1e-5)
    DataLens(small_config(**WARM)).fit(small_data(), out=tmp_path / "run", budget_file=budget)
    notes = [line.body.get("note", {}) for line in Ledger.read(budget).lines]
    assert [note["what"] for note in notes if "warm_start" in note] == list(STATES)


def test_a_score_is_charged_beside_it(tmp_path: Path) -> None:
    warm(tmp_path / "run", privacy__score_noise=40.0)
    score = charge_score(tmp_path / "run", 5, 9, {})
    assert score["noise_stddev"] == 40.0


# -- what the generator learns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["codes", "normal", "uniform"])
def test_the_generator_learns_to_draw_like_the_law(law: str) -> None:
    """Means of classes, and along the first direction a spread, where latents are no codes."""
    plan = small_config(
        student__latent_law=law, student__latent_dim=3, student__hidden_units=64, student__channels=16
    ).student.plan(SHAPE, 2, 4, 1)
    measures = Measures(SHAPE, 2)
    network = GaussianImages(measures.basis, 2, 4)
    mean_YD = torch.zeros(2, 64)
    mean_YD[:, 0] = torch.tensor([8 * 0.3, 8 * 0.7])
    factor_YKL = torch.zeros(2, 4, 64)
    factor_YKL[:, 0, 0] = 8 * 0.1
    network.set_law(mean_YD, factor_YKL, torch.zeros(2, measures.basis.num_bins))
    weights = warm_weights(plan, network, Warming(200, 32, 3e-3), Streams(bytes(32)))
    generator = plan.generator(training=True)
    generator.load_state_dict(weights)
    latents_BZ = plan.latent.latents(400, torch.Generator().manual_seed(1))
    labels_B = torch.arange(400) % 2
    with torch.no_grad():
        light_B = generator.inner(latents_BZ[:, :3], labels_B).mean((1, 2, 3))
    for label, expected in enumerate((0.3, 0.7)):
        own_B = light_B[labels_B == label]
        assert float(own_B.mean()) == pytest.approx(expected, abs=0.04)
        assert float(own_B.std()) == pytest.approx(0.1, rel=0.3)
    if law != LatentLaw.CODES:
        assert (
            float(torch.corrcoef(torch.stack([latents_BZ[labels_B == 0, 0], light_B[labels_B == 0]]))[0, 1])
            > 0.9
        )


@pytest.mark.timeout(120)
def test_drawn_shapes_are_nearer_to_the_records_before_the_first_vote(tmp_path: Path) -> None:
    """End to end: mean distance to the nearest real image of the class."""
    people, test = draw_shapes(4000, image_size=16, seed=5), draw_shapes(600, image_size=16, seed=1)

    def distance(**changes: Any) -> float:
        config = recipes.shapes_quick().replace(privacy__insecure_seed=0, **changes)
        model = DataLens(config).fit(people, stop=stop_after(1))
        return distance_to_real(model, test)

    assert distance(warm_start__enabled=True, warm_start__steps=150) < 0.6 * distance()


# -- going on -----------------------------------------------------------------------------------------------------


class Died(Exception):
    """Stands for a process that is gone."""


def crash(root: Path, monkeypatch: pytest.MonkeyPatch, where: str, what: str = MEANS, **changes: Any) -> None:
    """A run that dies at a point of its warm start.

    Args:
        root: its folder.
        monkeypatch: of the test.
        where: ``noise`` (charged, nothing drawn), ``save`` (drawn, not on disk), ``learn`` (all on disk).
        what: at which release.
    """

    def die(*_: Any, **__: Any) -> Any:
        raise Died

    with monkeypatch.context() as patch:
        if where == "learn":
            patch.setattr(warm_state, "weights_of", die)
        elif where == "save":
            write = warm_state.WarmState._save
            patch.setattr(
                warm_state.WarmState,
                "_save",
                lambda self, t: die() if list(t)[-1] == what else write(self, t),
            )
        else:
            source = warm_start.noise_of_release
            patch.setattr(
                warm_start,
                "noise_of_release",
                lambda config, name: Broken(source(config, name)) if name == what else source(config, name),
            )
        with pytest.raises(Died):
            warm(root, **changes)


class Broken:
    """A source of noise that dies when it is asked to draw."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.kind, self.secure = inner, inner.kind, inner.secure

    def slack(self, stddev: float) -> Any:
        return self._inner.slack(stddev)

    def sample(self, shape: tuple[int, ...], stddev: float) -> Any:
        raise Died


SEEDED = {"privacy__insecure_seed": 7}


@pytest.mark.parametrize(
    ("where", "what", "note"),
    [
        ("noise", MEANS, LOST[MEANS]),
        ("save", MEANS, LOST[MEANS]),
        ("noise", PRODUCTS, LOST[PRODUCTS]),
        ("save", PRODUCTS, LOST[PRODUCTS]),
        ("learn", PRODUCTS, None),
    ],
)
def test_a_crash_never_releases_twice_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, what: str, note: str | None
) -> None:
    root = tmp_path / "run"
    crash(root, monkeypatch, where, what, **SEEDED)
    before = warm_lines(Ledger.read(shared(root) / "ledger.jsonl"))
    model = resume(root)
    assert warm_lines(model.ledger) == before  # nothing more was released, and nothing again
    assert [line for line in model.notes if "warm start" in line] == ([] if note is None else [note])
    assert model.ledger.events()[-1].count == 1
    found = verify_run(root, replay=True)
    assert found.differences == []
    assert found.replay is not None and found.replay["bit_for_bit"] and found.replay["steps"] == NUM_STEPS
    whole = warm(tmp_path / "whole", **SEEDED)
    assert same_weights(model, whole) is (where == "learn")
    assert verify_run(tmp_path / "whole").agrees


def test_a_crash_between_the_two_releases_goes_on_with_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die_at_moments(self: Measures, what: str, *rest: Any) -> Any:
        if what == PRODUCTS:
            raise Died
        return sums(self, what, *rest)

    sums = Measures.sums
    with monkeypatch.context() as patch:
        patch.setattr(Measures, "sums", die_at_moments)
        with pytest.raises(Died):
            warm(tmp_path / "run", **SEEDED)
    model = resume(tmp_path / "run")
    assert [note["what"] for note in warm_lines(model.ledger)] == list(STATES)
    assert same_weights(model, warm(tmp_path / "whole", **SEEDED))


def test_a_cut_off_line_of_the_warm_start_is_charged_and_not_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "run"
    crash(root, monkeypatch, "noise", MEANS, **SEEDED)
    path = shared(root) / "ledger.jsonl"
    heads_file().unlink(missing_ok=True)
    path.write_bytes(path.read_bytes()[:-5])
    model = resume(root)
    assert warm_lines(model.ledger) == []
    assert any(line.kind == LineKind.RECOVERED for line in model.ledger.lines)
    assert LOST[MEANS] in model.notes
    assert verify_run(root, replay=True).differences == []


@pytest.mark.parametrize("steps", [1, 2, 6])
def test_a_stopped_run_goes_on_as_if_it_had_not_been(tmp_path: Path, steps: int) -> None:
    stopped = warm(tmp_path / "run", steps=steps, **SEEDED)
    assert stopped.was_stopped
    model = resume(tmp_path / "run")
    assert len(warm_lines(model.ledger)) == 2
    assert same_weights(model, warm(tmp_path / "whole", **SEEDED))


def test_a_run_stopped_before_it_has_released_nothing_and_says_so(tmp_path: Path) -> None:
    model = warm(tmp_path / "run", steps=0, **SEEDED)
    assert model.was_stopped and model.ledger.events() == ()
    assert verify_run(tmp_path / "run", replay=True).differences == []
    assert "Nothing has been released yet" in (shared(tmp_path / "run") / "README.md").read_text()
    assert same_weights(resume(tmp_path / "run"), warm(tmp_path / "whole", **SEEDED))


def test_a_start_is_learned_anew_where_no_checkpoint_is_left(tmp_path: Path) -> None:
    warm(tmp_path / "run", steps=3, **SEEDED)
    shutil.rmtree(tmp_path / "run" / "private" / "checkpoints")
    (tmp_path / "run" / "private" / "checkpoints").mkdir()
    assert same_weights(resume(tmp_path / "run"), warm(tmp_path / "whole", **SEEDED))


def test_other_noise_on_resume_leaves_room_for_it(tmp_path: Path) -> None:
    warm(tmp_path / "run", steps=0, **SEEDED)
    with pytest.raises(ConfigError, match=r"num_steps = 9: .* 8 more fit"):
        resume(tmp_path / "run", num_steps=9)
    model = resume(tmp_path / "run", noise_stddev=80.0, num_steps=10)
    assert len(warm_lines(model.ledger)) == 2
    assert len(model.ledger.events()) == 12


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    warm(tmp_path / "run", steps=3, **SEEDED)
    path = shared(tmp_path / "run") / FILE
    facts, ledger = read_facts(RunFolder.open(tmp_path / "run")), Ledger.read(path.parent / "ledger.jsonl")
    assert set(read_tables(path, facts.measures, ledger)) == set(STATES)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(CheckpointError, match="restore the file"):
        resume(tmp_path / "run")
    other = warm(tmp_path / "other", steps=3, **SEEDED)
    assert other.was_stopped
    shutil.copy(shared(tmp_path / "other") / FILE, path)
    with pytest.raises(CheckpointError, match="no line that pays for its class means"):
        resume(tmp_path / "run")


def test_a_run_in_memory_saves_it_too(tmp_path: Path) -> None:
    model = warm(None)
    model.save(tmp_path / "saved")
    assert verify_run(tmp_path / "saved", replay=True).differences == []
    DataLens.load(tmp_path / "saved").save(tmp_path / "again")
    assert verify_run(tmp_path / "again", replay=True).differences == []


@pytest.mark.parametrize("noise", ["none", "continuous-gaussian"])
def test_experiments_have_it_too(tmp_path: Path, noise: str) -> None:
    warm(tmp_path / "run", privacy__noise=noise)
    assert verify_run(tmp_path / "run", replay=True).differences == []


# -- refusals -----------------------------------------------------------------------------------------------------


def grouped() -> LabelledImages:
    return small_data().with_groups([f"person {number % 17}" for number in range(60)])


def test_groups_are_refused_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"--warm-start .*a group may have any number of records; leave it out"
    ):
        DataLens(small_config(**WARM)).fit(grouped(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    DataLens(small_config()).fit(grouped())


def test_two_starts_are_refused(tmp_path: Path) -> None:
    public = draw_shapes(20, image_size=8)
    with pytest.raises(ConfigError, match=r"--warm-start .*--public-init .*give one of the two"):
        DataLens(small_config(**WARM)).fit(small_data(), out=tmp_path / "run", public_init=public)
    assert not (tmp_path / "run").exists()


def test_several_processes_are_refused() -> None:
    several = Ranks.alone()

    class Two:
        world_size = 2

    check_ranks(several, None, WarmStart(enabled=True))
    with pytest.raises(ConfigError, match=r"--warm-start .*without torchrun"):
        check_ranks(Two(), Path("run"), WarmStart(enabled=True))  # pyright: ignore[reportArgumentType]
    check_ranks(Two(), Path("run"), WarmStart())  # pyright: ignore[reportArgumentType]


def test_a_tuning_refuses_it(tmp_path: Path) -> None:
    config = small_config(privacy__epsilon=10.0)
    tries = TuningSettings(expected_tries=2.0, held_out=0.2, num_samples=40, epochs=1)
    plan = plan_tuning([config, config], tries, config.privacy, 60, SHAPE)
    asked = dataclasses.replace(plan, candidates=tuple(one.replace(**WARM) for one in plan.candidates))
    with pytest.raises(ConfigError, match=r"--warm-start .*leave it out of what is tuned"):
        tune(asked, small_data(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_settings_without_one_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"\[warm_start\].*there is none; give --warm-start"):
        check_plan(small_config(warm_start__steps=3), 60, SHAPE)


def test_no_guarantee_and_a_warm_start_are_refused() -> None:
    config = small_config(**WARM, voting__mechanism="fetchsgd", privacy__as_published=True)
    with pytest.raises(ConfigError, match=r"--warm-start .*leave out one of the two"):
        check_plan(config, 60, SHAPE)


def test_noise_that_nobody_draws_is_refused() -> None:
    config = small_config(**WARM, privacy__epsilon=0.02, warm_start__share=0.01)
    with pytest.raises(ConfigError, match=r"warm_start.share = 0.01: .*use a larger share or epsilon"):
        check_plan(config, 60, SHAPE)


def test_what_takes_many_gibibytes_is_refused() -> None:
    with pytest.raises(ConfigError, match="fewer classes"):
        check_warm_start(small_config(**WARM), (3, 256, 256), of_groups=False, num_classes=1000)


def test_the_header_names_its_terms() -> None:
    model = warm(None)
    said = model.ledger.header["warm_start"]
    assert said["share"] == 0.2 and set(said["noise_stddev"]) == set(STATES)
    assert WarmTerms.recorded(model.ledger) == WarmTerms.of(model.config, SHAPE)
    events = [event_from_json(event) for event in model.ledger.header["planned_events"]]
    assert [event.count for event in events] == [NUM_STEPS, 1, 1]
