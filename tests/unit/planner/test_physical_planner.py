"""Jobs from plans: what is fused, shared, chained, and how operators are named for good."""

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.optimizer.exchange_placement import lay_edges
from penstock.optimizer.optimizer import optimize
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.explain.explain import explain_job, job_json, mermaid
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.distribution import Forward, Partition
from penstock.planner.logical.joins.join import Join
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink, StatementSet
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.physical.operator_specs import AnyOperatorSpec, Calc, JobGraph
from penstock.planner.physical.physical_planner import plan_job
from tests.unit.optimizer.sql import bind

WINDOWED = (
    "SELECT window_start, k, COUNT(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
    " WHERE a > {limit} GROUP BY window_start, window_end, k"
)


def job(plan: str | LogicalPlan, parallelism: int = 1, split: bool = False) -> JobGraph:
    bound = bind(plan) if isinstance(plan, str) else plan
    optimized = optimize(optimize(bound), runtime="streaming", parallelism=parallelism if split else 1)
    facts = PlanFacts()
    return plan_job(
        lay_edges(optimized, parallelism),
        facts,
        parallelism=parallelism,
        settings=Settings({"table.exec.source.idle-timeout": "7 s"}),
    )


def operators(graph: JobGraph) -> list[AnyOperatorSpec]:
    return [operator for chain in graph.chains for operator in chain.operators]


def ids(graph: JobGraph, kind: type[LogicalPlan]) -> list[str]:
    return [operator.operator_id for operator in operators(graph) if isinstance(operator.node, kind)]


def test_one_subtask_is_one_chain() -> None:
    (chain,) = job(WINDOWED.format(limit=2)).chains
    assert [type(operator.node) for operator in chain.operators] == [
        Scan,
        WatermarkAssign,
        Calc,
        WindowAggregate,
        Calc,
        Sink,
    ]
    assert chain.is_source


def test_filter_and_projection_are_one_calc() -> None:
    calcs = [
        o
        for o in operators(job("SELECT ts, a + 1 AS b FROM orders WHERE a > 2 AND k = 'x'"))
        if isinstance(o.node, Calc)
    ]
    (calc,) = calcs
    assert str(calc.node.predicate) == "((a > 2) AND (k = 'x'))"
    assert [str(p) for p in calc.node.projections or ()] == ["ts", "(a + 1)"]
    assert calc.schema.names == ["ts", "b"]


def test_an_exchange_ends_the_chain() -> None:
    graph = job(WINDOWED.format(limit=2), 2, split=True)
    assert [chain.parallelism for chain in graph.chains] == [2, 2]
    (edge,) = graph.edges
    assert (edge.source, edge.target, edge.port, edge.edge) == (0, 1, 0, Partition((0,)))
    assert isinstance(graph.chains[0].operators[-1].node, WindowAggregate)


def test_a_join_heads_a_chain_and_knows_which_side_is_loaded_first() -> None:
    graph = job("SELECT o.a, p.name FROM orders AS o LEFT JOIN people AS p ON o.k = p.k", 2)
    join_chain = graph.chains[-1]
    join = join_chain.operators[0]
    assert isinstance(join.node, Join)
    assert join.facts.bounded_ports == (1,)
    assert join.facts.insert_only_inputs == (True, True)
    assert [(e.port, type(e.edge)) for e in graph.inputs_of(join_chain.chain_id)] == [
        (0, Partition),
        (1, Partition),
    ]


def test_a_join_knows_which_columns_are_read_of_it() -> None:
    def join_of(text: str) -> AnyOperatorSpec:
        (join,) = (one for one in operators(job(text)) if isinstance(one.node, Join))
        return join

    over = "FROM orders AS l JOIN orders AS r ON l.k = r.k AND l.a < r.a"
    join = join_of(f"SELECT l.a + 1, r.k {over}")
    assert [join.schema[column].name for column in join.facts.read] == ["a", "k"]
    # an aggregate of the rows needs no column of them: the projection below it has what the groups read
    join = join_of(f"SELECT COUNT(*), SUM(l.b) {over} GROUP BY r.k")
    assert [join.schema[column].name for column in join.facts.read] == ["b", "k"]


def test_changes_and_keys_reach_the_specs() -> None:
    graph = job("SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM orders GROUP BY k) GROUP BY n")
    first, second = (o for o in operators(graph) if isinstance(o.node, Aggregate))
    assert (first.facts.insert_only, second.facts.insert_only) == (True, False)
    (sink,) = (o for o in operators(graph) if isinstance(o.node, Sink))
    assert (sink.facts.upsert_key, sink.facts.insert_only) == ((0,), False)


@pytest.mark.parametrize(
    ("aggregates", "counts"),
    [
        ("SUM(a), COUNT(*)", True),
        # a row may be NULL, or left out: the group then stays as it was
        ("COUNT(a), SUM(a)", False),
        ("COUNT(*) FILTER (WHERE a > 1)", False),
    ],
)
def test_an_aggregate_knows_that_it_counts_all_rows(aggregates: str, counts: bool) -> None:
    """The merging half of it too: an update is then made without the row before it."""
    graph = job(f"SELECT k, {aggregates} FROM orders GROUP BY k", 2, split=True)
    facts = [o.facts for o in operators(graph) if isinstance(o.node, Aggregate)]
    assert [one.counts_rows for one in facts] == [counts, counts]
    # rows that may be retracted in pairs leave a count as it was
    _, second = (
        o
        for o in operators(
            job("SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM orders GROUP BY k) GROUP BY n")
        )
        if isinstance(o.node, Aggregate)
    )
    assert not second.facts.counts_rows


