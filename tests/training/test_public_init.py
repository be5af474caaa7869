"""A public start: a function of public images and public randomness alone, released, verified and replayed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import distance_to_real, released_alone, same_weights, small_config, small_data, stop_after

from datalens import DataLens, recipes
from datalens.audit.twin import audit_twin
from datalens.audit.verify import verify_run
from datalens.data.images import LabelledImages
from datalens.data.shapes import draw_shapes
from datalens.errors import CheckpointError, ConfigError, DataError, DataLensError, NotBegunError, RunError
from datalens.privacy.card_words import plain
from datalens.privacy.dataset_budget import create_dataset_budget
from datalens.privacy.ledger import Ledger
from datalens.randomness import Streams
from datalens.teachers.paper import MEAN, PaperTeachers
from datalens.training.facts import PublicFacts, read_facts
from datalens.training.files import file_digest
from datalens.training.pretraining import pretrain
from datalens.training.public_init import Origin, PublicInit, StartSource
from datalens.training.run_folder import RunFolder
from datalens.training.session import Session
from datalens.training.start_file import PublicStart
from datalens.training.starting import note_of_shared, start_maker, start_of
from datalens.training.tuning import tune
from datalens.training.tuning_plan import TuningSettings, plan_tuning
from datalens.training.unbegun import clear_unbegun

FEW = {"public_init__steps": 4, "public_init__batch_size": 6}
HERE = Path(__file__).parents[1]
FILE = "public-init.safetensors"


def public(seed: int = 9, count: int = 40, size: int = 8) -> LabelledImages:
    return draw_shapes(count, image_size=size, seed=seed)


def begun(
    root: Path | None, *, source: Any = None, stop: Any = None, tell: Any = None, **changes: Any
) -> DataLens:
    """A small run with a public start."""
    source = public() if source is None else source
    return DataLens(small_config(**(FEW | changes))).fit(
        small_data(), out=root, public_init=source, stop=stop or stop_after(10**6), tell_public_init=tell
    )


@pytest.fixture(scope="module", params=["kernel", "paper"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("start") / "run"
    begun(root, teachers__kind=request.param)
    return root


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """Of a finished run, ``release/`` on another machine."""
    return released_alone(whole, tmp_path / "run")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on public images, with teachers that train, and a public start of its own."""
    root = tmp_path_factory.mktemp("public") / "run"
    config = small_config(teachers__kind="paper", **FEW)
    data = replace(public(1, 60), labels=np.arange(60) % 2, classes=("a", "b"))
    DataLens(config).fit(data, out=root, public_init=public(2))
    return root


# -- what it depends on -------------------------------------------------------------------------------------------


def start_beside(data: LabelledImages, source: LabelledImages, **changes: Any) -> PublicStart:
    config = small_config(**({"privacy__insecure_seed": 3, "teachers__kind": "paper"} | FEW | changes))
    session = Session.begin(config, data, None, make_start=start_maker(source, data))
    session.close()
    assert session.start is not None
    return session.start


