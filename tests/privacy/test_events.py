"""Events: what is refused when they are made, and what cannot be read back."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from datalens.errors import ConfigError, LedgerError
from datalens.privacy.events import (
    GaussianEvent,
    NoiseKind,
    PoissonGaussianEvent,
    SamplerSlack,
    TuningEvent,
    event_from_json,
)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SamplerSlack(eta=-1e-9), "slack eta=-1e-09 must be 0 or more and finite"),
        (lambda: SamplerSlack(tau=math.inf), "slack tau=inf must be 0 or more and finite"),
        (lambda: GaussianEvent(0.0, 1.0, 1), "sensitivity=0.0 must be above 0"),
        (lambda: GaussianEvent(1.0, math.nan, 1), "noise_stddev=nan must be above 0"),
        (lambda: GaussianEvent("much", 1.0, 1), "sensitivity='much' must be above 0"),  # type: ignore[arg-type]
        (lambda: GaussianEvent(1.0, 0.0, 1), "noise_stddev=0.0 must be above 0"),
        (lambda: GaussianEvent(1.0, 1.0, 0), "coordinates=0 must be a whole number, 1 or more"),
        (lambda: GaussianEvent(1.0, 1.0, True), "coordinates=True must be a whole number"),
        (lambda: GaussianEvent(1.0, 1.0, 2.0), "coordinates=2.0 must be a whole number"),  # type: ignore[arg-type]
        (lambda: GaussianEvent(1.0, 1.0, 1, count=0), "count=0 must be a whole number"),
        (lambda: GaussianEvent(1.0, 1.0, 1, "loud"), "noise 'loud' is unknown; known: rounded-gaussian"),  # type: ignore[arg-type]
        (lambda: PoissonGaussianEvent(0.0, 1.0), "sampling_probability=0.0 must be above 0"),
        (lambda: PoissonGaussianEvent(1.0 + 1e-9, 1.0), r"must be in \(0, 1\]: lower it"),
        (lambda: PoissonGaussianEvent(0.5, 0.0), "noise_multiplier=0.0 must be above 0"),
        (lambda: PoissonGaussianEvent(0.5, 1e-160), "noise_multiplier=1e-160 must be from 1e-50 to 1e"),
        (lambda: GaussianEvent(1.0, 1e-200, 1), "noise_stddev=1e-200 must be from 1e-50 to 1e"),
        (lambda: GaussianEvent(1e51, 1.0, 1), "sensitivity=1e.51 must be from 1e-50 to 1e"),
        (lambda: GaussianEvent(1.0, 1.0, 1, count=10**400), "must be a whole number, 1 or more, at most 1e"),
        (lambda: PoissonGaussianEvent(0.5, 10**400), "noise_multiplier=10+ must be above 0 and finite"),
        (lambda: TuningEvent(1e60, 5.0), "mu=1e.60 must be from 1e-50"),
        (lambda: PoissonGaussianEvent(0.5, 1.0, noise=NoiseKind.DISCRETE), "no proved cost"),
        (lambda: TuningEvent(1.0, 5.0, bad_mass=-1e-9), "bad_mass=-1e-09 must be 0 or more and finite"),
        (lambda: TuningEvent(1.0, 5.0, bad_mass=math.inf), "bad_mass=inf must be 0 or more and finite"),
    ],
)
def test_what_has_no_meaning_is_refused(make: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


def test_a_line_with_numbers_beyond_all_floats_is_damaged() -> None:
    for name, value in (("eta", 10**400), ("mu", 10**400), ("expected_tries", 10**400), ("count", 10**400)):
        with pytest.raises(LedgerError, match="cannot be read"):
            event_from_json({**TuningEvent(1.0, 5.0).to_json(), name: value})
    with pytest.raises(LedgerError, match="cannot be read"):
        event_from_json({**GaussianEvent(1.0, 1.0, 1).to_json(), "slack": {"eta": 10**400, "tau": 0.0}})


def test_numbers_of_other_libraries_become_plain_ones() -> None:
    event = GaussianEvent(np.float32(2.0), np.float64(4.0), np.int64(3), count=np.uint8(2))  # type: ignore[arg-type]
    plain = GaussianEvent(2.0, 4.0, 3, count=2).to_json()
    assert json.loads(json.dumps(event.to_json())) == plain


def test_the_edges_are_allowed() -> None:
    assert PoissonGaussianEvent(1.0, 1.0).sampling_probability == 1.0
    assert TuningEvent(1.0, 5.0, bad_mass=0.0).bad_mass == 0.0
    assert (SamplerSlack(0, 0).eta, GaussianEvent(1, 2, 1).mu) == (0.0, 0.5)
    assert GaussianEvent(1.0, 0.0, 1, NoiseKind.NONE).mu == math.inf
    assert PoissonGaussianEvent(1.0, 0, noise=NoiseKind.NONE).noise_multiplier == 0.0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"type": "laplace"}, "event type 'laplace' is unknown; known: gaussian, poisson-gaussian, tuning"),
        ({"sensitivity": -1.0}, "must be above 0"),
        ({"bonus": 1}, "cannot be read"),
        ({"slack": {"eta": 0.0, "rho": 1.0}}, "cannot be read"),
    ],
)
def test_an_event_that_is_not_known_is_no_release_for_free(change: dict[str, Any], says: str) -> None:
    with pytest.raises(LedgerError, match=says):
        event_from_json({**GaussianEvent(2.0, 4.0, 1).to_json(), **change})


@pytest.mark.parametrize("missing", ["type", "sensitivity", "noise_stddev", "coordinates", "slack"])
def test_a_missing_field_is_an_error(missing: str) -> None:
    fields = GaussianEvent(2.0, 4.0, 1).to_json()
    del fields[missing]
    with pytest.raises(LedgerError, match="cannot be read"):
        event_from_json(fields)
