"""Edges: an exchange where rows must meet, and nowhere else."""

from dataclasses import replace

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.optimizer.exchange_placement import lay_edges
from penstock.optimizer.optimizer import optimize
from penstock.optimizer.properties.distribution import is_gathered_by, is_partitioned_by, partitioning
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.logical.aggregate import Aggregate, Phase
from penstock.planner.logical.distribution import Broadcast, Edge, Partition, Shuffle
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.joins.join import BinaryJoin, JoinKind
from penstock.planner.logical.plan import LogicalPlan, ParallelNode
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import TopN
from penstock.planner.physical.chaining import subtasks
from penstock.planner.physical.physical_planner import plan_job
from tests.unit.optimizer.sql import bind, catalog


def laid(text: str, parallelism: int = 2, split: bool = False) -> LogicalPlan:
    plan = optimize(optimize(bind(text)), runtime="streaming", parallelism=parallelism if split else 1)
    return lay_edges(plan, parallelism)


def edges(plan: LogicalPlan) -> list[Edge]:
    return [node.edge for node in plan.walk() if isinstance(node, Exchange)]


def test_one_subtask_needs_no_exchange() -> None:
    assert edges(laid("SELECT k, COUNT(*) AS n FROM orders GROUP BY k", 1)) == []


def test_rows_that_need_not_meet_stay() -> None:
    assert edges(laid("SELECT k FROM orders WHERE a > 1 UNION ALL SELECT k FROM people")) == []


def test_the_changes_of_one_task_stay_in_one_under_a_union() -> None:
    text = "SELECT u FROM orders UNION ALL SELECT COUNT(*) AS n FROM orders"
    assert edges(laid(text)) == [Partition(()), Partition(())]


def test_groups_meet_by_key_and_a_global_group_in_one_task() -> None:
    assert edges(laid("SELECT k, COUNT(*) AS n FROM orders GROUP BY k")) == [Partition((0,))]
    assert edges(laid("SELECT COUNT(*) AS n FROM orders")) == [Partition(())]
    assert edges(laid("SELECT k FROM arrivals ORDER BY k LIMIT 3")) == [Partition(())]


def test_what_is_in_one_task_stays_there() -> None:
    plan = laid("SELECT n, COUNT(*) AS m FROM (SELECT COUNT(*) AS n FROM orders) GROUP BY n")
    assert edges(plan) == [Partition(())]
    assert subtasks(plan, 2) == 1


def test_no_second_exchange_by_the_same_keys() -> None:
    text = "SELECT k, MAX(n) AS m FROM (SELECT k, u, COUNT(*) AS n FROM orders GROUP BY k, u) GROUP BY k"
    assert edges(laid(text)) == [Partition((0,)), Partition((0, 1))]
    same = "SELECT k, MAX(n) AS m FROM (SELECT COUNT(*) AS n, k FROM orders GROUP BY k) GROUP BY k"
    assert edges(laid(same)) == [Partition((0,))]


def test_a_join_by_the_group_key_keeps_the_groups_where_they_are() -> None:
    text = "SELECT o.k, o.n, p.name FROM (SELECT k, COUNT(*) AS n FROM orders GROUP BY k) AS o JOIN arrivals AS p ON o.k = p.k"
    plan = laid(text)
    join = next(node for node in plan.walk() if isinstance(node, BinaryJoin))
    assert not isinstance(join.left, Exchange)
    assert isinstance(join.right, Exchange)
    assert join.right.edge == Partition((0,))
    assert len(edges(plan)) == 2


def test_local_parts_stand_before_the_exchange() -> None:
    plan = laid("SELECT k, COUNT(*) AS n FROM orders GROUP BY k", split=True)
    exchange = next(node for node in plan.walk() if isinstance(node, Exchange))
    assert isinstance(exchange.input, Aggregate)
    assert exchange.input.phase is Phase.LOCAL
    assert exchange.edge == Partition((0,))


def test_literal_rows_are_spread_to_meet_a_parallel_stream() -> None:
    plan = laid("SELECT k FROM people UNION ALL SELECT 'x' AS k")
    assert edges(plan) == [Shuffle()]
    assert subtasks(plan, 2) == 2


def test_cross_joins_run_in_one_task() -> None:
    plan = laid("SELECT o.a, p.id FROM orders AS o CROSS JOIN arrivals AS p")
    assert edges(plan) == [Partition(()), Partition(())]
    assert subtasks(plan, 2) == 1


