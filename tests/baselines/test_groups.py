"""Methods with teachers keep a group together, and it moves one teacher's answers alone; all others refuse it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from baseline_scene import shapes
from hypothesis import given, settings
from hypothesis import strategies as st
from small_baselines import SMALL
from small_runs import stop_after

from datalens.audit.baseline_isolation import ANSWERS, audit_crossing, audit_isolation
from datalens.audit.baseline_run import audit_baseline
from datalens.audit.baseline_self_test import baseline_self_test_subject
from datalens.audit.tap import Tap
from datalens.audit.verify import verify_run
from datalens.baselines.model import Baseline
from datalens.baselines.registry import METHODS, baseline
from datalens.data.images import LabelledImages
from datalens.errors import ConfigError, RunError
from datalens.privacy import promises
from datalens.privacy.accountant import Accountant
from datalens.training.sections import Privacy, validated

SHARDED = ("pate-gan", "g-pate", "gs-wgan")
NAMES = [f"person {number % 31}" for number in range(100)]


def people(names: list[str] | None = None) -> LabelledImages:
    return replace(shapes(100), public=False).with_groups(NAMES if names is None else names)


def config_of(method: str, **privacy: Any) -> Any:
    asked = {"epsilon": 2.0, "delta": 1e-3, "num_records": 100, **privacy}
    return baseline(method, SMALL[method], **asked)


def test_these_are_the_methods_that_keep_groups() -> None:
    assert {name for name, kind in METHODS.items() if kind.keeps_groups} == set(SHARDED)


@pytest.mark.parametrize("method", SHARDED)
@settings(max_examples=5, deadline=None)
@given(groups=st.lists(st.integers(0, 9), min_size=43, max_size=43), gone=st.integers(0, 9))
def test_a_group_that_is_taken_out_changes_the_answers_of_one_teacher(
    method: str, groups: list[int], gone: int
) -> None:
    """Bit for bit, after lessons with minibatches."""
    subject = baseline_self_test_subject(method, validated(Privacy, {"epsilon": 4.0}))
    data = subject.records()
    ids = np.resize(np.array([*groups, 10], np.int64), data.num_records)
    ids[-1] = 10  # somebody stays
    data = replace(data, group_ids=ids)
    stays = ids != gone
    other = replace(data, images=data.images[stays], labels=data.labels[stays], group_ids=ids[stays])
    one, two = (ANSWERS[method](subject.learner(Tap(), some)) for some in (data, other))
    assert int((one != two).flatten(1).any(1).sum()) <= 1


@pytest.mark.parametrize("method", SHARDED)
def test_a_run_with_groups_verifies_and_is_audited_and_goes_on(method: str, tmp_path: Path) -> None:
    root = tmp_path / "run"
    model = Baseline(config_of(method)).fit(people(), out=root, stop=stop_after(2))
    assert any("31 groups over" in note and "left out" in note for note in model.notes)
    with pytest.raises(RunError, match="--group-column"):
        Baseline.resume(root, replace(people(), group_ids=None))
    with pytest.raises(RunError, match="not the data of this run"):
        Baseline.resume(root, people(NAMES[::-1]))
    Baseline.resume(root, people())
    assert verify_run(root).differences == []
    config, certificate = (
        json.loads((root / "release" / name).read_text()) for name in ("config.json", "certificate.json")
    )
    assert config["unit"] == "group"
    guarantee = certificate["guarantee"]
    assert guarantee["adjacency"] == promises.ADD_OR_REMOVE_GROUP
    planned = [replace(event, sensitivity=2 * event.sensitivity) for event in model.ledger.events()]  # pyright: ignore
    assert guarantee["replace_one"]["why"] == promises.REPLACE_ONE_GROUP_TEXT
    assert guarantee["replace_one"]["epsilon"] > guarantee["epsilon"]
    assert guarantee["replace_one"]["epsilon"] >= Accountant().epsilon(planned, 1e-3)
    report = audit_baseline(root, trials=1000)
    assert report.passed, report.verdict
    assert "groups changed" in next(found.text for found in report.findings if found.name == "isolation")
    config.pop("unit")
    (root / "release" / "config.json").write_text(json.dumps(config))
    assert any("adjacency" in line for line in verify_run(root).differences)


@pytest.mark.parametrize("method", SHARDED)
def test_the_audit_of_groups_sees_a_partition_by_record(method: str) -> None:
    subject = baseline_self_test_subject(method, validated(Privacy, {"epsilon": 4.0}))
    subject = replace(subject, size=replace(subject.size, of_groups=True))
    [found] = audit_isolation(subject)
    assert found.passed, found.text
    assert audit_crossing(subject).passed

    class Forgetful(type(subject)):
        def learner(self, tap: Tap, data: LabelledImages) -> Any:
            return super().learner(tap, replace(data, group_ids=None))

    fields = {name: getattr(subject, name) for name in subject.__dataclass_fields__}
    [found] = audit_isolation(Forgetful(**fields))
    assert not found.passed


@pytest.mark.parametrize("method", [name for name in SMALL if name not in SHARDED])
def test_methods_without_teachers_refuse_groups_in_one_line(method: str, tmp_path: Path) -> None:
    noise = {"noise": "none"} if method == "dc-gan" else {}
    with pytest.raises(ConfigError, match="group_ids") as caught:
        Baseline(config_of(method, **noise)).fit(people(), out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_group_size_beside_groups_is_refused() -> None:
    with pytest.raises(ConfigError, match="--group-size 2"):
        Baseline(config_of("pate-gan", group_size=2)).fit(people())


def test_forged_units_of_methods_without_teachers_are_found(tmp_path: Path) -> None:
    root = tmp_path / "run"
    Baseline(config_of("dp-merf")).fit(replace(shapes(100), public=False), out=root)
    path = root / "release" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "unit": "group"}))
    assert any("adjacency" in line for line in verify_run(root).differences)
