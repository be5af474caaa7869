"""What a data card is about, a generator or a classifier: what it is called, what it does and how it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datalens.privacy import promises
from datalens.privacy.baseline_card import is_baseline, is_of_own_method
from datalens.privacy.card_words import listed


def is_classifier(certificate: Mapping[str, Any]) -> bool:
    """Whether the run trained a classifier."""
    return certificate["mechanism"].get("name") in promises.CLASSIFIERS


def title(certificate: Mapping[str, Any]) -> str:
    """The heading of the page."""
    return "# A classifier of images" if is_classifier(certificate) else "# A generator of synthetic images"


def subject(certificate: Mapping[str, Any]) -> str:
    """What the network does, in a sentence or two."""
    public = certificate["assumed_public"]
    classes = [str(name) for name in public["classes"] or []]
    channels, height, width = public["image_shape"]
    images = f"images of {width} x {height} pixels in {'colour' if channels == 3 else 'grey'}"
    does = f"It draws {images}, of {len(classes)} classes"
    if is_classifier(certificate):
        does = f"It tells {len(classes)} classes of {images} apart"
    return f"{does}: {listed(classes)}. {_trained_on(public)} The records themselves are not in this folder."


def _trained_on(public: Mapping[str, Any]) -> str:
    """Whose images it learned from: a published data set's, or people's own."""
    if public["data"] == "private":
        return "It was trained on images that are not public."
    return f"It was trained on {listed([str(public['data'])])}, images that are public anyway."


def usage(certificate: Mapping[str, Any], folder: str) -> list[str]:
    """How to use it; ``folder`` is the name of the folder that the page lies in."""
    verify = "datalens verify RUN"
    where = f"`RUN` is the folder that holds this folder `{folder}`."
    if is_classifier(certificate):
        return [
            f"```\npip install 'datalens-dp[dpsgd]'\ndatalens evaluate RUN --data SOURCE\n{verify}\n```",
            f"{where} Using the classifier costs nothing more, however often. In Python:",
            "```python\nfrom datalens.dpsgd import DPSGDClassifier\n\n"
            'numbers = DPSGDClassifier.load("RUN").predict(images)\n```',
        ]
    verify += "" if is_baseline(certificate) else " --replay"
    if is_of_own_method(certificate):
        return [
            "By the program of whoever wrote the method, which registers it; its command `sample RUN` draws samples. "
            f"DataLens alone can neither draw from it nor verify it. {where}"
        ]
    loader, load = ("load_run", "load_run") if is_baseline(certificate) else ("DataLens", "DataLens.load")
    return [
        f"```\npip install datalens-dp\ndatalens sample RUN --num-samples 10000 --out samples.npz\n{verify}\n```",
        f"{where} Drawing samples costs nothing more, however many. In Python:",
        f'```python\nfrom datalens import {loader}\n\nimages, labels = {load}("RUN").sample(1000)\n```',
        *_without_this_package(certificate),
    ]


def _without_this_package(certificate: Mapping[str, Any]) -> list[str]:
    """The program that lies beside the generator, where it does."""
    if promises.LOADER_FILE not in certificate["files"]:
        return []
    return [
        f"PyTorch and safetensors are enough without this package, by the program `{promises.LOADER_FILE}` in this "
        "folder, which is the same for every run of a version:",
        f"```\npip install torch safetensors\npython {promises.LOADER_FILE} 1000 pictures\n```",
    ]
