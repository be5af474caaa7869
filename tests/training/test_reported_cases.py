"""Cases from other projects' bug reports, on whole runs: 28x28 images, top-k 10, noise 200, delta 1e-5.

Each release here is joint: a step of m images holds m queries. FX-A: 200 records, ten classes, record i has i in
its first pixel.
"""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from datalens import DataLens
from datalens.audit.verify import verify_run
from datalens.cli.main import main
from datalens.data.arrays import labelled_images
from datalens.data.images import LabelledImages
from datalens.errors import BudgetError, ConfigError, PrivacyWarning, RunError
from datalens.privacy import gaussian
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import Event, GaussianEvent, times
from datalens.privacy.ledger import Ledger
from datalens.training.config import Config, parse_config
from datalens.training.directions import read_directions
from datalens.training.plan import check_plan

QUERY = GaussianEvent(2 * math.sqrt(10), 200.0, coordinates=784)


def fx_a() -> tuple[np.ndarray, np.ndarray]:
    images = np.random.default_rng(0).integers(0, 256, (200, 1, 28, 28), dtype=np.uint8)
    images[:, 0, 0, 0] = np.arange(200)
    return images, np.arange(200) % 10


def data() -> LabelledImages:
    return labelled_images(*fx_a())


def config(*, epsilon: float, batch_size: int = 2, num_steps: int | None = None, **privacy: object) -> Config:
    return parse_config(
        {
            "privacy": {
                "epsilon": epsilon,
                "delta": 1e-5,
                "num_records": 200,
                "labels_are_public": True,
                **privacy,
            },
            "voting": {
                "num_teachers": 200,
                "top_k": 10,
                "noise_stddev": 200.0,
                "batch_size": batch_size,
                "num_steps": num_steps,
            },
            "student": {"latent_dim": 4, "hidden_units": 8, "channels": 4},
        }
    )


def cost(queries: int, kind: AccountantKind = AccountantKind.EXACT) -> float:
    return Accountant(kind).epsilon(times(QUERY, queries), 1e-5)


def stop_after(steps: int):
    asked = iter(range(10**6))
    return lambda: next(asked) >= steps


def test_r01_ten_queries_and_ten_more_in_a_new_process_cost_what_twenty_do(tmp_path: Path) -> None:
    images, labels = fx_a()
    np.savez(tmp_path / "a.npz", x=images, y=labels)
    source, run = str(tmp_path / "a.npz"), str(tmp_path / "run")
    settings = config(epsilon=1.0, num_steps=10, accountant="rdp")
    whole = DataLens(settings).fit(data(), out=tmp_path / "whole")
    from datalens.data import load

    half = DataLens(settings).fit(load(source), out=run, stop=stop_after(5))
    assert half.spent_epsilon(1e-5) == pytest.approx(0.375, rel=0.02)
    subprocess.run([sys.executable, "-m", "datalens", "train", source, "--resume", run, "-q"], check=True)
    spent = DataLens.load(run).spent_epsilon(1e-5)
    assert spent == pytest.approx(0.546, rel=0.02)
    assert spent == pytest.approx(whole.spent_epsilon(1e-5), abs=1e-9)
    ledger = tmp_path / "run" / "release" / "ledger.jsonl"
    ledger.unlink()
    with pytest.raises(RunError, match="cannot be opened"):  # and is not begun anew
        DataLens.resume(run, load(source))
    assert not ledger.exists()


def test_r01_a_limit_between_the_two_stops_both_at_the_same_query(tmp_path: Path) -> None:
    limit = config(epsilon=0.46, accountant="rdp")
    whole = DataLens(limit).fit(data())
    DataLens(limit).fit(data(), out=tmp_path / "run", stop=stop_after(5))
    resumed = DataLens.resume(tmp_path / "run", data())
    steps = len(whole.ledger.events())
    assert len(resumed.ledger.events()) == steps
    assert cost(2 * steps, AccountantKind.RDP) <= 0.46 < cost(2 * steps + 2, AccountantKind.RDP)


@pytest.mark.parametrize(("epsilon", "steps"), [(0.5, 2), (None, 1)])
def test_r08_what_is_published_is_the_state_before_the_limit(
    tmp_path: Path, epsilon: float | None, steps: int
) -> None:
    """Ten queries a step. At the cost of exactly ten one step is taken; at 0.5 two, and no third."""
    limit = epsilon or Accountant().epsilon(_real_step(10), 1e-5)
    model = DataLens(config(epsilon=limit, batch_size=10)).fit(data(), out=tmp_path / "run")
    assert len(model.ledger.events()) == steps
    assert model.spent_epsilon(1e-5) <= limit < cost(10 * steps + 10)
    found = verify_run(tmp_path / "run", replay=True)
    assert found.agrees
    assert len(read_directions(tmp_path / "run" / "release" / "directions.bin")) == steps


