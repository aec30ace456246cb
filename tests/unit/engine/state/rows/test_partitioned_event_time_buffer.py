"""Rows that wait for time, put back from the parts of several subtasks."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa

from penstock.engine.api.operator import KeyedState, KeyGroups, ListState, Operator
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.partitioned_event_time_buffer import TimedRows
from tests.harness.layered import LayeredState

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
START = datetime(2024, 1, 1)


def rows(*given: tuple[int, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([k for k, _ in given], pa.int64()),
            pa.array([START + timedelta(seconds=s) for _, s in given], pa.timestamp("us")),
        ],
        schema=SCHEMA,
    )


def state() -> TimedRows:
    return TimedRows(SCHEMA, (0,), 1, KeyIndex([pa.int64()]), KeyGroups(0, 16, 16))


def part(passed_us: int, *given: tuple[int, int]) -> pa.Table:
    made = state()
    made.hold(rows(*given))
    made.passed_time.us = passed_us
    return made.snapshot()


def test_restored_from_subtasks_at_different_times_it_is_at_the_earliest() -> None:
    """What the one further behind has still to come must not be late for the one further ahead."""
    for parts in ((part(9, (1, 1)), part(5, (2, 2))), (part(5, (2, 2)), part(9, (1, 1)))):
        again = state()
        for one in parts:
            again.restore(one)
        assert again.passed_us == 5
        assert len(again) == 2


def test_time_that_went_on_above_rows_that_were_not_written_again_is_known() -> None:
    made, layered = state(), LayeredState()
    operator = Keeps(made)
    made.hold(rows((1, 1), (2, 50)))
    for passed_us in (5, 7, 9):
        made.due(passed_us)
        tables, items = layered.take(operator)
    assert tables["rows"].column("passed_us").to_pylist() == [5, 5]
    again = state()
    again.passed_time.restore_items(items["passed"])
    again.restore(tables["rows"])
    assert again.passed_us == 9
    alone = state()
    alone.restore(tables["rows"])
    assert alone.passed_us == 5


class Keeps(Operator):
    """An operator of no more than its state."""

    def __init__(self, kept: TimedRows) -> None:
        self._kept = kept

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._kept}

    def list_states(self) -> dict[str, ListState]:
        return {"passed": self._kept.passed_time}