def test_it_is_the_same_beside_records_that_have_nothing_in_common() -> None:
    one = start_beside(small_data(0), public(), privacy__num_records=60)
    other = small_data(1, 31)
    other = replace(other, labels=np.zeros(31, np.int64), images=255 - other.images // 9)
    two = start_beside(other, public(), privacy__num_records=43)
    assert one.content == two.content
    assert start_beside(small_data(0), public(), privacy__insecure_seed=4).content != one.content
    assert start_beside(small_data(0), public(8)).content != one.content


def test_training_moves_towards_the_public_images() -> None:
    """The sign of both losses: shapes on black make bright middles and black edges, their negatives the reverse."""
    plan = small_config(student__hidden_units=32, student__channels=16).student.plan((1, 8, 8), 4, 4, 1)
    origin = Origin(StartSource.IMAGES, "shapes", True, True)
    settings = PublicInit(steps=100, batch_size=32, learning_rate=1e-3)
    seen = []
    for data in (public(count=300), replace(public(count=300), images=255 - public(count=300).images)):
        start = pretrain(plan, settings, data, origin, Streams(bytes(32)))
        generator = plan.generator(training=True)
        generator.load_state_dict(dict(start.generator))
        drawn = generator(*plan.latent.batch(32, torch.Generator().manual_seed(0)))
        seen.append((drawn[..., 0, :].mean().item(), drawn[..., 4, 4].mean().item()))
    (edge, middle), (negative_edge, negative_middle) = seen
    assert edge < 0.3 < 0.5 < middle
    assert negative_middle < 0.3 < 0.5 < negative_edge


def test_classes_of_the_same_names_are_matched_by_name_and_others_drawn_by_lot() -> None:
    data = replace(small_data(), classes=("disc", "square"))
    pub = public()
    two = replace(pub, labels=pub.labels % 2, classes=("square", "disc"))
    turned = replace(two, labels=1 - two.labels, classes=("disc", "square"))
    one = start_beside(data, two)
    assert one.origin.same_classes
    assert one.content == start_beside(data, turned).content
    lot = start_beside(data, pub)
    assert not lot.origin.same_classes
    assert lot.content != one.content


@pytest.mark.timeout(120)
def test_proposals_look_like_public_images_at_once_and_like_the_records_sooner() -> None:
    """Mean distance to the nearest real image of the class; at random 7.1, learned in full 1.8."""
    test = draw_shapes(600, image_size=16, seed=1)
    people = draw_shapes(4000, image_size=16, seed=5)
    config = recipes.shapes_quick().replace(privacy__insecure_seed=0)

    def trained(steps: int, source: LabelledImages | None) -> float:
        changes = {} if source is None else {"public_init__steps": 100, "public_init__batch_size": 32}
        on = source is None
        left = steps

        def tell(done: int, total: int) -> None:
            nonlocal on
            on = done == total

        def stop() -> bool:
            nonlocal left
            left -= on
            return left < 0

        model = DataLens(config.replace(**changes))
        return distance_to_real(model.fit(people, public_init=source, stop=stop, tell_public_init=tell), test)

    source = draw_shapes(1000, image_size=16, seed=9)
    at_random, started = trained(0, None), trained(0, source)
    assert started < 0.65 * at_random
    assert trained(5, source) < 0.8 * trained(5, None)


# -- what is released ---------------------------------------------------------------------------------------------


def test_the_replay_is_bit_for_bit_and_everything_says_so(run: Path) -> None:
    found = verify_run(run, replay=True)
    assert found.differences == []
    assert found.replay is not None
    assert found.replay["bit_for_bit"]
    release = run / "release"
    config = json.loads((release / "config.json").read_text())
    paper = config["config"]["teachers"]["kind"] == "paper"
    digest = file_digest(release / FILE)
    assert config["public_init"] == {
        "source": "images",
        "name": "shapes",
        "same_classes": False,
        "discriminators": paper,
        "sha256": digest,
    }
    assert config["config"]["public_init"]["steps"] == 4
    assert Ledger.read(release / "ledger.jsonl").header["public_init"] == digest
    certificate = json.loads((release / "certificate.json").read_text())
    said = certificate["assumed_public"]["start"]
    assert said.startswith("generator and discriminators start" if paper else "the generator starts")
    assert digest in said
    assert certificate["files"][FILE] == digest
    assert plain(said) in (release / "README.md").read_text()


def test_a_replay_from_a_random_start_is_another_generator(run: Path) -> None:
    """So the replay uses the file: without it, and with everything else made to fit, it fails."""
    facts = read_facts(RunFolder.open(run))
    config = json.loads((run / "release" / "config.json").read_text())
    del config["public_init"]
    (run / "release" / "config.json").write_text(json.dumps(config))
    assert facts.start is not None
    differences = verify_run(run, replay=True).differences
    assert any(
        "generator.safetensors is not what the released directions give" in line for line in differences
    )


def test_a_run_in_memory_saves_it_too(tmp_path: Path) -> None:
    model = begun(None, teachers__kind="paper")
    model.save(tmp_path / "saved")
    assert verify_run(tmp_path / "saved", replay=True).differences == []
    again = DataLens.load(tmp_path / "saved")
    again.save(tmp_path / "again")
    assert verify_run(tmp_path / "again").differences == []


def test_a_run_stopped_before_its_first_step_says_what_its_generator_is(tmp_path: Path) -> None:
    begun(tmp_path / "run", stop=stop_after(4))
    assert verify_run(tmp_path / "run", replay=True).differences == []
    assert "the generator is as it began" in (tmp_path / "run" / "release" / "README.md").read_text()


def test_without_it_settings_ledger_and_certificate_are_as_they_were(tmp_path: Path) -> None:
    model = DataLens(small_config(privacy__insecure_seed=1)).fit(small_data(), out=tmp_path / "run")
    release = RunFolder.open(tmp_path / "run").release
    config = json.loads((release / "config.json").read_text())
    assert [name for name in config if name != "datalens"] == [
        *("format", "image_shape", "classes", "classes_from_data", "data", "num_records", "num_steps"),
        *("public_root", "noise_stddev", "config"),
    ]
    assert list(config["config"]) == ["recipe", "privacy", "voting", "teachers", "student", "performance"]
    assert "public_init" not in model.ledger.header
    certificate = json.loads((release / "certificate.json").read_text())
    assert list(certificate["assumed_public"]) == [
        *("bound_on_records", "num_teachers", "slots_of_each_teacher", "image_shape", "classes"),
        *("classes_were_read_off_the_data", "class_list", "generated_labels", "data"),
    ]
    files = ["config.json", "directions.bin", "generator.safetensors", "load_generator.py"]
    assert list(certificate["files"]) == files
    assert not (release / FILE).exists()
    page = (release / "README.md").read_text()
    assert "learned from those sums and from nothing else; they are in" in page


def test_every_teacher_begins_with_the_public_discriminator() -> None:
    family = PaperTeachers((1, 8, 8), 2)
    start = family.network.init(1, torch.Generator().manual_seed(3))
    state = replace(family, start=start).init(5, torch.Generator().manual_seed(0), torch.device("cpu"))
    plain = family.init(5, torch.Generator().manual_seed(0), torch.device("cpu"))
    assert state.keys() == plain.keys()
    for name, value in start.items():
        assert torch.equal(state[name], value.expand_as(state[name]))
        assert not state[MEAN + name].any()
    state["out.bias"][0] += 1
    assert torch.equal(state["out.bias"][1], start["out.bias"][0])  # each has its own copy


# -- what verify finds --------------------------------------------------------------------------------------------


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)


