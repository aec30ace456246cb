"""The order of entries in a snapshot, and its table without slots."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.state.state_snapshot import (
    ARRIVED,
    BEHIND,
    COPIES,
    OPTIONAL,
    SLOT,
    WRITTEN,
    by_group,
    whole,
)
from tests.harness.length import examples


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 4), max_size=40))
def test_entries_of_one_group_stay_in_their_order(groups: list[int]) -> None:
    slots = np.arange(len(groups))[::-1] + (1 << 31)  # past what a signed 32-bit number holds
    order, (first, second) = by_group(np.array(groups, np.uint16), slots)
    assert order.tolist() == sorted(range(len(groups)), key=lambda i: groups[i])
    assert first.to_pylist() == sorted(groups) and second.to_pylist() == slots[order].tolist()
    assert (first.type, second.type) == (pa.uint16(), pa.uint32())


def test_the_pieces_of_a_state_are_one_table_without_slots() -> None:
    pieces = [pa.table({"key_group": [group], SLOT: [7], "x": ["a"]}) for group in (1, 2)]
    assert whole(iter(pieces)).to_pydict() == {"key_group": [1, 2], "x": ["a", "a"]}


def test_optional_columns_have_their_written_names_and_order() -> None:
    """Checkpoints that exist have these names: they never change."""
    assert (SLOT, ARRIVED, BEHIND, WRITTEN, COPIES) == ("@slot", "arrived", "behind", "written_ms", "copies")
    assert OPTIONAL == (ARRIVED, BEHIND, WRITTEN, COPIES)
