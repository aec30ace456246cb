"""WITH RECURSIVE over tables that change: after every cut, restored or not, the folded rows are DuckDB's."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.recursion.term_pipeline import TermPipeline
from penstock.engine.state.groups.row_derivations import RowDerivations
from tests.harness.direct.feeds import Feed, Feeds
from tests.harness.direct.job import Changelog, DirectJob, planned
from tests.harness.length import AT_LENGTH

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("w", pa.string())])
NODES = 7
CHANGES = 90
# seeds of each query
SEEDS = 12 if AT_LENGTH else 1
CYCLES = {
    "closure": "SELECT a, b FROM e UNION SELECT r.a, e.b FROM r JOIN e ON r.b = e.a",
    "closure from the right": "SELECT a, b FROM e UNION SELECT e.a, r.b FROM e JOIN r ON r.a = e.b",
    "reached": "SELECT a, b FROM e WHERE a = 1 UNION SELECT e.a, e.b FROM r JOIN e ON r.b = e.a",
    "two terms": "SELECT a, b FROM e WHERE a < 3 UNION SELECT r.a, e.b FROM r JOIN e ON r.b = e.a UNION SELECT r.b, r.a FROM r WHERE r.a < 2",
    "two anchors": "SELECT a, 0 FROM e UNION SELECT 0, b FROM e UNION SELECT r.b, e.b FROM r JOIN e ON r.a = e.a",
    "padded": "SELECT a, b FROM e UNION SELECT r.b, e.b FROM r LEFT JOIN e ON r.b = e.a AND e.w <> 'x'",
    "without": "SELECT a, b FROM e UNION SELECT r.b, r.a FROM r WHERE NOT EXISTS (SELECT 1 FROM e WHERE e.a = r.b)",
    "with groups": "SELECT a, b FROM e UNION SELECT r.a, g.m FROM r JOIN (SELECT a, max(b) AS m FROM e GROUP BY a) AS g ON g.a = r.b",
    "bounded": "SELECT a, 0 FROM e UNION SELECT e.b, r.b + 1 FROM r JOIN e ON r.a = e.a WHERE r.b < 4",
}
NO_CYCLES = {
    "paths": "SELECT a, b FROM e WHERE a < b UNION ALL SELECT r.a, e.b FROM r JOIN e ON r.b = e.a AND e.a < e.b",
    "steps": "SELECT a, 0 FROM e UNION ALL SELECT e.b, r.b + 1 FROM r JOIN e ON r.a = e.a WHERE r.b < 2",
    "hops": "SELECT a, b FROM e UNION ALL SELECT r.a, r.b - 2 FROM r WHERE r.b > 2 UNION ALL SELECT r.b, r.b - 3 FROM r WHERE r.b > 3 AND r.a IN (SELECT a FROM e)",
    "unnested": "SELECT a, b FROM e UNION ALL SELECT r.a, x FROM r CROSS JOIN UNNEST(sequence(r.b + 1, r.b + 2)) AS u(x) WHERE r.b < 2",
}
DUCKDBS = {"sequence(": "generate_series("}


def _changes(seed: int) -> Feed:
    """Edges that come, some of them twice, and go again."""
    draw = random.Random(seed)
    there: list[tuple[Any, ...]] = []
    changes: list[tuple[tuple[Any, ...], int]] = []
    for _ in range(CHANGES):
        if there and draw.random() < 0.4:
            changes.append((there.pop(draw.randrange(len(there))), -1))
            continue
        ends = [None if draw.random() < 0.04 else draw.randrange(NODES) for _ in range(2)]
        there.append((*ends, draw.choice("xy")))
        changes.append((there[-1], 1))
    return Feed(SCHEMA, (tuple(changes), ()))


def _query(steps: str) -> str:
    return f"WITH RECURSIVE r(a, b) AS ({steps}) SELECT a, b FROM r"


def _wanted(feed: Feed, cut: int, steps: str) -> Counter[tuple[Any, ...]]:
    for ours, theirs in DUCKDBS.items():
        steps = steps.replace(ours, theirs)
    # of several terms DuckDB wants one
    kind = " UNION ALL " if " UNION ALL " in steps else " UNION "
    anchors = [branch for branch in steps.split(kind) if " r" not in branch.split("WHERE")[0]]
    terms = [branch for branch in steps.split(kind) if branch not in anchors]
    words = f"{kind.join(anchors)}{kind}(SELECT * FROM ({kind.join(terms)}))"
    if len(anchors) > 1:
        words = f"(SELECT * FROM ({kind.join(anchors)})){kind}(SELECT * FROM ({kind.join(terms)}))"
    with duckdb.connect() as connection:
        connection.register("e", feed.table(cut))
        return Counter(connection.execute(_query(words)).fetchall())


def _check(steps: str, seed: int) -> None:
    feed, draw = _changes(seed), random.Random(seed)
    session = Session({"execution.runtime-mode": "streaming"})
    feeds = Feeds({"e": feed}, batch_rows=draw.choice([1, 4, 30]))
    feeds.register(session)
    changelog, snapshot = Changelog(), None
    try:
        for cut in (20, 50, 70, CHANGES):
            graph = planned(session, _query(steps), draw.choice([1, 2])).graph
            job = DirectJob(graph, feeds, snapshot=snapshot, changelog=changelog)
            job.advance(cut)
            assert +changelog.folded == _wanted(feed, cut, steps), f"{steps}, seed {seed}, up to {cut}"
            snapshot = job.barrier()
            job.close()
    finally:
        session.close()


@pytest.mark.parametrize("name", [*CYCLES, *NO_CYCLES])
def test_every_cut_is_the_batch_answer(name: str) -> None:
    queries = CYCLES | NO_CYCLES
    for number in range(SEEDS):
        _check(queries[name], list(queries).index(name) + number)


def test_rows_stay_whose_origin_is_not_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a term that sees no retraction of its own rows."""
    process = TermPipeline.process

    def process_inserts(self: TermPipeline, port: int, batch: Batch) -> list[Batch]:
        if port == 0 and batch.weights is not None:
            batch = batch.take(np.flatnonzero(batch.weights > 0))
        return process(self, port, batch)

    monkeypatch.setattr(TermPipeline, "process", process_inserts)
    with pytest.raises(AssertionError, match="up to"):
        for seed in range(3):
            _check(CYCLES["closure"], seed)


