"""QUALIFY and named windows as SQL: the streaming answer is DuckDB's to the same words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.client.session import Session
from tests.streaming.three_acts.test_over import MOVES, check

QUERIES = {
    "SELECT id, k, v FROM moves QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, id) <= 2": False,
    "SELECT id, ROW_NUMBER() OVER w AS n FROM moves WINDOW w AS (PARTITION BY k ORDER BY ts) QUALIFY n <= 3": True,
    "SELECT id, SUM(v) OVER w AS s, LAG(v) OVER u AS l FROM moves WINDOW w AS (PARTITION BY k ORDER BY ts ROWS 2 PRECEDING), u AS (ORDER BY ts)"
    " QUALIFY s > 3 AND l IS NOT NULL": True,
    "SELECT k, COUNT(*) AS c FROM moves WHERE v > 0 GROUP BY k HAVING COUNT(*) > 2 QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 2": False,
    "SELECT DISTINCT k FROM moves QUALIFY RANK() OVER (PARTITION BY k ORDER BY d DESC) = 1 OR v = 3": False,
    "SELECT a.id FROM moves AS a JOIN (SELECT k, id FROM moves QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY d, id) = 1) AS b"
    " ON a.id = b.id": False,
}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": "17"})
    session.register("moves", MOVES, time_column="ts", delay=20)
    yield session
    session.close()


@pytest.mark.parametrize("query", QUERIES)
def test_qualified_rows(session: Session, query: str) -> None:
    check(session, query, query, QUERIES[query])
