"""EXPLAIN in words: every node has a line, notes stand behind it, rules are traced, JSON says the same."""

import json

import pytest

from penstock.optimizer.optimizer import optimize
from penstock.optimizer.properties.explain_annotations import all_notes, changelog_notes, facts_of
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.explain.explain import explain, explain_json, explain_rules, tree_text
from penstock.planner.logical import aggregate, projection, scan, set_operations, sink, sort, window_table
from penstock.planner.logical import plan as logical
from penstock.planner.logical.distribution import Partition
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.joins import join
from penstock.planner.logical.node_text import duration_text
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import BoundedInput
from penstock.planner.logical.sink import StatementSet
from penstock.planner.logical.sort import Limit
from tests.unit.optimizer.random_plans import RandomPlans
from tests.unit.optimizer.sql import bind


def test_trees() -> None:
    tree = {"a": ["b", "c"], "b": ["d"], "c": [], "d": []}
    text = tree_text("a", lambda node: [node, f"{node}'"], lambda node: tree[node])
    assert text == "a\n│   a'\n├── b\n│   │   b'\n│   └── d\n│           d'\n└── c\n        c'"


def test_every_node_has_a_line() -> None:
    seen: set[type[LogicalPlan]] = {
        StatementSet,
        BoundedInput,
        Exchange,
        Limit,
        aggregate.CountWindowAggregate,
    }
    for seed in range(60):
        for node in RandomPlans(seed).plan().walk():
            assert node.text()
            seen.add(type(node))
    plan = bind("SELECT k FROM orders LIMIT 3")
    assert plan.inputs[0].text() == "Limit 3"
    assert BoundedInput(plan.inputs[0]).text() == "BoundedInput [k]"
    assert Exchange(plan.inputs[0], Partition((0,))).text() == "Exchange ⤨ partition(k)"
    assert StatementSet((plan, plan)).text() == "StatementSet 2 sinks"  # type: ignore[arg-type]
    assert (
        bind("SELECT k FROM arrivals ORDER BY k DESC LIMIT 3 OFFSET 1").inputs[0].text()
        == "TopN 3 offset 1 by k DESC"
    )
    windows = aggregate.CountWindowAggregate(plan.inputs[0], (0,), (), (), 9)
    assert windows.text() == "CountWindowAggregate 9 rows by k"
    nodes = {
        kind
        for module in (aggregate, join, projection, scan, set_operations, sink, sort, window_table)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, LogicalPlan)
    }
    bases = {
        LogicalPlan,
        logical.ParallelNode,
        logical.UnaryNode,
        logical.PassThroughNode,
        join.BinaryJoin,
    }
    made = {
        sink.Sink,
        sort.TopN,
        sort.TemporalSort,
        set_operations.Repeat,
        scan.HistoryScan,
        window_table.LateMark,
        aggregate.CountWindowAggregate,  # the golden script of fuse_count_windows has its line
    }
    assert nodes - bases - made <= seen


@pytest.mark.parametrize(
    ("us", "text"),
    [(60_000_000, "1 min"), (90_000_000, "90 s"), (86_400_000_000, "1 d"), (1_500, "1500 us"), (0, "0 us")],
)
def test_durations(us: int, text: str) -> None:
    assert duration_text(us) == text


def test_notes_stand_behind_their_node() -> None:
    plan = optimize(bind("SELECT k, COUNT(*) AS n FROM endless GROUP BY k"))
    facts = PlanFacts()
    assert (
        explain(plan, changelog_notes(facts)).split("\n")[-1] == "        └── Scan endless [k]  [insert-only]"
    )
    line = explain(plan, all_notes(facts)).split("\n")[2]
    assert line == (
        "    └── Aggregate by k: count(*)  [updates; key (k); state unbounded because each distinct (k) keeps an entry for ever;"
        " group by a window as well (one entry per key)]"
    )


def test_json_says_the_same() -> None:
    plan = optimize(bind("SELECT id FROM keyed WHERE id > 2"))
    found = json.loads(json.dumps(explain_json(plan, facts_of(PlanFacts()))))
    assert found["node"] == "Sink"
    assert found["facts"] == {"changelog": "insert-only", "key": "(id)"}
    assert found["inputs"][0]["text"] == "Scan keyed [id] where id > 2"
    assert found["inputs"][0]["columns"] == [
        {"name": "id", "type": "BIGINT", "nullable": False, "role": None}
    ]


def test_only_rules_that_changed_the_plan_are_traced() -> None:
    trace: list[tuple[str, LogicalPlan, LogicalPlan]] = []
    optimize(bind("SELECT id FROM people WHERE id > 2"), observer=lambda *step: trace.append(step))
    heads = [line for line in explain_rules(trace).split("\n") if line.startswith("==")]
    assert heads == ["== bound", "== push_filters", "== prune_columns", "== remove_redundant"]


def _derived(base: type[LogicalPlan]) -> set[type[LogicalPlan]]:
    return {base}.union(*(_derived(kind) for kind in base.__subclasses__()))


def test_every_node_answers_for_itself() -> None:
    """No node has the text or the digest of the base, which only raise."""
    bases = {LogicalPlan, logical.ParallelNode, logical.UnaryNode, logical.PassThroughNode}
    nodes = _derived(LogicalPlan) - bases
    ours = {kind for kind in nodes if kind.__module__.startswith("penstock.planner.logical.")}
    assert len(ours) > 25
    silent = [
        kind.__name__
        for kind in ours
        for name in ("text", "digest")
        if getattr(kind, name) is getattr(LogicalPlan, name)
    ]
    assert not silent