def test_a_hint_copies_a_side_only_where_its_unmatched_rows_are_not_given() -> None:
    inner = laid("SELECT /*+ BROADCAST(p) */ o.a, p.name FROM orders AS o JOIN people AS p ON o.k = p.k")
    assert edges(inner) == [Broadcast()]
    left = laid("SELECT /*+ BROADCAST(p) */ o.a, p.name FROM orders AS o LEFT JOIN people AS p ON o.k = p.k")
    assert edges(left) == [Broadcast()]
    stream = laid("SELECT /*+ BROADCAST(o) */ o.a, q.k FROM orders AS o JOIN arrivals AS q ON o.k = q.k")
    assert edges(stream) == [Broadcast()]
    preserved = laid(
        "SELECT /*+ BROADCAST(p) */ o.a, p.name FROM people AS p LEFT JOIN orders AS o ON o.k = p.k"
    )
    assert len(edges(preserved)) == 2 and all(isinstance(edge, Partition) for edge in edges(preserved))


def test_beside_a_copied_side_rows_lie_by_no_key() -> None:
    plan = laid(
        "SELECT /*+ BROADCAST(p) */ g.k, p.name FROM (SELECT DISTINCT k FROM orders) AS g JOIN people AS p ON g.k = p.k"
    )
    assert partitioning(plan) == frozenset()


def test_partitioning_follows_the_columns() -> None:
    plan = laid("SELECT n + 1 AS n, k AS key FROM (SELECT k, COUNT(*) AS n FROM orders GROUP BY k)")
    assert isinstance(plan, Sink)
    assert is_partitioned_by(plan.input, (1,))
    assert not is_partitioned_by(plan.input, (0, 1))
    assert is_gathered_by(plan.input, (0, 1))
    dropped = laid("SELECT n FROM (SELECT k, COUNT(*) AS n FROM orders GROUP BY k)")
    assert partitioning(dropped) == frozenset()


def test_inner_joins_lie_by_both_sides_keys_and_left_joins_by_the_left() -> None:
    text = "SELECT o.a, o.k, p.k AS pk FROM orders AS o {} JOIN arrivals AS p ON o.k = p.k"
    inner, left = laid(text.format("")), laid(text.format("LEFT"))
    assert isinstance(inner, Sink) and isinstance(left, Sink)
    assert is_partitioned_by(inner.input, (1,)) and is_partitioned_by(inner.input, (2,))
    assert is_partitioned_by(left.input, (1,)) and not is_partitioned_by(left.input, (2,))
    assert next(node for node in left.walk() if isinstance(node, BinaryJoin)).kind is JoinKind.LEFT


def test_top_n_is_alone() -> None:
    plan = laid("SELECT k, COUNT(*) AS n FROM orders GROUP BY k ORDER BY n LIMIT 3")
    top = next(node for node in plan.walk() if isinstance(node, TopN))
    assert subtasks(top, 4) == 1


def declared(text: str, parallelism: int, scan: int | None = None, sink: int | None = None) -> LogicalPlan:
    """The plan of a query over orders read by ``scan`` subtasks, written by ``sink`` of them."""
    tables = catalog()
    for name, key, value in (("orders", "scan.parallelism", scan), ("out", "sink.parallelism", sink)):
        if value is not None:
            table = tables.table(name)
            tables.replace_table(replace(table, options={**table.options, key: str(value)}), name)
    return lay_edges(optimize(optimize(bind(text, tables)), runtime="streaming"), parallelism)


def test_a_source_of_its_own_number_is_spread_over_the_job() -> None:
    groups = "SELECT k, COUNT(*) AS n FROM orders WHERE a > 1 GROUP BY k"
    for parallelism in (1, 2, 4):
        plan = declared(groups, parallelism, scan=3)
        assert edges(plan) == [Partition((0,))] and subtasks(plan, parallelism) == parallelism
    # one subtask has all keys, but is not to have all the work
    assert edges(declared(groups, 2, scan=1)) == [Partition((0,))]
    assert edges(declared("SELECT k FROM orders WHERE a > 1", 2, scan=1)) == [Shuffle()]
    assert edges(declared("SELECT k FROM orders WHERE a > 1", 2, scan=2)) == []
    assert edges(declared("SELECT COUNT(*) AS n FROM orders", 1, scan=4)) == [Partition(())]


def test_the_inputs_of_a_union_get_one_number() -> None:
    plan = declared("SELECT k FROM orders UNION ALL SELECT k FROM arrivals", 2, scan=3)
    assert edges(plan) == [Shuffle()] and subtasks(plan, 2) == 2


def test_a_sink_of_its_own_number() -> None:
    rows = "INSERT INTO out SELECT * FROM arrivals"
    assert edges(declared(rows, 2, sink=2)) == []
    assert edges(declared(rows, 1, sink=3)) == [Shuffle()]
    plan = declared(rows, 4, sink=1)
    assert edges(plan) == [Partition(())] and subtasks(plan, 4) == 1


def numbers(plan: LogicalPlan, parallelism: int) -> list[tuple[str, int]]:
    """The subtasks of each operator that may have a hint, from the sink down."""
    return [
        (type(node).__name__, subtasks(node, parallelism))
        for node in plan.walk()
        if isinstance(node, ParallelNode)
    ]


