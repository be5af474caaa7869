"""The first lines of a card, between two lines of dashes, as Hugging Face reads them (YAML)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from datalens.privacy.baseline_card import is_baseline
from datalens.privacy.card_subject import is_classifier

_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")


class Licence(StrEnum):
    """A licence by the name that Hugging Face has for it; nobody but the owner of a run can choose one."""

    UNKNOWN = "unknown"
    OTHER = "other"
    APACHE = "apache-2.0"
    MIT = "mit"
    CC0 = "cc0-1.0"
    CC_BY = "cc-by-4.0"
    CC_BY_SA = "cc-by-sa-4.0"
    CC_BY_NC = "cc-by-nc-4.0"
    CC_BY_NC_SA = "cc-by-nc-sa-4.0"
    CC_BY_ND = "cc-by-nd-4.0"
    CC_BY_NC_ND = "cc-by-nc-nd-4.0"
    CDLA_PERMISSIVE = "cdla-permissive-2.0"
    CDLA_SHARING = "cdla-sharing-1.0"
    ODBL = "odbl"
    ODC_BY = "odc-by"
    PDDL = "pddl"


def licence_of(page: str) -> Licence:
    """The licence in the first lines of a card; unknown where they name none of :class:`Licence`.

    >>> licence_of("---\\nlicense: cc-by-4.0\\n"), licence_of("# A page")
    (<Licence.CC_BY: 'cc-by-4.0'>, <Licence.UNKNOWN: 'unknown'>)
    """
    found = re.match(r"---\nlicense: (\S+)\n", page)
    return Licence(found[1]) if found is not None and found[1] in list(Licence) else Licence.UNKNOWN


def front_of_run(certificate: Mapping[str, Any], licence: Licence) -> str:
    """Of a run's ``release/``: a generator, of which nobody can say how many images it draws, or a classifier."""
    if is_classifier(certificate):
        about = ["pipeline_tag: image-classification", "library_name: datalens-dp"]
    else:
        about = [
            f"pretty_name: {yaml_text(pretty_name(certificate))}",
            "pipeline_tag: unconditional-image-generation",
            "task_categories:\n- image-classification\n- unconditional-image-generation",
            "size_categories:\n- unknown",
        ]
    return _between_dashes([f"license: {licence}", *about, _tags(certificate)])


def front_of_dataset(
    certificate: Mapping[str, Any],
    licence: Licence,
    files: str,
    classes: Sequence[str] | None,
    num_images: int,
) -> str:
    """Of a folder of images that were drawn.

    Args:
        certificate: of the run.
        licence: of the images.
        files: pattern of the files' names.
        classes: names, in the order of the numbers that the files hold; None where folders name the classes.
        num_images: in those files.
    """
    return _between_dashes(
        [
            f"license: {licence}",
            f"pretty_name: {yaml_text(pretty_name(certificate))}",
            "task_categories:\n- image-classification",
            f"size_categories:\n- {size_category(num_images)}",
            _tags(certificate),
            f"configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: {yaml_text(files)}",
            *([] if classes is None else _columns(classes)),
        ]
    )


def _columns(classes: Sequence[str]) -> list[str]:
    """The two columns of a table, with the names of the classes."""
    return [
        "dataset_info:\n  features:\n  - name: image\n    dtype: image\n  - name: label\n    dtype:",
        "      class_label:\n        names:",
        *(f"          '{number}': {yaml_text(name)}" for number, name in enumerate(classes)),
    ]


def pretty_name(certificate: Mapping[str, Any]) -> str:
    """What people call it, such as ``Synthetic images of 10 classes``."""
    count = len(certificate["assumed_public"]["classes"] or [])
    return f"Synthetic images of {count} class{'es' * (count != 1)}"


def size_category(count: int) -> str:
    """How many images, in Hugging Face's words.

    >>> size_category(999), size_category(1000), size_category(2_000_000)
    ('n<1K', '1K<n<10K', '1M<n<10M')
    """
    above = [size for power, size in enumerate(_SIZES, 3) if count >= 10**power]
    if not above:
        return f"n<{_SIZES[0]}"
    low = _SIZES.index(above[-1])
    return f"n>{_SIZES[low]}" if low + 1 == len(_SIZES) else f"{_SIZES[low]}<n<{_SIZES[low + 1]}"


def yaml_text(text: str) -> str:
    """A text in double quotes that YAML reads as it is, whatever is in it.

    >>> yaml_text('a "b": c')
    '"a \\\\"b\\\\": c"'
    """
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08X}" for char in quoted)


def _tags(certificate: Mapping[str, Any]) -> str:
    """What it is found by; the guarantee is named where there is one to rely on."""
    private = certificate["fit_for_publication"] and certificate["guarantee"]["epsilon"] is not None
    tags = ["differential-privacy" if private else "not-for-publication", "datalens"]
    tags += [] if is_classifier(certificate) else ["synthetic"]
    tags += [yaml_text(str(certificate["mechanism"]["name"]))] if is_baseline(certificate) else []
    return "\n".join(["tags:", *(f"- {tag}" for tag in tags)])


def _between_dashes(lines: Sequence[str]) -> str:
    return "\n".join(["---", *lines, "---"])


def licence_line(licence: Licence) -> str:
    """Where the licence is said, and what it means that none is."""
    if licence is Licence.UNKNOWN:
        return "The licence is in the first lines of this page; `unknown`: whoever publishes it has yet to name one."
    return "The licence is in the first lines of this page."
