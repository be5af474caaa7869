"""Do the files of a run agree with each other? Asked when a run is resumed; a disagreement is refused."""

from __future__ import annotations

from pathlib import Path

from datalens.data.images import LabelledImages
from datalens.errors import CheckpointError, RunError
from datalens.privacy.ledger import Ledger, LineKind
from datalens.privacy.promises import ADD_OR_REMOVE_GROUP
from datalens.teachers.groups import SlotMap
from datalens.training.directions import DirectionRecord
from datalens.training.facts import PublicFacts, RunFacts
from datalens.training.files import read_json
from datalens.training.heads import known_head
from datalens.training.private_files import Secrets, fingerprint
from datalens.training.run_folder import RunFolder
from datalens.training.terms import is_step, step_of
from datalens.training.warm_plan import WarmTerms


def check_header(ledger: Ledger, facts: PublicFacts, partition: SlotMap) -> None:
    """The ledger's first line is about these settings and this slot map.

    Raises:
        RunError: names the setting that differs.
    """
    voting, privacy, settings = facts.config.voting, facts.config.privacy, facts.config.warm_start
    expected = {
        "name": str(voting.mechanism),
        "num_teachers": voting.num_teachers,
        "shard_size": partition.shard_size,
        "num_records": facts.num_records,
        "group_size": privacy.group_size,
        "batch_size": voting.batch_size,
        "images_per_teacher": voting.images_per_teacher,
        "coordinates": facts.dim,
        "noise": str(privacy.noise),
    }
    start = None if facts.start is None else facts.start.sha256
    if ledger.header.get("public_init") != start:
        raise RunError(f"{ledger.path}: is about another public start than the run's; restore the files")
    warm = WarmTerms.recorded(ledger)
    if (None if warm is None else warm.share) != (settings.share if settings.enabled else None):
        raise RunError(f"{ledger.path}: is about another warm start than the run's; restore the files")
    mechanism = ledger.header.get("mechanism")
    found = mechanism if isinstance(mechanism, dict) else {}
    for name, value in expected.items():
        if found.get(name) != value:
            raise RunError(
                f"{ledger.path}: says {name} {found.get(name)!r}, the run's settings say {value!r}; restore the "
                "files that belong together"
            )
    is_other = (partition.num_teachers, partition.num_records) != (voting.num_teachers, facts.num_records)
    is_other |= (partition.adjacency == ADD_OR_REMOVE_GROUP) is not facts.of_groups
    if is_other or ledger.header.get("adjacency") != partition.adjacency:
        raise RunError(f"{ledger.path}: is about another slot map than the run's; restore the files")


def check_heads(ledger: Ledger, folder: RunFolder) -> None:
    """The ledger goes on from every head that cache and certificate know.

    Raises:
        LedgerError: it ends before one, or has another line there.
    """
    known = known_head(str(ledger.header.get("run_id", "")))
    ledger.check_heads([] if known is None else [known])
    if not folder.certificate.is_file():
        return
    certificate = read_json(folder.certificate)
    match certificate.get("ledger") if isinstance(certificate, dict) else None:
        case {"last_line": int(index), "head": str(digest)}:
            ledger.check_heads([(index, digest)])


def check_class_order(classes: tuple[str, ...], facts: RunFacts, root: Path) -> None:
    """The data name the run's classes in the run's order; other classes are other data, and found out later.

    Raises:
        RunError: the same classes in another order.
    """
    if classes != facts.classes and sorted(classes) == sorted(facts.classes):
        raise RunError(
            f"{root}: the run's classes are in the order {','.join(facts.classes)}, not {','.join(classes)}; "
            "give them in its order (--classes; classes=[...] in Python)"
        )


def check_data(data: LabelledImages, facts: RunFacts, kept: Secrets, root: Path) -> None:
    """The data are those that the run began with, groups among them.

    Raises:
        RunError: they are not.
    """
    if facts.of_groups and data.group_ids is None:
        raise RunError(
            f"{root}: the run keeps groups of records together; name the same groups again (--group-column; "
            "data.with_groups(names) in Python)"
        )
    if kept.fingerprint != fingerprint(data):
        raise RunError(f"{root}: these are not the data of this run; resume with the same data")


def check_records(records: list[DirectionRecord], ledger: Ledger, path: Path) -> None:
    """Every recorded direction was paid for by a ledger line of its own, for that very step.

    Raises:
        CheckpointError: one was not.
    """
    paid = {
        line.hash: step_of(line) for line in ledger.lines if line.kind == LineKind.RELEASE and is_step(line)
    }
    for record in records:
        if paid.pop(record.line_hash, None) != record.step:
            raise CheckpointError(
                f"{path}: step {record.step} was released but the ledger has no line for it; restore the ledger "
                "that belongs to this run"
            )
