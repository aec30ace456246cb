"""CURRENT_WATERMARK: the watermark of a row's file just before the row, at any cuts of batches, parallelism and
stops, beside a window function of DuckDB.
"""

from __future__ import annotations

import csv
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end

FILES, ROWS = 3, 700
TABLE = """
    CREATE TABLE e (f INT, n BIGINT, k BIGINT, ts TIMESTAMP(6), WATERMARK FOR ts AS ts - INTERVAL '30' SECOND)
    WITH ('connector' = 'filesystem', 'path' = '%s', 'format' = 'csv', 'csv.header' = 'false');
"""
ROW_BY_ROW = (
    "SELECT f, n, CURRENT_WATERMARK(ts) FROM e WHERE k <> 3 AND (n < 90 OR ts < CURRENT_WATERMARK(ts));"
)
GROUPED = """
    SELECT k, COUNT(*), COUNT(*) FILTER (WHERE ts < CURRENT_WATERMARK(ts)), MAX(w)
    FROM (SELECT *, CURRENT_WATERMARK(ts) AS w FROM e WHERE n % 5 <> 1) AS t GROUP BY k;
"""
ORACLE = """
    CREATE VIEW w AS SELECT *, MAX(ts - INTERVAL 30 SECOND) OVER (
        PARTITION BY f ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS w
    FROM read_csv('%s/*.csv', header = false, names = ['f', 'n', 'k', 'ts'],
                  types = {'f': 'INT', 'n': 'BIGINT', 'k': 'BIGINT', 'ts': 'TIMESTAMP'})
"""
ANSWERS = {
    ROW_BY_ROW: "SELECT f, n, w FROM w WHERE k <> 3 AND (n < 90 OR ts < w)",
    GROUPED: "SELECT k, COUNT(*), COUNT(*) FILTER (WHERE ts < w), MAX(w) FROM w WHERE n % 5 <> 1 GROUP BY k",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of rows that are up to two minutes out of order; some have no time."""
    place = tmp_path_factory.mktemp("events")
    start = datetime(2026, 1, 1)
    for f in range(FILES):
        with (place / f"{f}.csv").open("w", newline="") as file:
            for n in range(ROWS):
                moment = start + timedelta(seconds=n * 3 - n * 37 * (f + 1) % 120)
                csv.writer(file).writerow([f, n, n * 7 % 11, "" if n % 97 == 5 else moment])
    return place


def answer(place: Path, query: str) -> Counter[tuple[object, ...]]:
    connection = duckdb.connect()
    connection.execute(ORACLE % place)
    return Counter(connection.sql(ANSWERS[query]).fetchall())


@pytest.mark.parametrize("query", ANSWERS, ids=["rows", "groups"])
def test_the_acts(query: str, place: Path, tmp_path: Path) -> None:
    folded = Folded()
    for parallelism, batch in ((2, "7"), (3, "1"), (1, "700")):
        script = Script("", {"execution.batch.max-rows": batch}, TABLE % place + query)
        try:
            job, channel = script.submit(parallelism, tmp_path, 50)
            if parallelism > 1:
                run_and_stop(job, channel, folded, 150)
            else:
                run_to_end(job, channel, folded)
                assert rows_read(job) < ROWS * FILES, "the last act was to go on, not to begin again"
        finally:
            script.close()
    assert folded.rows == answer(place, query)


@pytest.mark.parametrize("query", ANSWERS, ids=["rows", "groups"])
def test_batch_mode_has_the_same_answer(query: str, place: Path) -> None:
    session = Session({"bounded.backend": "duckdb", "execution.runtime-mode": "batch"})
    try:
        session.execute(TABLE % place)
        rows = session.execute(query).final_rows(60).to_pylist()
        assert Counter(tuple(row.values()) for row in rows) == answer(place, query)
    finally:
        session.close()


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT CURRENT_WATERMARK(ts + INTERVAL '1' SECOND) FROM e", "SQL-1701"),
        ("SELECT CURRENT_WATERMARK(k) FROM e", "SQL-1701"),
        ("SELECT a.k FROM e AS a JOIN e AS b ON a.k = b.k AND a.ts < CURRENT_WATERMARK(b.ts)", "SQL-1701"),
        ("SELECT CURRENT_WATERMARK(m) FROM (SELECT MAX(ts) AS m FROM e)", "SQL-1701"),
        ("SELECT CURRENT_WATERMARK(ts) FROM c", "SQL-1316"),
    ],
)
def test_what_has_no_watermark_of_its_own_is_refused(query: str, code: str, place: Path) -> None:
    session = Session({"execution.runtime-mode": "streaming"})
    try:
        session.execute(TABLE % place)
        session.execute(
            "CREATE TABLE c (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) "
            f"WITH ('connector' = 'filesystem', 'path' = '{place}/c', 'format' = 'debezium-json')"
        )
        with pytest.raises(PenstockError) as refused:
            session.execute(query)
        assert refused.value.code == code
    finally:
        session.close()
