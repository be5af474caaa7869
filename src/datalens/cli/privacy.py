"""``datalens privacy``: what settings cost and what a budget buys, from public numbers alone."""

from __future__ import annotations

import math

import click

from datalens.cli.options import delta_option, json_option
from datalens.cli.output import Output
from datalens.cli.params import Kind, Number, Once, Whole
from datalens.cli.plan import plan
from datalens.cli.words import CONVERSIONS, IDEAL_SAMPLER, USUAL_TOP_K
from datalens.errors import ConfigError
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import GaussianEvent, NoiseKind
from datalens.privacy.sensitivity import topagg_sensitivity

_top_k = click.option(
    "--top-k", type=Whole(), default=USUAL_TOP_K, show_default=True, help="Votes of a teacher on an image."
)


@click.group(short_help="Cost and plan, without any data.")
def privacy() -> None:
    """Arithmetic of the guarantee. No data are read and nothing is spent.

    \b
    datalens privacy cost --top-k 200 --noise-stddev 5000 --queries 1000 --delta 1e-5
    datalens privacy plan --epsilon 1 --num-steps 149
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
@delta_option
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

    A query is one image on which all teachers vote. One record changes one teacher, which moves the
    votes on an image by at most 2 * sqrt(top_k); a step of m images costs what m queries cost.

    \b
    datalens privacy cost --top-k 200 --noise-stddev 5000 --queries 1000 --delta 1e-5
    datalens privacy cost --top-k 200 --noise-stddev 5000 --num-steps 149 --batch-size 15
    """
    output = Output(json_target)
    if noise is NoiseKind.NONE:
        raise ConfigError("--noise none: without noise there is no finite epsilon; choose a kind of noise")
    asked = _queries(queries, num_steps, batch_size)
    event = GaussianEvent(topagg_sensitivity(top_k, images=1), noise_stddev, 1, noise, count=asked)
    found = [
        (kind, Accountant(kind).used_for(event), Accountant(kind).epsilon(event, delta))
        for kind in AccountantKind
    ]
    inputs = {
        "top_k": top_k,
        "noise_stddev": noise_stddev,
        "queries": asked,
        "num_steps": num_steps,
        "batch_size": batch_size,
        "delta": delta,
        "noise": str(noise),
    }
    output.finish(
        {
            "inputs": inputs,
            "sensitivity": event.sensitivity,
            "mu": event.mu * math.sqrt(asked),
            "adjacency": "add-or-remove-one, and replace-one",
            "epsilon": {str(kind): epsilon for kind, _, epsilon in found},
            "conversion": {str(kind): CONVERSIONS[used] for kind, used, _ in found},
            "note": IDEAL_SAMPLER,
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
    output.say(IDEAL_SAMPLER)


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


privacy.add_command(plan)
