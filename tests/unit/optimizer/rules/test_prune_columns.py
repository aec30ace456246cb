"""The rules in ``optimizer/rules/prune_columns``: plans before and after it, and their rows."""

from penstock.optimizer.optimizer import optimize
from penstock.planner.logical.time_attributes import WatermarkAssign
from tests.unit.optimizer.executed import rows_of
from tests.unit.optimizer.rules.around import check_rule
from tests.unit.optimizer.sql import bind


def test_golden_script() -> None:
    check_rule("prune_columns")


def test_golden_script_of_ties() -> None:
    check_rule("prune_tied_columns")


def test_rows_of_ties_are_some_of_those_that_tie() -> None:
    """The columns that are read break ties: each partition has its rows, equal in the order to those of
    the plan that keeps all columns.
    """
    text = (
        "SELECT k, n, b FROM "
        "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY k) AS n FROM orders) WHERE n <= 2"
    )
    whole = rows_of(optimize(bind(text), disabled={"prune_tied_columns"}))
    pruned = rows_of(optimize(bind(text)))
    assert whole != pruned
    assert [row.rpartition(",")[0] for row in whole] == [row.rpartition(",")[0] for row in pruned]


def test_golden_script_of_watermarks() -> None:
    check_rule("drop_unread_watermarks")


def test_the_clock_ends_the_watermark_of_the_rows() -> None:
    """Windows of the clock need no event time below it; windows of event time below the clock do."""
    clock = "SELECT k, PROCTIME() AS now FROM orders"
    windows = "SELECT k, COUNT(*) AS n FROM TUMBLE(TABLE ({rows}), DESCRIPTOR({time}), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, k"
    by_event_time = windows.format(rows="SELECT k, ts FROM orders", time="ts")
    for rows, dropped in ((clock, True), (f"SELECT k, PROCTIME() AS now FROM ({by_event_time})", False)):
        plan = optimize(optimize(bind(windows.format(rows=rows, time="now"))), runtime="streaming")
        assert any(isinstance(node, WatermarkAssign) for node in plan.walk()) != dropped
