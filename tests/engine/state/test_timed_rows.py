"""Rows that wait for time, put back from the parts of several subtasks."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa

from engine.state.key_index import KeyIndex
from engine.state.timed_rows import TimedRows

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
START = datetime(2024, 1, 1)


def rows(*given: tuple[int, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([k for k, _ in given], pa.int64()), pa.array([START + timedelta(seconds=s) for _, s in given], pa.timestamp("us"))], schema=SCHEMA
    )


def state() -> TimedRows:
    return TimedRows(SCHEMA, (0,), 1, KeyIndex([pa.int64()]), 16)


def part(passed_us: int, *given: tuple[int, int]) -> pa.Table:
    made = state()
    made.hold(rows(*given))
    made.passed_us = passed_us
    return made.snapshot()


def test_restored_from_subtasks_at_different_times_it_is_at_the_earliest() -> None:
    """What the one further behind has still to come must not be late for the one further ahead."""
    for parts in ((part(9, (1, 1)), part(5, (2, 2))), (part(5, (2, 2)), part(9, (1, 1)))):
        again = state()
        for one in parts:
            again.restore(one)
        assert again.passed_us == 5
        assert len(again) == 2
