"""Whole batches until they are due, in order, with weights and lateness: from memory, from disk, restored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.api.stream_elements import Batch
from penstock.engine.kernels.stable_hash import groups_of_keys
from penstock.engine.state.rows.batch_buffer import BatchBuffer
from penstock.engine.state.state_snapshot import SLOT
from penstock.engine.storage.spill_files import SpillFiles
from penstock.engine.task.memory_budget import StateSize

SCHEMA = pa.schema([("k", pa.int64()), ("text", pa.string()), ("list", pa.list_(pa.int32()))])
ON_TIME = -(2**63)


def rows(first: int, count: int) -> pa.RecordBatch:
    keys = range(first, first + count)
    columns = [
        pa.array(keys, pa.int64()),
        pa.array([None if k % 7 == 0 else f"text {k}" * (k % 5) for k in keys]),
        pa.array([[k, -k] for k in keys], pa.list_(pa.int32())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def buffer(*batches: Batch, keys: tuple[int, ...] = (0,)) -> BatchBuffer:
    made = BatchBuffer(SCHEMA, keys, 128)
    for batch in batches:
        made.add(batch)
    return made


def changes(batches: list[Batch]) -> list[Any]:
    """Rows with their weight and lateness, in an order of their own."""
    return sorted(
        (repr(row), weight, behind)
        for batch in batches
        for row, weight, behind in zip(
            batch.rows.to_pylist(),
            [1] * batch.num_rows if batch.weights is None else batch.weights.tolist(),
            [ON_TIME] * batch.num_rows if batch.behind is None else batch.behind.tolist(),
            strict=True,
        )
    )


BATCHES = [
    Batch(rows(0, 50)),
    Batch(rows(50, 20), np.arange(20) - 9),
    Batch(rows(70, 5), None, np.arange(5)),
]


def test_buffered_rows_come_back_in_order() -> None:
    state, memory = buffer(), buffer(*BATCHES, Batch(rows(90, 3)))
    for batch in BATCHES:
        state.add(batch)
        state.spill(SpillFiles())
    state.add(Batch(rows(90, 3)))
    assert len(state) == 78 and StateSize.of([state]).spilled > 0
    assert state.snapshot().equals(memory.snapshot())
    back = state.release()
    assert [b.rows.equals(a.rows) for a, b in zip(BATCHES, back[:3], strict=True)] == [True] * 3
    assert back[1].weights is BATCHES[1].weights and back[2].behind is BATCHES[2].behind and len(state) == 0


def test_a_released_buffer_is_empty_and_can_be_filled_again() -> None:
    state = buffer(*BATCHES)
    state.release()
    assert state.release() == [] and state.snapshot().num_rows == 0 and state.spillable_bytes() == 0
    state.add(BATCHES[0])
    assert len(state) == 50


def test_a_snapshot_restores_rows_weights_and_lateness() -> None:
    table = buffer(*BATCHES).snapshot()
    assert table.schema.names == ["key_group", "weight", "behind", "c0", "c1", "c2"]
    groups = table.column("key_group").to_numpy()
    keys = table.select(["c0"]).combine_chunks()
    assert (np.diff(groups.astype(int)) >= 0).all() and groups.tolist() == groups_of_keys(keys, 128).tolist()
    again = buffer()
    for start in range(0, table.num_rows, 30):
        again.restore(table.slice(start, 30))
    assert changes(again.release()) == changes(BATCHES)


def test_rows_of_no_lateness_and_weight_bring_no_columns_for_them() -> None:
    again = buffer()
    again.restore(buffer(BATCHES[0]).snapshot())
    (batch,) = again.release()
    assert batch.weights is None and batch.behind is None


def test_a_snapshot_larger_than_a_batch_is_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pa.concat_tables(buffer(*BATCHES).freeze(None)())
    monkeypatch.setattr(LIMITS, "batch_bytes", 300)
    pieces = list(buffer(*BATCHES).freeze(None)())
    assert len(pieces) > 4 and pa.concat_tables(pieces).equals(whole)


def test_without_key_columns_all_rows_are_of_the_first_group() -> None:
    table = buffer(*BATCHES, keys=()).snapshot()
    assert set(table.column("key_group").to_pylist()) == {0}
    assert table.column("c0").to_pylist() == list(range(75)), "in the order they came"


def test_only_asked_rows_are_frozen() -> None:
    state = buffer(*BATCHES)
    first = state.changes.seal()
    state.add(Batch(rows(200, 2)))
    changed = state.changes.since(first)
    assert changed is not None and changed.tolist() == [75, 76]
    table = pa.concat_tables(state.freeze(np.array([3, 49, 50, 76]))())
    assert sorted(zip(table.column(SLOT).to_pylist(), table.column("c0").to_pylist(), strict=True)) == [
        (3, 3),
        (49, 49),
        (50, 50),
        (76, 201),
    ]
    (none,) = state.freeze(np.zeros(0, np.int64))()
    assert none.num_rows == 0


def test_nothing_is_restored_from_nothing() -> None:
    again = buffer()
    again.restore(buffer().snapshot())
    again.add(Batch(rows(0, 0)))
    assert len(again) == 0 and again.release() == []
