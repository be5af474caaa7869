"""Records as a source lists them, and the one way in which they are read: each by itself, none skipped unasked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from datalens.data.arrays import encode_labels
from datalens.data.class_names import check_class_names, declare_classes
from datalens.data.gathering import Gathering
from datalens.data.groups import group_id
from datalens.data.images import LabelledImages
from datalens.data.pixels import Form, Pixels, decoded
from datalens.errors import DataError


@dataclass(frozen=True)
class Listed:
    """One record of a source that has not been read yet.

    Attributes:
        name: where it is, for its owner to read.
        content: its file, or the bytes of one.
        label: what the source calls its class: a name, a number, or a one-hot row.
        group: the name of its group, where the source has groups.
        problem: why it can't be used, where that is known already.
    """

    name: str
    content: Path | bytes
    label: Any = None
    group: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Listing:
    """All that a source lists for one split, in its order.

    Attributes:
        name: of the source.
        records: in order; the place of each decides its slot, whether it can be read or not.
        known_classes: names that the source itself has for its classes, in order; None for the labels found.
        train_labels: labels of the training split, which number the classes where ``known_classes`` is None.
        unit: what a record is, for people to read.
        classes_from_data: whether known or found classes come from people's data, and are not a fixed rule's.
    """

    name: str
    records: tuple[Listed, ...]
    known_classes: tuple[str, ...] | None = None
    train_labels: tuple[Any, ...] = ()
    unit: str = "files"
    classes_from_data: bool = True


def problem_of(record: Listed) -> str | None:
    """Why a record can't be used, or None; its image is read once."""
    pixels = _pixels_of(record, Form())
    return pixels if isinstance(pixels, str) else None


def read_listing(
    listing: Listing,
    form: Form,
    *,
    classes: Sequence[object] | int | None = None,
    skip_damaged: bool = False,
    public: bool = False,
    says_background: bool = True,
) -> LabelledImages:
    """Read every record once.

    Args:
        listing: what to read.
        form: what every image is brought to; where it leaves size or kind open, all must have the same already.
        classes: public class names; a label that isn't named is refused, a class without a record is allowed.
            Left out, the source names the classes.
        skip_damaged: leave records out that can't be used, named in the result's ``notes``; their places stay empty
            and no other record moves.
        public: whether the images are published research data.
        says_background: a note says how many images were laid over the background, since nobody chose it.

    Raises:
        DataError: naming the records that can't be used, or differ in size or kind, and what to do.
    """
    names = _class_names(listing, classes)
    numbers = _numbers(listing, names)
    gathering = Gathering(listing.name, len(listing.records), listing.unit, any_size=form.any_size)
    for record in listing.records:
        gathering.add(record.name, _pixels_of(record, form))
    found = gathering.finish(
        skip_damaged=skip_damaged,
        all_named_by=f"datalens data check {listing.name} --json -",
        says_background=says_background,
    )
    groups = [listing.records[place].group for place in found.places]
    is_grouped = all(group is not None for group in groups)
    return LabelledImages(
        images=found.images,
        labels=numbers[found.places],
        classes=names,
        name=listing.name,
        public=public,
        group_ids=np.array([group_id(group or "") for group in groups], np.int64) if is_grouped else None,
        classes_from_data=classes is None and listing.classes_from_data,
        notes=found.notes,
        positions=found.positions,
        listed=found.listed,
    )


def _pixels_of(record: Listed, form: Form) -> Pixels | str:
    """A record's image, or why it can't be used."""
    if record.problem is not None:
        return record.problem
    if isinstance(record.content, bytes):
        return decoded(record.content, form)
    try:
        if not record.content.is_file():
            return "no such file"
        content = record.content.read_bytes()
    except (OSError, ValueError) as error:
        return f"can't be read ({getattr(error, 'strerror', None) or type(error).__name__})"
    return decoded(content, form)


def _class_names(listing: Listing, classes: Sequence[object] | int | None) -> tuple[str, ...]:
    """Declared, else the source's own, else the labels of its training split."""
    if classes is not None:
        return declare_classes(classes)
    names = listing.known_classes
    if names is None:
        if not listing.train_labels:
            raise DataError(f"{listing.name}: the train split has no labelled record; add some, or --classes")
        names = encode_labels(list(listing.train_labels), None, listing.name)[1]
    check_class_names(names, listing.name)
    return names


def _numbers(listing: Listing, names: tuple[str, ...]) -> np.ndarray:
    """int64 [listed]: the class of every record that has a label, -1 for the others."""
    numbers = np.full(len(listing.records), -1, np.int64)
    labelled = [place for place, record in enumerate(listing.records) if record.label is not None]
    labels = [listing.records[place].label for place in labelled]
    strange = sorted({label for label in labels if isinstance(label, str)} - set(names))
    if strange:
        raise DataError(
            f"{listing.name}: {strange[0]!a:.60} is not a declared class; add it to --classes (in Python "
            "classes=[...]), or take its records away"
        )
    if labels:
        numbers[labelled] = encode_labels(labels, names, listing.name)[0]
    return numbers
