"""The page of a run as a card: YAML that can be read, whatever a class is called, and the owner's licence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from small_baselines import SMALL
from small_runs import resume, train

from datalens.audit.second_neighbours import relation_again
from datalens.audit.verify import verify_run
from datalens.baselines.model import Baseline
from datalens.baselines.registry import baseline
from datalens.data import load
from datalens.privacy.card_citation import citation
from datalens.privacy.card_front import Licence, front_of_dataset, licence_of, size_category, yaml_text
from datalens.privacy.card_subject import title, usage
from datalens.privacy.card_words import listed
from datalens.privacy.data_card import _later, _notion
from datalens.privacy.neighbours import adjacency_means
from datalens.privacy.promises import (
    ADD_OR_REMOVE,
    ADD_OR_REMOVE_GROUP,
    BLANKED,
    CERTIFICATE_FILE,
    CLASSIFIERS,
    METHOD_TEXT,
)


def front_of(page: str) -> dict:
    """The first lines of a page, as YAML."""
    return yaml.safe_load(re.match(r"---\n(.*?)\n---\n", page, re.DOTALL)[1])


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_read_back(text: str) -> None:
    assert yaml.safe_load(f"name: {yaml_text(text)}") == {"name": text}


@given(st.integers(0, 10**14))
def test_sizes_enclose_the_count(count: int) -> None:
    units = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
    bounds = [
        int(number) * units[unit] for number, unit in re.findall(r"(\d+)([KMBT])", size_category(count))
    ]
    category = size_category(count)
    if category.startswith("n<"):
        assert count < bounds[0]
    elif category.startswith("n>"):
        assert count >= bounds[0]
    else:
        assert bounds[0] <= count < bounds[1] == 10 * bounds[0]


def test_a_run_has_a_card(tmp_path: Path) -> None:
    train(tmp_path / "run")
    page = (tmp_path / "run" / "release" / "README.md").read_text()
    assert front_of(page) == {
        "license": "unknown",
        "pretty_name": "Synthetic images of 2 classes",
        "pipeline_tag": "unconditional-image-generation",
        "task_categories": ["image-classification", "unconditional-image-generation"],
        "size_categories": ["unknown"],
        "tags": ["differential-privacy", "datalens", "synthetic"],
    }
    assert "wang2021datalens" in page
    assert "images that are not public" in page
    assert "python load_generator.py 1000 pictures" in page  # which lies beside it


def test_a_page_names_the_program_beside_the_generator_only_where_it_lies(tmp_path: Path) -> None:
    train(tmp_path / "run")
    certificate = json.loads((tmp_path / "run" / "release" / CERTIFICATE_FILE).read_text())
    assert "load_generator.py" in "".join(usage(certificate, "release"))
    del certificate["files"]["load_generator.py"]
    assert "load_generator.py" not in "".join(usage(certificate, "release"))


def test_a_method_has_a_card_with_its_own_paper(tmp_path: Path) -> None:
    settings = baseline("dp-merf", SMALL["dp-merf"], epsilon=8.0)
    Baseline(settings).fit(load("shapes"), out=tmp_path / "run")
    page = (tmp_path / "run" / "release" / "README.md").read_text()
    assert front_of(page)["tags"] == ["differential-privacy", "datalens", "synthetic", "dp-merf"]
    assert "Adamczewski" in page
    assert "wang2021datalens" not in page
    assert "trained on shapes" in page
    assert "labels of generated images: uniform on the class list\n" in page
    assert "teachers" not in page
    assert verify_run(tmp_path / "run").differences == []


@pytest.mark.parametrize(
    ("header", "whose"),
    [
        ({"adjacency": ADD_OR_REMOVE}, "differ by {whose}: records"),
        ({"adjacency": BLANKED}, "differ by {whose} being blanked"),
        ({"adjacency": ADD_OR_REMOVE, "replace_one_events": []}, "differ by {whose} added or removed"),
    ],
)
def test_neighbours_are_named_by_the_records_that_one_person_may_have(header: dict, whose: str) -> None:
    for size, words in ((1, "one record"), (3, "up to 3 records of one person")):
        said = {**header, "mechanism": {"group_size": size}}
        assert whose.format(whose=words) in adjacency_means(said)
        assert relation_again(said)[1] == adjacency_means(said)


@pytest.mark.parametrize("method", METHOD_TEXT)
def test_every_method_says_whom_to_cite(method: str) -> None:
    certificate = {"mechanism": {"name": method}, "environment": {}, "ledger": {"run_id": "r"}}
    assert len(citation(certificate)[0]) > 40


def test_the_owner_may_name_a_licence_and_nothing_else(tmp_path: Path) -> None:
    train(tmp_path / "run")
    page = tmp_path / "run" / "release" / "README.md"
    told = page.read_text()
    page.write_text(told.replace("license: unknown", "license: cc-by-4.0"))
    assert verify_run(tmp_path / "run").differences == []
    resume(tmp_path / "run")  # writes the page again
    assert "yet to name" in told
    assert "yet to name" not in page.read_text()
    assert verify_run(tmp_path / "run").differences == []
    for wrong in ("license: free", "license: cc-by-4.0\ntags: []", "licence: mit"):
        page.write_text(told.replace("license: unknown", wrong, 1))
        assert any("README.md" in line for line in verify_run(tmp_path / "run").differences), wrong


@pytest.mark.parametrize(
    "page", ["", "license: mit\n", "---\nlicense: nobody's\n", "---\ntags: []\nlicense: mit\n"]
)
def test_other_pages_name_no_licence(page: str) -> None:
    assert licence_of(page) is Licence.UNKNOWN


def test_class_names_of_any_kind_in_the_columns() -> None:
    names = ["yes", "1", "a: b", "#", '"', "'", "\n", "\u2028", "\x85", "null", "é", "😀"]
    certificate = {
        "mechanism": {"name": "topagg"},
        "assumed_public": {"classes": names},
        "fit_for_publication": True,
        "guarantee": {"epsilon": 1.0},
    }
    front = front_of_dataset(certificate, Licence.MIT, "data/*.parquet", names, 5) + "\n"
    [image, label] = front_of(front)["dataset_info"]["features"]
    assert image == {"name": "image", "dtype": "image"}
    assert label["dtype"]["class_label"]["names"] == {str(number): name for number, name in enumerate(names)}
    assert json.dumps(front_of(front)["configs"]) == (
        '[{"config_name": "default", "data_files": [{"split": "train", "path": "data/*.parquet"}]}]'
    )


def test_a_long_list_of_words_ends_in_dots() -> None:
    words = [f"w{place}" for place in range(25)]
    assert listed(words) == ", ".join([*words[:20], "..."])
    assert listed(words[:20]) == ", ".join(words[:20])
    assert listed([]) == "none"


def test_the_notion_of_a_page_is_the_certificates() -> None:
    guarantee = {"adjacency": ADD_OR_REMOVE_GROUP, "group_size": 1}
    assert _notion(guarantee) == "adding or removing one group (all its records)"
    assert _notion({"adjacency": ADD_OR_REMOVE, "group_size": 1}) == "adding or removing one record"
    assert "up to 3 records of one person" in _notion({"adjacency": ADD_OR_REMOVE, "group_size": 3})


def test_what_was_changed_on_the_way_is_on_the_page() -> None:
    change = {"from_step": 7, "top_k": 5, "noise_stddev": 12.0, "vote_threshold": 0.5, "num_steps": 9}
    certificate = {
        "later_authorisations": [{"epsilon": 3.0}],
        "mechanism": {"changed_on_resume": [change]},
    }
    page = "\n".join(_later(certificate))
    assert "epsilon 3 was authorised after looking" in page
    assert "from step 7 on: 5 votes an image, noise 12, threshold 0.5, 9 steps in all" in page
    assert _later({"later_authorisations": [], "mechanism": {"changed_on_resume": []}}) == []


def test_the_heading_says_what_was_trained() -> None:
    assert title({"mechanism": {"name": CLASSIFIERS[0]}}) == "# A classifier of images"
    assert title({"mechanism": {"name": "topagg"}}) == "# A generator of synthetic images"
