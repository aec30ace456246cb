"""Random plans with OVER and Top-N per partition: the same rows after all rules, and as jobs the rows
DuckDB finds in the plan as it was.
"""

from collections.abc import Iterator

import pytest

from penstock.client.session import Session
from penstock.optimizer.optimizer import optimize
from penstock.planner.explain.explain import explain
from penstock.planner.logical.sink import Sink
from tests.harness.patience import PATIENCE_S
from tests.unit.optimizer.executed import TABLES, rows_of
from tests.unit.optimizer.random_over import RandomOver
from tests.unit.optimizer.test_random_jobs import as_stream
from tests.unit.optimizer.test_random_plans import check


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming"})
    for name, table in TABLES.items():
        session.state.registered.register(name, table)
    yield session
    session.close()


@pytest.mark.parametrize("first", range(0, 24, 12))
def test_same_rows(first: int) -> None:
    for seed in range(first, first + 12):
        plan = RandomOver(seed).plan()
        check(seed, plan, optimize(plan))
        check(seed, plan, optimize(optimize(plan), runtime="batch"))
        check(seed, plan, optimize(optimize(plan), runtime="streaming", parallelism=2))


@pytest.mark.parametrize("first", range(0, 24, 12))
def test_jobs_give_the_same_rows(session: Session, first: int) -> None:
    for seed in range(first, first + 12):
        plan = RandomOver(seed).plan().transform(as_stream)
        expected = rows_of(plan)
        for parallelism in ("1", "2"):
            session.settings.set("parallelism.default", parallelism)
            result = session.pipeline.start(session.pipeline.plan(Sink(plan, None)))
            columns = result.final_rows(PATIENCE_S).columns
            found = sorted(str(row) for row in zip(*(column.to_pylist() for column in columns), strict=True))
            assert found == expected, f"seed {seed} × {parallelism}\n{explain(plan)}"
