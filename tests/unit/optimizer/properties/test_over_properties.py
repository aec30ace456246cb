"""What is known of OVER and Top-N per partition: whether rows are taken back, what identifies them, what
is kept and what bounds it.
"""

import pytest

from penstock.optimizer.exchange_placement import lay_edges
from penstock.optimizer.optimizer import optimize
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.logical.distribution import Partition
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from tests.unit.optimizer.sql import bind


def node_of(text: str) -> LogicalPlan:
    return next(node for node in optimize(bind(text)).walk() if isinstance(node, Over | PartitionTop))


def top(order: str, n: int, table: str = "endless_orders") -> str:
    return f"SELECT k, a FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS n FROM {table}) WHERE n <= {n}"


WINDOWED = (
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY a DESC) AS n"
    " FROM TUMBLE(TABLE endless_orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) WHERE n <= 2"
)


@pytest.mark.parametrize(
    ("text", "insert_only", "key", "state"),
    [
        (
            top("a DESC", 2),
            False,
            None,
            "unbounded because each distinct (k) keeps its first rows for ever; partition by a window as well",
        ),
        (
            top("ts DESC", 1),
            False,
            ["k"],
            "unbounded because each distinct (k) keeps its first rows for ever; partition by a window as well",
        ),
        (
            top("ts", 1),
            True,
            ["k", "over1"],
            "unbounded because each distinct (k) keeps a row of totals for ever",
        ),
        (
            top("a", 1, "people").replace("a FROM", "id FROM").replace("ORDER BY a", "ORDER BY age"),
            False,
            ["k"],
            "bounded",
        ),
        (WINDOWED, True, ["window_start", "window_end", "over1"], "bounded"),
        (
            "SELECT SUM(a) OVER (ORDER BY ts RANGE INTERVAL '5' SECONDS PRECEDING) FROM endless_orders",
            True,
            None,
            "bounded",
        ),
        ("SELECT SUM(a) OVER (ORDER BY ts) FROM endless_orders", True, None, "bounded"),
        (
            "SELECT LAG(a, 3) OVER (PARTITION BY k ORDER BY ts) FROM endless_orders",
            True,
            None,
            "unbounded because each distinct (k) keeps its last 3 rows for ever",
        ),
        (
            "SELECT LEAD(a) OVER (PARTITION BY k ORDER BY ts) FROM endless_orders",
            False,
            None,
            "unbounded because any row may still change; order by a time attribute to make rows final by time",
        ),
        (
            "SELECT k, RANK() OVER (ORDER BY s) FROM (SELECT k, SUM(a) AS s FROM endless_orders GROUP BY k)",
            False,
            ["k"],
            "unbounded because the input retracts rows, and any row may still change; order by a time attribute to make rows final by time",
        ),
    ],
)
def test_facts(text: str, insert_only: bool, key: list[str] | None, state: str) -> None:
    node, facts = node_of(text), PlanFacts()
    found = facts.upsert_key(node)
    assert facts.insert_only(node) is insert_only
    assert (None if found is None else [node.schema[i].name for i in found]) == key
    assert facts.state_bound(node) == state


@pytest.mark.parametrize("text", [top("a DESC", 2), top("ts", 1), WINDOWED])
def test_rows_of_a_partition_meet(text: str) -> None:
    plan = lay_edges(optimize(bind(text), runtime="streaming"), 4)
    node = next(node for node in plan.walk() if isinstance(node, Over | PartitionTop))
    assert isinstance(node.input, Exchange) and node.input.edge == Partition(node.partition)
