"""Keyed entries as tables of a snapshot: by key group, in pieces no larger than a batch may be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.row_pieces import LIMITS, TooLarge
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.state.entry_table import Entries, key_columns, pieces_by_keys
from penstock.engine.state.state_snapshot import SLOT

KEYS = [pa.array([f"key {i}" for i in range(100)]), pa.array([None if i % 9 == 0 else i for i in range(100)])]
VALUES = pa.array([f"{i}" * 40 for i in range(100)])


def entries(slots: np.ndarray) -> Entries:
    at = pa.array(slots)
    keys = [column.take(at) for column in KEYS]
    return keys, key_columns(keys) | {"value": VALUES.take(at)}


def check(pieces: Iterator[pa.Table], slots: list[int], groups_of: int) -> int:
    """Compare tables with the entries of slots; return how many tables there are."""
    tables = list(pieces)
    assert {tuple(table.schema.names) for table in tables} == {("key_group", SLOT, "k0", "k1", "value")}
    assert [str(kind) for kind in tables[0].schema.types] == ["uint16", "uint32", "string", "int64", "string"]
    whole = pa.concat_tables(tables)
    groups = whole.column("key_group").to_pylist()
    assert groups == sorted(groups)
    hashes = stable_hash([column.combine_chunks() for column in whole.select(["k0", "k1"]).columns])
    assert groups == (hashes % np.uint64(groups_of)).tolist()
    found = {row[SLOT]: (row["k0"], row["k1"], row["value"]) for row in whole.to_pylist()}
    assert whole.num_rows == len(slots) and found == {
        slot: (KEYS[0][slot].as_py(), KEYS[1][slot].as_py(), VALUES[slot].as_py()) for slot in slots
    }
    return len(tables)


def test_entries_are_one_table_in_the_order_of_their_key_groups() -> None:
    slots = [5, 3, 99, 0, 18, 42]
    assert check(pieces_by_keys(np.array(slots), entries, 7)(), slots, 7) == 1


def test_entries_larger_than_a_batch_are_several_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "batch_bytes", 800)
    slots = list(range(100))
    assert check(pieces_by_keys(np.array(slots), entries, 7)(), slots, 7) > 4


def test_entries_that_no_array_holds_are_read_in_halves() -> None:
    asked: list[int] = []

    def limited(slots: np.ndarray) -> Entries:
        asked.append(slots.size)
        if slots.size > 30:
            raise TooLarge(slots.size)
        return entries(slots)

    slots = list(range(100))
    check(pieces_by_keys(np.array(slots), limited, 7)(), slots, 7)
    assert asked[0] == 100 and max(asked[-2:]) <= 30


def test_columns_are_read_when_the_state_is_frozen_not_when_they_are_written() -> None:
    values = np.array([1, 2])
    pieces = pieces_by_keys(np.arange(2), lambda slots: ([], {"v": pa.array(values[slots])}), 7)
    values[:] = 0
    (table,) = pieces()
    assert table.to_pydict() == {"key_group": [0, 0], SLOT: [0, 1], "v": [1, 2]}


def test_no_entries_are_one_empty_table() -> None:
    assert check(pieces_by_keys(np.zeros(0, np.int64), entries, 7)(), [], 7) == 1
