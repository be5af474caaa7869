"""A certificate as a page that a person can read: ``release/README.md``, a pure function of the certificate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from datalens.privacy import promises
from datalens.privacy.wording import rounded_up

_BEYOND_WORDS = 25
"""Epsilon from which e to the epsilon is written as a power: nobody reads so long a number."""
_MARKS = frozenset("\\`*_{}[]()<>#+-!|&~$")


def data_card(certificate: Mapping[str, Any]) -> str:
    """Markdown in plain words: what is shared, what is promised to one person, what is not, how to load it."""
    public = certificate["assumed_public"]
    classes = [str(name) for name in public["classes"] or []]
    channels, height, width = public["image_shape"]
    parts = [
        "# A generator of synthetic images",
        _headline(certificate),
        f"It draws images of {width} x {height} pixels in {'colour' if channels == 3 else 'grey'}, of "
        f"{len(classes)} classes: {_list(classes)}. The records themselves are not in this folder.",
        "## What is promised",
        _promise(certificate),
        "## How it was made",
        *_making(certificate),
        *(_tuning(certificate) or _scores(certificate)),
        "## What was taken to be public",
        _bullets(
            [
                f"that there are at most {public['bound_on_records']} records",
                f"how many teachers there are and how many records each may have "
                f"({public['slots_of_each_teacher']})",
                f"the list of classes ({public['class_list']})",
                "the size of the images",
                f"labels of generated images: {public['generated_labels']}",
            ]
        ),
        "## What is not covered",
        _bullets(certificate["not_covered"]),
        *_later(certificate),
        "## How to use it",
        "```\npip install datalens-dp\ndatalens sample RUN --num-samples 10000 --out samples.npz\n"
        "datalens verify RUN --replay\n```",
        f"`RUN` is the folder that holds this folder `{release_folder(certificate)}`. Drawing samples "
        "costs nothing more, however many. In Python:",
        '```python\nfrom datalens import DataLens\n\nimages, labels = DataLens.load("RUN").sample(1000)\n```',
        *_identity(certificate),
        "Every number above is in `certificate.json`; `ledger.jsonl` lists every release with its cost, and "
        "`datalens verify` recomputes the one from the other.",
    ]
    return "\n\n".join(parts) + "\n"


def release_folder(certificate: Mapping[str, Any]) -> str:
    """Name of the folder that the certificate lies in: one that is not fit for publication says so."""
    fit = certificate["fit_for_publication"]
    return promises.RELEASE_FOLDER if fit else promises.UNFIT_RELEASE_FOLDER


def _headline(certificate: Mapping[str, Any]) -> str:
    if certificate["fit_for_publication"]:
        guarantee = certificate["guarantee"]
        return (
            f"**Epsilon {_epsilon(guarantee['epsilon'])} at delta {guarantee['delta']:g}**, for "
            f"{_notion(guarantee)}. It may be shared."
        )
    return f"**NOT FIT FOR PUBLICATION**: {'; '.join(certificate['not_fit_because'])}."


def _promise(certificate: Mapping[str, Any]) -> str:
    guarantee = certificate["guarantee"]
    if guarantee["epsilon"] is None:
        return "Nothing. It was trained without noise, for experiments."
    epsilon, delta = guarantee["epsilon"], guarantee["delta"]
    others = guarantee["under_other_accountants"]
    whose = (
        "one person's record"
        if guarantee["group_size"] == 1
        else f"all of one person's records (up to {guarantee['group_size']})"
    )
    lines = [
        f"Take {whose} out of the data, or put it in: whatever anybody can conclude from this folder is at "
        f"most "
        f"{_factor(epsilon)} times as likely either way, but for a chance of {delta:g}. Somebody who "
        f"thinks it as "
        f"likely as not that a person is among the records can be {_belief(epsilon)} sure "
        f"after seeing "
        "all of it.",
        f"Put as numbers: ({_epsilon(epsilon)}, {delta:g})-differential privacy; neighbours are "
        f"{guarantee['adjacency_means']}. If a record is exchanged for another instead: "
        f"{_replacing(guarantee)}.",
        f"Counted by the {guarantee['accountant_used']} accountant"
        f"; the accountants say, {guarantee['other_accountants_speak']}, "
        f"{_list([f'{name} {_epsilon(value)}' for name, value in others.items()])}"
        + f". So far {_epsilon(certificate['spent']['epsilon'])} was spent.",
        *(f"Take care: {caution}." for caution in guarantee["cautions"]),
    ]
    if certificate["dataset_budget"]:
        budget = certificate["dataset_budget"]
        lines.append(
            f"This run is charged to the budget of the data set '{budget['data_name']}', which allows "
            f"epsilon "
            f"{budget['epsilon']:g} at delta {budget['delta']:g} for all its runs together."
        )
    if not certificate["fit_for_publication"]:
        lines.append("These numbers would hold with proper noise; as it is, they promise nothing.")
    return "\n\n".join(lines)


def _making(certificate: Mapping[str, Any]) -> list[str]:
    """How often votes were asked for, with which noise, and what one person moves."""
    mechanism, noise = certificate["mechanism"], certificate["noise"]
    released = _released(certificate, "votes")
    if not released:
        return [
            "Nothing has been released yet: training was stopped before its first step, so no teacher has "
            "voted and the generator is as it was drawn at random. It has learned from no record."
        ]
    return [
        f"{mechanism.get('num_teachers')} teachers, each with its own part of the records "
        f"({mechanism.get('shard_size')} each at most), voted on images that a generator had drawn. Only the sum "
        f"of their votes was used, {_noisily(released, ' votes on every pixel')} "
        f"({_list(noise['kinds'])}; bits from the {noise['source']}). The generator learned from those sums and "
        "from nothing else; they are in `directions.bin`, so that anybody can train it again.",
        f"On an image a teacher has at most {mechanism.get('top_k')} votes; one person moves a sum, over the "
        f"{mechanism.get('batch_size')} images of a step, by at most "
        f"{max(item['sensitivity'] for item in released):g}.",
    ]


def _scores(certificate: Mapping[str, Any]) -> list[str]:
    """Charged counts of right predictions, apart from the training."""
    released = _released(certificate, "score")
    if not released:
        return []
    return [
        "Apart from the training, a count of right predictions on people's records was released, "
        f"{_noisily(released, '')}; one person moves it by at most "
        f"{max(item['sensitivity'] for item in released):g}. It is in `scores.json`, and the epsilon above covers it."
    ]


def _released(certificate: Mapping[str, Any], what: str) -> list[Mapping[str, Any]]:
    return [item for item in certificate["noise"]["releases"] if item["what"] == what]


def _noisily(released: list[Mapping[str, Any]], unit: str) -> str:
    """Such as ``2 times with random noise of 25 votes on every pixel``."""
    said = []
    for item in released:
        stddev, count = item["noise_stddev"], item["count"]
        noise = f"with random noise of {stddev:g}{unit}" if stddev else "without noise"
        said.append(f"{'once' if count == 1 else f'{count} times'} {noise}")
    return " and ".join(said)


def _tuning(certificate: Mapping[str, Any]) -> list[str]:
    tuning = certificate["tuning"]
    if not tuning:
        return []
    return [
        f"The settings were tuned on the records: of {tuning['num_candidates']} candidates, drawn by lot in a secret "
        f"random number of tries ({tuning['expected_tries']:g} expected), the try with the best count of right "
        f"predictions on held-out records was kept. That count had noise of {tuning['score_noise']:g} "
        f"({tuning['noisy_right']} with it, of {tuning['held_slots']} held-out slots). The epsilon above covers all "
        "tries, their counts and the choice, not this training alone."
    ]


def _later(certificate: Mapping[str, Any]) -> list[str]:
    later = certificate["later_authorisations"]
    changed = certificate["mechanism"]["changed_on_resume"]
    if not later and not changed:
        return []
    items = [f"epsilon {item['epsilon']:g} was authorised after looking" for item in later]
    items += [
        f"from step {item['from_step']} on: {item['top_k']} votes an image, noise "
        f"{item['noise_stddev']:g}, threshold "
        f"{item['vote_threshold']:g}, {item['num_steps']} steps in all"
        for item in changed
    ]
    return ["## What was changed on the way", _bullets(items)]


def _identity(certificate: Mapping[str, Any]) -> list[str]:
    """Versions and hashes: which files this page is about."""
    made_in, files = certificate["environment"], certificate["files"]
    versions = [
        f"{name} {made_in[name]}" for name in ("datalens", "python", "torch", "numpy") if name in made_in
    ]
    hashes = [f"`{name}`: SHA-256 `{digest}`" for name, digest in files.items()]
    ledger = certificate["ledger"]
    hashes.append(f"`ledger.jsonl`: its line {ledger['last_line']} has the hash `{ledger['head']}`")
    return ["## Which files this is about", f"Made with {_list(versions)}.", _bullets(hashes)]


def _notion(guarantee: Mapping[str, Any]) -> str:
    size = guarantee["group_size"]
    what = "one record" if size == 1 else f"up to {size} records of one person"
    if guarantee["adjacency"] == "add-or-remove-one":
        return f"adding or removing {what}"
    return f"blanking {what}"


def _factor(epsilon: float) -> str:
    """e to the epsilon, never rounded down: ``7.39``, ``2,981``, ``e^50``."""
    if epsilon > _BEYOND_WORDS:
        return f"e^{_epsilon(epsilon)}"
    factor = math.exp(epsilon)
    return f"{math.ceil(factor):,}" if factor >= 100 else rounded_up(factor, 3)


def _belief(epsilon: float) -> str:
    """How sure one may be at most, from even odds; rounded up, with digits enough not to read 100%."""
    if epsilon > _BEYOND_WORDS:
        return "all but completely"
    doubt = 100 / (1 + math.exp(epsilon))
    digits = max(1, -math.floor(math.log10(doubt)))
    unit = 10**digits
    return f"at most {100 - math.floor(doubt * unit) / unit:.{digits}f}%"


def _replacing(guarantee: Mapping[str, Any]) -> str:
    """Why it costs the same, or what it costs and why."""
    other = guarantee["replace_one"]
    same = other["epsilon"] == guarantee["epsilon"]
    return other["why"] if same else f"epsilon {_epsilon(other['epsilon'])}, {other['why']}"


def _epsilon(value: float | None) -> str:
    return "infinite" if value is None else rounded_up(value)


def _list(words: list[str]) -> str:
    """The words as text that means nothing to Markdown: a class may be called ``<b>`` or ``[x](y)``."""
    safe = ["".join(f"\\{char}" if char in _MARKS else char for char in word) for word in words[:20]]
    shown = [*safe, "..."] if len(words) > 20 else safe
    return ", ".join(shown) if shown else "none"


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)
