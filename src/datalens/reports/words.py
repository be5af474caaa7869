"""What a page says in sentences: the promise in plain words, how the run came about, how to load and cite it."""

from __future__ import annotations

from dataclasses import dataclass

from datalens.privacy import promises
from datalens.privacy.card_words import belief, epsilon_words, factor
from datalens.reports.facts import ReleaseFacts

DATALENS = "datalens"
TITLES = {
    DATALENS: "DataLens",
    "dp-merf": "DP-MERF",
    "moments": "moments",
    "judged": "judged",
    "pate-gan": "PATE-GAN",
    "g-pate": "G-PATE",
    "dp-gan": "DP-GAN",
    "gs-wgan": "GS-WGAN",
    "dc-gan": "DC-GAN",
    "dp-sgd": "DP-SGD with TopAgg",
}
"""How methods are called by people."""


@dataclass(frozen=True)
class Promise:
    """What is promised to one person, each part a paragraph.

    Attributes:
        epsilon: what it bounds.
        delta: what it allows.
        neighbours: between which data sets it holds.
        exchanged: what exchanging one record costs instead.
        belief: how sure an onlooker may become, in words.
        belief_percent: the same as a number.
    """

    epsilon: str
    delta: str
    neighbours: str
    exchanged: str
    belief: str
    belief_percent: float


def method_title(facts: ReleaseFacts) -> str:
    """The method as people call it, with the mechanism where DataLens has another than TopAgg."""
    mechanism = str(facts.certificate["mechanism"].get("name"))
    if facts.method == DATALENS and mechanism not in ("topagg", "None"):
        return f"DataLens with {mechanism}"
    return TITLES.get(facts.method, facts.method)


def promise(facts: ReleaseFacts) -> Promise | None:
    """The promise; None where there is none."""
    guarantee, epsilon = facts.certificate["guarantee"], facts.epsilon
    if epsilon is None:
        return None
    unit, whose = _unit(facts), _whose(facts)
    other = guarantee["replace_one"]
    exchanged = other["why"]
    if other["epsilon"] != epsilon:
        exchanged = f"epsilon {epsilon_words(other['epsilon'])}, {exchanged}"
    return Promise(
        epsilon=(
            f"Take {whose} out of the data, or put it in. Whatever anybody can conclude from these files is at most "
            f"{factor(epsilon)} times as likely either way. That factor is e to the power of epsilon, and the "
            "smaller it is, the less one person matters."
        ),
        delta=(
            f"The bound on the factor holds but for a chance of {chance(facts.delta)}: that is delta, which should "
            "be far below one over the number of records."
        ),
        neighbours=f"Neighbours, between which it holds, are {guarantee['adjacency_means']}.",
        exchanged=f"If a {unit} is exchanged for another instead: {exchanged}.",
        belief=(
            "Somebody who thinks it as likely as not that a person is among the records can be "
            f"{belief(epsilon)} sure after seeing all of this."
        ),
        belief_percent=belief_percent(epsilon),
    )


def notion(facts: ReleaseFacts) -> str:
    """Whom the promise is about, in a few words."""
    guarantee = facts.certificate["guarantee"]
    if _unit(facts) == "group":
        return "one group, with all its records, added or removed"
    what = (
        "one record"
        if guarantee["group_size"] == 1
        else f"up to {guarantee['group_size']} records of one person"
    )
    return f"{what} {'blanked' if guarantee['adjacency'] == promises.BLANKED else 'added or removed'}"


def belief_percent(epsilon: float) -> float:
    """How sure one may become from even odds, in percent.

    >>> belief_percent(0.0), round(belief_percent(1.0), 2)
    (50.0, 73.11)
    """
    from math import exp

    return 100 / (1 + exp(-epsilon))


def chance(delta: float) -> str:
    """A small chance in words, never rounded down.

    >>> chance(1e-5), chance(0.3)
    ('1 in 100,000', '0.3')
    """
    if not 0 < delta < 0.1:
        return f"{delta:g}"
    return f"1 in {int(1 / delta + 1e-6):,}"


def audit_words(facts: ReleaseFacts) -> str:
    """What is published of an audit."""
    if facts.audit is None:
        return "no verdict published"
    if not facts.audit.is_current:
        return "of an earlier state"
    return "passed" if facts.audit.passed else "failed"


