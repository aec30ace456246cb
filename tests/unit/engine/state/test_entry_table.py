"""Keyed entries as tables of a snapshot: by key group, in pieces no larger than a batch may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.row_pieces import LIMITS, TooLarge
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.state.entry_table import Entries, key_columns, pieces_by_keys
from penstock.engine.state.state_snapshot import SLOT

KEYS = [pa.array([f"key {i}" for i in range(100)]), pa.array([None if i % 9 == 0 else i for i in range(100)])]
VALUES = pa.array([f"{i}" * 40 for i in range(100)])


def keys(at: np.ndarray) -> list[pa.Array]:
    return [column.take(pa.array(at, pa.int64())) for column in KEYS]


def entries(at: np.ndarray) -> Mapping[str, pa.Array]:
    return key_columns(keys(at)) | {"value": VALUES.take(pa.array(at, pa.int64()))}


def pieces(slots: list[int], made: Entries = entries) -> Iterator[pa.Table]:
    """Return the tables of slots that are their own positions."""
    return pieces_by_keys(np.array(slots, np.int64), np.array(slots, np.int64), keys, made, 7)


def check(made: Iterator[pa.Table], slots: list[int], groups_of: int) -> int:
    """Compare tables with the entries of slots; return how many tables there are."""
    tables = list(made)
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
    assert check(pieces(slots), slots, 7) == 1


def test_entries_larger_than_a_batch_are_several_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "batch_bytes", 800)
    slots = list(range(100))
    assert check(pieces(slots), slots, 7) > 4


def test_entries_that_no_array_holds_are_made_in_halves() -> None:
    asked: list[int] = []

    def limited(at: np.ndarray) -> Mapping[str, pa.Array]:
        asked.append(at.size)
        if at.size > 30:
            raise TooLarge(at.size)
        return entries(at)

    slots = list(range(99))
    assert check(pieces(slots, limited), slots, 7) == 4
    assert max(asked[-2:]) <= 30


def test_positions_of_entries_are_not_their_slots() -> None:
    made = pieces_by_keys(np.array([7, 9]), np.arange(2), lambda at: [], lambda at: {"v": pa.array(at)}, 7)
    (table,) = made
    assert table.to_pydict() == {"key_group": [0, 0], SLOT: [7, 9], "v": [0, 1]}


def test_no_entries_are_one_empty_table() -> None:
    assert check(pieces([]), [], 7) == 1
