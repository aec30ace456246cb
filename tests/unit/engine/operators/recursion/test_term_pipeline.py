"""The operators inside a recursive query: who reads what, and what is forgotten when a port ends."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.client.session import Session
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyGroups, Services
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.operators.factory import build_operator
from penstock.engine.operators.recursion.term_pipeline import TermPipeline
from penstock.planner.physical.operator_specs import Recursion
from tests.harness.direct.job import planned

EDGES = pa.table({"a": pa.array([1, 2], pa.int64()), "b": pa.array([2, 3], pa.int64())})


@pytest.fixture
def pipeline() -> TermPipeline:
    session = Session({"execution.runtime-mode": "streaming"})
    session.register("e", EDGES, stream=True)
    query = "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM e UNION ALL SELECT r.a, e.b FROM r JOIN e ON r.b = e.a) SELECT * FROM r"
    graph = planned(session, query).graph
    (node,) = (o.node for chain in graph.chains for o in chain.operators if isinstance(o.node, Recursion))
    made = TermPipeline(node, JobOptions(), build_operator)
    made.open(
        Context(
            "r",
            "recursive query",
            0,
            1,
            KeyGroups(0, 128, 128),
            ManualClock(0),
            OperatorMetrics(),
            Services(),
        )
    )
    session.close()
    return made


def _rows(batches: list[Batch]) -> list[tuple[int, ...]]:
    return [row for one in batches for row in zip(*(c.to_pylist() for c in one.rows.columns), strict=True)]


def test_a_port_meets_what_the_others_had(pipeline: TermPipeline) -> None:
    (edges,) = EDGES.to_batches()
    assert _rows(pipeline.process(1, Batch(edges))) == []
    assert _rows(pipeline.process(0, Batch(edges))) == [(1, 3)]
    assert pipeline.state_entries == 4
    assert set(pipeline.keyed_states()) == {"0.left", "0.right"}


def test_rows_that_only_an_ended_port_would_match_are_forgotten(pipeline: TermPipeline) -> None:
    (edges,) = EDGES.to_batches()
    pipeline.process(1, Batch(edges))
    pipeline.end_port(1)
    assert _rows(pipeline.process(0, Batch(edges))) == [(1, 3)]
    # the edges alone; rows of the work table would only meet new edges
    assert [len(state) for state in pipeline.keyed_states().values()] == [0, 2]  # type: ignore[arg-type]
