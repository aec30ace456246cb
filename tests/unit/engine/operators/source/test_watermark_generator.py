"""The watermark assigner: per split, merged by minimum, idle only when polled in vain; marks do not depend
on batch cuts.
"""

from __future__ import annotations

import random
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, DAY_TIME_INTERVAL, TIMESTAMP
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import SplitEvent, SplitEventKind
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.operators.source.watermark_generator import WatermarkGeneratorOperator
from penstock.planner.expressions.nodes import Column
from tests.harness.operator_specs import watermark_spec
from tests.harness.operators import Remembered, opened
from tests.unit.engine.expressions.calls import call, lit

TIME = Column(TIMESTAMP, True, index=0, name="ts")
SCHEMA = Schema((Field("ts", TIMESTAMP, role=Role.EVENT_TIME), Field("n", BIGINT)))
DELAY_US = 5


def assigner(idle_ms: int = 1000) -> WatermarkGeneratorOperator:
    rule = call("subtract", TIME, lit(timedelta(microseconds=DELAY_US), DAY_TIME_INTERVAL))
    return WatermarkGeneratorOperator(
        watermark_spec("id", "watermark", SCHEMA, 0, rule, idle_ms), JobOptions()
    )


def batch(times: list[int | None], origin: int = 0) -> Batch:
    columns = [pa.array(times, pa.int64()).view(pa.timestamp("us")), pa.array(range(len(times)), pa.int64())]
    return Batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA.to_arrow()), origin=origin)


def news(kind: SplitEventKind, origin: int) -> SplitEvent:
    return SplitEvent(kind, origin, f"split-{origin}")


def start(operator: WatermarkGeneratorOperator, splits: int, clock: ManualClock | None = None) -> Remembered:
    opened(operator, clock)
    out = Remembered()
    for origin in range(splits):
        operator.on_split(news(SplitEventKind.OPENED, origin), out)
    assert not out.events
    return out


def test_watermarks_follow_each_batch_and_never_go_back() -> None:
    operator = assigner()
    out = start(operator, 1)
    for times in ([10, 12], [11], [30]):
        operator.on_batch(batch(times), 0, out)
    assert out.times == [7, 25]


def test_rows_behind_are_marked_with_the_watermark_just_before_them() -> None:
    operator = assigner()
    out = start(operator, 1)
    operator.on_batch(batch([10, 20, 14, 15, None, 3]), 0, out)
    operator.on_batch(batch([16, 17]), 0, out)
    first, second = out.batches
    assert first.behind is not None and first.behind.tolist() == [MIN_WATERMARK_US, 5, 15, 15, 15, 15]
    assert second.behind is None


@pytest.mark.parametrize("seed", range(5))
def test_marks_do_not_depend_on_batch_cuts(seed: int) -> None:
    chance = random.Random(seed)
    times = [chance.randrange(i, i + 30) if chance.random() < 0.9 else None for i in range(200)]

    def marks(cuts: list[int]) -> list[bool]:
        operator, found = assigner(), []
        out = start(operator, 1)
        for low, high in zip([0, *cuts], [*cuts, len(times)], strict=True):
            operator.on_batch(batch(times[low:high]), 0, out)
        for given in out.batches:
            values = given.rows.column(0).cast(pa.int64()).fill_null(2**62).to_numpy()
            found += (np.zeros(len(values), bool) if given.behind is None else values < given.behind).tolist()
        return found

    whole = marks([])
    assert any(whole)
    assert marks(sorted(chance.sample(range(1, 200), 20))) == whole == marks(list(range(1, 200)))


def test_the_slowest_split_holds_time_until_it_ends() -> None:
    operator = assigner()
    out = start(operator, 2)
    operator.on_batch(batch([100], 0), 0, out)
    operator.on_batch(batch([50], 1), 0, out)
    assert out.times == [45]
    operator.on_split(news(SplitEventKind.ENDED, 1), out)
    assert out.times == [45, 95]


def test_a_split_is_idle_only_after_being_polled_in_vain_for_the_timeout() -> None:
    clock = ManualClock()
    operator = assigner(idle_ms=1000)
    out = start(operator, 2, clock)
    operator.on_batch(batch([100], 0), 0, out)
    clock.advance(5000)
    operator.on_batch(batch([110], 0), 0, out)  # split 1 was never polled: it still counts
    assert out.times == []
    operator.on_split(news(SplitEventKind.EMPTY, 1), out)
    clock.advance(999)
    operator.on_split(news(SplitEventKind.EMPTY, 1), out)
    assert out.times == []
    clock.advance(1)
    operator.on_split(news(SplitEventKind.EMPTY, 1), out)
    assert out.times == [105]
    operator.on_batch(batch([60], 1), 0, out)  # back: no step back
    operator.on_batch(batch([200], 0), 0, out)
    assert out.times == [105]
    operator.on_batch(batch([210], 1), 0, out)
    assert out.times == [105, 195]


def test_time_stands_still_when_all_are_idle_and_goes_on_after() -> None:
    clock = ManualClock()
    operator = assigner(idle_ms=10)
    out = start(operator, 1, clock)
    operator.on_batch(batch([100]), 0, out)
    operator.on_split(news(SplitEventKind.EMPTY, 0), out)
    clock.advance(10)
    operator.on_split(news(SplitEventKind.EMPTY, 0), out)
    operator.on_split(news(SplitEventKind.EMPTY, 0), out)
    assert out.times == [95, "idle"]
    operator.on_batch(batch([90]), 0, out)
    assert out.times == [95, "idle", 95]


def test_a_subtask_without_splits_holds_nobody_back() -> None:
    clock = ManualClock()
    operator = assigner(idle_ms=10)
    out = start(operator, 0, clock)
    operator.on_processing_time(0, out)
    assert out.times == []
    clock.advance(10)
    operator.on_processing_time(0, out)
    operator.on_processing_time(0, out)
    assert out.times == ["idle"]


def test_split_watermarks_survive_a_restore_at_another_parallelism() -> None:
    first = assigner()
    out = start(first, 2)
    first.on_batch(batch([100], 0), 0, out)
    first.on_batch(batch([50], 1), 0, out)
    items = first.snapshot_items()
    assert items == [{"split_id": "split-0", "watermark_us": 95}, {"split_id": "split-1", "watermark_us": 45}]
    second = assigner()
    opened(second, subtask=1, parallelism=2)
    second.restore_items(items)
    assert second.snapshot_items() == items  # nothing opened yet: nothing forgotten
    again = Remembered()
    second.on_split(SplitEvent(SplitEventKind.OPENED, 0, "split-1"), again)
    assert again.times == []  # another split may be opened next that is further back
    assert second.snapshot_items() == items[1:]
    second.on_batch(batch([44]), 0, again)
    assert again.times == [45]
    assert again.batches[0].behind is not None and again.batches[0].behind.tolist() == [45]


def test_splits_restored_into_one_subtask_are_as_far_as_the_last_of_them() -> None:
    """The first to be opened is the furthest: it must not close windows whose rows the other has yet to
    give.
    """
    operator = assigner()
    opened(operator)
    operator.restore_items(
        [{"split_id": "split-0", "watermark_us": 95}, {"split_id": "split-1", "watermark_us": 45}]
    )
    out = Remembered()
    for origin in (0, 1):
        operator.on_split(news(SplitEventKind.OPENED, origin), out)
    assert out.times == []
    operator.on_batch(batch([200], 0), 0, out)
    assert out.times == [45]
