"""Shards hold their own records, and an empty slot holds nothing of anybody's."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.teachers.shards import RecordShards


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.booleans(), min_size=1, max_size=12), st.integers(1, 3), st.booleans(), st.integers(0, 2**31)
)
def test_a_chunk_is_what_a_loop_over_slots_gives(
    filled: list[bool], num_slots: int, as_bytes: bool, seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    filled = (filled * num_slots)[: len(filled) * num_slots]
    images = torch.randint(1, 256, (len(filled), 1, 2, 2), dtype=torch.uint8, generator=rng)
    if not as_bytes:
        images = images.float() / 255
    labels = torch.randint(1, 9, (len(filled),), generator=rng)  # never 0, which is what an empty slot holds
    records = torch.randperm(len(filled), generator=rng)
    slots = torch.where(torch.tensor(filled), records, -1).view(-1, num_slots)
    shards = RecordShards(images, labels, slots)
    start = len(slots) // 3
    found = shards.chunk(start, len(slots), torch.device("cpu"))
    for teacher, row in enumerate(slots[start:].tolist()):
        for place, record in enumerate(row):
            image, label = torch.zeros(1, 2, 2), 0
            if record >= 0:
                image, label = images[record].float() / (255 if as_bytes else 1), int(labels[record])
            assert torch.equal(found.images_TRCHW[teacher, place], image)
            assert int(found.labels_TR[teacher, place]) == label
            assert bool(found.present_TR[teacher, place]) is (record >= 0)


def test_another_device_gets_its_copy_once() -> None:
    """The meta device stands in for an accelerator: shapes and types, but no values that could be asked for."""
    images, labels = torch.zeros(6, 1, 2, 2, dtype=torch.uint8), torch.zeros(6, dtype=torch.int64)
    shards = RecordShards(images, labels, torch.tensor([[0, 1, -1], [2, 3, 4]]))
    meta = torch.device("meta")
    found = shards.chunk(0, 2, meta)
    assert {found.images_TRCHW.device, found.labels_TR.device, found.present_TR.device} == {meta}
    assert found.images_TRCHW.shape == (2, 3, 1, 2, 2)
    assert shards._records(meta)[0] is shards._records(meta)[0]
