"""What is derived of plans: how they change, what identifies their rows, how they end, what they keep."""

import pytest

from penstock.catalog.connectors.connector import Boundedness
from penstock.optimizer.optimizer import optimize
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.expressions.nodes import Column, SortKey
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import TemporalSort
from tests.unit.optimizer.sql import bind

TUMBLE = "FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end"


def query(text: str) -> LogicalPlan:
    plan = optimize(bind(text))
    assert isinstance(plan, Sink)
    return plan.input


@pytest.mark.parametrize(
    ("text", "insert_only"),
    [
        ("SELECT a + 1 AS b FROM orders WHERE a > 2", True),
        (f"SELECT window_start, k, COUNT(*) AS n {TUMBLE}, k", True),
        ("SELECT k, COUNT(*) AS n FROM orders GROUP BY k", False),
        ("SELECT COUNT(*) AS n FROM orders", False),
        ("SELECT DISTINCT k FROM orders", True),
        ("SELECT id FROM arrivals ORDER BY id LIMIT 3", False),
        ("SELECT o.a, p.id FROM orders AS o JOIN arrivals AS p ON o.k = p.k", True),
        ("SELECT o.a, p.id FROM orders AS o LEFT JOIN arrivals AS p ON o.k = p.k", False),
        # the right side is loaded first, so a row without a match is final
        ("SELECT o.a, p.id FROM orders AS o LEFT JOIN people AS p ON o.k = p.k", True),
        ("SELECT p.id, o.a FROM people AS p LEFT JOIN orders AS o ON o.k = p.k", False),
        # loaded first means met in its final form, though it changes while it is loaded
        (
            "SELECT o.a, p.n FROM orders AS o LEFT JOIN (SELECT k, COUNT(*) AS n FROM people GROUP BY k) AS p ON o.k = p.k",
            True,
        ),
        ("SELECT id FROM people UNION ALL SELECT n FROM (SELECT COUNT(*) AS n FROM orders)", False),
    ],
)
def test_changelog_mode(text: str, insert_only: bool) -> None:
    facts, plan = PlanFacts(), query(text)
    assert facts.insert_only(plan) is insert_only
    assert facts.changelog(plan) == ("insert-only" if insert_only else "updates")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SELECT id, name FROM keyed", (0,)),
        ("SELECT name FROM keyed", None),
        ("SELECT name, id + 0 AS id FROM keyed", None),
        ("SELECT id, name FROM people", None),
        ("SELECT COUNT(*) AS n, k FROM orders GROUP BY k", (1,)),
        ("SELECT COUNT(*) AS n FROM orders", ()),
        (f"SELECT k, COUNT(*) AS n, window_end {TUMBLE}, k", (0, 2)),
        (f"SELECT COUNT(*) AS n, window_start {TUMBLE}", (1,)),
        # each order meets at most one person
        (
            "SELECT o.k, o.n, p.name FROM (SELECT k, COUNT(*) AS n FROM orders GROUP BY k) AS o LEFT JOIN keyed AS p ON o.n = p.id",
            (0,),
        ),
        # and each person at most one order
        (
            "SELECT o.k, o.n, p.name, p.id FROM (SELECT k, COUNT(*) AS n FROM orders GROUP BY k) AS o JOIN keyed AS p ON o.k = p.k",
            (3,),
        ),
        ("SELECT id FROM keyed UNION ALL SELECT id FROM keyed", None),
        ("SELECT 1 AS one", ()),
    ],
)
def test_upsert_key(text: str, key: tuple[int, ...] | None) -> None:
    assert PlanFacts().upsert_key(query(text)) == key


def test_cumulating_windows_share_their_start() -> None:
    text = (
        "SELECT window_start, COUNT(*) AS n, window_end FROM CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE)"
        " GROUP BY window_start, window_end"
    )
    assert PlanFacts().upsert_key(query(text)) == (2,)


