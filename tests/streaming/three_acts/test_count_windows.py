"""Windows of n rows: the streaming answer is DuckDB's over numbered rows, in three acts too, and every row of it
is emitted once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.length import of_length
from tests.harness.patience import PATIENCE_S
from tests.harness.source_gate import gated
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end
from tests.streaming.three_acts.main_job import sample
from tests.streaming.three_acts.oracle import FLIGHTS, ROOT, _database
from tests.streaming.three_acts.test_over import MOVES, answer, check

NUMBERED = "SELECT *, (row_number() OVER (PARTITION BY {key} ORDER BY {order}) - 1) // {size} AS window_index FROM {source}"
SLIDING = (
    "SELECT *, unnest(range(n // {slide}, (n + {size}) // {slide})) AS window_index"
    " FROM (SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY ts) - 1 AS n FROM moves)"
)
GROWING = (
    "SELECT *, unnest(range(n // {step}, (n // {size} + 1) * ({size} // {step}))) AS window_index"
    " FROM (SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY ts) - 1 AS n FROM moves)"
)
# In our words, in DuckDB's, and whether each row is emitted once and never retracted.
QUERIES = {
    "one key": (
        "SELECT k, window_index, COUNT(*), SUM(v), MAX(d) FROM TABLE(TUMBLE(TABLE moves PARTITION BY k ORDER BY ts, 7 ROWS))"
        " GROUP BY k, window_index",
        f"SELECT k, window_index, count(*), sum(v)::BIGINT, max(d) FROM ({NUMBERED.format(key='k', order='ts', size=7, source='moves')}) GROUP BY ALL",
        True,
    ),
    "keys in parentheses, one row a window": (
        "SELECT window_index AS w, v, k, COUNT(id) FROM TABLE(TUMBLE(DATA => TABLE moves PARTITION BY (k, v) ORDER BY (ts), SIZE => 1 ROWS))"
        " GROUP BY k, v, window_index",
        f"SELECT window_index, v, k, count(id) FROM ({NUMBERED.format(key='k, v', order='ts', size=1, source='moves')}) GROUP BY ALL",
        True,
    ),
    "no key, values collected, a filter above": (
        "SELECT window_index, COUNT(DISTINCT k) FROM TABLE(TUMBLE(TABLE moves ORDER BY ts, 100 ROWS)) GROUP BY window_index"
        " HAVING COUNT(*) = 100",
        f"SELECT window_index, count(DISTINCT k) FROM ({NUMBERED.format(key='1', order='ts', size=100, source='moves')}) GROUP BY ALL"
        " HAVING count(*) = 100",
        True,
    ),
    "a filter between": (
        "SELECT k, window_index, COUNT(*) FROM TABLE(TUMBLE(TABLE moves PARTITION BY k ORDER BY ts, 7 ROWS)) WHERE v > 0"
        " GROUP BY k, window_index",
        f"SELECT k, window_index, count(*) FROM ({NUMBERED.format(key='k', order='ts', size=7, source='moves')}) WHERE v > 0 GROUP BY ALL",
        False,
    ),
    "another key": (
        "SELECT window_index, COUNT(*) FROM TABLE(TUMBLE(TABLE moves PARTITION BY k ORDER BY ts, 7 ROWS)) GROUP BY window_index",
        f"SELECT window_index, count(*) FROM ({NUMBERED.format(key='k', order='ts', size=7, source='moves')}) GROUP BY ALL",
        False,
    ),
    "an order that is no time": (
        "SELECT k, window_index, SUM(v) FROM TABLE(TUMBLE(TABLE moves PARTITION BY k ORDER BY id, 7 ROWS)) GROUP BY k, window_index",
        f"SELECT k, window_index, sum(v)::BIGINT FROM ({NUMBERED.format(key='k', order='id', size=7, source='moves')}) GROUP BY ALL",
        False,
    ),
    "an order from the last row on": (
        "SELECT k, window_index, COUNT(*), SUM(v) FROM TUMBLE(TABLE moves PARTITION BY k ORDER BY ts DESC, 7 ROWS) GROUP BY k, window_index",
        f"SELECT k, window_index, count(*), sum(v)::BIGINT FROM ({NUMBERED.format(key='k', order='ts DESC', size=7, source='moves')}) GROUP BY ALL",
        False,
    ),
    "several directions": (
        "SELECT id, window_index FROM TUMBLE(DATA => TABLE moves PARTITION BY k ORDER BY (v DESC NULLS FIRST, id ASC), SIZE => 5 ROWS)",
        f"SELECT id, window_index FROM ({NUMBERED.format(key='k', order='v DESC NULLS FIRST, id', size=5, source='moves')})",
        False,
    ),
    "windows that slide": (
        "SELECT k, window_index, COUNT(*), SUM(v), MAX(d) FROM HOP(TABLE moves PARTITION BY k ORDER BY ts, 3 ROWS, 7 ROWS)"
        " GROUP BY k, window_index",
        f"SELECT k, window_index, count(*), sum(v)::BIGINT, max(d) FROM ({SLIDING.format(key='k', slide=3, size=7)}) GROUP BY ALL",
        False,
    ),
    "rows with their sliding windows": (
        "SELECT id, window_index FROM HOP(DATA => TABLE moves ORDER BY ts, SIZE => 10 ROWS, SLIDE => 5 ROWS)",
        f"SELECT id, window_index FROM ({SLIDING.format(key='1', slide=5, size=10)})",
        True,
    ),
    "windows that grow": (
        "SELECT k, window_index, COUNT(*), SUM(v), MAX(d) FROM CUMULATE(TABLE moves PARTITION BY k ORDER BY ts, 4 ROWS, 12 ROWS)"
        " GROUP BY k, window_index",
        f"SELECT k, window_index, count(*), sum(v)::BIGINT, max(d) FROM ({GROWING.format(key='k', step=4, size=12)}) GROUP BY ALL",
        False,
    ),
    "rows with their growing windows": (
        "SELECT id, window_index FROM CUMULATE(DATA => TABLE moves ORDER BY ts, SIZE => 10 ROWS, STEP => 5 ROWS)",
        f"SELECT id, window_index FROM ({GROWING.format(key='1', step=5, size=10)})",
        True,
    ),
    "rows with their window": (
        "SELECT id, window_index FROM TABLE(TUMBLE(TABLE moves PARTITION BY k ORDER BY ts, 7 ROWS))",
        f"SELECT id, window_index FROM ({NUMBERED.format(key='k', order='ts', size=7, source='moves')})",
        True,
    ),
}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": "17"})
    session.register("moves", MOVES, time_column="ts", delay=20)
    yield session
    session.close()


@pytest.mark.parametrize("name", QUERIES)
def test_duckdb_gives_the_same_rows(session: Session, name: str) -> None:
    ours, words, inserts = QUERIES[name]
    check(session, ours, words, inserts)


def test_without_an_order_rows_are_numbered_as_they_arrive(session: Session) -> None:
    query = "SELECT MIN(id), MAX(id) FROM TABLE(TUMBLE(TABLE moves, 100 ROWS)) GROUP BY window_index"
    rows = session.execute(query).final_rows(PATIENCE_S)
    assert sorted(zip(*rows.to_pydict().values(), strict=True)) == [(0, 99), (100, 199), (200, 239)]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("TUMBLE(TABLE moves, 0 ROWS)", "SQL-1705"),
        ("TUMBLE(TABLE moves, 1.5 ROWS)", "SQL-1705"),
        ("TUMBLE(TABLE moves, DESCRIPTOR(ts), 3 ROWS)", "SQL-1102"),
        ("HOP(TABLE moves, 100 ROWS, 10 ROWS)", "SQL-1705"),
        ("HOP(TABLE moves, 100 ROWS)", "SQL-1102"),
        ("CUMULATE(TABLE moves, 10 ROWS, 25 ROWS)", "SQL-1704"),
        ("CUMULATE(TABLE moves, 100 ROWS, 10 ROWS)", "SQL-1705"),
        ("SESSION(TABLE moves, 10 ROWS)", "SQL-1601"),
        ("TUMBLE(TABLE moves PARTITION BY nothing, 3 ROWS)", "SQL-1042"),
        ("TUMBLE(TABLE moves ORDER BY ts, DESCRIPTOR(ts), INTERVAL '1' MINUTE)", "SQL-1601"),
    ],
)
def test_what_is_refused(session: Session, call: str, code: str) -> None:
    with pytest.raises(PenstockError) as refused:
        session.execute(f"SELECT * FROM TABLE({call})")
    assert refused.value.code == code
    assert refused.value.span is not None


def test_a_bounded_table_has_the_same_windows() -> None:
    ours, words, _ = QUERIES["one key"]
    session = Session({"bounded.backend": "duckdb"})
    session.register("moves", MOVES)
    try:
        rows = session.execute(ours).final_rows(PATIENCE_S)
    finally:
        session.close()
    assert Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == answer(words)


@pytest.mark.longer
def test_three_acts(tmp_path: Path) -> None:
    tables = (
        (ROOT / "queries" / "growing_delays.sql").read_text(encoding="utf-8").partition("SELECT tailnum")[0]
    )
    rows = "SELECT * FROM flights WHERE dep_time IS NOT NULL AND tailnum IS NOT NULL"
    order = "departed, flight, origin"
    measures = "COUNT(*), SUM(dep_delay), MIN(departed), MAX(departed)"
    query = (
        f"SELECT tailnum, window_index, {measures} FROM TABLE(TUMBLE(TABLE ({rows}) PARTITION BY tailnum ORDER BY {order},"
        " 25 ROWS)) GROUP BY tailnum, window_index"
    )
    numbered = NUMBERED.format(key="tailnum", order=order, size=25, source=f"({rows})")
    words = f"SELECT tailnum, window_index, {measures} FROM ({numbered}) GROUP BY tailnum, window_index"
    flights = of_length(sample(tmp_path / "flights", 24), FLIGHTS)
    database = _database(flights)
    want = Counter(database.execute(words).fetchall())
    ((given,),) = database.execute("SELECT count(*) FROM flights").fetchall()
    script = Script(
        "count windows",
        {"execution.batch.max-rows": "2000"},
        tables.replace("queries/data/flights'", f"{flights}'") + query + ";",
    )
    try:
        straight = Folded()
        run_to_end(*script.submit(1, None, 0), straight)
        assert straight.rows == want

        folded = Folded()
        with gated(given * 2 // 3):
            job, channel = script.submit(2, tmp_path / "state", 100)
            run_and_stop(job, channel, folded, given // 3)
        job, channel = script.submit(3, tmp_path / "state", 100)
        run_to_end(job, channel, folded)
        assert rows_read(job) < given, "act three was to resume, not to begin again"
        assert folded.rows == want
    finally:
        script.close()
