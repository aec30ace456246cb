"""Random plans as jobs: optimized, cut into chains and run by our own runtime, they fold to the rows
DuckDB finds in the plan as it was.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.catalog.types import DAY_TIME_INTERVAL, TIMESTAMP
from penstock.client.session import Session
from penstock.planner.explain.explain import explain
from penstock.planner.expressions.nodes import Call, Literal
from penstock.planner.logical.distribution import SubtaskHint
from penstock.planner.logical.plan import LogicalPlan, ParallelNode
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Sort
from penstock.planner.logical.time_attributes import WatermarkAssign
from tests.harness.patience import PATIENCE_S
from tests.unit.optimizer.executed import TABLES, rows_of
from tests.unit.optimizer.random_plans import RandomPlans


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming"})
    for name, table in TABLES.items():
        session.state.registered.register(name, table)
    yield session
    session.close()


def as_stream(node: LogicalPlan) -> LogicalPlan:
    """Recordings instead of bounded tables, watermarks far behind so that no row is late, and no order in
    the middle.
    """
    match node:
        case Scan(table=table):
            return replace(node, table=replace(table, options=table.options | {"source.replay": "true"}))
        case WatermarkAssign(watermark=watermark):
            hour = Literal(DAY_TIME_INTERVAL, False, value=timedelta(hours=1))
            return replace(node, watermark=Call(TIMESTAMP, True, function="subtract", args=(watermark, hour)))
        case Sort():
            return node.input
    return node


def hinted(node: LogicalPlan, seed: int) -> LogicalPlan:
    """Each kind of node with a number of subtasks of its own: equal nodes, which run once, have one number."""
    if not isinstance(node, ParallelNode) or node.is_row_wise:
        return node
    number = (seed + len(type(node).__name__)) % 3 + 1
    return replace(node, subtasks=SubtaskHint(number, f"PARALLELISM({number})", 0))


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_jobs_give_the_same_rows(session: Session, first: int) -> None:
    for seed in range(first, first + 10):
        plan = RandomPlans(seed).plan().transform(as_stream)
        expected = rows_of(plan)
        apart = plan.transform(lambda node: hinted(node, seed))  # noqa: B023  # it is called at once
        for parallelism, wanted in (("1", plan), ("2", plan), ("1", apart), ("2", apart)):
            session.settings.set("parallelism.default", parallelism)
            result = session.pipeline.start(session.pipeline.plan(Sink(wanted, None)))
            columns = result.final_rows(PATIENCE_S).columns
            found = sorted(str(row) for row in zip(*(column.to_pylist() for column in columns), strict=True))
            assert found == expected, f"seed {seed} × {parallelism}\n{explain(plan)}"
