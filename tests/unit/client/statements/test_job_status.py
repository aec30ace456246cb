"""The status of a job: what it has read, what delays its watermark, its next window, and why no row came."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock.client.statements.job_status import job_status
from penstock.engine.job.job_metrics import JobMetrics, OperatorReport
from penstock.engine.job.job_state import JobState
from penstock.engine.metrics.operator_metrics import SplitProgress, SplitReads

HOUR_US = 3_600_000_000


def status(
    *operators: OperatorReport, state: JobState = JobState.RUNNING, folded: bool = False, **facts: object
) -> list[str]:
    metrics = JobMetrics()
    # what a cached property would compute from tasks
    metrics.__dict__["operators"] = operators
    job = SimpleNamespace(
        job_id="j", state=state, error=None, last_failure=None, metrics=lambda: metrics, **facts
    )
    return job_status(job, folded=folded)  # type: ignore[arg-type]  # as much of a job as is asked for


def source(rows: int, name: str = "source t") -> OperatorReport:
    return OperatorReport("s", name, is_source=True, rows_out=rows)


def assigner(**splits: SplitProgress) -> OperatorReport:
    known = [split.watermark_us for split in splits.values() if not split.idle]
    reached = None if None in known else min(known, default=None)  # type: ignore[type-var]
    return OperatorReport("w", "watermark ts", rows_in=9, rows_out=9, watermark_us=reached, splits=splits)


WINDOW = OperatorReport("a", "tumble aggregate", rows_in=9, state_entries=4, next_close_us=24 * HOUR_US)

EMIT_FINAL = OperatorReport("f", "emit final", rows_in=9, state_entries=9)


def test_a_watermark_that_one_split_delays() -> None:
    slow, fast = SplitProgress(HOUR_US, HOUR_US), SplitProgress(9 * HOUR_US, 9 * HOUR_US)
    idle = SplitProgress(None, None, idle=True)
    assert status(source(1_234), assigner(slow=slow, fast=fast, idle=idle), WINDOW) == [
        "job j is running: 1,234 rows read, 0 given, 0 late",
        "watermark 1970-01-01 01:00:00, delayed by split slow of watermark ts (last event 1970-01-01 "
        "01:00:00), 1 idle split not waited for; the next window closes at 1970-01-02 00:00:00",
        "so: tumble aggregate buffers its rows until the watermark passes them, and split slow of watermark "
        "ts is the furthest behind",
    ]


def test_a_split_without_an_event() -> None:
    said = status(
        source(9), assigner(full=SplitProgress(HOUR_US, HOUR_US), none=SplitProgress(None, None)), WINDOW
    )
    assert said[1].startswith("no watermark yet, delayed by split none of watermark ts (no event yet); ")
    assert said[2].endswith("and split none of watermark ts has given no event yet")


@pytest.mark.parametrize("ended", [False, True])
def test_a_join_whose_one_side_has_no_row(ended: bool) -> None:
    """A side that has ended delays nothing: the other side's split does."""
    empty = assigner()
    empty.rows_in, empty.watermark_us = 0, 2**62 if ended else None
    full = assigner(split=SplitProgress(HOUR_US, HOUR_US))
    join = OperatorReport("j", "interval join", rows_in=9, state_entries=9, watermark_us=None)
    said = status(source(9, "source a"), full, source(0, "source b"), empty, join)
    culprit = (
        "split split of watermark ts is the furthest behind" if ended else "source b has emitted no row yet"
    )
    assert said[2] == f"so: interval join buffers its rows until the watermark passes them, and {culprit}"
    reached = "watermark 1970-01-01 01:00:00, delayed by split split of watermark ts (last event 1970-01-01 01:00:00)"
    assert said[1] == (reached if ended else "no watermark yet: source b has emitted no row")


@pytest.mark.parametrize(
    ("operators", "why"),
    [
        ((), "its tasks are being started"),
        ((source(0),), "source t has emitted no row yet"),
        ((source(0, "source a"), source(0, "source b")), "no source has emitted a row yet"),
        ((source(9), EMIT_FINAL), "emit final gives its rows when the input ends"),
    ],
)
def test_a_job_without_event_time(operators: tuple[OperatorReport, ...], why: str) -> None:
    read = sum(operator.rows_out for operator in operators)
    assert status(*operators) == [f"job j is running: {read} rows read, 0 given, 0 late", f"so: {why}"]


def test_rows_that_are_printed_at_the_end_of_the_query() -> None:
    sink = OperatorReport("k", "sink collect", rows_in=5)
    told = [status(source(9), sink, folded=folded)[-1] for folded in (True, False)]
    assert told == [
        "so: later input may change its rows, so they are printed when the query ends",
        "so: there is output: 5 rows have reached the sinks",
    ]


def test_a_source_that_is_behind() -> None:
    reads = {"orders/0": SplitReads(5, 1, 70), "orders/1": SplitReads(4, 1, 1_000), "new": SplitReads(0, 0)}
    said = status(OperatorReport("s", "source orders", is_source=True, rows_out=9, reads=reads))
    assert said[1] == "source orders: 1,070 records behind, 1,000 of them in split orders/1"
