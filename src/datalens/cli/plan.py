"""``datalens privacy plan``: from a budget to steps or noise, and whether any signal is left."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import click

from datalens.cli.known import RECIPES
from datalens.cli.options import delta_option, json_option
from datalens.cli.output import Output
from datalens.cli.params import Kind, Number, Once, Text, Whole
from datalens.cli.plan_terms import Terms, assumed, voting_of
from datalens.cli.words import CONVERSIONS, IDEAL_SAMPLER
from datalens.errors import ConfigError
from datalens.privacy.accountant import AccountantKind
from datalens.privacy.calibration import epsilon_for, max_releases, noise_for, require_releases, tidy
from datalens.privacy.events import NoiseKind
from datalens.privacy.signal import Signal
from datalens.privacy.wording import delta_warning, rounded_up

_RECIPES = "the recipe's"
_TOP_K_TRIED = (50, 200, 400)
_STEPS_TRIED = (50, 150, 500)
_SHARDS_TRIED = (60, 15, 5)


@click.command(cls=Once)
@click.option("--epsilon", type=Number(0, above=True), required=True, help="The most that may be spent.")
@delta_option
@click.option("--accountant", type=Kind(AccountantKind), default=AccountantKind.EXACT, show_default="exact")
@click.option("--noise-stddev", type=Number(0, above=True), help="Given: how many steps it allows.")
@click.option("--num-steps", type=Whole(), help="Given: how little noise it allows.")
@click.option(
    "--recipe",
    type=Text(*RECIPES),
    default="quick",
    show_default=True,
    help="Whose settings hold where none is given here, as in `datalens train`.",
)
@click.option("--top-k", type=Whole(), show_default=_RECIPES, help="Votes of a teacher on an image.")
@click.option("--batch-size", type=Whole(), show_default=_RECIPES, help="Images voted on in one step.")
@click.option("--num-teachers", type=Whole(), show_default=_RECIPES, help="Whose votes are to be heard.")
@click.option(
    "--images-per-teacher",
    type=Whole(),
    show_default=_RECIPES,
    help="Most of them that one teacher votes on.",
)
@click.option(
    "--vote-threshold",
    type=Number(0),
    show_default="the recipe's, else the one that suits the noise",
    help="Fraction of the teachers that a noisy vote must reach.",
)
@click.option(
    "--group-size", type=Whole(), default=1, show_default=True, help="Records that one person may own."
)
@click.option("--records", type=Whole(), help="Which teachers and steps leave a signal with so many records.")
@click.option("--noise", type=Kind(NoiseKind), default=NoiseKind.ROUNDED, show_default=str(NoiseKind.ROUNDED))
@json_option
def plan(
    epsilon: float,
    delta: float,
    accountant: AccountantKind,
    noise_stddev: float | None,
    num_steps: int | None,
    recipe: str,
    top_k: int | None,
    num_teachers: int | None,
    records: int | None,
    json_target: str | None,
    **terms: Any,
) -> None:
    """From epsilon to the number of steps (--noise-stddev given) or the noise (--num-steps given, or the recipe's).

    What is not given is the recipe's, as in `datalens train`. Also says the chance that a coordinate on which all
    teachers agree comes out right, and wrong, and the share of coordinates that noise alone sets. A plan where
    right exceeds wrong by less than 0.05 is hopeless: refused with status 2, here and by `datalens train`. With
    --records: a table of teachers, top-k and steps, for those of them that are not given.

    \b
    datalens privacy plan --epsilon 1
    datalens privacy plan --epsilon 1 --noise-stddev 5000 --recipe mnist-paper
    datalens privacy plan --epsilon 1 --num-steps 149 --num-teachers 4000
    datalens privacy plan --epsilon 0.2 --records 60000 --top-k 100
    """
    output = Output(json_target)
    base = voting_of(recipe, epsilon)
    for name in ("batch_size", "images_per_teacher", "vote_threshold"):
        terms[name] = getattr(base, name) if terms[name] is None else terms[name]
    wanted = Terms(epsilon, delta, accountant, top_k=top_k or base.top_k, **terms)
    if wanted.noise is NoiseKind.NONE:
        raise ConfigError("--noise none: without noise there is no finite epsilon; choose a kind of noise")
    if records is None:
        num_teachers = num_teachers or base.num_teachers
        if noise_stddev is None:
            noise_stddev, num_steps = base.noise_stddev, num_steps or base.num_steps
    if records is not None and num_teachers is not None and num_teachers > records:
        raise ConfigError(
            f"--num-teachers {num_teachers}: {records} records leave teachers without any; take fewer"
        )
    if records is not None and (warning := delta_warning(delta, records)) is not None:
        output.warn(warning)
    inputs = {
        "epsilon": epsilon,
        "delta": delta,
        "accountant": str(accountant),
        "recipe": recipe,
        "noise_stddev": noise_stddev,
        "num_steps": num_steps,
        "top_k": top_k,
        "num_teachers": num_teachers,
        "records": records,
        **{name: str(value) if name == "noise" else value for name, value in terms.items()},
    }
    solved = None
    if noise_stddev is not None or num_steps is not None:
        solved = _solve(wanted, noise_stddev, num_steps)
    heard = None
    if solved is not None and num_teachers is not None:
        heard = wanted.signal(num_teachers, solved[0], require=True)
    rows = []
    if records is not None:
        rows = _choices(wanted, records, top_k, num_teachers, (noise_stddev, num_steps))
        _refuse_hopeless(rows, wanted, records)
    answer = {"inputs": inputs, "note": IDEAL_SAMPLER, "choices": rows}
    if solved is not None:
        answer |= {
            "noise_stddev": solved[0],
            "num_steps": solved[1],
            "epsilon_of_plan": _price(wanted, *solved),
        }
    output.finish(answer | ({} if heard is None else {"signal": heard.to_json()}))
    output.say(f"epsilon {epsilon:g}, delta {delta:g}, {accountant} accountant ({CONVERSIONS[accountant]})")
    output.say(assumed(recipe, wanted, num_teachers, None if rows and top_k is None else wanted.top_k))
    if solved is not None:
        stddev, steps = solved
        spent = rounded_up(_price(wanted, stddev, steps))
        output.say(f"{steps} steps with noise_stddev {stddev:.6g} cost epsilon {spent}")
    if heard is not None and num_teachers is not None:
        output.say(_signal_line(num_teachers, heard))
    if rows:
        _show_choices(output, rows)


def _price(wanted: Terms, noise_stddev: float, num_steps: int) -> float:
    return epsilon_for(wanted.event(noise_stddev), num_steps, wanted.delta, wanted.accountant)


def _refuse_hopeless(rows: list[dict[str, Any]], wanted: Terms, records: int) -> None:
    if all(row["hopeless"] for row in rows):
        raise ConfigError(
            f"epsilon = {wanted.epsilon:g} with {records} records: no choice of teachers, top-k and steps "
            f"leaves a signal at {wanted.batch_size} images a step; lower what you gave, or raise epsilon"
        )


def _solve(wanted: Terms, noise_stddev: float | None, num_steps: int | None) -> tuple[float, int]:
    """Noise and steps that fit the budget.

    Raises:
        ConfigError: both were given and cost too much.
        BudgetError: not even one step fits.
    """
    if noise_stddev is None:
        steps = num_steps or 1
        return tidy(noise_for(wanted.event(1.0), steps, *wanted.target)), steps
    event = wanted.event(noise_stddev)
    most = require_releases(event, *wanted.target)
    if num_steps is not None and num_steps > most:
        raise ConfigError(
            f"--num-steps {num_steps}: with noise_stddev {noise_stddev:g} epsilon {wanted.epsilon:g} pays "
            f"for {most} steps; use at most {most}, or leave --noise-stddev out to learn the least noise"
        )
    return noise_stddev, num_steps or most


def _choices(
    wanted: Terms,
    records: int,
    top_k: int | None,
    num_teachers: int | None,
    given: tuple[float | None, int | None],
) -> list[dict[str, Any]]:
    """Teachers, top-k, steps, noise and what is heard, for a few choices of each that is not given."""
    shards = [max(1, records // shard) for shard in _SHARDS_TRIED]
    teachers = sorted(set(shards)) if num_teachers is None else [num_teachers]
    terms = [replace(wanted, top_k=k) for k in (_TOP_K_TRIED if top_k is None else (top_k,))]
    solved = [(each, *pair) for each in terms for pair in _affordable(each, *given)]
    rows = []
    for count in teachers:
        for each, stddev, steps in solved:
            rows.append(
                {
                    "num_teachers": count,
                    "shard_size": records // count,
                    "top_k": each.top_k,
                    "num_steps": steps,
                    "noise_stddev": stddev,
                    **each.signal(count, stddev).to_json(),
                }
            )
    return rows


def _affordable(wanted: Terms, noise_stddev: float | None, num_steps: int | None) -> list[tuple[float, int]]:
    """Pairs of noise and steps that epsilon pays for; none where that noise is too little for the steps."""
    if noise_stddev is None:
        steps_tried = _STEPS_TRIED if num_steps is None else (num_steps,)
        unit = noise_for(wanted.event(1.0), 1, *wanted.target)  # noise grows with the root of the steps
        return [(tidy(unit * math.sqrt(steps) * (1 + 1e-9)), steps) for steps in steps_tried]
    most = max_releases(wanted.event(noise_stddev), *wanted.target)
    steps = most if num_steps is None else num_steps
    return [(noise_stddev, steps)] if 1 <= steps <= most else []


def _show_choices(output: Output, rows: list[dict[str, Any]]) -> None:
    output.table(
        ("teachers", "records each", "top-k", "steps", "noise", "right", "wrong", "set by noise", "verdict"),
        [
            (
                str(row["num_teachers"]),
                str(row["shard_size"]),
                str(row["top_k"]),
                str(row["num_steps"]),
                f"{row['noise_stddev']:.0f}",
                f"{row['right']:.3f}",
                f"{row['wrong']:.3f}",
                f"{row['from_noise']:.0%}",
                row["verdict"],
            )
            for row in rows
        ],
    )
    output.say(
        "right, wrong: chances of a coordinate on which all teachers agree; set by noise: where none votes"
    )


def _signal_line(num_teachers: int, signal: Signal) -> str:
    return (
        f"{signal.verdict}: {num_teachers} teachers that agree are heard right with chance {signal.right:.3f}, "
        f"wrong with {signal.wrong:.3f}; noise alone sets {signal.from_noise:.1%} of the coordinates"
    )
