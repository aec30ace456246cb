"""Reading one more field of a row changes nothing of what the others mean, so a job's state outlives it."""

from __future__ import annotations

from penstock.optimizer.optimizer import optimize
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.physical.plan_digest import PlanDigests
from tests.unit.optimizer.rules.around import check_rule
from tests.unit.optimizer.sql import bind


def aggregate_id(text: str) -> str:
    plan = optimize(optimize(bind(text)), runtime="streaming")
    return PlanDigests().of(next(node for node in plan.walk() if isinstance(node, Aggregate))).rows


def test_fields_beside_change_no_meaning() -> None:
    first = "SELECT c, n FROM (SELECT place.city AS c, count(*) AS n FROM sites GROUP BY place.city)"
    more = "SELECT c, n FROM (SELECT place.city AS c, count(*) AS n, max(place.code) FROM sites GROUP BY place.city)"
    assert aggregate_id(first) == aggregate_id(more)
    assert aggregate_id(first) != aggregate_id(first.replace("place.city", "place.code"))


def test_golden_script() -> None:
    check_rule("narrow_rows")
