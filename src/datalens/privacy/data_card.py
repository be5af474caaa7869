"""A certificate as a page that a person can read: ``release/README.md``, a function of certificate and licence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datalens.privacy import promises
from datalens.privacy.baseline_card import is_baseline, method_lines, release_lines
from datalens.privacy.card_citation import citation
from datalens.privacy.card_front import Licence, front_of_run, licence_line, licence_of
from datalens.privacy.card_subject import is_classifier, subject, title, usage
from datalens.privacy.card_warm import warm_lines
from datalens.privacy.card_words import (
    belief,
    bullets,
    epsilon_words,
    factor,
    listed,
    noisily,
    plain,
    released_of,
)


def data_card(certificate: Mapping[str, Any], licence: Licence = Licence.UNKNOWN) -> str:
    """Markdown in plain words: what is shared, what is promised to one person, what is not, how to load it.

    Args:
        certificate: the content of ``certificate.json``.
        licence: that the owner has named in the first lines.
    """
    parts = [
        front_of_run(certificate, licence),
        title(certificate),
        headline(certificate),
        subject(certificate),
        *promise_and_making(certificate),
        *_later(certificate),
        *([] if is_classifier(certificate) else ["## Limits", limits()]),
        "## How to use it",
        *usage(certificate, release_folder(certificate)),
        licence_line(licence),
        "## How to cite it",
        *citation(certificate),
        *_identity(certificate),
        "Every number above is in `certificate.json`; `ledger.jsonl` lists every release with its cost, and "
        "`datalens verify` recomputes the one from the other.",
    ]
    return "\n\n".join(parts) + "\n"


def is_card_of(page: str, certificate: Mapping[str, Any]) -> bool:
    """Whether a page is the certificate's card, with whatever licence the owner named in its first lines by hand."""
    licence = licence_of(page)
    by_hand = data_card(certificate).replace(f"license: {Licence.UNKNOWN}", f"license: {licence}", 1)
    return page in (data_card(certificate, licence), by_hand)


def promise_and_making(certificate: Mapping[str, Any]) -> list[str]:
    """What is promised, how it was made, what was taken to be public, and what is not covered."""
    public = certificate["assumed_public"]
    labels = public["generated_labels"]
    return [
        "## What is promised",
        _promise(certificate),
        "## How it was made",
        *_making(certificate),
        *(_tuning(certificate) or _scores(certificate)),
        "## What was taken to be public",
        bullets(
            [
                f"that there are at most {public['bound_on_records']} records",
                *_shards(public),
                f"the list of classes ({public['class_list']})",
                "the size of the images",
                *([] if labels is None else [f"labels of generated images: {labels}"]),
                *([] if "start" not in public else [plain(public["start"])]),
            ]
        ),
        "## What is not covered",
        bullets(certificate["not_covered"]),
    ]


def limits() -> str:
    """What drawn images are no good for, whatever the run."""
    return bullets(
        [
            "no image shows a record, and what one shows may be wrong: decide nothing about a person by it",
            "every class is drawn equally often, however rare it is among the records, and what few records have may "
            "be missing altogether",
            "what is trained on these images is to be tested on real ones before it is relied on",
        ]
    )


def release_folder(certificate: Mapping[str, Any]) -> str:
    """Name of the folder that the certificate lies in: one that is not fit for publication says so."""
    fit = certificate["fit_for_publication"]
    return promises.RELEASE_FOLDER if fit else promises.UNFIT_RELEASE_FOLDER


def _shards(public: Mapping[str, Any]) -> list[str]:
    if public["num_teachers"] is None:
        return []
    return [
        f"how many teachers there are and how many records each may have ({public['slots_of_each_teacher']})"
    ]


def headline(certificate: Mapping[str, Any]) -> str:
    """The guarantee in a line, or that there is none to rely on."""
    if certificate["fit_for_publication"]:
        guarantee = certificate["guarantee"]
        return (
            f"**Epsilon {epsilon_words(guarantee['epsilon'])} at delta {guarantee['delta']:g}**, for "
            f"{_notion(guarantee)}. It may be shared."
        )
    return f"**NOT FIT FOR PUBLICATION**: {'; '.join(certificate['not_fit_because'])}."


def _promise(certificate: Mapping[str, Any]) -> str:
    guarantee = certificate["guarantee"]
    if guarantee["epsilon"] is None:
        if promises.AS_PUBLISHED in certificate["not_fit_because"]:
            return (
                "Nothing: there is no guarantee. It was trained with a mechanism as its paper prints it, which is "
                "not sound, for a comparison."
            )
        return "Nothing. It was trained without noise, for experiments."
    epsilon, delta = guarantee["epsilon"], guarantee["delta"]
    others = guarantee["under_other_accountants"]
    whose = _whose(guarantee)
    lines = [
        f"Take {whose} out of the data, or put it in: whatever anybody can conclude from this folder is at "
        f"most "
        f"{factor(epsilon)} times as likely either way, but for a chance of {delta:g}. Somebody who "
        f"thinks it as "
        f"likely as not that a person is among the records can be {belief(epsilon)} sure "
        f"after seeing "
        "all of it.",
        f"Put as numbers: ({epsilon_words(epsilon)}, {delta:g})-differential privacy; neighbours are "
        f"{guarantee['adjacency_means']}. If a {_unit(guarantee)} is exchanged for another instead: "
        f"{_exchanged(guarantee)}.",
        f"Counted by the {guarantee['accountant_used']} accountant"
        f"; the accountants say, {guarantee['other_accountants_speak']}, "
        f"{listed([f'{name} {epsilon_words(value)}' for name, value in others.items()])}"
        + f". So far {epsilon_words(certificate['spent']['epsilon'])} was spent.",
        *(f"Take care: {caution}." for caution in guarantee["cautions"]),
    ]
    if budget := certificate["dataset_budget"]:
        lines.append(
            f"This run is charged to the budget of the data set '{plain(budget['data_name'])}', which allows "
            f"epsilon "
            f"{budget['epsilon']:g} at delta {budget['delta']:g} for all its runs together."
        )
    if not certificate["fit_for_publication"]:
        lines.append("These numbers would hold with proper noise; as it is, they promise nothing.")
    return "\n\n".join(lines)


