"""The sampler's slack, computed without a table, is the one that the sampler proves of its table."""

from __future__ import annotations

from typing import Any

import pytest

from datalens.audit.ledger_reader import Difference
from datalens.audit.second_noise import check_slack, slack_again
from datalens.noise.table import SLACK_BOUND, build_table
from datalens.privacy.events import GaussianEvent, NoiseKind, SamplerSlack


@pytest.mark.parametrize("stddev", [0.25, 0.3, 0.5, 1.0, 2.0, 43.78, 900.0, 5000.0, 20000.0])
def test_both_calculations_agree(stddev: float) -> None:
    theirs = build_table(stddev).slack
    for eta, tau in slack_again("rounded-gaussian", stddev):
        assert eta == pytest.approx(theirs.eta, rel=1e-7)
        assert tau == pytest.approx(theirs.tau, rel=1e-7)
        assert eta <= SLACK_BOUND.eta
        assert tau <= SLACK_BOUND.tau


def event(eta: float = 0.0, tau: float = 0.0, **changes: Any) -> dict[str, Any]:
    return {**GaussianEvent(2.0, 900.0, 4, slack=SamplerSlack(eta, tau)).to_json(), **changes}


def test_the_slack_of_the_sampler_passes_however_deep_it_lies() -> None:
    slack = build_table(900.0).slack
    check_slack([{"events": [{"planned": event(slack.eta, slack.tau)}]}])
    check_slack(
        [event(noise=str(kind)) for kind in (NoiseKind.DISCRETE, NoiseKind.CONTINUOUS, NoiseKind.NONE)]
    )


@pytest.mark.parametrize(("eta", "tau"), [(0.0, 1.0), (1.0, 0.0), (1.00001, 1.0), (1.0, 0.99999), (0.5, 0.5)])
def test_another_slack_is_found(eta: float, tau: float) -> None:
    slack = build_table(900.0).slack
    with pytest.raises(Difference, match="900"):
        check_slack([{"note": [event(slack.eta * eta, slack.tau * tau)]}])


def test_what_pays_for_a_cut_off_line_may_say_more_slack_and_not_less() -> None:
    slack = build_table(900.0).slack
    check_slack([], [event(slack.eta, slack.tau), event(2 * slack.eta, 3 * slack.tau)])
    for eta, tau in [(0.5, 1.0), (1.0, 0.5)]:
        with pytest.raises(Difference, match="900"):
            check_slack([], [event(slack.eta * eta, slack.tau * tau)])


def test_noise_that_cannot_be_drawn_is_found() -> None:
    with pytest.raises(Difference, match="can be drawn"):
        check_slack([event(noise_stddev=0.1)])


def test_exact_samplers_have_no_slack_to_claim() -> None:
    with pytest.raises(Difference, match="slack"):
        check_slack([event(1e-18, 1e-40, noise="discrete-gaussian")])
