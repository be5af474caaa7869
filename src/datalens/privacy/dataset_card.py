"""The page of a folder of images that were drawn from a run, to be published as a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from datalens.privacy import promises
from datalens.privacy.card_citation import citation
from datalens.privacy.card_front import Licence, front_of_dataset, licence_line
from datalens.privacy.card_subject import subject
from datalens.privacy.card_words import listed
from datalens.privacy.data_card import headline, limits, promise_and_making


def dataset_card(
    certificate: Mapping[str, Any],
    licence: Licence,
    *,
    files: str,
    folders: Sequence[str] | None,
    num_images: int,
    loading: str,
) -> str:
    """Markdown: what the images are, what is promised of them, what is not, how to load them.

    Args:
        certificate: of the run that they were drawn from.
        licence: of the images.
        files: pattern of the files' names.
        folders: sub-folders by the number of their class, where images lie in such; None for a table.
        num_images: how many there are.
        loading: Python that reads them.
    """
    classes = [str(name) for name in certificate["assumed_public"]["classes"]]
    shown = (
        classes
        if folders is None
        else [f"{name} in {folder}/" for name, folder in zip(classes, folders, strict=True)]
    )
    parts = [
        front_of_dataset(certificate, licence, files, classes if folders is None else None, num_images),
        "# Synthetic images",
        headline(certificate),
        f"{num_images} images, drawn from a generator; their classes were drawn by lot, each as likely as any other. "
        "Drawing costs no privacy, however many are drawn. Of the generator they come from: "
        f"{subject(certificate)}",
        "## How to load them",
        f"```python\n{loading}\n```",
        f"Classes by number: {listed([f'{number} {name}' for number, name in enumerate(shown)])}.",
        licence_line(licence),
        *promise_and_making(certificate),
        "## Limits",
        limits(),
        "## How to cite it",
        *citation(certificate),
        "## Which run they come from",
        f"`{promises.CERTIFICATE_FILE}` has every number above. All other files that are named here lie in the run's "
        f"folder: the generator (SHA-256 `{certificate['files'].get('generator.safetensors')}`), and the ledger from "
        "which `datalens verify` recomputes the certificate.",
    ]
    return "\n\n".join(parts) + "\n"
