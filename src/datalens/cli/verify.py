"""``datalens verify``: recompute what a run promises from its ledger, with other code, and compare."""

from __future__ import annotations

from pathlib import Path

import click

from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import Output
from datalens.cli.params import Once, Text

DIFFERS = 1
"""Exit status where something differs."""


@click.command(cls=Once, short_help="Recompute a run's certificate from its ledger, and compare.")
@click.argument("run", type=Text(paths=True))
@click.option("--replay", is_flag=True, help="Also train the generator again from what was released.")
@quiet_option
@json_option
def verify(run: str, replay: bool, quiet: bool, json_target: str | None) -> int:
    """Check that everything in RUN/release agrees with its ledger, by code that shares nothing with the training.

    Chain of hashes, order of the budget, cost of every release, epsilon under three accountants, released
    directions, generator, certificate and its page. Needs release/ alone. Exits with status 1 on any difference.
    It finds accidents and mistakes; it cannot find out a curator who made up the whole ledger.

    \b
    datalens verify runs/mnist
    datalens verify runs/mnist --replay
    """  # fmt: skip
    from datalens.audit.verify import verify_run

    output = Output(json_target, quiet=quiet)
    found = verify_run(Path(run), replay=replay)
    output.finish({"run": run, **found.to_json()})
    for difference in found.differences:
        output.insist(f"difference: {difference}")
    if not found.agrees:
        count = len(found.differences)
        output.insist(f"NOT VERIFIED: {count} difference{'s' if count > 1 else ''}")
        return DIFFERS
    if found.lost_steps:
        output.say(f"{found.lost_steps} charged releases were lost in a crash; they stay charged")
    if found.replay is not None:
        how = "bit for bit" if found.replay["bit_for_bit"] else (
            f"with pixels that differ by {found.replay['mean_difference']:.2g} (at most "
            f"{found.replay['tolerance']} on another platform)"
        )  # fmt: skip
        output.say(f"the released directions give the released generator {how}")
    guarantee = found.certificate["guarantee"]
    promise = "NO GUARANTEE" if guarantee["epsilon"] is None else f"epsilon {guarantee['epsilon']:.4g}"
    for reason in found.certificate["not_fit_because"]:
        output.insist(f"not fit for publication: {reason}")
    for caution in guarantee["cautions"]:
        output.insist(f"take care: {caution}")
    words = ["verified"]
    if not guarantee["ceiling_fixed_beforehand"]:
        words.append("NOT PROVED")
    if not found.certificate["fit_for_publication"]:
        words.append("NOT FIT FOR PUBLICATION")
    last = output.say if len(words) == 1 else output.insist
    last(
        f"{', '.join(words)}: {promise} at delta {guarantee['delta']:g}, by {guarantee['accountant_used']} "
        "accounting"
    )
    return 0
