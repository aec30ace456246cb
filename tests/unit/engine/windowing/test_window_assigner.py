"""WindowAssigner: rows of one slice are assigned as rows of several are, and their end is not written out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.windowing.window_assigner import WindowAssigner
from penstock.planner.logical.windows import CumulateWindow, HopWindow, TumbleWindow, Windowing

WINDOWS = [TumbleWindow(0, 10), HopWindow(0, 30, 10), CumulateWindow(0, 30, 10)]


def batch(times: list[int | None], behind: int | None) -> Batch:
    column = pa.array(times, pa.int64()).view(pa.timestamp("us", "UTC"))
    rows = pa.RecordBatch.from_arrays([column, pa.array(range(len(times)))], names=["t", "id"])
    return Batch(rows, behind=None if behind is None else np.full(len(times), behind))


@pytest.mark.parametrize("window", WINDOWS, ids=["tumble", "hop", "cumulate"])
@pytest.mark.parametrize("behind", [None, MIN_WATERMARK_US, 20, 45])
@pytest.mark.parametrize("watermark", [MIN_WATERMARK_US, 15, 41, 1_000])
def test_rows_of_one_slice_are_assigned_as_others(
    window: Windowing, behind: int | None, watermark: int
) -> None:
    for time in (-1, 0, 15, 21, 39):
        # and beside them a row of another slice, which is never late
        alone = [time, None, time, time]
        one = WindowAssigner(window, OperatorMetrics()).assign(batch(alone, behind), watermark)
        several = WindowAssigner(window, OperatorMetrics()).assign(batch([*alone, 10_000], behind), watermark)
        assert one.one_slice and not several.one_slice
        assert one.ends.tolist() == several.ends[:-1].tolist()
        assert one.batch.rows.column(1).to_pylist() == several.batch.rows.column(1).to_pylist()[:-1]
        missed = np.zeros(several.ends.size, np.int64) if several.missed is None else several.missed
        assert (one.missed is None) == (not missed.any()) and missed[-1] == 0
        assert one.missed is None or one.missed.tolist() == missed[:-1].tolist()


def test_the_end_that_rows_share_cannot_be_written_to() -> None:
    assigned = WindowAssigner(WINDOWS[0], OperatorMetrics()).assign(batch([3, 5, 7], None), 0)
    assert assigned.ends.tolist() == [10, 10, 10] and assigned.ends.base is not None
    assert assigned.ends.base.nbytes == 8, "all that is kept with it"
    with pytest.raises(ValueError, match="read-only"):
        assigned.ends[0] = 20
