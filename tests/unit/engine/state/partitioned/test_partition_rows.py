"""Rows of partitions: keys are found again, ids are reused, keyed rows replace each other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.state.partitioned.partition_rows import KeyedRows, PartitionKeys, PartitionRows

SCHEMA = pa.schema([("name", pa.string()), ("n", pa.int64())])


def rows(*values: tuple[str, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"name": name, "n": n} for name, n in values], SCHEMA)


def keyed(partitions: PartitionKeys) -> KeyedRows:
    return KeyedRows(SCHEMA, partitions, lambda batch: [pc.utf8_lower(batch.column(0))])


def test_a_snapshot_names_keys_and_numbers_rows_as_they_arrived() -> None:
    partitions = PartitionKeys.of([pa.int32(), pa.string()], 128)
    held = PartitionRows(SCHEMA, partitions, numbered=True)
    slots = partitions.keys.lookup_or_insert([pa.array([1, 2], pa.int32()), pa.array(["a", None])])
    first = held.append(slots[[0, 1, 0]], rows(("x", 1), ("y", 2), ("z", 3)))
    held.drop(first[:1])
    # the id that is free again is used by a row that arrived later
    assert held.append(slots[:1], rows(("w", 4))).tolist() == first[:1].tolist()
    table = held.snapshot()
    assert table.column_names == ["key_group", "k0", "k1", "v0", "v1", "arrived"]
    again = PartitionRows(SCHEMA, PartitionKeys.of([pa.int32(), pa.string()], 128), numbered=True)
    again.restore(table)
    found = again._partitions.keys.lookup([pa.array([1], pa.int32()), pa.array(["a"])])
    assert again.take(again.of(found)[1]).column(0).to_pylist() == ["z", "w"]


def test_changes_since_a_snapshot_are_those_of_its_rows() -> None:
    partitions = PartitionKeys.of([], 128)
    held = PartitionRows(SCHEMA, partitions)
    slots = partitions.keys.lookup_or_insert([], 1)
    ids = held.append(slots.repeat(3), rows(("x", 1), ("y", 2), ("z", 3)))
    held.changes.seal()
    held.drop(ids[1:2])
    changed = held.changes.since(1)
    assert changed is not None
    assert changed.tolist() == ids[1:2].tolist()
    (piece,) = held.freeze(changed)()
    assert piece.num_rows == 0, "the row is gone"


def test_of_rows_with_one_key_the_last_stays() -> None:
    partitions = PartitionKeys.of([pa.int64()], 128)
    held = keyed(partitions)
    slots = partitions.keys.lookup_or_insert([pa.array([1, 2])])
    held.put(slots[[0, 0, 1]], rows(("x", 1), ("X", 2), ("x", 3)))
    held.put(slots[:1], rows(("x", 4)))
    ids = held.find(slots, [pa.array(["x", "x"])])
    assert held.take(ids).column(1).to_pylist() == [4, 3]
    held.drop(ids[:1])
    assert held.find(slots, [pa.array(["x", "x"])]).tolist() == [-1, ids[1]]
    assert len(held) == 1


def test_many_rows_grow_all_arrays() -> None:
    partitions = PartitionKeys.of([pa.int64()], 128)
    held, numbers = keyed(partitions), np.arange(5_000)
    slots = partitions.keys.lookup_or_insert([pa.array(numbers // 2)])
    names = pa.array([f"n{n}" for n in numbers])
    held.put(slots, pa.RecordBatch.from_arrays([names, pa.array(numbers)], schema=SCHEMA))
    assert held.take(held.find(slots, [names])).column(1).to_pylist() == numbers.tolist()
    held.clear(np.unique(slots))
    assert len(held) == 0
