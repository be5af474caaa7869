"""``tests/mutation_smoke.py`` takes minutes and runs by hand; that its edits still apply is seen here."""

from __future__ import annotations

import pytest
from mutation_smoke import MUTATIONS, REPOSITORY, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_mutation_still_finds_its_line_and_its_test(mutation: Mutation) -> None:
    text = (REPOSITORY / "src" / "datalens" / mutation.file).read_text()
    assert text.count(mutation.old) == 1
    assert mutation.new != mutation.old
    assert (REPOSITORY / mutation.test.split("::")[0]).is_file()


def test_there_are_ten_mutations_or_more() -> None:
    assert len({(mutation.file, mutation.old) for mutation in MUTATIONS}) >= 10
