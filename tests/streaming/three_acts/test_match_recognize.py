"""MATCH_RECOGNIZE as SQL: the classic patterns, on a stream and over bounded tables, under windows, and
what is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

START = datetime(2024, 1, 1)


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


PRICES = [12, 17, 13, 15, 20, 24, 25, 23, 21, 14, 12, 15, 20, 25, 24, 25]
TICKER = pa.table(
    {
        "symbol": ["ACME"] * 16 + ["STAR"] * 3,
        "price": pa.array([*PRICES, 5, 4, 6], pa.int64()),
        "ts": pa.array([at(i) for i in range(16)] + [at(i) for i in range(3)], pa.timestamp("us")),
    }
)
STATES = ["Initial", "W", "W", "Initial", "W", "W", "W", "Done", "W", "Initial", "Done"]
MACHINE = pa.table(
    {"state": STATES, "ts": pa.array([at(2 * i) for i in range(len(STATES))], pa.timestamp("us"))}
)
V_SHAPE = (
    "SELECT * FROM ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES FIRST(S.ts) AS began, LAST(D.price) AS low, LAST(U.price) AS high"
    " ONE ROW PER MATCH AFTER MATCH SKIP TO LAST U PATTERN (S D+ U+)"
    " DEFINE D AS D.price < LAST(D.price, 1) OR (LAST(D.price, 1) IS NULL AND D.price < S.price),"
    " U AS U.price > LAST(U.price, 1) OR (LAST(U.price, 1) IS NULL AND U.price > LAST(D.price))) AS m"
)
EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    V_SHAPE: [
        ("ACME", at(1), 13, 25),
        ("ACME", at(6), 12, 25),
        ("ACME", at(13), 24, 25),
        ("STAR", at(0), 4, 6),
    ],
    "SELECT symbol, n, average FROM ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES COUNT(*) AS n, AVG(A.price) AS average"
    " PATTERN (A+ B) DEFINE A AS AVG(A.price) < 16) WHERE n > 3": [("ACME", 6, 15.4), ("ACME", 5, 15.25)],
    "SELECT state, c, n FROM machine MATCH_RECOGNIZE (ORDER BY ts MEASURES CLASSIFIER() AS c, MATCH_NUMBER() AS n ALL ROWS PER MATCH"
    " PATTERN (I {- W* -} D) DEFINE I AS state = 'Initial', W AS state = 'W', D AS state = 'Done')": [
        ("Initial", "I", 1),
        ("Done", "D", 1),
        ("Initial", "I", 2),
        ("Done", "D", 2),
    ],
    "SELECT waits FROM machine MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(W.*) AS waits PATTERN (I W+ D) WITHIN INTERVAL '8' SECONDS"
    " DEFINE I AS state = 'Initial', W AS state = 'W', D AS state = 'Done')": [(3,)],
    "SELECT window_end, COUNT(*) FROM TUMBLE(TABLE (SELECT * FROM machine MATCH_RECOGNIZE (ORDER BY ts MEASURES MATCH_ROWTIME() AS done"
    " PATTERN (I W* D?) DEFINE I AS state = 'Initial', W AS state = 'W', D AS state = 'Done')), DESCRIPTOR(done), INTERVAL '10' SECONDS)"
    " GROUP BY window_start, window_end": [(at(10), 1), (at(20), 1), (at(30), 1)],
}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb", "execution.batch.max-rows": "3"})
    session.register("ticker", TICKER, time_column="ts", delay=20)
    session.register("machine", MACHINE, time_column="ts", delay=3)
    yield session
    session.close()


def rows_of(session: Session, query: str) -> Counter[tuple[Any, ...]]:
    rows = session.execute(query).final_rows(PATIENCE_S)
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@pytest.mark.parametrize("mode", ["streaming", "automatic", "batch"])
@pytest.mark.parametrize("query", sorted(EXPECTED))
def test_classics(session: Session, query: str, mode: str) -> None:
    session.settings.set("execution.runtime-mode", mode)
    for parallelism in ("1", "2"):
        session.settings.set("parallelism.default", parallelism)
        assert rows_of(session, query) == Counter(EXPECTED[query]), parallelism


def explained(session: Session, query: str) -> str:
    return "\n".join(session.execute(f"EXPLAIN OPTIMIZED {query}").final_rows().column(0).to_pylist())


def test_explain_says_pattern_and_state(session: Session) -> None:
    session.settings.set("execution.runtime-mode", "streaming")
    text = explained(session, V_SHAPE)
    assert (
        "MatchRecognize (S D+ U+) per symbol by ts, one row per match, skip to last U, FIRST(S.ts) AS began"
        in text
    )
    assert "insert-only" in text


def test_filters_on_the_partition_go_below(session: Session) -> None:
    session.settings.set("execution.runtime-mode", "streaming")
    lines = explained(session, f"{V_SHAPE} WHERE symbol = 'STAR' AND high > 1").splitlines()
    match = next(i for i, line in enumerate(lines) if "MatchRecognize" in line)
    assert any("high > 1" in line for line in lines[:match]) and any(
        "symbol = 'STAR'" in line for line in lines[match:]
    )


def test_by_processing_time_the_clock_lets_rows_pass(session: Session) -> None:
    session.settings.set("execution.runtime-mode", "streaming")
    query = V_SHAPE.replace("FROM ticker", "FROM (SELECT *, PROCTIME() AS p FROM ticker)").replace(
        "ORDER BY ts", "ORDER BY p, ts"
    )
    assert rows_of(session, query) == Counter(EXPECTED[V_SHAPE])


def test_rows_that_are_taken_back_are_refused(session: Session) -> None:
    session.settings.set("execution.runtime-mode", "streaming")
    latest = "(SELECT symbol, price, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price) AS n FROM ticker) WHERE n = 1)"
    with pytest.raises(PenstockError) as caught:
        session.execute(
            f"SELECT * FROM {latest} MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A) DEFINE A AS TRUE)"
        )
    assert caught.value.code in ("SQL-1316", "SQL-1744") and caught.value.hint
