"""A method of one's own: registered, priced, certified with a caution, and verified by nobody here."""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from baseline_scene import shapes

from datalens import load_run
from datalens.audit.any_run import audit_run
from datalens.audit.verify import verify_run
from datalens.baselines import own
from datalens.baselines.registry import METHODS
from datalens.errors import BudgetError, ConfigError, RunError
from datalens.noise import make_noise
from datalens.privacy import promises
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.budget import Authorisation
from datalens.privacy.ledger import Ledger
from datalens.reports.facts import read_release
from datalens.reports.release_page import release_page
from datalens.reports.using import python_lines, shell_lines

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> ModuleType:
    """A program of ``examples/`` as a module, without running its main part."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def means() -> Iterator[ModuleType]:
    example("own_mechanism")
    yield example("own_baseline")
    for name in ("own_mechanism", "own_baseline"):
        del sys.modules[name]


@pytest.fixture
def registered(means: ModuleType) -> Iterator[ModuleType]:
    own.register("mean-images", means.MeanSettings)
    yield means
    del METHODS["mean-images"]


@pytest.fixture
def run(registered: ModuleType, tmp_path: Path) -> Path:
    own.Baseline(own.baseline("mean-images", epsilon=2.0, delta=1e-3)).fit(shapes(), out=tmp_path / "run")
    return tmp_path / "run"


def certificate(run: Path) -> dict:
    return json.loads((run / "release" / "certificate.json").read_text())


def test_it_spends_what_was_asked_for_and_says_who_answers_for_it(run: Path) -> None:
    guarantee = certificate(run)["guarantee"]
    assert 1.99 < guarantee["epsilon"] <= 2.0
    assert guarantee["cautions"] == [promises.OWN_METHOD]
    page = (run / "release" / "README.md").read_text()
    assert "no part of DataLens" in page and "datalens sample" not in page
    assert "whoever wrote it says whom to cite for it" in page
    assert load_run(run).sample(6, seed=0)[0].shape[0] == 6


def test_beside_another_run_its_caution_is_said(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from datalens.cli.main import main

    other = run.parent / "other"
    shutil.copytree(run, other)
    assert main(["compare", str(run), str(other)]) == 0
    said = " ".join("".join(capsys.readouterr()).split())
    for name in ("run", "other"):
        assert f"{name}: take care: {promises.OWN_METHOD}" in said


def test_its_page_is_about_the_method_and_about_no_teachers(run: Path) -> None:
    facts = read_release(run / "release")
    page = release_page(facts)
    assert promises.OWN_METHOD_TEXT.format(name="mean-images") in page and "By DataLens" not in page
    assert shell_lines(facts).startswith("# by the program of whoever wrote the method")
    assert python_lines(facts).startswith("# in a program that has registered the method")


def test_a_plan_under_another_name_is_refused(registered: ModuleType, tmp_path: Path) -> None:
    """Else the certificate would name a method of DataLens, and lack the caution."""

    @dataclass(frozen=True)
    class Disguised(registered.MeanImages):
        name: ClassVar[str] = "moments"

    class DisguisedSettings(registered.MeanSettings):
        def plan(self, privacy: own.Privacy, size: own.PublicSize) -> Disguised:
            return Disguised.fitting(self, privacy, size)

    own.register("disguised", DisguisedSettings)
    try:
        model = own.Baseline(own.baseline("disguised", epsilon=2.0, delta=1e-3))
        with pytest.raises(ConfigError, match=r"'disguised': its settings plan the method 'moments'"):
            model.fit(shapes(), out=tmp_path / "run")
    finally:
        del METHODS["disguised"]
    assert not (tmp_path / "run").exists()


def test_methods_of_datalens_are_not_cautioned_about(tmp_path: Path) -> None:
    own.Baseline(own.baseline("moments", epsilon=2.0, delta=1e-3)).fit(shapes(), out=tmp_path / "run")
    assert certificate(tmp_path / "run")["guarantee"]["cautions"] == []


def test_verify_says_what_it_cannot_know_and_nothing_else(run: Path) -> None:
    [said] = verify_run(run).differences
    assert "mean-images" in said and "no part of DataLens" in said
    with pytest.raises(RunError, match="leave it out"):
        verify_run(run, replay=True)


def test_a_caution_that_was_taken_out_is_missed(run: Path) -> None:
    path = run / "release" / "certificate.json"
    path.write_text(path.read_text().replace(promises.OWN_METHOD, "nothing"))
    assert any("cautions" in line for line in verify_run(run).differences)


def test_the_audit_does_not_pass_it(run: Path) -> None:
    assert not audit_run(run).passed


def test_it_goes_on_after_a_stop(registered: ModuleType, tmp_path: Path) -> None:
    config = own.baseline("mean-images", epsilon=2.0, delta=1e-3, insecure_seed=0)
    whole = own.Baseline(config).fit(shapes())
    own.Baseline(config).fit(shapes(), out=tmp_path / "run", stop=lambda: True)
    resumed = own.Baseline.resume(tmp_path / "run", shapes())
    assert np.array_equal(resumed.sample(6, seed=0)[0], whole.sample(6, seed=0)[0])


def test_whoever_does_not_know_the_method_is_told_whom_to_ask(run: Path, means: ModuleType) -> None:
    del METHODS["mean-images"]
    try:
        with pytest.raises(RunError, match=r"'mean-images', which is no method here .* registers it"):
            load_run(run)
    finally:
        own.register("mean-images", means.MeanSettings)


@pytest.mark.parametrize("name", ["moments", "datalens", "tune", "dp-sgd", "Mean", "mean_images", "", "-a"])
def test_names_that_are_taken_or_none_are_refused(means: ModuleType, name: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        own.register(name, means.MeanSettings)
    assert means.MeanSettings not in METHODS.values()


def test_registering_the_same_class_twice_is_harmless(registered: ModuleType) -> None:
    own.register("mean-images", registered.MeanSettings)


def test_no_two_neighbours_are_farther_apart_than_is_charged(means: ModuleType) -> None:
    """Every record that can be, of a few pixels: added, and exchanged for any other."""
    levels, dim = (0, means.LEVELS), 3
    records = np.array(np.meshgrid(*[levels] * dim)).reshape(dim, -1).T
    vectors = [np.concatenate([r * (y == 0), r * (y == 1)]) for r in records for y in (0, 1)]
    mechanism = means.LevelSum(dim, 50.0, make_noise(own.NoiseKind.ROUNDED))
    added = max(np.linalg.norm(v) for v in vectors)
    exchanged = max(np.linalg.norm(v - w) for v in vectors for w in vectors)
    assert added == pytest.approx(mechanism.event(2).sensitivity)
    assert exchanged == pytest.approx(mechanism.event(2, replacing=True).sensitivity)


def test_a_group_of_records_costs_as_much_more(means: ModuleType) -> None:
    one, three = (means.LevelSum(4, 50.0, make_noise(own.NoiseKind.ROUNDED), group) for group in (1, 3))
    assert three.event(2).sensitivity == 3 * one.event(2).sensitivity


def test_what_does_not_fit_is_not_released(means: ModuleType) -> None:
    budget = own.Budget(Ledger.in_memory(), Authorisation(epsilon=0.1, delta=1e-6))
    mechanism = means.LevelSum(4, 30.0, make_noise(own.NoiseKind.ROUNDED))
    with pytest.raises(BudgetError):
        mechanism.release(np.zeros((1, 4), np.int64), budget, {})
    assert budget.num_releases == 0


def test_the_least_noise_is_found(registered: ModuleType) -> None:
    size = own.PublicSize(1000, (1, 16, 16), 4)
    config = own.baseline("mean-images", epsilon=1.0)
    [planned] = config.settings.plan(config.privacy, size).planned()
    accountant = Accountant(AccountantKind.EXACT)
    assert 0.998 < accountant.epsilon([planned.event], config.privacy.delta) <= 1.0
    assert planned.event.sensitivity == registered.LEVELS * math.sqrt(size.dim)


@pytest.mark.parametrize("settings", [int, None, "MeanSettings"])
def test_only_classes_of_settings_are_registered(settings: Any) -> None:
    with pytest.raises(ConfigError, match="is no class of MethodSettings"):
        own.register("some-method", settings)
    with pytest.raises(ConfigError, match="a method is named"):
        own.register(5, next(iter(METHODS.values())))  # type: ignore[arg-type]
