"""Whole small trainings under drawn settings: what was asked for, promised, charged and certified is one number."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import mortal_runs
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mortal_runs import CASES, VOTES

from datalens.audit.run import audit_files
from datalens.audit.verify import verify_run
from datalens.data.images import LabelledImages
from datalens.errors import BudgetError, ConfigError, PrivacyWarning
from datalens.privacy import promises
from datalens.training.run_folder import RunFolder

FEW = settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PRIVACY = st.fixed_dictionaries(
    {
        "epsilon": st.floats(0.5, 20.0),
        "delta": st.sampled_from([1e-3, 1e-4, 1e-6]),
        "accountant": st.sampled_from(["exact", "rdp"]),
        "group_size": st.sampled_from([1, 1, 2]),
        "insecure_seed": st.integers(0, 2**32),
    }
)
STOPS = st.lists(st.integers(0, mortal_runs.STEPS), max_size=2)


def trained(case: str, config: Any, data: LabelledImages, root: Path | None, stops: list[int]) -> Any:
    """Trained, and stopped after each of so many steps and gone on with."""
    kind = mortal_runs.model_of(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model = kind(config).fit(data, out=root, stop=_after(stops[0]) if stops else _never)
        for steps in [*stops[1:], None] if stops else []:
            model = kind.resume(root, data, stop=_never if steps is None else _after(steps))
    return model


def _never() -> bool:
    return False


def _after(steps: int) -> Any:
    asked = iter(range(10**9))
    return lambda: next(asked) >= steps


def check(case: str, privacy: dict[str, Any], stops: list[int]) -> None:
    data, delta = mortal_runs.data_of(case), privacy["delta"]
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "run"
        try:
            config = mortal_runs.config_of(case, **privacy)
            model = trained(case, config, data, root, stops)
        except (BudgetError, ConfigError) as error:
            assert len(str(error).splitlines()) == 1
            assert not root.exists(), "what is refused leaves nothing"
            return
        folder = RunFolder.open(root)
        certificate = json.loads(folder.certificate.read_bytes())
        promised = certificate["guarantee"]
        assert promised["epsilon"] == model.epsilon(delta) <= privacy["epsilon"]
        assert model.spent_epsilon(delta) == certificate["spent"]["epsilon"] <= promised["epsilon"]
        assert (promised["delta"], promised["group_size"]) == (delta, privacy["group_size"])
        replaced = promised["replace_one"]["epsilon"]
        if replaced is not None and promised["adjacency"] == promises.ADD_OR_REMOVE:
            assert replaced >= promised["epsilon"]
        found = verify_run(root, replay=case in VOTES)
        assert found.agrees, found.differences
        assert found.lost_steps == 0, "a clean stop loses nothing"
        if case in VOTES:
            assert [one.name for one in audit_files(folder) if not one.passed] == []
        whole = mortal_runs.network_of(trained(case, config, data, None, []))
        for name, value in mortal_runs.network_of(mortal_runs.model_of(case).load(root)).items():
            assert torch.equal(value, whole[name]), name


@pytest.mark.parametrize("case", CASES)
@FEW
@given(privacy=PRIVACY, stops=STOPS)
def test_one_number_stands_everywhere(case: str, privacy: dict[str, Any], stops: list[int]) -> None:
    check(case, privacy, stops)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("case", CASES)
@MANY
@given(privacy=PRIVACY, stops=STOPS)
def test_one_number_stands_everywhere_in_many(case: str, privacy: dict[str, Any], stops: list[int]) -> None:
    check(case, privacy, stops)
