"""``datalens privacy``: the arithmetic against the published anchors, and its refusals."""

from __future__ import annotations

import json

import pytest

from datalens.cli.settings import build_config
from datalens.privacy.signal import best_threshold, signal_of
from datalens.training.plan import plan_releases, plan_signal


def answer_of(call, *words: object) -> dict:
    answer = call("privacy", *words, "--json", "-")
    assert answer.status == 0, answer.err
    return json.loads(answer.out)


def test_case_r34_cost_of_1000_queries(call) -> None:
    words = ("cost", "--top-k", 200, "--noise-stddev", 5000, "--queries", 1000, "--delta", "1e-5")
    text = call("privacy", *words)
    assert text.status == 0
    for expected in ("0.6422", "0.7038", "0.8744", "queries 1000", "top_k 200", "noise_stddev 5000", "1e-05"):
        assert expected in text.out
    found = answer_of(call, *words)
    assert {name: round(value, 4) for name, value in found["epsilon"].items()} == {
        "exact": 0.6422,
        "rdp": 0.7038,
        "rdp-classic": 0.8744,
    }
    assert found["inputs"]["queries"] == 1000
    assert set(found["conversion"]) == set(found["epsilon"])


def test_steps_of_a_batch_cost_what_their_images_cost(call) -> None:
    terms = ("--top-k", 200, "--noise-stddev", 5000)
    by_steps = answer_of(call, "cost", *terms, "--num-steps", 40, "--batch-size", 25)
    assert by_steps["epsilon"] == answer_of(call, "cost", *terms, "--queries", 1000)["epsilon"]


def test_discrete_noise_is_charged_by_renyi_and_says_so(call) -> None:
    found = answer_of(call, "cost", "--noise-stddev", 5000, "--queries", 1000, "--noise", "discrete")
    assert found["epsilon"]["exact"] == found["epsilon"]["rdp"]
    assert "Renyi" in found["conversion"]["exact"]


def test_plan_from_noise_to_steps_and_back(call) -> None:
    steps = answer_of(call, "plan", "--epsilon", 1, "--noise-stddev", 5000)
    assert steps["num_steps"] == 149
    assert steps["epsilon_of_plan"] <= 1
    noise = answer_of(call, "plan", "--epsilon", 1, "--num-steps", 149)
    assert 4980 < noise["noise_stddev"] < 5000
    assert noise["epsilon_of_plan"] <= 1
    assert (
        answer_of(call, "plan", "--epsilon", 1, "--noise-stddev", 5000, "--num-steps", 86)["num_steps"] == 86
    )


def test_plan_says_what_is_heard(call) -> None:
    words = ("plan", "--epsilon", 1, "--noise-stddev", 5000, "--recipe", "mnist-paper")
    signal = answer_of(call, *words)["signal"]
    assert signal["right"] == pytest.approx(0.595, abs=1e-3)
    assert signal["wrong"] == pytest.approx(0.087, abs=1e-3)
    assert "heard right with chance 0.595, wrong with 0.087" in call("privacy", *words).out


def test_a_cap_on_images_per_teacher_lowers_noise_and_votes(call) -> None:
    words = ("plan", "--epsilon", 1, "--num-steps", 149, "--num-teachers", 4000, "--batch-size", 16)
    whole, capped = (answer_of(call, *words, "--images-per-teacher", most) for most in (16, 4))
    assert capped["noise_stddev"] == pytest.approx(whole["noise_stddev"] / 2, rel=1e-3)
    assert capped["signal"]["margin"] < whole["signal"]["margin"]


def test_plan_for_records_lists_choices(call) -> None:
    rows = answer_of(call, "plan", "--epsilon", 1, "--records", 60000)["choices"]
    assert {row["num_teachers"] for row in rows} == {1000, 4000, 12000}
    assert len({row["top_k"] for row in rows}) > 1
    assert len({row["num_steps"] for row in rows}) > 1
    for row in rows:
        same = [
            "cost", "--top-k", row["top_k"], "--noise-stddev", row["noise_stddev"],
            "--num-steps", row["num_steps"], "--batch-size", 15,
        ]  # fmt: skip
        assert answer_of(call, *same)["epsilon"]["exact"] == pytest.approx(1, rel=2e-3)
    only = answer_of(
        call, "plan", "--epsilon", 1, "--records", 60000, "--num-teachers", 4000, "--num-steps", 99
    )
    assert {(row["num_teachers"], row["num_steps"]) for row in only["choices"]} == {(4000, 99)}
    table = call("privacy", "plan", "--epsilon", 1, "--records", 60000).out
    assert "teachers  records each" in table


