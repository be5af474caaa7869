"""How what was released is loaded and cited."""

from __future__ import annotations

from datalens.privacy.card_words import epsilon_words
from datalens.reports.facts import ReleaseFacts
from datalens.reports.words import DATALENS, method_title

PAPER = """@inproceedings{wang2021datalens,
  title     = {{DataLens}: Scalable Privacy Preserving Training via Gradient Compression and Aggregation},
  author    = {Wang, Boxin and Wu, Fan and Long, Yunhui and Rimanic, Luka and Zhang, Ce and Li, Bo},
  booktitle = {Proceedings of the 2021 ACM SIGSAC Conference on Computer and Communications Security},
  year      = {2021},
  doi       = {10.1145/3460120.3484579}
}"""
OF_THE_PAPER = (DATALENS, "dp-sgd")
"""Methods that the paper proposes."""


def shell_lines(facts: ReleaseFacts) -> str:
    """What to type in a terminal; ``RUN`` stands for the folder above."""
    if facts.is_classifier:
        return "pip install 'datalens-dp[dpsgd]'\ndatalens evaluate RUN --data SOURCE\ndatalens verify RUN"
    if facts.is_of_own_method:
        return (
            "# by the program of whoever wrote the method, which registers it\n"
            "python PROGRAM sample RUN --num-samples 10000 --out samples.npz"
        )
    replay = " --replay" if facts.method == DATALENS else ""
    return (
        "pip install datalens-dp\ndatalens sample RUN --num-samples 10000 --out samples.npz\n"
        f"datalens verify RUN{replay}"
    )


def python_lines(facts: ReleaseFacts) -> str:
    """The same in Python."""
    if facts.is_classifier:
        return 'from datalens.dpsgd import DPSGDClassifier\n\nnumbers = DPSGDClassifier.load("RUN").predict(images)'
    before = ""
    if facts.is_of_own_method:
        before = "# in a program that has registered the method\n"
    loader, load = ("DataLens", "DataLens.load") if facts.method == DATALENS else ("load_run", "load_run")
    return f'{before}from datalens import {loader}\n\nimages, labels = {load}("RUN").sample(1000)'


def citation(facts: ReleaseFacts) -> str:
    """A sentence that says what these images or this classifier are, and what is promised."""
    version = facts.certificate["environment"].get("datalens", facts.config.get("datalens", ""))
    what = "Classifier" if facts.is_classifier else "Synthetic images"
    promised = "no guarantee"
    if facts.epsilon is not None:
        promised = f"epsilon {epsilon_words(facts.epsilon)} at delta {facts.delta:g}"
    if not facts.is_fit:
        promised += ", not fit for publication"
    return f"{what} by {method_title(facts)}, datalens-dp {version}; {promised}; run {facts.run_id}."
