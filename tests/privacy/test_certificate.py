"""What the certificate says, and what it refuses to say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_runs import resume, train

from datalens.audit.verify import verify_run
from datalens.errors import BudgetError, LedgerError, NotPrivateError
from datalens.privacy import promises
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.certificate import build_certificate, reasons_against
from datalens.privacy.data_card import data_card
from datalens.privacy.data_dependent import DataDependentCost
from datalens.privacy.events import GaussianEvent, NoiseKind, TuningEvent, times
from datalens.privacy.ledger import Ledger

EVENT = GaussianEvent(4.0, 40.0, 10)
CONFIG: dict[str, Any] = {
    "image_shape": [1, 8, 8],
    "classes": ["a", "b"],
    "classes_from_data": True,
    "data": "private",
    "config": {"privacy": {"noise": "rounded-gaussian", "insecure_seed": None}},
}


def _ledger(authorisation: Authorisation, releases: int) -> tuple[Ledger, Budget]:
    ledger = Ledger.in_memory({"authorisation": authorisation.to_json(), "adjacency": promises.ADD_OR_REMOVE})
    budget = Budget(ledger)
    for _ in range(releases):
        budget.charge(EVENT)
    return ledger, budget


def test_the_guarantee_is_what_was_authorised_also_after_an_early_stop() -> None:
    plan = Authorisation(2.0, 1e-5, num_releases=10, planned=EVENT)
    early = build_certificate(_ledger(plan, 3)[0], CONFIG, {}, {})
    whole = build_certificate(_ledger(plan, 10)[0], CONFIG, {}, {})
    assert early["guarantee"] == whole["guarantee"]
    assert early["spent"]["epsilon"] < whole["spent"]["epsilon"] == whole["guarantee"]["epsilon"]
    others = whole["guarantee"]["under_other_accountants"]
    assert list(others) == list(AccountantKind)
    assert others["exact"] < others["rdp"] < others["rdp-classic"]


@pytest.mark.parametrize("releases", [0, 3])
def test_what_promises_nothing_names_no_finite_cost_whatever_was_charged(releases: int) -> None:
    ledger, budget = _ledger(Authorisation.not_private(), releases)
    certificate = build_certificate(ledger, CONFIG, {}, {})
    spent, guarantee = certificate["spent"], certificate["guarantee"]
    assert budget.spent_epsilon() == float("inf")
    assert (spent["epsilon"], spent["mu"], guarantee["epsilon"]) == (None, None, None)
    for found in (spent, guarantee):
        assert found["under_other_accountants"] == dict.fromkeys(AccountantKind)


def test_a_later_increase_is_listed_and_called_unproved() -> None:
    ledger, budget = _ledger(Authorisation(1.0, 1e-5), 1)
    budget.authorise(Authorisation(3.0, 1e-5), "more")
    certificate = build_certificate(ledger, CONFIG, {}, {})
    assert certificate["guarantee"]["epsilon"] == 3.0
    assert not certificate["guarantee"]["ceiling_fixed_beforehand"]
    assert certificate["later_authorisations"][0]["epsilon"] == 3.0
    assert promises.RAISED_TEXT in data_card(certificate)


def test_an_increase_before_anything_was_released_is_no_such_thing() -> None:
    ledger, budget = _ledger(Authorisation(1.0, 1e-5), 0)
    budget.authorise(Authorisation(3.0, 1e-5), "more")
    certificate = build_certificate(ledger, CONFIG, {}, {})
    assert certificate["guarantee"]["epsilon"] == 3.0
    assert certificate["guarantee"]["ceiling_fixed_beforehand"]
    assert certificate["later_authorisations"] == []


def test_lowering_the_ceiling_afterwards_promises_no_less() -> None:
    ledger, budget = _ledger(Authorisation(3.0, 1e-5), 1)
    budget.authorise(Authorisation(1.0, 1e-5), "enough")
    assert build_certificate(ledger, CONFIG, {}, {})["guarantee"]["epsilon"] == 3.0
    room = budget.remaining_releases(EVENT)
    for _ in range(room):
        budget.charge(EVENT)
    with pytest.raises(BudgetError):
        budget.charge(EVENT)
    assert budget.spent_epsilon() <= 1.0


def test_more_released_than_authorised_has_no_certificate() -> None:
    ledger, _ = _ledger(Authorisation(0.5, 1e-5), 1)
    for _ in range(50):
        ledger.charge(EVENT)
    with pytest.raises(LedgerError, match="more was released"):
        build_certificate(ledger, CONFIG, {}, {})


def test_what_a_cut_off_line_cost_is_said(tmp_path: Path) -> None:
    plan = Authorisation(2.0, 1e-5, num_releases=2, planned=EVENT)
    with Ledger.create(tmp_path / "l", {"authorisation": plan.to_json()}) as ledger:
        for _ in range(2):
            Budget(ledger).charge(EVENT)
    with (tmp_path / "l").open("ab") as file:
        file.write(b'{"body":')
    with Ledger.open(tmp_path / "l") as ledger:
        certificate = build_certificate(ledger, CONFIG, {}, {})
    assert certificate["guarantee"]["epsilon"] == Accountant().epsilon([EVENT] * 3, 1e-5)
    assert certificate["guarantee"]["cautions"] == [promises.CUT_OFF_TEXT]
    assert not certificate["guarantee"]["ceiling_fixed_beforehand"]
    assert certificate["spent"]["cut_off_lines_charged"] == 1


@pytest.mark.parametrize("place", ["config", "files", "environment", "nested"])
def test_a_data_dependent_cost_is_refused_wherever_it_hides(place: str) -> None:
    cost = DataDependentCost(0.1, 1e-5, 2.0, 1.0)
    ledger, _ = _ledger(Authorisation(2.0, 1e-5), 1)
    values: dict[str, dict[str, Any]] = {"config": dict(CONFIG), "files": {}, "environment": {}}
    if place == "nested":
        values["config"]["costs"] = [{"x": (cost,)}]
    else:
        values[place]["cost"] = cost
    with pytest.raises(NotPrivateError, match="may not be published"):
        build_certificate(ledger, values["config"], values["files"], values["environment"])


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ({}, []),
        ({"privacy__insecure_seed": 1}, [promises.INSECURE_SEED]),
        ({"privacy__noise": "continuous-gaussian"}, [promises.CONTINUOUS]),
        ({"privacy__noise": "none"}, [promises.NO_NOISE]),
        (
            {"privacy__noise": "continuous-gaussian", "privacy__insecure_seed": 1},
            [promises.INSECURE_SEED, promises.CONTINUOUS],
        ),
    ],
)
def test_what_is_not_fit_for_publication_says_so_everywhere(
    tmp_path: Path, changes: dict[str, Any], reasons: list[str]
) -> None:
    train(tmp_path / "run", steps=1, **changes)
    name = "release-NOT-FOR-PUBLICATION" if reasons else "release"
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["private", name]
    certificate = json.loads((tmp_path / "run" / name / "certificate.json").read_text())
    page = (tmp_path / "run" / name / "README.md").read_text()
    assert f"folder `{name}`" in page
    assert certificate["not_fit_because"] == reasons
    assert certificate["fit_for_publication"] is (not reasons)
    assert ("NOT FIT FOR PUBLICATION" in page) is bool(reasons)
    assert certificate["guarantee"]["adjacency"] == (
        promises.BLANKED if "privacy__insecure_seed" in changes else promises.ADD_OR_REMOVE
    )
    if promises.NO_NOISE in reasons:
        assert certificate["guarantee"]["epsilon"] is None
        assert "**Epsilon" not in page


@pytest.mark.parametrize(
    ("facts", "labels_are_public", "why"),
    [
        ({"classes_from_data": True}, True, promises.CLASSES_FOUND_AND_DECLARED),
        ({"classes_from_data": True}, False, promises.CLASSES_FOUND),
        ({"classes_from_data": False}, False, promises.CLASSES_DECLARED),
        ({"classes_from_data": False, "data": "mnist"}, False, promises.CLASSES_PUBLISHED),
        ({"classes_from_data": True, "data": "flowers.npz"}, False, promises.CLASSES_PUBLISHED),
    ],
)
def test_the_page_says_why_the_class_list_is_no_secret(
    facts: dict[str, Any], labels_are_public: bool, why: str
) -> None:
    """Only a list that somebody declared is called declared."""
    ledger, _ = _ledger(Authorisation(2.0, 1e-5), 1)
    privacy = {**CONFIG["config"]["privacy"], "labels_are_public": labels_are_public}
    certificate = build_certificate(ledger, {**CONFIG, **facts, "config": {"privacy": privacy}}, {}, {})
    assert certificate["assumed_public"]["classes_were_read_off_the_data"] is facts["classes_from_data"]
    assert certificate["assumed_public"]["class_list"] == why
    page = data_card(certificate)
    assert f"the list of classes ({why})" in page
    assert ("declared" in page) is ("declared" in why)


def test_discrete_noise_is_said_to_be_charged_by_rdp() -> None:
    event = GaussianEvent(4.0, 40.0, 10, NoiseKind.DISCRETE)
    plan = Authorisation(2.0, 1e-5, num_releases=3, planned=event)
    certificate = build_certificate(_ledger(plan, 0)[0], CONFIG, {}, {})
    assert (certificate["guarantee"]["accountant"], certificate["guarantee"]["accountant_used"]) == (
        "exact",
        "rdp",
    )


def test_where_only_a_ceiling_is_known_the_others_speak_of_what_was_spent() -> None:
    ledger, budget = _ledger(Authorisation(2.0, 1e-5), 3)
    guarantee = build_certificate(ledger, CONFIG, {}, {})["guarantee"]
    assert guarantee["under_other_accountants"]["exact"] == budget.spent_epsilon() < guarantee["epsilon"]
    assert guarantee["other_accountants_speak"] == promises.OF_SPENT
    assert promises.OF_SPENT in data_card(build_certificate(ledger, CONFIG, {}, {}))


def test_a_plan_with_a_score_is_known_to_every_accountant() -> None:
    score = GaussianEvent(1.0, 30.0, 1)
    ceiling = Accountant().epsilon([times(EVENT, 10), score], 1e-5)
    header = {
        "authorisation": Authorisation(ceiling, 1e-5).to_json(),
        "planned_events": [times(EVENT, 10).to_json(), score.to_json()],
    }
    ledger = Ledger.in_memory(header)
    Budget(ledger).charge(EVENT)
    guarantee = build_certificate(ledger, CONFIG, {}, {})["guarantee"]
    others = guarantee["under_other_accountants"]
    assert others["exact"] == guarantee["epsilon"] < others["rdp"] < others["rdp-classic"]
    assert guarantee["other_accountants_speak"] == promises.OF_PLAN
    Budget(ledger).authorise(Authorisation(9.0, 1e-5), "more")  # after looking: the plan is one no more
    raised = build_certificate(ledger, CONFIG, {}, {})["guarantee"]
    assert raised["other_accountants_speak"] == promises.OF_SPENT
    assert raised["under_other_accountants"]["exact"] < others["exact"]


def test_a_plan_that_costs_more_than_its_ceiling_has_no_certificate() -> None:
    header = {
        "authorisation": Authorisation(0.5, 1e-5).to_json(),
        "planned_events": [times(EVENT, 10).to_json()],
    }
    with pytest.raises(LedgerError, match="more was planned"):
        build_certificate(Ledger.in_memory(header), CONFIG, {}, {})


def test_a_group_of_g_records_costs_mu_times_g() -> None:
    from small_runs import small_config

    from datalens.training.plan import plan_releases

    alone = plan_releases(small_config(voting__noise_stddev=200.0, privacy__epsilon=9.0), 64).event
    group = plan_releases(
        small_config(voting__noise_stddev=200.0, privacy__epsilon=9.0, privacy__group_size=3), 64
    ).event
    assert group.mu == pytest.approx(3 * alone.mu, rel=1e-15)


def test_the_page_says_votes_sensitivity_versions_and_hashes_too(tmp_path: Path) -> None:
    train(tmp_path / "run", steps=1)
    release = tmp_path / "run" / "release"
    certificate = json.loads((release / "certificate.json").read_bytes())
    page = " ".join((release / "README.md").read_text().split())
    assert "at most 5 votes" in page
    assert f"by at most {certificate['noise']['sensitivities'][0]:g}" in page
    version = certificate["environment"]["datalens"].replace("+", "\\+")  # as Markdown writes it
    assert f"datalens {version}, python" in page
    assert certificate["ledger"]["head"] in page
    assert set(certificate["files"]) >= {"config.json", "directions.bin", "generator.safetensors"}
    assert all(digest in page for digest in certificate["files"].values())


def test_class_names_mean_nothing_to_markdown() -> None:
    ledger, _ = _ledger(Authorisation(2.0, 1e-5), 1)
    names = ["<script>x</script>", "[a](b)", "plain name"]
    page = data_card(build_certificate(ledger, {**CONFIG, "classes": names}, {}, {}))
    assert "<script>" not in page and "[a](b)" not in page
    assert r"\<script\>x\</script\>, \[a\]\(b\), plain name" in page


def test_a_run_stopped_before_its_first_step_says_that_nothing_was_released(tmp_path: Path) -> None:
    train(tmp_path / "run", steps=0)
    page = (tmp_path / "run" / "release" / "README.md").read_text()
    assert "Nothing has been released yet" in page
    assert "0 times" not in page and "none" not in page and "at most 0" not in page
    assert verify_run(tmp_path / "run").differences == []


def test_votes_of_changed_noise_are_counted_apart(tmp_path: Path) -> None:
    first = train(tmp_path / "run", steps=3)
    resume(tmp_path / "run", noise_stddev=60.0)
    page = (tmp_path / "run" / "release" / "README.md").read_text()
    assert (
        f"3 times with random noise of {first.facts.noise_stddev:g} votes on every pixel and 5 times " in page
    )
    assert verify_run(tmp_path / "run").differences == []


@pytest.mark.parametrize(
    ("epsilon", "factor", "belief", "is_weak"),
    [
        (0.1, "1.11 times", "at most 52.5% sure", False),
        (2.0, "7.39 times", "at most 88.1% sure", False),
        (5.0, "149 times", "at most 99.4% sure", False),
        (8.0, "2,981 times", "at most 99.97% sure", True),
        (20.0, "485,165,196 times", "at most 99.9999998% sure", True),
        (50.0, "e^50 times", "can be all but completely sure", True),
    ],
)
def test_large_factors_are_readable_and_called_weak(
    epsilon: float, factor: str, belief: str, is_weak: bool
) -> None:
    ledger, _ = _ledger(Authorisation(epsilon, 1e-5), 0)
    certificate = build_certificate(ledger, CONFIG, {}, {})
    page = data_card(certificate)
    assert f"at most {factor} as likely" in page
    assert belief in page
    assert (promises.WEAK_TEXT in certificate["guarantee"]["cautions"]) is is_weak
    assert (promises.WEAK_TEXT in page) is is_weak


def test_a_weak_promise_is_verified_with_its_caution(tmp_path: Path) -> None:
    train(tmp_path / "run", steps=1, privacy__epsilon=8.0)
    found = verify_run(tmp_path / "run")
    assert found.differences == []
    assert found.certificate["guarantee"]["cautions"] == [promises.WEAK_TEXT]


def test_a_ledger_that_authorises_nothing_has_no_certificate() -> None:
    with pytest.raises(LedgerError, match="ledger in memory authorises nothing"):
        build_certificate(Ledger.in_memory(), CONFIG, {}, {})


def test_authorisations_at_different_delta_have_no_single_guarantee() -> None:
    ledger, budget = _ledger(Authorisation(2.0, 1e-5), 1)
    budget.authorise(Authorisation(2.0, 1e-6))
    with pytest.raises(LedgerError, match="authorisations differ in delta or accountant"):
        build_certificate(ledger, CONFIG, {}, {})


@pytest.mark.parametrize(
    ("epsilon", "weak"), [(promises.WEAK_ABOVE, False), (promises.WEAK_ABOVE * 1.01, True)]
)
def test_a_weak_promise_is_called_weak(epsilon: float, weak: bool) -> None:
    certificate = build_certificate(_ledger(Authorisation(epsilon, 1e-5), 1)[0], CONFIG, {}, {})
    assert (promises.WEAK_TEXT in certificate["guarantee"]["cautions"]) is weak


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"as_published": True}, promises.AS_PUBLISHED),
        ({"noise": "none"}, promises.NO_NOISE),
        ({"noise": "continuous-gaussian"}, promises.CONTINUOUS),
        ({"insecure_seed": 0}, promises.INSECURE_SEED),
        ({"insecure_seed": None, "noise": "rounded-gaussian", "as_published": False}, None),
    ],
)
def test_settings_alone_make_a_run_unfit(settings: dict[str, Any], reason: str | None) -> None:
    found = reasons_against([EVENT], {"config": {"privacy": settings}})
    assert found == ([] if reason is None else [reason])


def test_a_tuning_without_its_tries_is_a_damaged_header() -> None:
    ledger = Ledger.in_memory({"authorisation": Authorisation(9.0, 1e-5).to_json()})
    Budget(ledger).charge(TuningEvent(0.1, 3.0))
    with_tries = build_certificate(_with_chosen(ledger, [EVENT.to_json()]), CONFIG, {}, {})
    assert [item["what"] for item in with_tries["noise"]["releases"]] == ["votes"]
    assert with_tries["noise"]["sensitivities"] == [EVENT.sensitivity]
    with pytest.raises(LedgerError, match="names no tries of its own"):
        build_certificate(_with_chosen(ledger, [TuningEvent(0.1, 3.0).to_json()]), CONFIG, {}, {})


def _with_chosen(ledger: Ledger, chosen: list[dict[str, Any]]) -> Ledger:
    """The same releases under a header that names the best try's."""
    again = Ledger.in_memory({**ledger.header, "tuning": {"chosen": chosen}})
    Budget(again, Authorisation(9.0, 1e-5))
    for event in ledger.events():
        again.charge(event)
    return again


def test_one_record_of_a_group_moves_a_tuning_as_much_less() -> None:
    tuning = TuningEvent(0.4, 3.0)
    plan = Authorisation(9.0, 1e-5, num_releases=1, planned=tuning)
    mechanism = {"group_size": 4, "name": "topagg"}
    header = {
        "authorisation": plan.to_json(),
        "mechanism": mechanism,
        "tuning": {"chosen": [EVENT.to_json()]},
    }
    guarantee = build_certificate(_charged(header, tuning), CONFIG, {}, {})["guarantee"]
    accountant = Accountant(plan.accountant)
    assert guarantee["epsilon_for_one_record"] == accountant.epsilon(TuningEvent(0.1, 3.0), 1e-5)
    assert guarantee["epsilon"] == accountant.epsilon(tuning, 1e-5)


def _charged(header: dict[str, Any], event: TuningEvent) -> Ledger:
    ledger = Ledger.in_memory(header)
    Budget(ledger).charge(event)
    return ledger
