"""Faults that users of comparable programs met: each has a test that is named after it, such as ``test_r37_...``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
CASES = {
    "r01": "the budget is overspent after a restart",
    "r04": "teachers share records, or change them",
    "r05": "the cost is wrong by a factor",
    "r08": "one step too many",
    "r09": "noise is added once a process",
    "r12": "too few orders of the Renyi divergence",
    "r13": "a lot without records",
    "r16": "a gradient that is no number",
    "r17": "a checkpoint that is cut off",
    "r20": "FID with fewer images than dimensions",
    "r21": "a search for noise that overshoots",
    "r23": "a question changes the account",
    "r25": "a loose conversion",
    "r26": "a lot as large as the data",
    "r28": "a delta that allows a whole record",
    "r30": "shuffled lots accounted as drawn ones",
    "r32": "an epsilon that is no number",
    "r34": "no calculator without data",
    "r35": "layers that mix records",
    "r37": "gradients of records that are stale, doubled or missing",
    "r39": "a generator that learnt nothing, called trained",
    "r41": "memory for thousands of teachers",
    "r43": "randomness is lost at a restart",
    "r45": "files that run code",
    "r47": "names of weights with a wrapper's prefix",
    "r49": "counts of classes leak",
    "r51": "copies of records in several shards",
    "r53": "labels with gaps, or that are no numbers",
    "r55": "grey images where colour is expected",
    "r57": "the range of pixels is guessed",
    "r59": "a download that is broken",
    "r61": "an image that is cut off",
    "r63": "several processes download at once",
    "r66": "Inception Score of few images",
    "r69": "scores that depend on the file format",
    "r71": "rows of nothing among the samples",
    "r73": "a metric that needs more samples",
    "r75": "half precision",
}


def names_by_case() -> dict[str, list[str]]:
    """The names of the tests that carry a case's number."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for case in re.findall(r"(?<![a-z0-9])r\d\d(?![a-z0-9])", node.name):
                    found.setdefault(case, []).append(f"{path.name}:{node.name}")
    return found


def test_every_case_has_a_test_named_after_it() -> None:
    assert CASES.keys() - names_by_case().keys() == set()


def test_names_speak_of_cases_that_exist() -> None:
    others = {case: names for case, names in names_by_case().items() if case not in CASES}
    assert others == {}
