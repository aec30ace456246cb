"""A query without rows reports its status: at growing intervals, when something changed, or when asked."""

from __future__ import annotations

import pytest

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT
from penstock.client.results.result import Result, Shape
from penstock.client.results.result_stream import BackendStream
from penstock.engine.api.clock import ManualClock
from penstock.repl.output.status_reports import StatusReports


class Computing:
    """A bounded query that a test moves on."""

    def __init__(self) -> None:
        self.known: str | None = None

    def progress(self) -> str | None:
        return self.known


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0)


@pytest.fixture
def computing() -> Computing:
    return Computing()


@pytest.fixture
def result(clock: ManualClock, computing: Computing) -> Result:
    stream = BackendStream(computing, "spark")  # type: ignore[arg-type]  # as much of a result as is asked for
    return Result(Shape(Schema((Field("n", BIGINT),))), stream, clock=clock)


def moments(status: StatusReports, clock: ManualClock, computing: Computing, until_s: int) -> list[int]:
    """Return the seconds at which something was reported, where something changes all the time."""
    reported = []
    for second in range(1, until_s + 1):
        clock.advance(1_000)
        computing.known = f"{second} tasks"
        if status.due():
            reported.append(second)
    return reported


def test_the_first_report_has_the_heading_and_how_to_ask(
    result: Result, clock: ManualClock, computing: Computing
) -> None:
    status = StatusReports(result, 3.0, "Ctrl-T reports again")
    status.heading = lambda: [" n", "---"]
    clock.advance(2_999)
    assert status.due() == []
    clock.advance(1)
    first = "no row yet after 3 s: Spark computes the query"
    assert status.due() == [" n", "---", first, "  Ctrl-T reports again"]
    computing.known = "2 tasks"
    clock.advance(6_000)
    assert status.due() == ["no row yet after 9 s: 2 tasks"]


def test_the_intervals_grow_to_a_hundredfold(
    result: Result, clock: ManualClock, computing: Computing
) -> None:
    reported = moments(StatusReports(result, 3.0), clock, computing, 2_000)
    between = [later - earlier for earlier, later in zip([0, *reported], reported, strict=False)]
    assert between == [3, 6, 12, 24, 48, 96, 192, 300, 300, 300, 300, 300]


def test_what_has_not_changed_is_reported_once(result: Result, clock: ManualClock) -> None:
    status = StatusReports(result, 3.0)
    clock.advance(3_000)
    assert status.due()
    clock.advance(1_000_000)
    assert status.due() == []
    status.ask()
    assert status.due() == ["no row yet after 1003 s: Spark computes the query"]
    assert status.due() == []


def test_rows_end_the_reports_but_asked_ones(result: Result, clock: ManualClock) -> None:
    status = StatusReports(result, 3.0)
    status.heading = lambda: [" n"]
    status.rows_came()
    clock.advance(60_000)
    assert status.due() == []
    status.ask()
    assert status.due() == ["after 60 s: Spark computes the query"]


def test_an_interval_of_0_reports_only_when_asked(
    result: Result, clock: ManualClock, computing: Computing
) -> None:
    status = StatusReports(result, 0.0)
    assert moments(status, clock, computing, 1_000) == []
    status.ask()
    assert status.due() == ["no row yet after 1000 s: 1000 tasks"]