def test_settings_reach_the_specs() -> None:
    (watermark,) = (o for o in operators(job("SELECT ts FROM orders")) if isinstance(o.node, WatermarkAssign))
    assert watermark.facts.idle_timeout_ms == 7_000


def test_an_order_has_no_operator() -> None:
    assert [type(o.node) for o in operators(job("SELECT id FROM arrivals ORDER BY id"))] == [Scan, Sink]


def test_ids_are_of_the_meaning() -> None:
    base = job(WINDOWED.format(limit=2))
    assert ids(base, WindowAggregate) == ids(job(WINDOWED.format(limit=2)), WindowAggregate)
    renamed = (
        "SELECT window_end AS w, k AS key, n AS total FROM ("
        + WINDOWED.format(limit="1 + 1").replace("window_start,", "window_end,", 1)
        + ")"
    )
    assert ids(base, WindowAggregate) == ids(job(renamed), WindowAggregate)
    assert ids(base, WindowAggregate) != ids(job(WINDOWED.format(limit=3)), WindowAggregate)
    minutes = WINDOWED.format(limit=2).replace("'1' MINUTE", "'2' MINUTE")
    assert ids(base, WindowAggregate) != ids(job(minutes), WindowAggregate)


def test_ids_do_not_know_parallelism() -> None:
    two, three = job(WINDOWED.format(limit=2), 2, split=True), job(WINDOWED.format(limit=2), 3, split=True)
    assert [o.operator_id for o in operators(two)] == [o.operator_id for o in operators(three)]
    assert len({o.operator_id for o in operators(two)}) == len(operators(two))


def test_the_sides_of_a_self_join_are_told_apart() -> None:
    text = "SELECT p.id, q.id AS other FROM arrivals AS p JOIN arrivals AS q ON p.k = q.k AND p.age {} q.age"
    assert ids(job(text.format("<")), Join) != ids(job(text.format(">")), Join)


def test_subplans_of_one_meaning_run_once() -> None:
    text = "INSERT INTO out SELECT k, 'n', CAST(n AS INT), n FROM (SELECT k, COUNT(*) AS n FROM orders GROUP BY k) WHERE n > {}"
    first, second = bind(text.format(1)), bind(text.format(2))
    assert isinstance(first, Sink) and isinstance(second, Sink)
    graph = job(StatementSet((first, second)), 2)
    assert len(ids(graph, Scan)) == 1
    assert len(ids(graph, Aggregate)) == 1
    assert len(ids(graph, Sink)) == 2
    shared = next(
        chain for chain in graph.chains if any(isinstance(o.node, Aggregate) for o in chain.operators)
    )
    assert [type(edge.edge) for edge in graph.outputs_of(shared.chain_id)] == [Forward, Forward]


def test_a_union_with_itself_reads_once_and_two_inserts_write_twice() -> None:
    graph = job("SELECT id FROM arrivals UNION ALL SELECT id FROM arrivals")
    assert len(ids(graph, Scan)) == 1
    assert [(e.source, e.port) for e in graph.edges] == [(0, 0), (0, 1)]
    sink = bind("INSERT INTO out SELECT k, name, age, id FROM arrivals")
    assert isinstance(sink, Sink)
    twice = ids(job(StatementSet((sink, sink))), Sink)
    assert len(set(twice)) == 2


def test_what_stands_below_a_watermark_is_its_own() -> None:
    """News of splits reach the assigner along their chain, so a source must not be shared below it."""
    a, b = bind("SELECT ts, a FROM orders"), bind("INSERT INTO out SELECT k, 'n', a, b FROM orders")
    assert isinstance(a, Sink) and isinstance(b, Sink)
    graph = job(StatementSet((a, b)))
    for chain in graph.chains:
        kinds = [type(o.node) for o in chain.operators]
        assert (WatermarkAssign in kinds) == (Scan in kinds)


def test_more_subtasks_than_key_groups_are_refused() -> None:
    plan = optimize(bind("SELECT a FROM orders"))
    with pytest.raises(PenstockError) as caught:
        plan_job(lay_edges(plan, 9), PlanFacts(), parallelism=9, max_parallelism=8, settings=Settings({}))
    assert caught.value.code == "SQL-1402"


def test_jobs_are_explained() -> None:
    graph = job("SELECT k, COUNT(*) AS n FROM arrivals GROUP BY k ORDER BY n LIMIT 3", 2)
    lines = [line.split("  (")[0] for line in explain_job(graph).split("\n")]
    assert lines == [
        "chain 2 × 1",
        "│   sink to the client",
        "│   top 3",
        "└── ⤨ partition(single) from chain 1 × 2",
        "    │   project",
        "    │   aggregate by k",
        "    └── ⤨ partition($0) from chain 0 × 2",
        "            source arrivals",
    ]
    assert mermaid(graph).split("\n")[-1] == '  c1 -->|"⤨ partition(single)"| c2'
    assert job_json(graph)["edges"][0] == {"source": 0, "target": 1, "port": 0, "edge": "⤨ partition($0)"}


def test_a_shared_chain_is_drawn_once() -> None:
    text = explain_job(job("SELECT id FROM arrivals UNION ALL SELECT id FROM arrivals"))
    assert text.count("source arrivals") == 1
    assert "(drawn above)" in text
