"""Rules and analyses see every expression of a node, and simplify those whose spelling no checkpoint holds."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

import pytest

import penstock.planner.logical as nodes
from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.optimizer.rules.fold_constants import fold_constants
from penstock.optimizer.rules.simplify_predicates import simplify_predicates
from penstock.optimizer.streaming_validation import check_streamable
from penstock.planner.binder.binder import Binder
from penstock.planner.expressions.nodes import TRUE, AggregateCall, Expression, SortKey
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.plan import LogicalPlan, PassThroughNode
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.statements.nodes import Query
from penstock.planner.statements.script import parse_script
from tests.unit.planner.frontend import run_statements, sample_catalog

RATE = (
    "CREATE TABLE rate (currency STRING, factor DOUBLE, since TIMESTAMP(3), WATERMARK FOR since AS since,"
    " PRIMARY KEY (currency) NOT ENFORCED) WITH ('connector' = 'datagen')"
)
TEMPORAL_JOIN = (
    "SELECT price FROM bid AS b LEFT JOIN rate FOR SYSTEM_TIME AS OF b.ts AS r"
    " ON r.currency = b.channel AND r.since < LOCALTIMESTAMP AND NOT (NOT (r.factor > 1 + 1))"
)
QUERIES = {
    "TemporalJoin": TEMPORAL_JOIN,
    "IntervalJoin": "SELECT 1 FROM bid AS a JOIN bid AS b ON a.auction = b.auction AND a.price > b.price"
    " AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' HOUR",
    "MatchRecognize": "SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts, price + 1 MEASURES FIRST(A.price + 1) AS p,"
    " COUNT(A.price * 2) AS n, CLASSIFIER() AS c PATTERN (A B) DEFINE A AS A.price > 1 + 1,"
    " B AS B.price + 2 > MAX(A.price - 3))",
    "TemporalSort": "SELECT ts, price FROM bid ORDER BY ts, price + 1",
    "TopN": "SELECT price FROM bid ORDER BY price + 1 LIMIT 2",
    "Over": "SELECT SUM(price + 1) OVER (PARTITION BY auction ORDER BY ts) FROM bid",
    "Aggregate": "SELECT COUNT(price + 1) FILTER (WHERE price > 2) FROM bid GROUP BY auction",
    "Unnest": "SELECT x FROM bid, UNNEST(ARRAY[auction, 2]) AS u(x)",
    "WatermarkAssign": "SELECT ts FROM bid WHERE price > 1",
}


def bind(text: str) -> LogicalPlan:
    catalog = sample_catalog()
    run_statements(RATE, catalog)
    (statement,) = parse_script(text)
    assert isinstance(statement.node, Query)
    return Binder(catalog, Settings()).bind_query(statement.node)


@cache
def node_classes() -> list[type[LogicalPlan]]:
    for module in walk_packages(nodes.__path__, nodes.__name__ + "."):
        import_module(module.name)

    def below(kind: type[LogicalPlan]) -> Iterator[type[LogicalPlan]]:
        for one in kind.__subclasses__():
            yield from (one, *below(one))

    return [one for one in below(LogicalPlan) if one.__module__.startswith(nodes.__name__)]


def test_a_node_with_expressions_maps_them() -> None:
    known = re.compile(r"\b(Expression|SortKey|AggregateCall|TableCall|Definition|Value)\b")
    having = [
        one
        for one in node_classes()
        if any(known.search(str(field.type)) for field in dataclasses.fields(one))
    ]
    assert TemporalJoin in having and len(having) > 15
    silent = [one.__name__ for one in having if one.map_expressions is LogicalPlan.map_expressions]
    assert silent == []


def whole_expressions(value: object) -> Iterator[Expression]:
    """Yield the expressions in the fields of a node, inputs aside."""
    match value:
        case Expression():
            yield value
        case tuple():
            for item in value:
                yield from whole_expressions(item)
        case SortKey() | AggregateCall():
            fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
            yield from whole_expressions(tuple(fields))
        case LogicalPlan():
            return
        case _ if dataclasses.is_dataclass(value) and type(value).__module__.startswith(nodes.__name__):
            fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
            yield from whole_expressions(tuple(fields))


@pytest.mark.parametrize("kind", QUERIES)
def test_every_expression_of_a_node_is_mapped(kind: str) -> None:
    plan = bind(QUERIES[kind])
    assert kind in {type(node).__name__ for node in plan.walk()}
    for node in plan.walk():
        if isinstance(node, Scan | Values):
            continue
        own = tuple(getattr(node, field.name) for field in dataclasses.fields(node))
        seen: list[Expression] = []
        same = node.map_expressions(lambda expression, seen=seen: seen.append(expression) or expression)
        assert same is node
        assert sorted(map(str, seen)) == sorted(map(str, whole_expressions(own))), type(node).__name__


def temporal_join() -> TemporalJoin:
    return next(node for node in bind(TEMPORAL_JOIN).walk() if isinstance(node, TemporalJoin))


def test_a_rewritten_residual_is_in_the_temporal_join() -> None:
    changed = temporal_join().map_expressions(lambda _: TRUE)
    assert isinstance(changed, TemporalJoin) and changed.residual == TRUE


def test_rules_do_not_respell_what_operator_ids_hash() -> None:
    join = temporal_join()
    assert "not(not(" in str(join.residual)  # simplify_predicates would drop it
    assert simplify_predicates(fold_constants(join)) == join
    # the same condition in a filter is simplified
    query = "SELECT 1 FROM rate WHERE NOT (NOT (factor > 1 + 1))"
    assert "not(" not in str(simplify_predicates(bind(query)))


class Updates(PassThroughNode):
    """Rows that may be retracted."""

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return False


def test_a_temporal_join_tests_each_left_row_once() -> None:
    """A function with another value at the retraction of a left row leaves a row that nothing retracts.
    Retractions of versions do not test the condition again.
    """
    join = temporal_join()
    check_streamable(join, PlanFacts())
    check_streamable(dataclasses.replace(join, right=Updates(join.right)), PlanFacts())
    with pytest.raises(PenstockError) as refused:
        check_streamable(dataclasses.replace(join, left=Updates(join.left)), PlanFacts())
    assert refused.value.code == "SQL-1315"
    assert "localtimestamp" in refused.value.message
