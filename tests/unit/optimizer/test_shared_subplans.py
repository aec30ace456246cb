"""Bounded parts that several parts of a plan read: computed once, with what all of them need, and the
answer is what it is without.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock.client.session import Session
from penstock.optimizer.shared_subplans import RULE
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import BoundedInput
from penstock.planner.physical.operator_specs import JobGraph
from tests.generated.queries.answers import rows_of
from tests.harness.patience import PATIENCE_S

TWO_COLUMNS = "SELECT e.k, a.name, b.score FROM e JOIN p AS a ON e.k = a.id LEFT JOIN p AS b ON e.v = b.id"
TWO_FILTERS = TWO_COLUMNS + " AND b.region = 'S'"
TOPS = "SELECT e.k, a.best, b.n FROM e JOIN top AS a ON e.k = a.best LEFT JOIN top AS b ON e.v = b.n"
TOPS_FILTERED = "SELECT e.k, a.best, b.n FROM e JOIN top AS a ON e.k = a.best AND a.region = 'S' JOIN top AS b ON e.v = b.n AND b.region <> 'S'"
SAME_FILTER = "SELECT e.k, a.name, b.score FROM e JOIN p AS a ON e.k = a.id AND a.region = 'N' JOIN p AS b ON e.v = b.id AND b.region = 'N'"
BOTH_SIDES = (
    "SELECT u.k, a.name FROM (SELECT k FROM e UNION ALL SELECT id FROM p) AS u JOIN p AS a ON u.k = a.id"
)
WINDOWED = """SELECT a.window_end, a.n, b.s
    FROM (SELECT window_start, window_end, COUNT(*) AS n FROM TUMBLE(TABLE both_, DESCRIPTOR(at), INTERVAL '4' SECOND)
      GROUP BY window_start, window_end) AS a
    JOIN (SELECT window_start, window_end, SUM(v) AS s FROM TUMBLE(TABLE both_, DESCRIPTOR(at), INTERVAL '4' SECOND)
      WHERE v > 1 GROUP BY window_start, window_end) AS b ON a.window_start = b.window_start AND a.window_end = b.window_end"""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb", "table.dml-sync": "true"})
    moments = pa.array([second * 1_000_000 for second in range(8)], pa.timestamp("us"))
    events = pa.table(
        {
            "k": pa.array([1, 2, 3, 4] * 2, pa.int64()),
            "v": pa.array([1, 2, 3, None] * 2, pa.int64()),
            "at": moments,
        }
    )
    people = {
        "id": [1, 2, 3, None],
        "name": ["ann", "bob", "cat", "dan"],
        "region": ["N", "S", "N", "S"],
        "score": [3, 2, 5, 1],
    }
    session.register("e", events, time_column="at", stream=True)
    session.register("old", events, time_column="at", stream=False)
    session.register("p", pa.table(people))
    session.execute(
        "CREATE VIEW top AS SELECT region, MAX(score) AS best, COUNT(*) AS n FROM p GROUP BY region"
    )
    session.execute("CREATE VIEW both_ AS SELECT * FROM e UNION ALL SELECT * FROM old")
    yield session
    session.close()


def planned(session: Session, text: str) -> LogicalPlan:
    (statement,) = session.parse(text)
    return session.pipeline.plan(session.pipeline.bind(statement.node)).plan  # type: ignore[arg-type]  # a query


def parts(plan: LogicalPlan) -> set[tuple[int, str]]:
    return {(node.readers, str(node)) for node in plan.walk() if isinstance(node, BoundedInput)}


def sources(graph: JobGraph | None) -> int:
    assert graph is not None
    return sum(isinstance(spec.node, BoundedInput) for chain in graph.chains for spec in chain.operators)


@pytest.mark.parametrize(
    ("text", "readers"),
    [
        (TWO_COLUMNS, [2]),
        (TWO_FILTERS, [1, 1]),
        (SAME_FILTER, [2]),
        (TOPS, [2]),
        (TOPS_FILTERED, [2]),
        (BOTH_SIDES, [2]),
        (WINDOWED, [1, 1]),
    ],
)
@pytest.mark.parametrize("parallelism", ["1", "3"])
def test_what_is_shared_and_that_it_changes_nothing(
    session: Session, text: str, readers: list[int], parallelism: str
) -> None:
    session.settings.set("parallelism.default", parallelism)
    try:
        (statement,) = session.parse(text)
        planned = session.pipeline.plan(session.pipeline.bind(statement.node))  # type: ignore[arg-type]  # a query
        assert sorted(count for count, _ in parts(planned.plan)) == readers
        assert sources(planned.graph) == len(readers)
        shared = rows_of(session.pipeline.start(planned).final_rows(PATIENCE_S))
        session.settings.set("optimizer.disabled-rules", RULE)
        apart = session.pipeline.plan(session.pipeline.bind(statement.node))  # type: ignore[arg-type]  # a query
        assert {count for count, _ in parts(apart.plan)} == {1}
        assert rows_of(session.pipeline.start(apart).final_rows(PATIENCE_S)) == shared
        assert shared
    finally:
        session.settings.reset("optimizer.disabled-rules")
        session.settings.reset("parallelism.default")


def test_filters_of_all_readers_are_one_filter_of_what_is_shared(session: Session) -> None:
    told = "\n".join(
        row
        for batch in session.execute(f"EXPLAIN OPTIMIZED {TOPS_FILTERED}").batches()
        for row in batch.column(0).to_pylist()
    )
    assert "computed once for 2 readers" in told
    assert (
        "where (region = 'S') OR (region <> 'S')" in told
        or "Filter (region = 'S') OR (region <> 'S')" in told
    )


def test_statements_of_a_set_share(session: Session) -> None:
    for name in ("one", "two"):
        session.execute(f"CREATE TABLE {name} (r STRING, b BIGINT) WITH ('connector' = 'blackhole')")
    text = "EXECUTE STATEMENT SET BEGIN INSERT INTO one SELECT region, best FROM top WHERE best > 1; INSERT INTO two SELECT region, n FROM top; END"
    (statement,) = session.parse(text)
    planned = session.pipeline.plan(session.pipeline.bind(statement.node))  # type: ignore[arg-type]  # a statement set
    assert sources(planned.graph) == 1
    assert session.pipeline.start(planned).job is not None


def test_what_the_backend_computes_whole_is_left_to_it(session: Session) -> None:
    assert not parts(planned(session, "SELECT a.best FROM top AS a JOIN top AS b ON a.n = b.n"))
