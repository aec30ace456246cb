"""Rows of a lookup join whose answers are pending survive a restore, with their copies and lateness."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.rows.pending_lookups import PendingLookups
from tests.unit.engine.operators.changelogs import listed

SCHEMA = pa.schema([("x", pa.int64())])
MANY = 10**12
"""Copies of a row that nobody could hold one by one."""


def test_copies_of_rows_under_way_survive_a_restore() -> None:
    late = np.array([7, -(2**63)])
    plain, copied = (
        Batch(pa.record_batch({"x": [1]})),
        Batch(pa.record_batch({"x": [2, 3]}), np.array([1, MANY]), late),
    )
    for pending, names in (
        ([plain], ["key_group", "behind", "c0"]),
        ([plain, copied], ["key_group", "behind", "c0", "copies"]),
    ):
        before, after = PendingLookups(SCHEMA, 3), PendingLookups(SCHEMA, 3)
        before.hold(pending)
        assert before.snapshot().column_names == names, "one without copies is written as ever"
        after.restore(before.snapshot())
        again = PendingLookups(SCHEMA, 3)
        again.restore(after.snapshot())
        (batch,) = again.take()
        expected = [change for one in pending for change in listed(one)]
        assert listed(batch) == expected
        assert batch.behind is None if len(pending) == 1 else batch.behind.tolist() == [-(2**63), *late]


def test_what_is_declared_replaces_what_was_declared_before() -> None:
    state = PendingLookups(SCHEMA, 3)
    state.hold([Batch(pa.record_batch({"x": [1, 2]}))])
    state.hold([Batch(pa.record_batch({"x": [2]}))])
    assert state.snapshot().to_pydict() == {"key_group": [3], "behind": [-(2**63)], "c0": [2]}


def test_restored_rows_are_written_again_until_they_are_taken_once() -> None:
    before, state = PendingLookups(SCHEMA, 1), PendingLookups(SCHEMA, 5)
    before.hold([Batch(pa.record_batch({"x": [1]}))])
    for _ in range(2):  # the parts of two subtasks
        state.restore(before.snapshot())
    state.hold([Batch(pa.record_batch({"x": [9]}))])
    table = state.snapshot()
    assert table.column("c0").to_pylist() == [1, 1, 9], "restored rows came first"
    assert table.column("key_group").to_pylist() == [5] * 3, "the group of the new subtask"
    assert state.has_restored
    assert [batch.rows.column(0).to_pylist() for batch in state.take()] == [[1], [1]]
    assert not state.has_restored and state.take() == []
    assert state.snapshot().column("c0").to_pylist() == [9]


def test_each_batch_of_a_part_has_its_copies_and_lateness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "array_bytes", 8)  # a row each
    names = ["key_group", "behind", "c0", "copies"]
    parts = [
        pa.table(
            [pa.array([3], pa.uint16()), pa.array([behind]), pa.array([x]), pa.array([copies])], names=names
        )
        for behind, x, copies in ((-(2**63), 1, 5), (7, 2, 6))
    ]
    state = PendingLookups(SCHEMA, 3)
    state.restore(pa.concat_tables(parts))
    found = [change for batch in state.take() for change in listed(batch)]
    state.restore(pa.concat_tables(parts))
    late = [None if batch.behind is None else batch.behind.tolist() for batch in state.take()]
    assert found == [((1,), 5), ((2,), 6)] and late == [None, [7]]


def test_nothing_pending_is_an_empty_table() -> None:
    state = PendingLookups(SCHEMA, 3)
    state.restore(state.snapshot())
    assert state.snapshot().num_rows == 0 and state.take() == []
