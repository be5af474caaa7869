from __future__ import annotations

import math

import pytest

from datalens.errors import BudgetError, ConfigError, LedgerError
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.budget import Authorisation, Budget, authorisations
from datalens.privacy.events import GaussianEvent, NoiseKind, SamplerSlack, times
from datalens.privacy.ledger import Ledger
from datalens.privacy.wording import delta_warning, rounded_up

KINDS = list(AccountantKind)
QUERY = GaussianEvent(2 * math.sqrt(10), 200.0, coordinates=784)
STEP = times(QUERY, 30)  # a generator step of 30 images


def cost(count: int, kind: AccountantKind = AccountantKind.EXACT) -> float:
    return Accountant(kind).epsilon(times(QUERY, count), 1e-5)


def fill(budget: Budget, event) -> int:
    """Charge until refused; the number of charges."""
    count = 0
    while True:
        try:
            budget.charge(event, {"step": count})
        except BudgetError:
            return count
        count += 1


@pytest.mark.parametrize("kind", KINDS)
def test_r08_never_spends_more_than_authorised_and_no_less_than_it_could(kind):
    budget = Budget(Ledger.in_memory(), Authorisation(0.5, 1e-5, kind))
    count = fill(budget, QUERY)
    assert budget.spent_epsilon() == pytest.approx(cost(count, kind), rel=1e-12)
    assert budget.spent_epsilon() <= 0.5 < cost(count + 1, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_r08_a_ceiling_equal_to_the_cost_of_ten_allows_ten(kind):
    budget = Budget(Ledger.in_memory(), Authorisation(cost(10, kind), 1e-5, kind))
    assert fill(budget, QUERY) == 10
    assert budget.spent_epsilon() == cost(10, kind)


@pytest.mark.parametrize("ceiling", [0.5, cost(10)])
def test_r08_a_step_that_fits_only_partly_is_not_applied(ceiling):
    assert cost(1) < ceiling < cost(30)
    budget = Budget(Ledger.in_memory(), Authorisation(ceiling, 1e-5))
    before = budget.ledger.lines
    with pytest.raises(BudgetError, match="authorised"):
        budget.charge(STEP)
    assert budget.ledger.lines == before
    assert budget.spent_epsilon() == 0.0


class Stub:
    """An accountant that breaks at the fifth query."""

    def __init__(self, broken: float) -> None:
        self.broken = broken

    def epsilon(self, events, delta):
        count = sum(event.count for event in events)
        return self.broken if count == 5 else 0.01 * count


@pytest.mark.parametrize("broken", [math.nan, math.inf, -1.0])
def test_r32_an_epsilon_that_is_no_number_stops_everything(broken):
    budget = Budget(Ledger.in_memory(), Authorisation(1.0, 1e-5), oracle=Stub(broken))
    for _ in range(4):
        budget.charge(QUERY)
    for event in (QUERY, times(QUERY, 2)):  # also the event whose price would be finite again
        with pytest.raises(BudgetError, match="nothing more is released") as caught:
            budget.charge(event)
        assert "nan" not in str(caught.value).lower()
    assert len(budget.ledger.events()) == 4


def test_without_noise_only_an_explicit_lack_of_privacy_allows_a_release():
    bare = GaussianEvent(2.0, 0.0, 784, NoiseKind.NONE)
    with pytest.raises(BudgetError, match="without bound"):
        Budget(Ledger.in_memory(), Authorisation(1e6, 1e-5)).charge(bare)
    open_budget = Budget(Ledger.in_memory(), Authorisation.not_private())
    open_budget.charge(bare)
    assert open_budget.spent_epsilon() == math.inf
    assert not authorisations(open_budget.ledger)[0].authorisation.is_private


@pytest.mark.parametrize("kind", KINDS)
def test_r23_questions_change_nothing(tmp_path, kind):
    path = tmp_path / "ledger"
    with Ledger.create(path, {}) as ledger:
        budget = Budget(ledger, Authorisation(3.0, 1e-5, kind))
        for step in range(1, 101):
            budget.charge(QUERY)
            before = path.read_bytes()
            asked = [(budget.spent_epsilon(), budget.num_releases) for _ in range(3)]
            assert asked == [(asked[0][0], step)] * 3
            assert path.read_bytes() == before
        answers = [
            (
                budget.spent_epsilon(),
                budget.remaining_epsilon(),
                budget.remaining_releases(QUERY),
                budget.check(QUERY),
                budget.authorised_epsilon(),
            )
            for _ in range(3)
        ]
        assert answers[0] == answers[1] == answers[2]
        assert path.read_bytes() == before
        assert budget.num_releases == 100
        budget.charge(GaussianEvent(QUERY.sensitivity, 300.0, 784))
        assert budget.num_releases == 101
        assert path.read_bytes().startswith(before)


def test_a_question_about_the_impossible_breaks_nothing():
    budget = Budget(Ledger.in_memory(), Authorisation(2.0, 1e-5))
    leaky = GaussianEvent(QUERY.sensitivity, 200.0, 784, slack=SamplerSlack(0.0, 1e-10))
    assert 0 < budget.remaining_releases(leaky) < 200  # beyond that its bad mass alone exceeds delta
    with pytest.raises(BudgetError, match="without bound"):
        budget.check(times(leaky, 10_000))
    budget.charge(QUERY)


def test_two_budgets_over_one_ledger_see_each_other():
    ledger = Ledger.in_memory()
    first = Budget(ledger, Authorisation(cost(2), 1e-5))
    second = Budget(ledger)
    first.charge(QUERY)
    second.charge(QUERY)
    assert first.spent_epsilon() == second.spent_epsilon() == cost(2)
    with pytest.raises(BudgetError):
        first.charge(QUERY)


def test_remaining_releases_is_what_really_fits():
    budget = Budget(Ledger.in_memory(), Authorisation(0.5, 1e-5))
    budget.charge(QUERY)
    expected = budget.remaining_releases(QUERY)
    assert expected > 0
    assert fill(budget, QUERY) == expected
    assert budget.remaining_releases(QUERY) == 0


def test_r01_after_a_restart_everything_is_still_spent(tmp_path):
    path = tmp_path / "ledger"
    straight = Budget(Ledger.in_memory(), Authorisation(1.0, 1e-5, AccountantKind.RDP))
    for _ in range(20):
        straight.charge(QUERY)
    for part in range(2):
        ledger = Ledger.open(path) if part else Ledger.create(path, {})
        with ledger:
            budget = Budget(ledger, None if part else Authorisation(1.0, 1e-5, AccountantKind.RDP))
            for _ in range(10):
                budget.charge(QUERY)
            assert budget.spent_epsilon() == pytest.approx((0.3753, 0.5457)[part], rel=0.001)
    assert budget.spent_epsilon() == pytest.approx(straight.spent_epsilon(), abs=1e-12)


def test_r01_a_resumed_run_stops_where_the_straight_one_does(tmp_path):
    straight = Budget(Ledger.in_memory(), Authorisation(0.45, 1e-5))
    total = fill(straight, QUERY)
    with Ledger.create(tmp_path / "a", {"authorisation": Authorisation(0.45, 1e-5).to_json()}) as ledger:
        first = Budget(ledger)
        for _ in range(10):
            first.charge(QUERY)
    with Ledger.open(tmp_path / "a") as ledger:
        assert 10 + fill(Budget(ledger), QUERY) == total


def test_a_cut_off_line_is_charged(tmp_path):
    path = tmp_path / "a"
    with Ledger.create(path, {}) as ledger:
        budget = Budget(ledger, Authorisation(1.0, 1e-5))
        for _ in range(3):
            budget.charge(QUERY)
    path.write_bytes(path.read_bytes()[:-5])
    with Ledger.open(path) as ledger:
        assert Budget(ledger).spent_epsilon() == pytest.approx(cost(3), rel=1e-12)


# -- what is promised ----------------------------------------------------------------------------------------


def test_the_guarantee_is_the_whole_plan_also_after_an_early_stop():
    plan = Authorisation(1.0, 1e-5, num_releases=20, planned=QUERY)
    budget = Budget(Ledger.in_memory(), plan)
    budget.charge(QUERY)
    assert budget.authorised_epsilon() == cost(20)
    assert budget.spent_epsilon() == cost(1)
    assert 1 + fill(budget, QUERY) == 20  # and no more than the plan, though epsilon 1 would allow it


def test_without_a_plan_the_guarantee_is_the_ceiling():
    assert Budget(Ledger.in_memory(), Authorisation(0.7, 1e-5)).authorised_epsilon() == 0.7


def test_a_plan_beyond_its_ceiling_is_refused():
    with pytest.raises(ConfigError, match="does not cover 20 planned"):
        Authorisation(0.3, 1e-5, num_releases=20, planned=QUERY)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_an_epsilon_that_is_no_ceiling_is_refused(epsilon):
    with pytest.raises(ConfigError, match="above 0 and finite"):
        Authorisation(epsilon, 1e-5)
    with pytest.raises(LedgerError, match="cannot be read"):
        Authorisation.from_json({**Authorisation(1.0, 1e-5).to_json(), "epsilon": epsilon})


@pytest.mark.parametrize("count", [0, -3, 2.5, math.nan, True])
def test_a_number_of_releases_that_is_none_is_refused(count):
    with pytest.raises(ConfigError, match="whole number from 1"):
        Authorisation(1.0, 1e-5, num_releases=count, planned=QUERY)


def test_a_plan_without_a_finite_cost_is_refused_in_words():
    bare = GaussianEvent(2.0, 0.0, 784, NoiseKind.NONE)
    leaky = GaussianEvent(2.0, 200.0, 784, slack=SamplerSlack(0.0, 1e-3))
    for event in (bare, leaky):
        with pytest.raises(ConfigError, match="no finite cost") as caught:
            Authorisation(1.0, 1e-5, num_releases=1, planned=event)
        assert "inf" not in str(caught.value).replace("finite", "")


@pytest.mark.parametrize("delta", [0.0, 1.0, 2.0, -1e-5, math.nan])
def test_r28_a_delta_outside_the_open_interval_is_refused(delta):
    with pytest.raises(ConfigError, match="strictly between"):
        Authorisation(1.0, delta)


def test_authorisation_survives_json():
    for value in (
        Authorisation(0.1 + 0.2, 1e-5, AccountantKind.CLASSIC),
        Authorisation(1.0, 1e-5, num_releases=20, planned=QUERY),
        Authorisation.not_private(),
    ):
        assert Authorisation.from_json(value.to_json()) == value
    with pytest.raises(LedgerError, match="authorisation"):
        Authorisation.from_json({"epsilon": 1.0})


def test_what_costs_next_to_nothing_is_counted_to_2_to_the_53():
    budget = Budget(Ledger.in_memory(), Authorisation(0.5, 1e-5))
    assert budget.remaining_releases(GaussianEvent(1e-12, 1e6, 1)) == 2**53 - 1


def test_a_changed_authorisation_answers_with_its_line():
    ledger = Ledger.in_memory()
    budget = Budget(ledger, Authorisation(0.2, 1e-5))
    assert budget.authorise(Authorisation(0.3, 1e-5), "more") == ledger.lines[-1]


def test_a_later_raise_is_recorded_as_decided_after_looking():
    ledger = Ledger.in_memory()
    budget = Budget(ledger, Authorisation(0.2, 1e-5))
    budget.authorise(Authorisation(0.3, 1e-5), "before anything was released")
    fill(budget, QUERY)
    budget.authorise(Authorisation(0.5, 1e-5), "more")
    assert fill(budget, QUERY) > 0
    assert [found.decided_after_release for found in authorisations(ledger)] == [False, False, True]
    flags = [line.body["decided_after_release"] for line in ledger.lines if line.kind == "authorisation"]
    assert flags == [False, False, True]
    with pytest.raises(ConfigError, match="not what the ledger authorises"):
        Budget(ledger, Authorisation(0.6, 1e-5))
    with pytest.raises(ConfigError, match="authorises nothing"):
        Budget(Ledger.in_memory())


# -- one budget for a data set -------------------------------------------------------------------------------


def test_ten_runs_on_one_data_set_are_seen_to_be_ten(tmp_path):
    path = tmp_path / "dataset"
    authorisation = Authorisation(1.0, 1e-5)
    with Ledger.create(path, {"dataset": "people", "authorisation": authorisation.to_json()}):
        pass
    counts = []
    for run in range(4):
        with Ledger.open(path) as ledger:
            shared = Budget(ledger)
            budget = Budget(Ledger.in_memory(), Authorisation(0.5, 1e-5), shared=shared, run=f"run-{run}")
            counts.append(fill(budget, QUERY))
            assert shared.spent_epsilon() <= 1.0
            assert len(shared.ledger.events()) == sum(counts)
    assert counts[0] == counts[1] > 0
    assert sum(counts) == Budget(Ledger.in_memory(), authorisation).remaining_releases(QUERY)
    names = {line.body["note"]["run"] for line in Ledger.read(path).lines if line.kind == "release"}
    assert names == {"run-0", "run-1", "run-2", "run-3"}


def test_what_the_shared_budget_refuses_is_written_nowhere():
    shared = Budget(Ledger.in_memory(), Authorisation(cost(2), 1e-5))
    budget = Budget(Ledger.in_memory(), Authorisation(1.0, 1e-5), shared=shared)
    assert fill(budget, QUERY) == 2
    assert len(budget.ledger.events()) == len(shared.ledger.events()) == 2


def test_what_the_runs_budget_refuses_is_not_charged_to_the_data_set():
    shared = Budget(Ledger.in_memory(), Authorisation(1.0, 1e-5))
    budget = Budget(Ledger.in_memory(), Authorisation(cost(2), 1e-5), shared=shared)
    assert fill(budget, QUERY) == 2
    assert len(shared.ledger.events()) == 2


def test_a_crash_between_the_two_lines_overcharges_and_never_undercharges(monkeypatch):
    shared = Budget(Ledger.in_memory(), Authorisation(1.0, 1e-5))
    own = Ledger.in_memory()
    budget = Budget(own, Authorisation(1.0, 1e-5), shared=shared)

    def crash(event, note):
        raise LedgerError("ledger cannot be written: nothing was released")

    monkeypatch.setattr(own, "charge", crash)
    with pytest.raises(LedgerError):
        budget.charge(QUERY)
    assert len(shared.ledger.events()) == 1
    assert own.events() == ()


# -- messages ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delta", "records", "warned"), [(0.02, 50, True), (0.05, 50, True), (1e-5, 60000, False)]
)
def test_r28_a_delta_that_allows_a_whole_record_is_said(delta, records, warned):
    text = delta_warning(delta, records)
    assert (text is not None) == warned
    if warned:
        assert "1/num_records=0.02" in str(text)
        with pytest.raises(ConfigError, match="whole record"):
            delta_warning(delta, records, strict=True)


def test_epsilon_is_printed_rounded_up():
    for value in (0.014382966, 1.99300001, 7.5113, 1e-7, 123456.7, 1.0, 9.9999999):
        assert value <= float(rounded_up(value)) <= value * 1.0011
    assert rounded_up(math.inf) == "inf"


def test_several_releases_are_asked_for_together() -> None:
    """Each would fit alone; together they do not, and nothing is written."""
    event = GaussianEvent(4.0, 8.0, 1)
    budget = Budget(Ledger.in_memory(), Authorisation(epsilon=2.5, delta=1e-5))
    assert budget.check(event) == pytest.approx(Accountant().epsilon(event, 1e-5))
    with pytest.raises(BudgetError):
        budget.check(event, event)
    assert budget.num_releases == 0
