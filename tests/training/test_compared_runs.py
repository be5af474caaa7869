"""Whole runs with the compressions that TopAgg is compared with: trained, resumed, verified, audited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_runs import (
    config_to_audit,
    crash_after,
    resume,
    same_weights,
    small_config,
    small_data,
    stop_after,
    train,
)

from datalens.audit.mechanism import audit_mechanism, audit_sensitivity
from datalens.audit.second_settings import is_charge, step_charge
from datalens.audit.subject import Subject
from datalens.audit.verify import verify_run
from datalens.cli.fitness import unfit_line
from datalens.cli.settings import build_config
from datalens.errors import ConfigError
from datalens.mechanisms.kinds import MechanismKind
from datalens.privacy import promises
from datalens.training.plan import check_plan, mechanism_of, plan_releases
from datalens.training.session import Session

D2P: dict[str, Any] = {"voting__mechanism": "d2p-fed", "voting__levels": 4, "privacy__epsilon": 60.0}
SOUND: dict[str, Any] = {
    "voting__mechanism": "fetchsgd-sound",
    "voting__sketch_rows": 3,
    "voting__sketch_buckets": 20,
    "privacy__epsilon": 30.0,
}
PUBLISHED: dict[str, Any] = {**SOUND, "voting__mechanism": "fetchsgd", "privacy__as_published": True}
COMPARED = {"d2p-fed": D2P, "fetchsgd-sound": SOUND, "fetchsgd": PUBLISHED}


@pytest.mark.parametrize("name", COMPARED)
def test_a_resumed_run_is_the_uninterrupted_one_and_verifies(name: str, tmp_path: Path) -> None:
    changes = {**COMPARED[name], "privacy__insecure_seed": 3, "voting__images_per_teacher": 2}
    whole = train(tmp_path / "whole", **changes)
    crash_after(tmp_path / "cut", 4, **changes)
    gone_on = resume(tmp_path / "cut")
    assert same_weights(whole, gone_on)
    for run in ("whole", "cut"):
        assert verify_run(tmp_path / run, replay=run == "cut").differences == []


@pytest.mark.parametrize("name", ["d2p-fed", "fetchsgd-sound"])
def test_a_sound_run_is_fit_and_costs_what_was_asked_for(name: str, tmp_path: Path) -> None:
    train(tmp_path / "run", **COMPARED[name])
    assert verify_run(tmp_path / "run").differences == []
    certificate = json.loads((tmp_path / "run" / promises.RELEASE_FOLDER / "certificate.json").read_text())
    asked = COMPARED[name]["privacy__epsilon"]
    assert certificate["fit_for_publication"]
    assert 0.97 * asked < certificate["guarantee"]["epsilon"] <= asked
    assert certificate["mechanism"]["name"] == name


def test_as_published_everything_says_that_there_is_no_guarantee(tmp_path: Path) -> None:
    model = train(tmp_path / "run", **PUBLISHED)
    release = tmp_path / "run" / promises.UNFIT_RELEASE_FOLDER
    assert not (tmp_path / "run" / promises.RELEASE_FOLDER).exists()
    certificate = json.loads((release / "certificate.json").read_text())
    assert certificate["not_fit_because"] == [promises.AS_PUBLISHED]
    assert certificate["guarantee"]["epsilon"] is None
    assert certificate["spent"]["epsilon"] is None
    assert "no guarantee" in (release / "README.md").read_text()
    assert (unfit_line(model.config) or "").startswith("NO GUARANTEE")
    assert not model.is_publishable
    assert verify_run(tmp_path / "run").differences == []


def test_a_ledger_that_hides_that_a_run_was_as_published_is_found(tmp_path: Path) -> None:
    train(tmp_path / "run", **PUBLISHED)
    config = tmp_path / "run" / promises.UNFIT_RELEASE_FOLDER / "config.json"
    told = json.loads(config.read_text())
    told["config"]["privacy"]["as_published"] = False
    config.write_text(json.dumps(told))
    assert any("as_published" in line for line in verify_run(tmp_path / "run").differences)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"voting__mechanism": "fetchsgd"}, "add --as-published"),
        ({"privacy__as_published": True}, "is for fetchsgd"),
        ({**D2P, "privacy__as_published": True}, "is for fetchsgd"),
    ],
)
def test_as_published_goes_with_fetchsgd_and_only_with_it(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_plan(small_config(**changes), 60, (1, 8, 8))


def test_an_even_number_of_rows_has_no_median_among_them() -> None:
    with pytest.raises(ConfigError, match=r"sketch_rows = 4: must be odd"):
        small_config(voting__sketch_rows=4)


@pytest.mark.parametrize("name", COMPARED)
def test_planning_and_the_mechanism_agree_on_what_a_step_costs(name: str) -> None:
    """The calculation that finds the noise, the mechanism's event, and the verification's own."""
    config = small_config(**COMPARED[name], voting__images_per_teacher=2, privacy__group_size=2)
    plan = plan_releases(config.replace(privacy__epsilon=300.0), 64)
    event = mechanism_of(config, 64, plan.noise_stddev).event(3, 64)
    voting = config.voting
    header = {
        "name": name,
        "levels": voting.levels,
        "sketch_rows": voting.sketch_rows,
        "sketch_buckets": voting.sketch_buckets,
        "top_k": voting.top_k,
        "batch_size": 3,
        "images_per_teacher": 2,
        "coordinates": 64,
        "group_size": 2,
        "noise_stddev": plan.noise_stddev,
    }
    assert is_charge(event.to_json(), step_charge(header))
    assert not is_charge({**event.to_json(), "sensitivity": event.sensitivity / 1.01}, step_charge(header))


def test_d2p_keeps_all_coordinates_so_top_k_cannot_change(tmp_path: Path) -> None:
    session = Session.begin(small_config(**D2P), small_data(), tmp_path / "run")
    session.run(stop=stop_after(2))
    session.close()
    with pytest.raises(ConfigError, match="d2p-fed keeps all"):
        resume(tmp_path / "run", top_k=3)


@pytest.mark.parametrize("name", COMPARED)
def test_audit_finds_the_sensitivity_charged_and_no_guarantee_where_there_is_none(name: str) -> None:
    changes = {**COMPARED[name], "privacy__epsilon": 2000.0}
    subject = Subject.of(config_to_audit(**changes), (1, 8, 8), 2)
    found = audit_mechanism(subject, trials=4000)
    assert found.passed is (name != "fetchsgd")
    if name == "fetchsgd":
        assert "no guarantee" in found.text
    else:
        assert audit_sensitivity(subject).passed
        assert found.numbers["largest_mu_ratio"] > (0.8 if name == "d2p-fed" else 0.3)


def test_the_command_line_sets_what_the_mechanisms_need() -> None:
    given = {
        "mechanism": MechanismKind.FETCHSGD,
        "sketch_rows": 7,
        "sketch_buckets": 90,
        "as_published": True,
    }
    config = build_config("custom", None, {**given, "levels": 16})
    voting = config.voting
    assert (voting.mechanism, voting.sketch_rows, voting.sketch_buckets) == (MechanismKind.FETCHSGD, 7, 90)
    assert voting.levels == 16
    assert config.privacy.as_published
    assert not config.privacy.is_private


def test_settings_of_the_mechanisms_left_alone_change_no_digest() -> None:
    """Runs and cells from before these settings were there keep their keys."""
    settings = small_config().model_dump(mode="json", exclude_defaults=True)
    assert not {"mechanism", "levels", "sketch_rows", "sketch_buckets"} & set(settings["voting"])
    assert "as_published" not in settings["privacy"]