def test_delta_too_large_for_the_records_is_a_warning(call) -> None:
    answer = call("privacy", "plan", "--epsilon", 1, "--records", 200000)
    assert answer.status == 0
    assert answer.err.startswith("warning: delta=1e-05 is not below 1/num_records")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cost", "--queries", 9], "--noise-stddev is missing"),
        (["cost", "--noise-stddev", 9], "give --queries, or --num-steps and --batch-size"),
        (["cost", "--noise-stddev", 9, "--num-steps", 3], "give --queries, or --num-steps and --batch-size"),
        (["cost", "--noise-stddev", 9, "--num-steps", 3, "--queries", 3], "give the one or the others"),
        (["cost", "--noise-stddev", 0, "--queries", 3], "--noise-stddev: 0 is out of range"),
        (["cost", "--noise-stddev", "nan", "--queries", 3], "--noise-stddev: 'nan' is not a number"),
        (["cost", "--noise-stddev", 9, "--queries", 0], "--queries: 0 is too small"),
        (["cost", "--noise-stddev", 9, "--queries", 3, "--delta", 1], "--delta: 1 is out of range"),
        (["cost", "--noise-stddev", 9, "--queries", 3, "--delta", 0], "--delta: 0 is out of range"),
        (["cost", "--noise-stddev", 9, "--queries", 3, "--noise", "none"], "no finite epsilon"),
        (["plan", "--noise-stddev", 9], "--epsilon is missing"),
        (["plan", "--epsilon", 1, "--recipe", "slow"], "recipe 'slow' is unknown; known: quick"),
        (["plan", "--epsilon", -1, "--num-steps", 9], "--epsilon: -1 is out of range"),
        (["plan", "--epsilon", 1, "--noise-stddev", 5], "use epsilon "),
        (["plan", "--epsilon", 1, "--noise-stddev", 5000, "--num-steps", 150], "use at most 149"),
        (["plan", "--epsilon", 1, "--num-steps", 149, "--num-teachers", 10], "leaves no signal"),
        (["plan", "--epsilon", 0.001, "--records", 600], "no choice of teachers, top-k and steps"),
        (["plan", "--epsilon", 1, "--records", 600, "--num-teachers", 601], "take fewer"),
    ],
)
def test_mistakes(call, tmp_path, words, said) -> None:
    target = tmp_path / "answer.json"
    assert said in call("privacy", *words, "--json", target).complaint
    assert list(tmp_path.iterdir()) == []


def test_a_person_with_several_records_and_a_threshold_above_all_votes(call) -> None:
    words = ("privacy", "plan", "--epsilon", 1, "--num-steps", 9, "--num-teachers", 4000, "--json", "-")
    one = json.loads(call(*words).out)
    three = json.loads(call(*words, "--group-size", 3, "--vote-threshold", 1.5).out)
    assert three["noise_stddev"] == pytest.approx(3 * one["noise_stddev"], rel=1e-3)
    assert three["inputs"]["group_size"] == 3


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        ("quick", {}),
        ("quick", {"num_steps": 60, "num_teachers": 2000}),
        ("quick", {"batch_size": 15, "top_k": 100, "noise_stddev": 6000.0}),
        ("mnist-paper", {"num_steps": 50}),
        ("shapes-quick", {"images_per_teacher": 4}),
    ],
)
def test_plan_and_train_agree(call, recipe: str, options: dict) -> None:
    """The same recipe and options: the same noise, chances and verdict."""
    config = build_config(recipe, None, {"epsilon": 1.0, **options})
    trained = plan_releases(config, 784)
    words = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), value)]
    found = answer_of(call, "plan", "--epsilon", 1, "--recipe", recipe, *words)
    assert found["noise_stddev"] == trained.noise_stddev
    assert found["signal"] == plan_signal(config, trained).to_json()
    if "noise_stddev" not in options:
        assert found["num_steps"] == trained.num_steps
    if "num_steps" in options:
        row = answer_of(call, "plan", "--epsilon", 1, "--recipe", recipe, *words, "--records", 60000)[
            "choices"
        ][0]
        voting = config.voting
        alone = signal_of(
            row["num_teachers"],
            row["noise_stddev"],
            voting.vote_threshold or best_threshold(row["num_teachers"], row["noise_stddev"]),
            share_voting=voting.images_voted / voting.batch_size,
        )
        assert row["right"] == alone.right


def test_plan_says_what_it_assumes_in_one_line(call) -> None:
    said = call("privacy", "plan", "--epsilon", 1).out.splitlines()
    assert said[1] == (
        "assumed (recipe quick and your options): 4000 teachers, top_k 200, 30 images a step (at most 15 for each "
        "teacher), vote threshold the best, rounded-gaussian noise"
    )
    table = call("privacy", "plan", "--epsilon", 1, "--records", 60000).out.splitlines()
    assert table[1].startswith("assumed (recipe quick and your options): 30 images a step (at most 15 ")