def _whose(guarantee: Mapping[str, Any]) -> str:
    """What is taken out of the data or put in."""
    if _unit(guarantee) == "group":
        return "all records of one group, such as one person,"
    if guarantee["group_size"] == 1:
        return "one person's record"
    return f"all of one person's records (up to {guarantee['group_size']})"


def _unit(guarantee: Mapping[str, Any]) -> str:
    """What is protected as a whole."""
    return "group" if guarantee["adjacency"] == promises.ADD_OR_REMOVE_GROUP else "record"


def _exchanged(guarantee: Mapping[str, Any]) -> str:
    """What replacing one record costs."""
    other = guarantee["replace_one"]
    if other["epsilon"] == guarantee["epsilon"]:
        return other["why"]
    if other["epsilon"] is None:
        return f"no epsilon can be named for that ({other['why']})"
    return f"epsilon {epsilon_words(other['epsilon'])} ({other['why']})"


def _making(certificate: Mapping[str, Any]) -> list[str]:
    """How often votes were asked for, with which noise, and what one person moves."""
    mechanism, noise = certificate["mechanism"], certificate["noise"]
    if is_baseline(certificate):
        return method_lines(certificate)
    released, warm = released_of(certificate, "votes"), warm_lines(certificate)
    starts = bool(warm) or "start" in certificate["assumed_public"]
    if any("sampling_probability" in item for item in released):
        return release_lines(certificate)
    if not released and warm:
        return [*warm, "Training was stopped before its first step, so no teacher has voted."]
    if not released:
        return [
            "Nothing has been released yet: training was stopped before its first step, so no teacher has "
            f"voted and the generator is as it {'began' if starts else 'was drawn at random'}. It has learned from "
            "no record."
        ]
    name = mechanism.get("name")
    place = {
        "d2p-fed": " units on every rotated coordinate",
        "fetchsgd-sound": " votes on every bucket of a sketch",
    }
    kinds = [mechanism.get("noise")] if name == "fetchsgd" else noise["kinds"]
    return [
        *warm,
        f"{mechanism.get('num_teachers')} teachers, each with its own part of the records "
        f"({mechanism.get('shard_size')} each at most), voted on images that a generator had drawn. Only the sum "
        f"of their votes was used, {noisily(released, place.get(str(name), ' votes on every pixel'))} "
        f"({listed(kinds)}; bits from the {noise['source']}). The generator learned from those sums and "
        f"from nothing else{', but for what it began with' if starts else ''}; they are in `directions.bin`, so "
        "that anybody can train it again.",
        _moved(mechanism, max(item["sensitivity"] for item in released)),
    ]


def _moved(mechanism: Mapping[str, Any], sensitivity: float) -> str:
    """What a teacher may say, and how far one person moves what is summed."""
    name = mechanism.get("name")
    says = f"On an image a teacher has at most {mechanism.get('top_k')} votes"
    if name == "d2p-fed":
        says = (
            f"On every rotated coordinate of an image a teacher gives one of {mechanism.get('levels')} levels"
        )
    if name == "fetchsgd":
        return (
            f"{says}. The largest sums were chosen before noise was added, so one person moves them by more than "
            "the noise hides: no guarantee."
        )
    return (
        f"{says}; one person moves a sum, over the {mechanism.get('batch_size')} images of a step, by at most "
        f"{sensitivity:g}."
    )


def _scores(certificate: Mapping[str, Any]) -> list[str]:
    """Charged counts of right predictions, apart from the training."""
    released = released_of(certificate, "score")
    if not released:
        return []
    return [
        "Apart from the training, a count of right predictions on people's records was released, "
        f"{noisily(released, '')}; one person moves it by at most "
        f"{max(item['sensitivity'] for item in released):g}. It is in `scores.json`, and the epsilon above covers it."
    ]


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
    return ["## What was changed on the way", bullets(items)]


def _identity(certificate: Mapping[str, Any]) -> list[str]:
    """Versions and hashes: which files this page is about."""
    made_in, files = certificate["environment"], certificate["files"]
    versions = [
        f"{name} {made_in[name]}" for name in ("datalens", "python", "torch", "numpy") if name in made_in
    ]
    hashes = [f"`{name}`: SHA-256 `{digest}`" for name, digest in files.items()]
    ledger = certificate["ledger"]
    hashes.append(f"`ledger.jsonl`: its line {ledger['last_line']} has the hash `{ledger['head']}`")
    return ["## Which files this is about", f"Made with {listed(versions)}.", bullets(hashes)]


def _notion(guarantee: Mapping[str, Any]) -> str:
    if _unit(guarantee) == "group":
        return "adding or removing one group (all its records)"
    size = guarantee["group_size"]
    what = "one record" if size == 1 else f"up to {size} records of one person"
    if guarantee["adjacency"] == "add-or-remove-one":
        return f"adding or removing {what}"
    return f"blanking {what}"
