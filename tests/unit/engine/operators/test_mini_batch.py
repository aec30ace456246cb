"""The buffer in front of an aggregate: what is processed at once, what waits, until when, and that nothing is
lost or reordered.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators import mini_batch
from penstock.engine.operators.mini_batch import BATCHES_AT_ONCE, FEW_AT_ONCE, MiniBatch
from tests.harness.length import examples

FULL = 80
SMALL = FULL // 8


def rows(count: int, first: int = 0) -> Batch:
    return Batch(pa.record_batch({"n": pa.array(range(first, first + count), pa.int64())}))


def buffer(
    timeout_ms: int = 100, *, small_ones: bool = False, at_ms: float = 1_000
) -> tuple[MiniBatch, ManualClock]:
    clock = ManualClock(at_ms)
    return MiniBatch(
        JobOptions(batch_max_rows=FULL, buffer_timeout_ms=timeout_ms), clock, small_ones=small_ones
    ), clock


def test_full_batches_wait_for_half_the_timeout_from_the_first() -> None:
    waiting, clock = buffer()
    start_ms = clock.monotonic_ms()
    assert not waiting.add(rows(FULL)) and waiting.until_ms == start_ms + 50
    clock.now_ms += 30
    assert not waiting.add(rows(FULL)) and waiting.until_ms == start_ms + 50
    assert len(waiting.take()) == 2 and waiting.until_ms is None
    assert not waiting.add(rows(FULL)) and waiting.until_ms == start_ms + 80


def test_as_many_rows_as_go_at_once_do_not_wait() -> None:
    waiting, _ = buffer()
    assert [waiting.add(rows(FULL), behind=True) for _ in range(BATCHES_AT_ONCE)] == [False] * (
        BATCHES_AT_ONCE - 1
    ) + [True]


def test_fewer_partial_results_wait_than_rows() -> None:
    options = JobOptions(batch_max_rows=640, buffer_timeout_ms=100)
    rest, partials = (MiniBatch(options, ManualClock(0), partials=partials) for partials in (False, True))
    assert rest.add(rows(79)) and not partials.add(rows(79))
    rest.take(), partials.take()
    # of the rows of a slow stream there is no more to come
    assert rest.add(rows(9)) and partials.add(rows(9))


def test_fewer_batches_of_wide_rows_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mini_batch, "_WIDE_BYTES", 8 * FULL)
    waiting, _ = buffer()
    assert [waiting.add(rows(FULL)) for _ in range(FEW_AT_ONCE)] == [False] * (FEW_AT_ONCE - 1) + [True]
    waiting.take()
    assert not waiting.add(rows(FULL)), "its bytes are counted anew"


def test_rows_taken_early_count_until_the_rest_is_taken() -> None:
    waiting, _ = buffer()
    assert not waiting.add(rows(SMALL), behind=True) and len(waiting.take_early()) == 1
    assert not waiting.add(rows(SMALL - 1), behind=True) and not waiting.take_early()
    assert not waiting.add(rows(1), behind=True)
    assert [batch.num_rows for batch in waiting.take_early()] == [SMALL], "small ones become one"
    for _ in range(BATCHES_AT_ONCE - 1):
        assert not waiting.add(rows(FULL), behind=True) and waiting.take_early()
    assert waiting.add(rows(FULL - 2 * SMALL), behind=True)


def test_the_time_in_which_rows_are_processed_early_is_no_wait() -> None:
    waiting, clock = buffer()
    start_ms = clock.monotonic_ms()
    waiting.extend(10)
    assert waiting.until_ms is None, "nothing is buffered"
    waiting.add(rows(FULL)), waiting.take_early()
    waiting.extend(10)
    assert waiting.until_ms == start_ms + 60


@pytest.mark.parametrize("timeout_ms", [0, 100])
def test_a_small_batch_is_processed_at_once_unless_more_is_ready_behind_it(timeout_ms: int) -> None:
    waiting, clock = buffer(timeout_ms)
    start_ms = clock.monotonic_ms()
    assert waiting.add(rows(SMALL - 1)) and waiting.until_ms is None
    waiting.take()
    assert not waiting.add(rows(1), behind=True)
    assert waiting.until_ms == start_ms + (timeout_ms / 2 or 1)
    waiting.take()
    assert waiting.add(rows(SMALL)) is (timeout_ms == 0), "an eighth of a full one is not small"


def test_where_the_output_waits_anyway_small_batches_wait_too() -> None:
    waiting, _ = buffer(small_ones=True)
    assert not waiting.add(rows(1))
    unbuffered, _ = buffer(0, small_ones=True)
    assert unbuffered.add(rows(1)), "without a timeout nothing waits"


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 2 * FULL), max_size=8))
def test_what_is_taken_is_what_was_added_in_its_order(counts: list[int]) -> None:
    waiting, _ = buffer()
    for number, count in enumerate(counts):
        waiting.add(rows(count, 1000 * number))
    taken = waiting.take()
    expected = [1000 * number + i for number, count in enumerate(counts) for i in range(count)]
    assert [n for batch in taken for n in batch.rows.column(0).to_pylist()] == expected
    assert waiting.take() == []


@pytest.mark.parametrize(("counts", "batches"), [([30, 50], 1), ([30, 51], 2), ([80], 1), ([1, 0, 2], 1)])
def test_batches_that_make_no_more_than_a_full_one_are_taken_as_one(counts: list[int], batches: int) -> None:
    waiting, _ = buffer(small_ones=True)
    for count in counts:
        waiting.add(rows(count), behind=True)
    assert len(waiting.take()) == batches
