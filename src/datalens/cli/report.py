"""``datalens report``: a run as a page to be read in a browser, one for everybody and one for its owner."""

from __future__ import annotations

from pathlib import Path

import click

from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import Output
from datalens.cli.params import Once, Text


@click.command(cls=Once, short_help="Write a run's pages for a browser.")
@click.argument("run", type=Text())
@click.option(
    "--replay",
    is_flag=True,
    help="Also show samples of earlier steps, by training again from what was released.",
)
@quiet_option
@json_option
def report(run: str, replay: bool, quiet: bool, json_target: str | None) -> None:
    """Write RUN/release/report.html, which may be shared, and RUN/private/report.html, which may not.

    The first is made from RUN/release alone: what was trained, what is promised, samples, epsilon over the steps,
    scores that were released, and the verdict of an audit that was written there. The second is for the owner:
    scores on people's data, agreement of the votes, failed teachers, copy checks. Each is one file that needs no
    network and runs no script. Every training writes both at its end; write them anew after evaluate or audit.

    \b
    datalens report runs/mnist
    datalens report runs/mnist --replay
    datalens audit runs/mnist --json runs/mnist/release/audit.json
    """  # fmt: skip
    from datalens.cli.reporting import write_pages

    output = Output(json_target, quiet=quiet)
    pages = write_pages(Path(run), replay=replay)
    output.finish({"run": run, "release_page": pages.release, "private_page": pages.private})
    output.say(f"to share: {pages.release}")
    output.say(
        "for the owner: nothing, as private/ is gone"
        if pages.private is None
        else f"for the owner, never to share: {pages.private}"
    )
