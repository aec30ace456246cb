"""The query pipeline stage by stage, and that nothing under the Session knows it."""

from __future__ import annotations

import ast
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.planner.logical.plan import LogicalPlan

ROOT = Path(__file__).resolve().parents[4]
QUERY = "SELECT k, SUM(v) AS v FROM t WHERE v > 1 GROUP BY k"


@pytest.fixture
def session() -> Session:
    session = Session({"bounded.backend": "duckdb", "parallelism.default": "2"})
    session.register("t", pa.table({"k": ["a", "b", "a"], "v": [1, 2, 3]}))
    yield session  # type: ignore[misc]
    session.close()


def test_a_batch_query_has_no_job_graph(session: Session) -> None:
    (statement,) = session.parse(QUERY)
    optimized = session.pipeline.optimize(session.pipeline.bind(statement.node))  # type: ignore[arg-type]
    planned = session.pipeline.plan_physical(optimized)
    assert (optimized.runtime, planned.graph, planned.with_exchanges) == ("batch", None, None)
    result = session.pipeline.start(planned)
    assert sorted(result.final_rows().to_pylist(), key=lambda row: row["k"]) == [
        {"k": "a", "v": 3},
        {"k": "b", "v": 2},
    ]
    assert session.jobs() == []


def test_only_start_starts_a_job(session: Session) -> None:
    (statement,) = session.parse(QUERY)
    bound = session.pipeline.bind(statement.node)  # type: ignore[arg-type]
    rules: list[str] = []

    def observe(rule: str, before: LogicalPlan, after: LogicalPlan) -> None:
        rules.append(rule)

    optimized = session.pipeline.optimize(bound, observe, mode="streaming")
    planned = session.pipeline.plan_physical(optimized)
    assert optimized.runtime == "streaming" and rules
    assert planned.bound is bound and planned.graph is not None and planned.with_exchanges != planned.plan
    assert session.jobs() == [] and session.state.jobs.submitted == {}
    result = session.pipeline.start(planned)
    assert len(result.final_rows(60)) == 2
    assert [job.job_id for job in session.jobs()] == list(session.state.jobs.submitted)


def test_a_refused_job_frees_its_id(session: Session, tmp_path: Path) -> None:
    jobs = session.state.jobs
    assert jobs.assign_id("copy", tmp_path) == "copy-1"
    jobs.release_id("copy", "copy-1")
    assert jobs.assign_id("copy", tmp_path) == "copy-1"
    assert jobs.assign_id("copy", tmp_path) == "copy-2"


def test_an_error_has_its_position(session: Session) -> None:
    _, second = session.parse("SELECT k FROM t;\nSELECT nothing FROM t")
    with pytest.raises(PenstockError) as caught:
        session.run(second)
    assert (caught.value.line, caught.value.column) == (2, 8)


def test_executors_do_not_know_the_session() -> None:
    """They take its state and the pipeline; not even an annotation names the Session."""
    files = [*(ROOT / "client/statements").glob("*.py"), *(ROOT / "client/execution").glob("*.py")]
    assert len(files) > 20
    for path in files:
        words = {
            node.id
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Name)
        }
        modules = {
            node.module
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
        }
        assert "Session" not in words and "penstock.client.session" not in modules, path