def test_an_operator_has_the_number_of_its_hint() -> None:
    groups = "SELECT /*+ PARALLELISM(3) */ k, COUNT(*) AS n FROM orders GROUP BY k"
    for parallelism in (1, 2, 3, 4):
        plan = laid(groups, parallelism)
        assert numbers(plan, parallelism) == [("Aggregate", 3)]
        # the sink has the job's number
        back = {1: [Partition(())], 3: []}.get(parallelism, [Partition((0,))])
        assert edges(plan) == [*back, Partition((0,))]
        assert subtasks(plan, parallelism) == parallelism
    assert edges(laid(groups.replace("3", "1"), 1)) == []
    single = laid(groups.replace("3", "1"), 2)
    assert numbers(single, 2) == [("Aggregate", 1)] and subtasks(single, 2) == 2


def test_operators_have_a_number_each() -> None:
    text = (
        "SELECT /*+ PARALLELISM('JOIN' = '3'), PARALLELISM('GROUP BY' = '2') */ a.u, COUNT(*) AS n "
        "FROM orders AS a JOIN people AS b ON a.k = b.k GROUP BY a.u"
    )
    assert numbers(laid(text, 4), 4) == [("Aggregate", 2), ("Join", 3)]
    assert numbers(laid(text, 1), 1) == [("Aggregate", 2), ("Join", 3)]
    # the number of one clause, and one for all others
    rest = text.replace("PARALLELISM('JOIN' = '3')", "PARALLELISM(4)")
    assert numbers(laid(rest, 1), 1) == [("Aggregate", 2), ("Join", 4)]


def test_one_join_of_several() -> None:
    text = (
        "SELECT /*+ PARALLELISM('JOIN c' = '3') */ a.u FROM orders AS a JOIN people AS b ON a.k = b.k "
        "JOIN people AS c ON a.u = c.age"
    )
    assert numbers(laid(text, 2), 2) == [("Join", 3), ("Join", 2)]


def test_a_part_that_ran_with_the_keys_of_an_operator_moves_to_its_number() -> None:
    """Without a hint both aggregates share the exchange of the lower one."""
    text = "SELECT {} k, MAX(n) AS m FROM (SELECT COUNT(*) AS n, k FROM orders GROUP BY k) GROUP BY k"
    assert edges(laid(text.format(""))) == [Partition((0,))]
    plan = laid(text.format("/*+ PARALLELISM(3) */"))
    assert numbers(plan, 2) == [("Aggregate", 3), ("Aggregate", 2)]


def test_a_side_that_is_copied_goes_to_the_subtasks_of_the_hint() -> None:
    text = "SELECT /*+ BROADCAST(b), PARALLELISM(3) */ a.u FROM orders AS a JOIN people AS b ON a.k = b.k"
    plan = laid(text)
    assert numbers(plan, 2) == [("Join", 3)]
    assert edges(plan)[-2:] == [Shuffle(), Broadcast()]


def test_without_keys_there_is_one_subtask() -> None:
    plan = laid("SELECT /*+ PARALLELISM(3) */ COUNT(*) AS n FROM orders")
    assert numbers(plan, 2) == [("Aggregate", 1)]
    assert not any(isinstance(node, ParallelNode) and node.subtasks for node in plan.walk())


def test_equal_operators_have_one_number() -> None:
    text = "SELECT /*+ PARALLELISM({}) */ k, COUNT(*) AS n FROM orders GROUP BY k"
    plan = laid(f"{text.format(2)} UNION ALL {text.format(3)}")
    with pytest.raises(PenstockError) as refused:
        plan_job(plan, PlanFacts(), parallelism=2, settings=Settings())
    assert refused.value.code == "SQL-1407"
    same = laid(f"{text.format(3)} UNION ALL {text.format(3)}")
    graph = plan_job(same, PlanFacts(), parallelism=2, settings=Settings())
    assert [chain.parallelism for chain in graph.chains if "aggregate" in chain.name] == [3]


def test_no_more_subtasks_than_key_groups() -> None:
    plan = laid("SELECT /*+ PARALLELISM(9) */ k, COUNT(*) AS n FROM orders GROUP BY k")
    with pytest.raises(PenstockError) as refused:
        plan_job(plan, PlanFacts(), parallelism=2, settings=Settings(), max_parallelism=8)
    assert refused.value.code == "SQL-1402"


def test_one_table_has_one_number_in_a_job() -> None:
    text = (
        "SELECT k FROM orders /*+ OPTIONS('scan.parallelism' = '2') */ UNION ALL "
        "SELECT k FROM orders /*+ OPTIONS('scan.parallelism' = '3') */"
    )
    with pytest.raises(PenstockError) as refused:
        laid(text)
    assert refused.value.code == "SQL-1407"
