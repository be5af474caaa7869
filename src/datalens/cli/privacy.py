"""``datalens privacy``: what settings cost and what a budget buys, from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import click

from datalens.cli.options import json_option
from datalens.cli.output import Output
from datalens.cli.params import Kind, Number, Once, Whole
from datalens.errors import ConfigError
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.budget import delta_warning, rounded_up
from datalens.privacy.calibration import epsilon_for, noise_for, require_releases
from datalens.privacy.events import GaussianEvent, NoiseKind
from datalens.privacy.signal import Signal, require_signal, signal_of

CONVERSIONS = {
    AccountantKind.EXACT: "exact curve of composed Gaussians",
    AccountantKind.RDP: "Renyi, tight conversion, best order",
    AccountantKind.CLASSIC: "Renyi, the paper's conversion, best order",
}
_IDEAL = "for an ideal sampler; the shipped one adds less than 1e-9, and a run's ledger holds how much"
_STEPS_TRIED = (25, 50, 100, 149, 300, 1000)
_SHARDS_TRIED = (60, 30, 15, 5)

_top_k = click.option(
    "--top-k", type=Whole(), default=200, show_default=True, help="Votes of a teacher on an image."
)
_delta = click.option(
    "--delta", type=Number(0, 1, above=True, below=True), default=1e-5, show_default="1e-05"
)


@click.group(short_help="Cost and plan, without any data.")
def privacy() -> None:
    """Arithmetic of the guarantee. No data are read and nothing is spent.

    \b
    datalens privacy cost --top-k 200 --noise-stddev 5000 --queries 1000 --delta 1e-5
    datalens privacy plan --epsilon 1 --noise-stddev 5000 --num-teachers 4000
    datalens privacy plan --epsilon 1 --records 60000
    """


@privacy.command(cls=Once)
@_top_k
@click.option(
    "--noise-stddev", type=Number(0, above=True), required=True, help="On each coordinate, in votes."
)
@click.option("--queries", type=Whole(), help="Generated images voted on, all steps together.")
@click.option("--num-steps", type=Whole(), help="Instead of --queries: generator steps ...")
@click.option("--batch-size", type=Whole(), help="... of so many images each.")
@_delta
@click.option("--noise", type=Kind(NoiseKind), default=NoiseKind.ROUNDED, show_default=str(NoiseKind.ROUNDED))
@json_option
def cost(
    top_k: int,
    noise_stddev: float,
    queries: int | None,
    num_steps: int | None,
    batch_size: int | None,
    delta: float,
    noise: NoiseKind,
    json_target: str | None,
) -> None:
    """Epsilon of so many queries under every accountant.

    A query is one image on which all teachers vote. One record changes one teacher, which moves the votes on an
    image by at most 2 * sqrt(top_k); a step of m images costs what m queries cost.

    \b
    datalens privacy cost --top-k 200 --noise-stddev 5000 --queries 1000 --delta 1e-5
    datalens privacy cost --top-k 200 --noise-stddev 5000 --num-steps 149 --batch-size 15
    """
    output = Output(json_target)
    if noise is NoiseKind.NONE:
        raise ConfigError("--noise none: without noise there is no finite epsilon; choose a kind of noise")
    asked = _queries(queries, num_steps, batch_size)
    event = GaussianEvent(2 * math.sqrt(top_k), noise_stddev, 1, noise, count=asked)
    found = [
        (kind, Accountant(kind).used_for(event), Accountant(kind).epsilon(event, delta))
        for kind in AccountantKind
    ]
    inputs = {"top_k": top_k, "noise_stddev": noise_stddev, "queries": asked, "num_steps": num_steps,
              "batch_size": batch_size, "delta": delta, "noise": str(noise)}  # fmt: skip
    output.finish(
        {
            "inputs": inputs,
            "sensitivity": event.sensitivity,
            "mu": event.mu * math.sqrt(asked),
            "adjacency": "add-or-remove-one, and replace-one",
            "epsilon": {str(kind): epsilon for kind, _, epsilon in found},
            "conversion": {str(kind): CONVERSIONS[used] for kind, used, _ in found},
            "note": _IDEAL,
        }
    )
    parts = "" if num_steps is None else f" ({num_steps} steps of {batch_size} images)"
    output.say(
        f"top_k {top_k}, noise_stddev {noise_stddev:g} ({noise}), queries {asked}{parts}, delta {delta:g}"
    )
    output.say(
        f"sensitivity 2 sqrt(top_k) = {event.sensitivity:.6g} a query, mu of all queries "
        f"{event.mu * math.sqrt(asked):.6g}; one record added, removed or replaced"
    )
    rows = [(str(kind), f"{epsilon:.4g}", CONVERSIONS[used]) for kind, used, epsilon in found]
    output.table(("accountant", "epsilon", "conversion"), rows)
    output.say(_IDEAL)


@dataclass(frozen=True)
class _Terms:
    """What a plan must keep to."""

    epsilon: float
    delta: float
    accountant: AccountantKind
    noise: NoiseKind
    top_k: int
    batch_size: int
    vote_threshold: float

    def event(self, noise_stddev: float) -> GaussianEvent:
        return GaussianEvent(2 * math.sqrt(self.top_k * self.batch_size), noise_stddev, 1, self.noise)

    @property
    def target(self) -> tuple[float, float, AccountantKind]:
        return self.epsilon, self.delta, self.accountant


@privacy.command(cls=Once)
@click.option("--epsilon", type=Number(0, above=True), required=True, help="The most that may be spent.")
@_delta
@click.option("--accountant", type=Kind(AccountantKind), default=AccountantKind.EXACT, show_default="exact")
@click.option("--noise-stddev", type=Number(0, above=True), help="Given: how many steps it allows.")
@click.option("--num-steps", type=Whole(), help="Given: how little noise it allows.")
@_top_k
@click.option(
    "--batch-size", type=Whole(), default=15, show_default=True, help="Images voted on in one step."
)
@click.option("--num-teachers", type=Whole(), help="Also say what of their votes survives the noise.")
@click.option("--vote-threshold", type=Number(0, 1), default=0.7, show_default=True)
@click.option("--records", type=Whole(), help="Which teachers and steps leave a signal with so many records.")
@click.option("--noise", type=Kind(NoiseKind), default=NoiseKind.ROUNDED, show_default=str(NoiseKind.ROUNDED))
@json_option
def plan(
    epsilon: float,
    delta: float,
    accountant: AccountantKind,
    noise_stddev: float | None,
    num_steps: int | None,
    num_teachers: int | None,
    records: int | None,
    json_target: str | None,
    **terms: Any,
) -> None:
    """From epsilon to the number of steps (--noise-stddev given) or the noise (--num-steps given).

    With --num-teachers: the chance that a coordinate on which all teachers agree comes out right, and wrong, and
    the share of coordinates that noise alone sets. A plan where right exceeds wrong by less than 0.05 is
    hopeless: refused with status 2, here and by `datalens train`. With --records: a table of teachers and steps.

    \b
    datalens privacy plan --epsilon 1 --noise-stddev 5000 --num-teachers 4000
    datalens privacy plan --epsilon 1 --num-steps 149 --num-teachers 4000
    datalens privacy plan --epsilon 0.2 --records 60000 --top-k 100
    """
    output = Output(json_target)
    wanted = _Terms(epsilon, delta, accountant, **terms)
    if wanted.noise is NoiseKind.NONE:
        raise ConfigError("--noise none: without noise there is no finite epsilon; choose a kind of noise")
    if noise_stddev is None and num_steps is None and records is None:
        raise ConfigError(
            "--noise-stddev, --num-steps and --records are all missing: give at least one of them"
        )
    if records is not None and num_teachers is not None and num_teachers > records:
        raise ConfigError(
            f"--num-teachers {num_teachers}: {records} records leave teachers without any; take fewer"
        )
    if records is not None and (warning := delta_warning(delta, records)) is not None:
        output.warn(warning)
    answer: dict[str, Any] = {
        "inputs": {"epsilon": epsilon, "delta": delta, "accountant": str(accountant), "noise_stddev": noise_stddev,
                   "num_steps": num_steps, "num_teachers": num_teachers, "records": records,
                   **{name: str(value) if name == "noise" else value for name, value in terms.items()}},
        "note": _IDEAL,
    }  # fmt: skip
    lines = [f"epsilon {epsilon:g}, delta {delta:g}, {accountant} accountant ({CONVERSIONS[accountant]})"]
    lines.append(f"top_k {wanted.top_k}, {wanted.batch_size} images a step, {wanted.noise} noise")
    if noise_stddev is not None or num_steps is not None:
        stddev, steps = _solve(wanted, noise_stddev, num_steps)
        spent = epsilon_for(wanted.event(stddev), steps, delta, accountant)
        answer |= {"noise_stddev": stddev, "num_steps": steps, "epsilon_of_plan": spent}
        lines.append(f"{steps} steps with noise_stddev {stddev:.6g} cost epsilon {rounded_up(spent)}")
        if num_teachers is not None:
            signal = require_signal(num_teachers, stddev, wanted.vote_threshold)
            answer["signal"] = signal.to_json()
            lines.append(_signal_line(num_teachers, signal))
    rows = [] if records is None else _choices(wanted, records, num_teachers, noise_stddev, num_steps)
    if records is not None:
        answer["choices"] = rows
        if all(row["hopeless"] for row in rows):
            raise ConfigError(
                f"epsilon = {epsilon:g} with {records} records: no choice of teachers and steps leaves a signal at "
                f"top_k = {wanted.top_k} and {wanted.batch_size} images a step; lower these, or raise epsilon"
            )
    output.finish(answer)
    for line in lines:
        output.say(line)
    if rows:
        _show_choices(output, rows)


def _queries(queries: int | None, num_steps: int | None, batch_size: int | None) -> int:
    if queries is not None:
        if num_steps is not None or batch_size is not None:
            raise ConfigError(
                "--queries stands instead of --num-steps and --batch-size: give the one or the others"
            )
        return queries
    if num_steps is None or batch_size is None:
        raise ConfigError("the number of queries is missing: give --queries, or --num-steps and --batch-size")
    return num_steps * batch_size


def _solve(wanted: _Terms, noise_stddev: float | None, num_steps: int | None) -> tuple[float, int]:
    """Noise and steps that fit the budget.

    Raises:
        ConfigError: both were given and cost too much.
        BudgetError: not even one step fits.
    """
    if noise_stddev is None:
        steps = num_steps or 1
        return noise_for(wanted.event(1.0), steps, *wanted.target), steps
    event = wanted.event(noise_stddev)
    most = require_releases(event, *wanted.target)
    if num_steps is not None and num_steps > most:
        raise ConfigError(
            f"--num-steps {num_steps}: with noise_stddev {noise_stddev:g} epsilon {wanted.epsilon:g} pays for {most} "
            f"steps; use at most {most}, or leave --noise-stddev out to learn the least noise"
        )
    return noise_stddev, num_steps or most


def _choices(
    wanted: _Terms, records: int, num_teachers: int | None, noise_stddev: float | None, num_steps: int | None
) -> list[dict[str, Any]]:
    """Teachers, steps, noise and what is heard, for a few choices of each that is not given."""
    if num_teachers is not None:
        teachers = [num_teachers]
    else:
        teachers = sorted({max(1, records // shard) for shard in _SHARDS_TRIED})
    if noise_stddev is not None:
        solved = [_solve(wanted, noise_stddev, num_steps)]
    elif num_steps is not None:
        solved = [_solve(wanted, None, num_steps)]
    else:
        unit = noise_for(wanted.event(1.0), 1, *wanted.target)  # noise grows with the root of the steps
        solved = [(unit * math.sqrt(steps) * (1 + 1e-9), steps) for steps in _STEPS_TRIED]
    rows = []
    for count in teachers:
        for stddev, steps in solved:
            signal = signal_of(count, stddev, wanted.vote_threshold)
            rows.append({"num_teachers": count, "shard_size": records // count, "num_steps": steps,
                         "noise_stddev": stddev, **signal.to_json()})  # fmt: skip
    return rows


def _show_choices(output: Output, rows: list[dict[str, Any]]) -> None:
    output.table(
        ("teachers", "records each", "steps", "noise", "right", "wrong", "set by noise", "verdict"),
        [
            (
                str(row["num_teachers"]),
                str(row["shard_size"]),
                str(row["num_steps"]),
                f"{row['noise_stddev']:.0f}",
                f"{row['right']:.3f}",
                f"{row['wrong']:.3f}",
                f"{row['from_noise']:.0%}",
                "hopeless" if row["hopeless"] else "some signal" if row["margin"] < 0.3 else "signal",
            )
            for row in rows
        ],
    )
    output.say(
        "right, wrong: chances of a coordinate on which all teachers agree; set by noise: where none votes"
    )


def _signal_line(num_teachers: int, signal: Signal) -> str:
    return (
        f"{num_teachers} teachers that agree are heard right with chance {signal.right:.3f}, wrong with "
        f"{signal.wrong:.3f}; noise alone sets {signal.from_noise:.1%} of the coordinates"
    )
