"""Values of OVER calls of sorted rows against frames written out, whole partitions or from a row on with what
precedes it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.operators.over import over_frames
from penstock.engine.operators.over.over_frames import OverFrames
from penstock.engine.operators.over.partitions import partitioned
from penstock.engine.state.rows.total_order import RowOrder
from penstock.planner.expressions.nodes import SortKey
from penstock.planner.logical.over import Frame, FrameExclusion, FrameUnit
from tests.unit.engine.operators.changelogs import batch_of
from tests.unit.engine.operators.over.test_over import SECOND, SETTLED, neighbour, without_nulls
from tests.unit.engine.operators.partition_runs import ROW, SCHEMA, column, over

CALLS = (*SETTLED, neighbour("lead", 2, 9), without_nulls(neighbour("lead", 1, 9)))
ORDERS = [(SortKey(column(1)),), (SortKey(column(1), True, False),)]
FRAMES = [
    Frame(FrameUnit.ROWS, None, 0),
    Frame(FrameUnit.ROWS, -3, -1),
    Frame(FrameUnit.ROWS, 1, 2),
    Frame(FrameUnit.ROWS, None, None),
    Frame(FrameUnit.RANGE, None, 0),
    Frame(FrameUnit.RANGE, 0, None),
    Frame(FrameUnit.RANGE, -3 * SECOND, SECOND),
    Frame(FrameUnit.RANGE, None, -SECOND),
    Frame(FrameUnit.GROUPS, -2, 1),
    Frame(FrameUnit.GROUPS, None, -1),
    Frame(FrameUnit.GROUPS, 1, 2, FrameExclusion.GROUP),
    Frame(FrameUnit.GROUPS, -1, 1, FrameExclusion.TIES),
    Frame(FrameUnit.ROWS, -2, 2, FrameExclusion.CURRENT_ROW),
    Frame(FrameUnit.ROWS, -3, 1, FrameExclusion.TIES),
    Frame(FrameUnit.RANGE, None, None, FrameExclusion.GROUP),
]


def values(rows: list[Any], order: Any, frame: Frame, calls: Any) -> list[tuple[Any, ...]]:
    """Each row with its values."""
    frames = OverFrames(calls, order, frame, "UTC")
    batch = batch_of([(row, 1) for row in rows], SCHEMA.to_arrow()).rows
    keys = {key: slot for slot, key in enumerate({row[0] for row in rows})}
    slots = np.array([keys[row[0]] for row in rows], np.int64)
    part = partitioned(batch, slots, RowOrder(order, SCHEMA.to_arrow(), "UTC"))
    found = frames.of(part, frames.peers.of(part))
    assert [len(one) for one in found] == [len(rows)] * len(calls)
    return [
        (*(one[i].as_py() for one in part.rows.columns), *(one[i].as_py() for one in found))
        for i in range(len(rows))
    ]


@pytest.mark.parametrize("frame", FRAMES, ids=str)
@settings(max_examples=6, deadline=None, derandomize=True)
@given(rows=st.lists(ROW, max_size=14), order=st.sampled_from(ORDERS), at_once=st.sampled_from([3, 1 << 20]))
def test_every_call_over_every_frame(frame: Frame, rows: list[Any], order: Any, at_once: int) -> None:
    """Also where frames of calls that keep values are computed some at a time."""
    gathering = tuple(call for call in CALLS if call.keeps_values)
    merging = tuple(call for call in CALLS if not call.keeps_values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(over_frames, "_ROWS_AT_ONCE", at_once)
        for some in (gathering, merging):
            found = Counter(values(rows, order, frame, some))
            assert found == over(Counter(rows), (0,), order, frame, some)


def test_no_rows_have_no_values() -> None:
    frames = OverFrames(CALLS, ORDERS[0], FRAMES[0], "UTC")
    none = pa.RecordBatch.from_pylist([], schema=SCHEMA.to_arrow())
    part = partitioned(none, np.zeros(0, np.int64), RowOrder(ORDERS[0], SCHEMA.to_arrow(), "UTC"))
    assert [len(one) for one in frames.of(part, frames.peers.of(part))] == [0] * len(CALLS)
