"""The facts of a job that runs to its end: they are the numbers that the job counted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.monitoring.graph_facts import graph_facts
from penstock.client.monitoring.job_facts import job_facts, job_summary
from penstock.client.session import Session

SCRIPT = (
    "CREATE TABLE numbers (n BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen', "
    "'number-of-rows' = '1000')",
    "CREATE TABLE hole (k BIGINT, c BIGINT) WITH ('connector' = 'blackhole')",
    "SET 'parallelism.default' = '2'",
    "INSERT INTO hole SELECT n % 10, COUNT(*) FROM numbers GROUP BY n % 10",
)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    settings = {
        "execution.runtime-mode": "streaming",
        "table.dml-sync": "true",
        "execution.checkpointing.interval": "10 ms",
        "metrics.latency.interval": "1 ms",
    }
    session = Session(settings)
    for statement in SCRIPT:
        session.execute(statement)
    yield session
    session.close()


def test_the_summary_is_what_was_counted(session: Session) -> None:
    job = session.jobs()[0]
    summary = job_summary(job)
    assert (summary.job_id, summary.state, summary.rows_in) == (job.job_id, "FINISHED", 1000)
    assert summary.parallelism == 2
    assert summary.submitted_at_ms > 1_700_000_000_000
    assert summary.rows_in_per_second == 0, "a job that has ended reads nothing"
    assert summary.failure is None
    assert summary.verdict.startswith("there is output")


def test_operators_splits_and_checkpoints(session: Session) -> None:
    facts = job_facts(session.jobs()[0])
    assert facts.delay is None
    source = facts.operators[0]
    assert (source.name, source.is_source, source.rows_out, source.parallelism) == (
        "source numbers",
        True,
        1000,
        2,
    )
    assert sum(split.rows or 0 for split in facts.splits) == 1000
    assert {split.operator for split in facts.splits} == {"source numbers"}
    assert facts.checkpoints
    assert facts.checkpoints[-1].kind == "final"
    sink = next(one for one in facts.operators if one.name == "sink hole")
    assert sum(one.count for one in sink.latency) == sum(sum(one.octaves) for one in sink.latency)


def test_the_graph_has_chains_and_edges(session: Session) -> None:
    job = session.jobs()[0]
    graph = graph_facts(job, job_facts(job))
    assert [chain.chain for chain in graph.chains] == [0, 1]
    assert [(edge.source, edge.target, edge.kind, len(edge.columns)) for edge in graph.edges] == [
        (0, 1, "partition", 1)
    ]
    assert graph.chains[0].operators[0].rows_out == 1000


def test_a_failed_job_has_its_error() -> None:
    session = Session({"execution.runtime-mode": "streaming"})
    session.execute(SCRIPT[0])
    session.execute(SCRIPT[1])
    with pytest.raises(PenstockError):
        session.execute("INSERT INTO hole SELECT n, 1 / (n - n) FROM numbers")
    facts = job_facts(session.jobs()[0])
    session.close()
    assert facts.summary.state == "FAILED"
    assert facts.summary.failure is not None
    assert facts.summary.failure.code.startswith("RUN-")
    assert facts.events[-1].kind == "FAILED"