def making(facts: ReleaseFacts) -> list[str]:
    """How it was trained, a paragraph each."""
    certificate, progress = facts.certificate, facts.progress
    name = str(certificate["mechanism"].get("name"))
    if facts.is_of_own_method:
        said = [promises.OWN_METHOD_TEXT.format(name=name)]
    elif name in promises.METHOD_TEXT:
        published = promises.AS_PUBLISHED in certificate["not_fit_because"]
        said = [(promises.PUBLISHED_METHOD_TEXT if published else promises.METHOD_TEXT)[name]]
    elif certificate["noise"]["releases"]:
        said = [_by_datalens(facts)]
    else:
        said = ["By DataLens. Nothing has been released yet, so it has learned from no record."]
    if certificate["tuning"]:
        said.append(
            f"Its settings were tuned on the records, among {certificate['tuning']['num_candidates']} candidates; "
            "what is promised covers all tries and the choice."
        )
    if progress.planned is not None and progress.charged < progress.planned and not progress.is_paid:
        said.append(
            f"The training was stopped: {progress.charged:,} of {progress.planned:,} steps were taken."
        )
    return said


def releases(facts: ReleaseFacts) -> list[tuple[str, str, str, str]]:
    """What was released about the records: what, how often, with which noise, what one person moves."""
    rows = []
    for item in facts.certificate["noise"]["releases"]:
        if "sampling_probability" in item:
            noise = f"{item['noise_multiplier']:.4g} times that" if item["noise_multiplier"] else "none"
            moves = f"one clipped share, with chance {item['sampling_probability']:.4g}"
        else:
            noise = f"{item['noise_stddev']:g}" if item["noise_stddev"] else "none"
            moves = f"{item['sensitivity']:g}"
        rows.append((str(item["what"]), f"{item['count']:,}", noise, moves))
    return rows


def subject(facts: ReleaseFacts) -> str:
    """What the network does."""
    channels, height, width = facts.image_shape
    images = f"{width} x {height} pixels in {'colour' if channels == 3 else 'grey'}"
    many = f"{len(facts.classes)} class{'' if len(facts.classes) == 1 else 'es'}"
    if facts.is_classifier:
        return f"tells {many} of images of {images} apart"
    return f"draws images of {images}, of {many}"


def public_facts(facts: ReleaseFacts) -> list[str]:
    """What was taken to be known to everybody."""
    public = facts.certificate["assumed_public"]
    said = [f"that there are at most {public['bound_on_records']} records"]
    if public["num_teachers"] is not None:
        each = public["slots_of_each_teacher"]
        said.append(f"that there are {public['num_teachers']} teachers with at most {each} records each")
    said += [f"the list of classes ({public['class_list']})", "the size of the images"]
    if public["generated_labels"] is not None:
        said.append(f"labels of generated images: {public['generated_labels']}")
    return [*said, *([public["start"]] if public.get("start") else [])]


def _by_datalens(facts: ReleaseFacts) -> str:
    mechanism = facts.certificate["mechanism"]
    starts = facts.certificate["assumed_public"].get("start")
    beside = ", but for the public weights that it began with" if starts else ""
    return (
        f"By DataLens: {mechanism.get('num_teachers')} teachers, each with its own part of the records (at most "
        f"{mechanism.get('shard_size')} each), looked at images that the generator had drawn and voted where each "
        f"pixel should move. Only the sum of all votes was used, {_noisily(facts)}. The generator learned from those "
        f"sums and from nothing else{beside}; they lie in directions.bin, so that anybody can train it again."
    )


def _noisily(facts: ReleaseFacts) -> str:
    """What hides one teacher in the sums."""
    reasons = facts.certificate["not_fit_because"]
    if promises.NO_NOISE in reasons:
        return "without noise"
    if promises.AS_PUBLISHED in reasons:
        return "the largest chosen before noise was added, so that the noise does not hide one person"
    return "with random noise on every sum"


def _unit(facts: ReleaseFacts) -> str:
    adjacency = facts.certificate["guarantee"]["adjacency"]
    return "group" if adjacency == promises.ADD_OR_REMOVE_GROUP else "record"


def _whose(facts: ReleaseFacts) -> str:
    size = facts.certificate["guarantee"]["group_size"]
    if _unit(facts) == "group":
        return "all records of one group, such as one person,"
    return "one person's record" if size == 1 else f"all of one person's records (up to {size})"
