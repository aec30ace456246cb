"""Sinks that take inserts only refuse plans that update, and say who updates and what to do."""

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.optimizer.optimizer import optimize
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.optimizer.sink_validation import check_sinks
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.sink import Sink
from tests.unit.optimizer.sql import bind


def into(connector: str, text: str) -> LogicalPlan:
    plan = optimize(bind(text))
    assert isinstance(plan, Sink)
    return Sink(
        plan.input,
        CatalogTable(
            "out", plan.schema, plan.schema, {"connector": connector, "path": "out", "format": "csv"}
        ),
    )


@pytest.mark.parametrize(
    ("text", "who"),
    [
        (
            "SELECT k, COUNT(*) AS n FROM orders GROUP BY k",
            "GROUP BY k replaces a row whenever its group changes",
        ),
        ("SELECT COUNT(*) AS n FROM orders", "the aggregate of all rows changes with every row"),
        (
            "SELECT o.a, p.id FROM orders AS o LEFT JOIN arrivals AS p ON o.k = p.k",
            "the LEFT JOIN retracts a row without a match when its match arrives",
        ),
        (
            "SELECT id FROM arrivals ORDER BY id LIMIT 2",
            "ORDER BY .. LIMIT retracts rows that fall out of the first",
        ),
    ],
)
def test_updates_into_files_are_refused(text: str, who: str) -> None:
    with pytest.raises(PenstockError, match="takes inserts only") as caught:
        check_sinks(into("filesystem", text), PlanFacts())
    assert caught.value.code == "SQL-1310"
    assert caught.value.detail == who
    assert caught.value.hint is not None


def test_what_is_final_may_be_written_anywhere_and_print_takes_everything() -> None:
    check_sinks(into("filesystem", "SELECT k, a FROM orders"), PlanFacts())
    check_sinks(into("print", "SELECT k, COUNT(*) AS n FROM orders GROUP BY k"), PlanFacts())
    check_sinks(bind("SELECT k, COUNT(*) AS n FROM orders GROUP BY k"), PlanFacts())
