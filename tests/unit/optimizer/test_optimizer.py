"""The loop over the rules: order, switches, clock, observer, and the check after each rule."""

import itertools

import pytest

from penstock.catalog.errors import PenstockError
from penstock.optimizer import optimizer
from penstock.optimizer.optimizer import BETWEEN, RULES, Rule, optimize, rule_names
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from tests.unit.optimizer.sql import bind

QUERY = "SELECT name FROM people WHERE id > 1 + 2"


def test_disabled_rules_do_not_run() -> None:
    seen: list[str] = []
    plan = optimize(
        bind(QUERY), disabled={"push_filters"}, observer=lambda name, before, after: seen.append(name)
    )
    assert "push_filters" not in seen
    assert any(isinstance(node, Filter) for node in plan.walk())


def test_an_unknown_rule_cannot_be_disabled() -> None:
    with pytest.raises(PenstockError) as caught:
        optimize(bind(QUERY), disabled={"push_filter"})
    assert caught.value.code == "SQL-1401"
    assert caught.value.hint == 'did you mean "push_filters"?'


def test_the_observer_sees_every_rule_that_ran_in_order() -> None:
    seen: list[str] = []
    optimize(bind(QUERY), observer=lambda name, before, after: seen.append(name))
    assert seen == [rule.name for rule in RULES if rule.only is None]
    assert rule_names() == [*(rule.name for rule in RULES), *BETWEEN]


def test_time_is_taken_from_the_clock_that_is_given() -> None:
    ticks = itertools.count()
    timings: dict[str, float] = {}
    optimize(bind(QUERY), now_ms=lambda: float(next(ticks)), timings_ms=timings)
    assert timings["push_filters"] == 1.0


def test_a_rule_that_changes_the_columns_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def drop_last_column(plan: LogicalPlan) -> LogicalPlan:
        return plan.transform(
            lambda n: Project(n.input, n.expressions[:-1], n.names[:-1]) if isinstance(n, Project) else n
        )

    monkeypatch.setattr(optimizer, "RULES", (Rule(drop_last_column),))
    with pytest.raises(PenstockError, match="drop_last_column") as caught:
        optimize(bind("SELECT name, id + 1 AS next FROM people"))
    assert caught.value.code == "INT-9002"


def test_everything_is_pushed_into_the_scan() -> None:
    (scan,) = [node for node in optimize(bind(QUERY)).walk() if isinstance(node, Scan)]
    assert scan.schema.names == ["name", "id"]
    assert str(scan.predicate) == "(id > 3)"


def test_optimizing_twice_changes_nothing_more() -> None:
    for query in (
        QUERY,
        "SELECT o.a, p.name FROM orders AS o, people AS p WHERE o.k = p.k AND o.a > 2 AND p.age < o.a",
    ):
        once = optimize(bind(query))
        assert optimize(once) == once
