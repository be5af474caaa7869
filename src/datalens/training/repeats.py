"""Several records of one person: what is seen of it in the data, said to the owner alone."""

from __future__ import annotations

from datalens.data.duplicates import find_exact_duplicates
from datalens.data.images import LabelledImages
from datalens.errors import ConfigError
from datalens.training.sections import Privacy


def refuse_groups(data: LabelledImages) -> None:
    """Refuse data that say which records are one person's, for what looks at each record by itself.

    Raises:
        ConfigError: names the remedy.
    """
    if data.group_ids is not None:
        raise ConfigError(
            f"{data.name}: its records come in groups (group_ids), which DataLens, pate-gan, g-pate and "
            "gs-wgan protect as a whole and this does not; train one of those, or leave --group-column (groups=) out "
            "and give --group-size (privacy.group_size) the most records that one person has"
        )


def note_of_repeats(data: LabelledImages, group_size: int) -> str | None:
    """One line about images that occur more often than ``group_size`` times, or None. Private: it counts records.

    Copies of one record sit with several teachers, and all of them may change their votes: c copies cost as
    much as c records of one person. Copies within a group cost nothing more.
    """
    report = find_exact_duplicates(data.images, data.group_ids)
    if report.largest_group <= group_size:
        return None
    if data.group_ids is not None:
        return (
            f"{data.name}: {report.num_copied} images are found in several groups (one of them in "
            f"{report.largest_group}), and what they show is protected in each group by itself: remove the "
            "copies, or make one group of those who share them"
        )
    return (
        f"{data.name}: {report.num_extra} of {report.num_records} images repeat another exactly ({report.num_copied} "
        f"different ones, the most frequent {report.largest_group} times), and each copy counts as a record; "
        f"the guarantee covers {group_size} of them: remove the copies, or give --group-size "
        f"{report.largest_group} where they are one person's"
    )


def notes_of(
    data: LabelledImages, privacy: Privacy, classes_from_data: bool, *others: str | None
) -> list[str]:
    """Lines for the owner on the class list and on repeated images, and others that there may be."""
    is_declared = privacy.labels_are_public or not classes_from_data
    found = note_of_classes(data, is_declared=is_declared), note_of_repeats(data, privacy.group_size)
    return [*filter(None, [*found, *others])]


def note_of_classes(data: LabelledImages, *, is_declared: bool) -> str | None:
    """One line where an experiment shows a class list that was read off the records of data that are not public."""
    if data.public or is_declared or not data.classes_from_data:
        return None
    return (
        f"{data.name}: the class list was read off the records; a class that a single record has would give that "
        "record away, so for a release to be published declare it (--classes, or --labels-are-public)"
    )