def test_state_goes_when_all_is_taken_back() -> None:
    feeds = Feeds({"e": _changes(1).taken_back()})
    session = Session({"execution.runtime-mode": "streaming"})
    feeds.register(session)
    for steps in (CYCLES["closure"], NO_CYCLES["paths"]):
        job = DirectJob(planned(session, _query(steps)).graph, feeds)
        assert not job.finish()
        assert sum(job.state_at_end().rows().values()) == 0
    session.close()


def test_a_long_chain_and_the_bound() -> None:
    """A chain of 300 edges, one a batch; the bound is of iterations, not of rows."""
    rows = tuple(((i, i + 1, "x"), 1) for i in range(300))
    feeds = Feeds({"e": Feed(SCHEMA, (rows, ()))}, batch_rows=1)
    session = Session({"execution.runtime-mode": "streaming"})
    feeds.register(session)
    query = _query(CYCLES["reached"])
    assert sum(DirectJob(planned(session, query).graph, feeds).finish().values()) == 299
    session.settings.set("recursion.max-iterations", "100")
    with pytest.raises(PenstockError, match="after 100 iterations"):
        DirectJob(planned(session, query).graph, feeds).finish()
    session.close()


def test_an_iteration_is_one_call_for_all_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 pairs of edges: edges, then what two of them lead to, then nothing new."""
    calls: list[int] = []
    add = RowDerivations.add

    def counted(self: RowDerivations, columns: list[pa.Array], weights: np.ndarray, iteration: int) -> Any:
        calls.append(iteration)
        return add(self, columns, weights, iteration)

    monkeypatch.setattr(RowDerivations, "add", counted)
    rows = tuple(((i * 3 + j, i * 3 + j + 1, "x"), 1) for i in range(20_000) for j in (0, 1))
    feeds = Feeds({"e": Feed(SCHEMA, (rows, ()))}, batch_rows=40_000)
    session = Session({"execution.runtime-mode": "streaming"})
    feeds.register(session)
    graph = planned(session, _query(CYCLES["closure"])).graph
    assert sum(DirectJob(graph, feeds, batch_rows=40_000).finish().values()) == 60_000
    # a batch of each port, whichever comes first
    assert len(calls) <= 4
    session.close()
