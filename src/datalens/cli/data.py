"""``datalens data``: list, fetch and check data sets."""

from __future__ import annotations

from typing import Any

import click

from datalens.cli.judged import is_named
from datalens.cli.known import SOURCES
from datalens.cli.options import data_options, data_settings, json_option, quiet_option
from datalens.cli.output import Output, refuse_released
from datalens.cli.params import Once, Text
from datalens.errors import DataError

_root_option = click.option(
    "--data-root",
    type=Text(paths=True),
    metavar="FOLDER",
    show_default="DATALENS_DATA, else a cache folder",
    help="Where published sets lie.",
)


@click.group(short_help="List, fetch and check data sets.")
def data() -> None:
    """Data sets: the published ones by name, your own by path.

    \b
    datalens data list
    datalens data fetch mnist
    datalens data check scans/
    """


@data.command("list", cls=Once, short_help="Sources that have a name, and which are here.")
@_root_option
@json_option
def list_command(data_root: str | None, json_target: str | None) -> None:
    """List the sources that have a name, and whether they are on this machine."""
    from datalens.data import check, list_sources

    output = Output(json_target)
    rows = []
    for source in list_sources():
        found = [str(file.status) for file in check(source.name, data_root)]
        absent = "to be got by hand" if source.by_hand else "to be fetched"
        state = "drawn" if not source.needs_fetch else "here" if set(found) == {"ok"} else absent
        if "damaged" in found:
            state = "damaged"
        rows.append((source.name, state, source.title, source.classes))
    output.finish(
        {"sources": [{"name": n, "state": s, "title": t, "classes": list(c)} for n, s, t, c in rows]}
    )
    output.table(("name", "state", "what it is"), [row[:3] for row in rows])
    output.say(
        "besides these: a folder of images, a .csv or .parquet table, an .npz file with x and y, or a folder that "
        "Hugging Face datasets saved"
    )


@data.command("fetch", cls=Once, short_help="Bring a published set here, and verify it.")
@click.argument("name", type=Text(*SOURCES))
@_root_option
@quiet_option
@json_option
def fetch_command(name: str, data_root: str | None, quiet: bool, json_target: str | None) -> None:
    """Bring the published set NAME onto this machine and verify every file.

    A set that is complete is left alone, without any network. CelebA and Places365 are given out by their makers
    alone: for these it says what to get, and where to put it.
    """
    from datalens.data import fetch

    output = Output(json_target, quiet=quiet)
    report = fetch(name, data_root, tell=output.say)
    output.finish(
        {"name": report.name, "folder": str(report.folder), "way": report.way, "failed": list(report.failed)}
    )
    output.say(f"{report.name}: complete in {report.folder} ({report.way})")


@data.command("check", cls=Once, short_help="Read SOURCE as a training would.")
@click.argument("source", type=Text(*SOURCES, paths=True))
@data_options
@quiet_option
@json_option
def check_command(source: str, quiet: bool, json_target: str | None, **options: Any) -> None:
    """Look at every file of SOURCE, then read it as `datalens train` would.

    What is printed comes from the data: it is for their owner. A damaged or missing file: exit status 2,
    or 0 with --skip-damaged where the rest can be used.
    """
    from datalens.data import Columns, check

    refuse_released("--json", json_target)
    output = Output(json_target, quiet=quiet)
    columns = Columns(*(options[f"{what}_column"] for what in ("path", "label", "group")))
    files = check(source, options["data_root"], columns=columns)
    bad = [file for file in files if file.status != "ok"]
    skips = options["skip_damaged"]
    first = f"the first {bad[0].file} ({bad[0].status})" if bad else ""
    splits = [] if bad and not skips else _read_splits(source, options)
    output.finish(
        {
            "source": source,
            "ok": not bad or skips,
            "files": [{"file": file.file, "status": str(file.status), "found": file.found} for file in files],
            "splits": splits,
        }
    )
    shown = files if len(files) <= 8 else bad[:20]
    if shown:
        output.table(("file", "status", "found"), [(f.file, str(f.status), f.found or "") for f in shown])
    for split in splits:
        output.say(
            f"{split['split']}: {split['records']} images of {'x'.join(map(str, split['shape']))}, "
            f"{len(split['classes'])} classes, {split['repeated']} exact repeats{_how_repeated(split)}"
            f"{_how_grouped(split)}"
        )
        for note in split["notes"]:
            output.warn(note)
    if splits and all(split["split"] != "test" for split in splits):
        output.say(
            "test: none, which training does without; `datalens evaluate` takes the accuracy on one: test/ beside "
            "train/, x_test and y_test, or a column `split`"
        )
    if bad and not skips:
        raise DataError(
            f"{source}: {len(bad)} of {len(files)} files are missing or damaged, {first}; "
            f"{_remedy(source, options['data_root'])}"
        )


def _remedy(source: str, data_root: str | None) -> str:
    from datalens.data import remedy

    if is_named(source):
        return remedy(source, data_root)
    if source.endswith(".npz"):
        return "mend or replace it"
    return "mend or remove them, or leave them out with --skip-damaged"


def _how_grouped(split: dict[str, Any]) -> str:
    """How many groups there are, and how large they get; nothing where no groups were asked for."""
    if split["groups"] is None:
        return ""
    return f", {split['groups']} groups of at most {split['largest_group']}"


def _how_repeated(split: dict[str, Any]) -> str:
    """How many images occur more than once, and the most frequent one."""
    if not split["repeated"]:
        return ""
    return f" ({split['copied']} different images, the most frequent {split['most_copies']} times)"


def _read_splits(source: str, options: dict[str, Any]) -> list[dict[str, Any]]:
    import numpy as np

    from datalens.data import available_splits, find_exact_duplicates, load

    found = []
    for split in available_splits(source):
        images = load(source, split=split, **data_settings(options))
        repeats = find_exact_duplicates(images.images)
        sizes = None if images.group_ids is None else np.unique(images.group_ids, return_counts=True)[1]
        found.append(
            {
                "split": split,
                "records": images.num_records,
                "shape": list(images.image_shape),
                "classes": list(images.classes),
                "listed": images.num_listed,
                "groups": None if sizes is None else len(sizes),
                "largest_group": None if sizes is None else int(sizes.max()),
                "repeated": repeats.num_extra,
                "copied": repeats.num_copied,
                "most_copies": repeats.largest_group,
                "notes": list(images.notes),
            }
        )
    return found