def test_r08_a_step_of_thirty_queries_that_fits_only_partly_is_not_taken(tmp_path: Path) -> None:
    for limit in (0.5, cost(10)):
        with pytest.raises(BudgetError, match=r"too small for one step .*use epsilon"):
            DataLens(config(epsilon=limit, batch_size=30)).fit(data(), out=tmp_path / "run")
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("delta", [0.02, 0.05])
def test_r28_a_delta_of_one_over_fifty_or_more_is_warned_of(delta: float) -> None:
    images, labels = fx_a()
    fifty = config(epsilon=1.0, num_steps=1).replace(
        privacy={"delta": delta, "num_records": 50}, voting__num_teachers=50
    )
    with pytest.warns(PrivacyWarning, match="releasing a whole record"):
        DataLens(fifty.replace(voting__noise_stddev=20.0, privacy__epsilon=9.0)).fit(images[:50], labels[:50])


def test_r28_sixty_thousand_records_at_a_hundred_thousandth_are_not() -> None:
    many = config(epsilon=1.0, num_steps=1).replace(privacy__num_records=60000)
    assert check_plan(many, 60000, (1, 28, 28))[1] == ()


@pytest.mark.parametrize("delta", [0, 1, 2, -1e-5])
def test_r28_a_delta_outside_the_interval_is_an_error(
    delta: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="delta"):
        config(epsilon=1.0).replace(privacy__delta=float(delta))
    assert main(["train", "shapes", "--out", str(tmp_path / "run"), f"--delta={delta}"]) == 2
    assert "delta" in capsys.readouterr().err


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_r32_an_accountant_that_breaks_at_step_five_ends_the_run_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: float
) -> None:
    real = Accountant.epsilon

    def stub(self: Accountant, events: Event | Iterable[Event], delta: float) -> float:
        found = [events] if isinstance(events, Event) else list(events)
        taken = sum(event.count for event in found)
        return broken if taken == 5 else real(self, found, delta)

    settings = config(epsilon=1.0, num_steps=10)
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Accountant, "epsilon", stub)
        with pytest.raises(BudgetError) as caught:
            DataLens(settings).fit(data(), out=run)
    assert "nan" not in str(caught.value).lower()
    assert len(Ledger.read(run / "release" / "ledger.jsonl").events()) == 4
    assert [record.step for record in read_directions(run / "release" / "directions.bin")] == [0, 1, 2, 3]
    assert not (run / "release" / "generator.safetensors").exists()
    assert b"NaN" not in b"".join(path.read_bytes() for path in (run / "release").iterdir())


def test_r32_large_orders_and_even_votes_give_numbers() -> None:
    assert gaussian.rdp(1e6, QUERY.mu) == pytest.approx(1e6 * QUERY.mu**2 / 2)
    from datalens.privacy.data_dependent import (
        data_dependent_cost,
        likeliest_outcome,
        log_miss_probability,
        log_outcome_chances,
        log_outcome_probability,
    )

    chances = log_outcome_chances(np.zeros(784), 200, 0.5, 200.0)
    missed = log_miss_probability(log_outcome_probability(chances, likeliest_outcome(chances)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isfinite(data_dependent_cost([(QUERY.mu, missed)], 1e-5).epsilon)


@pytest.mark.parametrize("kind", list(AccountantKind))
def test_r23_every_accountant_has_the_same_methods(kind: AccountantKind) -> None:
    assert dir(Accountant(kind)) == dir(Accountant())


def test_r12_one_wide_release_is_within_a_tenth_of_a_fine_grid_of_orders() -> None:
    """TopAgg with k=200 and sigma=5000, T=1, under both conversions; the default is tighter than either."""
    wide = GaussianEvent(2 * math.sqrt(200), 5000.0, coordinates=784)
    orders = 1 + np.geomspace(1e-3, 1e6, 100_001)
    curve = orders * wide.mu**2 / 2
    fine = {
        AccountantKind.CLASSIC: float((curve + math.log(1e5) / (orders - 1)).min()),
        AccountantKind.RDP: float(
            (curve + np.log1p(-1 / orders) - np.log(1e-5 * orders) / (orders - 1)).min()
        ),
    }
    for kind, least in fine.items():
        assert least * (1 - 1e-9) <= Accountant(kind).epsilon(wide, 1e-5) * (1 + 1e-6) <= 1.1 * least
    assert 0 <= Accountant().epsilon(wide, 1e-5) <= fine[AccountantKind.RDP]


def _real_step(images: int) -> GaussianEvent:
    """The event of a step as a run charges it, with the sampler's slack."""
    return check_plan(config(epsilon=5.0, batch_size=images, num_steps=1), 200, (1, 28, 28))[0].event
