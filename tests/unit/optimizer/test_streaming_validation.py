"""What the runtime does not run over rows that are retracted, or that never end, is refused by code."""

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import TIMESTAMP
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.optimizer.streaming_validation import check_streamable
from penstock.planner.expressions.nodes import Call, SortKey
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project, column_of
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Sort
from tests.unit.optimizer.sql import bind


def rows(text: str) -> LogicalPlan:
    return bind(text).inputs[0]


def with_clock(plan: LogicalPlan) -> LogicalPlan:
    return Project(plan, (Call(TIMESTAMP, False, function="localtimestamp", args=()),), ("now",))


def ordered(plan: LogicalPlan) -> Sort:
    return Sort(plan, (SortKey(column_of(plan, 0)),))


ENDLESS, FINITE = "SELECT k FROM endless_orders", "SELECT k FROM people"
UPDATES = "SELECT k, count(*) AS n FROM endless_orders GROUP BY k"


@pytest.mark.parametrize(
    ("code", "plan"),
    [
        ("SQL-1314", lambda: with_clock(ordered(rows(FINITE)))),
        ("SQL-1315", lambda: with_clock(rows(UPDATES))),
    ],
)
def test_refused(code, plan) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PenstockError) as refused:
        check_streamable(Sink(plan(), None), PlanFacts())
    assert refused.value.code == code


@pytest.mark.parametrize(
    "plan", [lambda: ordered(rows(FINITE)), lambda: ordered(rows(ENDLESS)), lambda: with_clock(rows(ENDLESS))]
)
def test_allowed(plan) -> None:  # type: ignore[no-untyped-def]
    check_streamable(Sink(plan(), None), PlanFacts())