def test_boundedness() -> None:
    facts = PlanFacts()
    assert facts.boundedness(query("SELECT id FROM people")) is Boundedness.BOUNDED
    assert (
        facts.boundedness(query("SELECT o.a FROM orders AS o JOIN people AS p ON o.k = p.k"))
        is Boundedness.REPLAY
    )
    assert (
        facts.boundedness(query("SELECT o.a FROM orders AS o JOIN endless AS p ON o.k = p.k"))
        is Boundedness.UNBOUNDED
    )
    assert facts.finite(query("SELECT a FROM orders"))
    assert not facts.finite(query("SELECT id FROM endless"))
    assert facts.time_attributes(query("SELECT a, ts FROM orders")) == (1,)


def join(text: str) -> BinaryJoin:
    return next(node for node in query(text).walk() if isinstance(node, BinaryJoin))


def test_the_bounded_side_of_a_join_is_loaded_first() -> None:
    facts = PlanFacts()
    assert facts.bounded_ports(join("SELECT 1 AS x FROM orders AS o JOIN people AS p ON o.k = p.k")) == (1,)
    assert facts.bounded_ports(join("SELECT 1 AS x FROM people AS p JOIN orders AS o ON o.k = p.k")) == (0,)
    assert facts.bounded_ports(join("SELECT 1 AS x FROM people AS p JOIN people AS q ON q.k = p.k")) == (1,)
    assert facts.bounded_ports(join("SELECT 1 AS x FROM orders AS o JOIN arrivals AS q ON q.k = o.k")) == ()


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        (
            "SELECT k, COUNT(*) AS n FROM endless GROUP BY k",
            "unbounded because each distinct (k) keeps an entry for ever; group by a window as well",
        ),
        ("SELECT k, COUNT(*) AS n FROM orders GROUP BY k", "bounded"),
        ("SELECT COUNT(*) AS n FROM endless", "bounded"),
        (
            "SELECT COUNT(DISTINCT k) AS n FROM endless",
            "unbounded because DISTINCT keeps every value it has seen; aggregate within a window",
        ),
        (
            "SELECT MAX(n) AS m FROM (SELECT k, COUNT(*) AS n FROM endless GROUP BY k)",
            "unbounded because a retracted value may make any earlier one the result again",
        ),
        (
            "SELECT a.id, b.name FROM endless AS a JOIN endless AS b ON a.id = b.id",
            "unbounded because rows of the left and the right side are kept for ever, as any may match later;"
            " join within a window or an interval, or a bounded table",
        ),
        (
            # both end, but what is kept grows with them: no window and no bound frees rows of the left side
            "SELECT a.a FROM orders AS a JOIN orders AS b ON a.k = b.k AND a.ts <= b.ts",
            "unbounded because rows of the left side are kept for ever, as nothing bounds ts of the right side from above; bound it from both sides",
        ),
        ("SELECT a.id, b.name FROM endless AS a JOIN people AS b ON a.id = b.id", "bounded"),
        ("SELECT id FROM endless ORDER BY id LIMIT 5", "bounded"),
        (
            "SELECT k, COUNT(*) AS n FROM endless GROUP BY k ORDER BY n LIMIT 5",
            "unbounded because a retracted row may let any other row into the first",
        ),
        ("SELECT id FROM endless LIMIT 5", "bounded"),
        (
            "SELECT k, COUNT(*) AS n FROM endless GROUP BY k LIMIT 5",
            "unbounded because a retracted row lets any other row take its place",
        ),
        (f"SELECT k, COUNT(*) AS n {TUMBLE}, k".replace("TABLE orders", "TABLE endless_orders"), "bounded"),
    ],
)
def test_state_bound(text: str, bound: str) -> None:
    facts, plan = PlanFacts(), query(text)
    stateful = next(node for node in plan.walk() if facts.state(node).keeps is not None)
    assert facts.state_bound(stateful) == bound
    assert bound != "bounded" or "for ever" not in (facts.state(stateful).keeps or "")


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SELECT DISTINCT k FROM orders", {frozenset({0})}),
        ("SELECT k, COUNT(*) AS n FROM orders GROUP BY k", set()),
    ],
)
def test_where_late_rows_are_dropped_a_key_is_one_of_rows_that_stay(
    text: str, keys: set[frozenset[int]]
) -> None:
    """What is taken back too late stays beside the row in its place."""
    below = query(text)
    field = below.schema[0]
    assert (
        PlanFacts().unique_keys(TemporalSort(below, (SortKey(Column(field.type, field.nullable, index=0)),)))
        == keys
    )