def _change(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def _other_file(release: Path) -> None:
    """Another start, which the settings name rightly and the ledger does not."""
    _flip(release / FILE)
    _change(
        release / "config.json",
        lambda config: config["public_init"].update(sha256=file_digest(release / FILE)),
    )


CHANGES: dict[str, Callable[[Path], None]] = {
    "a bit of the file": lambda release: _flip(release / FILE),
    "no file": lambda release: (release / FILE).unlink(),
    "another file": _other_file,
    "its name": lambda release: _change(
        release / "config.json", lambda c: c["public_init"].update(name="cats")
    ),
    "its source": lambda release: _change(
        release / "config.json", lambda c: c["public_init"].update(source="run")
    ),
    "what starts": lambda release: _change(
        release / "config.json",
        lambda c: c["public_init"].update(discriminators=not c["public_init"]["discriminators"]),
    ),
    "no mention": lambda release: _change(release / "config.json", lambda c: c.pop("public_init")),
    "the sentence": lambda release: _change(
        release / "certificate.json", lambda c: c["assumed_public"].update(start="the generator starts")
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_verify_finds_every_change(run: Path, what: str) -> None:
    CHANGES[what](run / "release")
    differences = verify_run(run).differences
    assert any(FILE in line or "start" in line for line in differences), differences
    assert verify_run(run, replay=True).differences


def test_verify_finds_a_start_that_nothing_names(tmp_path: Path) -> None:
    DataLens(small_config()).fit(small_data(), out=tmp_path / "run")
    assert verify_run(tmp_path / "run").agrees
    (tmp_path / "run" / "release" / FILE).write_bytes(b"anything")
    assert any(FILE in line for line in verify_run(tmp_path / "run").differences)


def test_the_twin_of_an_audit_begins_with_it_too(run: Path) -> None:
    folder = RunFolder.open(run)
    facts = read_facts(folder)
    start = start_of(folder, facts)
    assert start is not None
    finding = audit_twin(facts, small_data(3), start=start)
    assert finding.passed
    assert finding.numbers["canaries"] == 10


# -- going on, and not beginning ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["kernel", "paper"])
@pytest.mark.parametrize("steps", [4, 7])
def test_a_resumed_run_is_the_straight_one(tmp_path: Path, kind: str, steps: int) -> None:
    seeded = {"teachers__kind": kind, "privacy__insecure_seed": 7}
    straight = begun(None, **seeded)
    stopped = begun(tmp_path / "run", stop=stop_after(steps), **seeded)
    assert not same_weights(stopped, straight)
    resumed = DataLens.resume(tmp_path / "run", small_data())
    assert same_weights(resumed, straight)
    assert verify_run(tmp_path / "run", replay=True).differences == []


def test_a_damaged_start_stops_a_resume_with_one_line(tmp_path: Path) -> None:
    begun(tmp_path / "run", stop=stop_after(6))
    _flip(tmp_path / "run" / "release" / FILE)
    before = (tmp_path / "run" / "release" / "ledger.jsonl").read_bytes()
    with pytest.raises(CheckpointError, match=f"{FILE}: cannot be used .* restore the file"):
        DataLens.resume(tmp_path / "run", small_data())
    assert (tmp_path / "run" / "release" / "ledger.jsonl").read_bytes() == before


def test_a_stop_while_it_learns_leaves_nothing_and_charges_nothing(tmp_path: Path) -> None:
    budget = tmp_path / "people.budget"
    create_dataset_budget(budget, "people", epsilon=5.0, delta=1e-5)
    before = budget.read_bytes()
    told: list[int] = []
    with pytest.raises(NotBegunError, match="nothing was written or charged"):
        DataLens(small_config(**FEW)).fit(
            small_data(),
            out=tmp_path / "run",
            public_init=public(),
            budget_file=budget,
            stop=stop_after(2),
            tell_public_init=lambda done, total: told.append(done),
        )
    assert told == [1, 2]
    assert not (tmp_path / "run").exists()
    assert budget.read_bytes() == before


KILLED = f"""
import sys
import torch
sys.path.insert(0, {str(HERE)!r})
torch.set_num_threads(1)
from pathlib import Path
from datalens import DataLens
from datalens.data.shapes import draw_shapes
from small_runs import small_config, small_data
DataLens(small_config(public_init__steps=10**6)).fit(
    small_data(), out=Path(sys.argv[1]), public_init=draw_shapes(40, image_size=8, seed=9),
    tell_public_init=lambda done, total: print(done, flush=True),
)
"""


def test_a_kill_while_it_learns_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert list(tmp_path.iterdir()) == []


def test_a_kill_between_the_start_and_the_settings_leaves_no_run_and_can_be_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datalens.training import opening

    class Killed(BaseException):
        pass

    def killed(path: Path, value: Any) -> None:
        raise Killed

    monkeypatch.setattr(opening, "write_json", killed)
    monkeypatch.setattr(RunFolder, "discard", lambda folder: None)  # a killed process discards nothing
    with pytest.raises(Killed):
        begun(tmp_path / "run")
    monkeypatch.undo()
    assert (tmp_path / "run" / "release" / FILE).is_file()
    assert clear_unbegun(tmp_path / "run")
    assert not (tmp_path / "run").exists()


# -- from a run ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["kernel", "paper"])
def test_a_run_on_public_images_gives_its_generator_and_its_public_discriminator(
    published: Path, tmp_path: Path, kind: str
) -> None:
    theirs = DataLens.load(published)
    data = small_data()
    config = small_config(teachers__kind=kind)
    session = Session.begin(config, data, tmp_path / "run", make_start=start_maker(published, data))
    session.close()
    start = session.start
    assert start is not None
    assert start.origin == Origin(StartSource.RUN, "shapes", True, kind == "paper")
    released = theirs.generator.state_dict()
    assert all(torch.equal(start.generator[name], value) for name, value in released.items())
    assert (start.discriminator is not None) == (kind == "paper")
    begun(
        tmp_path / "trained",
        source=published,
        teachers__kind=kind,
        public_init__steps=500,
        public_init__batch_size=64,
    )
    found = verify_run(tmp_path / "trained", replay=True)
    assert found.differences == []
    assert "of a run on public images: shapes" in found.certificate["assumed_public"]["start"]


def test_teachers_begin_at_random_where_the_run_kept_no_discriminator(tmp_path: Path) -> None:
    data = replace(public(1, 60), labels=np.arange(60) % 2, classes=("a", "b"))
    DataLens(small_config(teachers__kind="paper")).fit(data, out=tmp_path / "plain")
    people = small_data()
    maker = start_maker(tmp_path / "plain", people)
    session = Session.begin(small_config(teachers__kind="paper"), people, None, make_start=maker)
    session.close()
    assert session.start is not None
    assert session.start.discriminator is None
    assert not session.start.origin.discriminators


# -- refusals -----------------------------------------------------------------------------------------------------


def refused(error: type[DataLensError], words: str, root: Path, source: Any, **changes: Any) -> None:
    with pytest.raises(error, match=words) as caught:
        begun(root, source=source, **changes)
    assert "\n" not in str(caught.value)
    assert not root.exists()


def test_images_that_nobody_declared_public_are_refused(tmp_path: Path) -> None:
    refused(ConfigError, "not declared public", tmp_path / "run", replace(public(), public=False))


@pytest.mark.parametrize(
    "how", ["themselves", "and more", "most of them", "in another order", "in another size", "in colour"]
)
def test_most_of_the_sensitive_images_are_refused(tmp_path: Path, how: str) -> None:
    data = small_data()
    order = np.random.default_rng(0).permutation(60)
    images = {
        "themselves": data.images,
        "and more": np.concatenate([data.images, 255 - data.images[:9]]),
        "most of them": np.concatenate([data.images[:31], 255 - data.images[31:]]),
        "in another order": data.images[order],
        "in another size": data.images.repeat(2, 2).repeat(2, 3),
        "in colour": data.images.repeat(3, 1),
    }[how]
    labels = np.arange(len(images)) % 2
    source = replace(data, images=images, labels=labels, public=True, name="theirs")
    people = data
    if how == "in another size":  # people's own images, scaled as they are for the run
        from datalens.data.fitting import fitted

        people = replace(data, images=fitted(source, (1, 8, 8)).images)
    with pytest.raises(DataError, match="the very images that are to be protected"):
        DataLens(small_config(**FEW)).fit(people, out=tmp_path / "run", public_init=source)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("shared", [7, 30])
def test_records_among_the_public_images_are_counted_for_the_owner_alone(tmp_path: Path, shared: int) -> None:
    data = small_data()
    images = np.concatenate([data.images[:shared], 255 - data.images[shared:]])
    mixed = replace(data, images=images, public=True)
    note = note_of_shared(mixed, data)
    assert note is not None
    assert f"{shared} of 60 records" in note
    model = begun(tmp_path / "run", source=mixed)
    assert note in model.notes
    for path in (tmp_path / "run" / "release").iterdir():
        assert b"%d of 60" % shared not in path.read_bytes()
    assert note_of_shared(public(), data) is None


def test_a_run_on_peoples_images_is_refused_whatever_its_epsilon(whole: Path, tmp_path: Path) -> None:
    refused(RunError, "learned from people's data", tmp_path / "run", whole)


def test_a_run_on_the_very_images_is_refused(tmp_path: Path) -> None:
    data = replace(small_data(), public=True)
    DataLens(small_config()).fit(data, out=tmp_path / "theirs")
    refused(DataError, "the very images that are to be protected", tmp_path / "run", tmp_path / "theirs")


@pytest.mark.parametrize(
    ("name", "value"),
    [("latent_dim", 5), ("hidden_units", 9), ("channels", 8), ("smoothing", 1), ("latent_law", "normal")],
)
def test_other_networks_are_refused_by_the_setting_that_differs(
    published: Path, tmp_path: Path, name: str, value: Any
) -> None:
    words = f"student.{name} is .* there and {value} here"
    refused(ConfigError, words, tmp_path / "run", published, **{f"student__{name}": value})


def test_settings_without_a_start_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has settings of a public start, and there is none"):
        DataLens(small_config(public_init__steps=5)).fit(small_data(), out=tmp_path / "run")
    config = small_config(privacy__epsilon=10.0, public_init__steps=5)
    settings = TuningSettings(expected_tries=2.0, held_out=0.2, num_samples=40, epochs=1)
    plan = plan_tuning([config, config], settings, config.privacy, 60, (1, 8, 8))
    with pytest.raises(ConfigError, match="there is none"):
        tune(plan, small_data(), tmp_path / "tuned", draw_tries=lambda *_: 1)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_taken_is_refused_before_anything_is_learned(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("mine")
    told: list[int] = []
    with pytest.raises(RunError, match="exists already"):
        begun(tmp_path / "run", tell=lambda done, total: told.append(done))
    assert told == []


def test_a_training_that_fails_says_which_setting_to_change(tmp_path: Path) -> None:
    refused(
        ConfigError, "public_init.learning_rate", tmp_path / "run", public(), public_init__learning_rate=1e38
    )


@pytest.mark.parametrize(
    "said",
    [
        {"source": "images"},
        {"source": "cats", "name": "x", "same_classes": True, "discriminators": True, "sha256": "0" * 64},
        {"source": "run", "name": "x", "same_classes": 1, "discriminators": True, "sha256": "0" * 64},
        {"source": "run", "name": "x", "same_classes": True, "discriminators": True, "sha256": "../x"},
        [1],
        "x",
    ],
)
def test_damaged_settings_of_a_start_are_one_line(run: Path, said: Any) -> None:
    path = run / "release" / "config.json"
    _change(path, lambda config: config.update(public_init=said))
    with pytest.raises(RunError, match="is not a run's settings"):
        PublicFacts.from_json(json.loads(path.read_text()), path)
    assert not verify_run(run, replay=True).agrees
