"""``datalens budget``: one privacy budget for a data set, across runs and methods."""

from __future__ import annotations

from pathlib import Path

import click

from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import Output
from datalens.cli.params import Kind, Number, Once, Text
from datalens.errors import LedgerError
from datalens.privacy.accountant import AccountantKind


@click.group(short_help="One privacy budget for a data set, across runs.")
def budget() -> None:
    """A file that every run on one data set is charged to, so that ten runs at epsilon 1 are seen to be ten."""


@budget.command(cls=Once, short_help="Make a budget file.")
@click.argument("file", type=Text(paths=True))
@click.option(
    "--data-name", type=Text(), required=True, help="Your word for the data set; it becomes public."
)
@click.option("--epsilon", type=Number(0, above=True), required=True, help="The most for all runs together.")
@click.option("--delta", type=Number(0, 1, above=True, below=True), default=1e-5, show_default=True)
@click.option("--accountant", type=Kind(AccountantKind), default=AccountantKind.EXACT, show_default="exact")
@quiet_option
@json_option
def create(
    file: str,
    data_name: str,
    epsilon: float,
    delta: float,
    accountant: AccountantKind,
    quiet: bool,
    json_target: str | None,
) -> None:
    """Make FILE, the budget of one data set; give it to every `datalens train` with --budget-file.

    \b
    datalens budget create clinic.budget --data-name clinic-2024 --epsilon 3
    datalens train scans/ --out runs/a --epsilon 1 --classes ill,well --budget-file clinic.budget
    """  # fmt: skip
    from datalens.privacy.dataset_budget import create_dataset_budget

    output = Output(json_target, quiet=quiet)
    create_dataset_budget(Path(file), data_name, epsilon, delta, accountant)
    output.finish(
        {
            "file": file,
            "data_name": data_name,
            "epsilon": epsilon,
            "delta": delta,
            "accountant": str(accountant),
        }
    )
    output.say(f"{file}: epsilon {epsilon:g} at delta {delta:g} for all runs on {data_name}")


@budget.command(cls=Once, short_help="What a data set's budget allows and what was spent.")
@click.argument("file", type=Text(paths=True))
@quiet_option
@json_option
def show(file: str, quiet: bool, json_target: str | None) -> None:
    """Say what FILE allows, what was spent of it, and by which runs."""
    from datalens.privacy.dataset_budget import UNFIT, describe_dataset_budget
    from datalens.privacy.ledger import Ledger
    from datalens.training.shared_budget import check_budget_head

    output = Output(json_target, quiet=quiet)
    found = describe_dataset_budget(Path(file))
    try:
        check_budget_head(Ledger.read(file))
    except LedgerError as error:
        output.warn(str(error))
    output.finish(found)
    rows = [
        [item["run"], str(item["releases"]), f"{item['epsilon']:.4g}", "no" if item[UNFIT] else "yes"]
        for item in found["runs"]
    ]
    if rows:
        output.table(["run", "releases", "epsilon alone", "fit for publication"], rows)
    output.say(
        f"{found['data_name']}: epsilon {found['spent']:.4g} spent of {found['epsilon']:g} at delta "
        f"{found['delta']:g} ({found['accountant']} accountant), by {len(rows)} runs"
    )
    for item in found["runs"]:
        for reason in item[UNFIT]:
            output.insist(
                f"NOT FIT FOR PUBLICATION: run {item['run']}, which the total does not cover: {reason}"
            )
