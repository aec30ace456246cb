"""Aggregates that keep values, of every kind of grouping: the streaming answer is DuckDB's to the same
question in its own words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

_TIMES = [datetime(2024, 1, 1) + timedelta(seconds=i + (i * 7) % 4 * 3, milliseconds=i) for i in range(150)]
MOVES = pa.table(
    {
        "id": pa.array(range(150), pa.int64()),
        "k": [None if i % 13 == 4 else "abcd"[i * i % 7 % 4] for i in range(150)],
        "v": pa.array([None if i % 11 == 6 else i * 37 % 19 - 6 for i in range(150)], pa.int64()),
        "d": [math.nan if i % 31 == 7 else math.inf if i % 37 == 9 else i * 5 % 9 / 2 for i in range(150)],
        "s": [None if i % 5 == 3 else ["é", "", "zz", "ö\u0301", "Z"][i % 7 % 5] for i in range(150)],
        "ts": pa.array(_TIMES, pa.timestamp("us")),
    }
)
# What is asked, and how DuckDB says it.
CALLS = {
    "COLLECT_LIST(v)": "coalesce(list(v ORDER BY v) FILTER (v IS NOT NULL), [])",
    "COLLECT_SET(s)": "coalesce(list(DISTINCT s ORDER BY s) FILTER (s IS NOT NULL), [])",
    "ARRAY_AGG(s ORDER BY v DESC, id)": "coalesce(list(s ORDER BY v DESC NULLS LAST, id) FILTER (s IS NOT NULL), [])",
    "ARRAY_AGG(d) FILTER (WHERE v > 0)": "coalesce(list(d ORDER BY d) FILTER (v > 0), [])",
    "HISTOGRAM(s)": "CASE WHEN count(s) > 0 THEN histogram(s) END",
    "STRING_AGG(s, ', ')": "string_agg(s, ', ' ORDER BY s)",
    "LAST_VALUE(s) IGNORE NULLS": "last(s ORDER BY ts, s) FILTER (s IS NOT NULL)",
    "FIRST_VALUE(v)": "first(v ORDER BY ts, v)",
    "MIN_BY(s, v)": "first(s ORDER BY v, s NULLS FIRST) FILTER (v IS NOT NULL)",
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY v)": "quantile_cont(v, 0.25)",
    "PERCENTILE(DISTINCT v, 0.75)": "quantile_cont(DISTINCT v, 0.75)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY d)": "quantile_disc(d, 0.5)",
    "BIT_AND(v)": "bit_and(v)",
    "VAR_POP(DISTINCT v)": "var_pop(DISTINCT v)",
    "REGR_COUNT(v, id)": "count(*) FILTER (v IS NOT NULL)",
    "COVAR_SAMP(v, id)": "covar_samp(v, id)",
}
OURS, WORDS = ", ".join(f"{call} AS c{i}" for i, call in enumerate(CALLS)), ", ".join(CALLS.values())
BY_TS = OURS.replace("LAST_VALUE(s)", "LAST_VALUE(s ORDER BY ts)").replace(
    "FIRST_VALUE(v)", "FIRST_VALUE(v ORDER BY ts)"
)
_BUCKET = "time_bucket(INTERVAL '5 seconds', ts)"
_HOPS = f"(SELECT *, {_BUCKET} - to_seconds(5 * back) AS window_start FROM moves, (VALUES (0), (1), (2)) AS b(back))"
_LAST = "(SELECT * FROM moves QUALIFY row_number() OVER (PARTITION BY k, id % 9 ORDER BY ts DESC) = 1)"
QUERIES = {
    f"SELECT k, {OURS} FROM moves GROUP BY k": f"SELECT k, {WORDS} FROM moves GROUP BY k",
    f"SELECT {OURS} FROM moves WHERE v > 100": f"SELECT {WORDS} FROM moves WHERE v > 100",
    f"SELECT k, window_start, {OURS} FROM HOP(TABLE moves, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '15' SECONDS) GROUP BY k, window_start,"
    " window_end": f"SELECT k, window_start, {WORDS} FROM {_HOPS} GROUP BY ALL",
    f"SELECT k, v % 3 AS m, {OURS} FROM moves GROUP BY ROLLUP (k, v % 3)": f"SELECT k, v % 3 AS m, {WORDS} FROM moves GROUP BY ROLLUP (k, v % 3)",
    f"SELECT k, {BY_TS} FROM"
    " (SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, id % 9 ORDER BY ts DESC) AS n FROM moves) WHERE n = 1) GROUP BY k": (
        f"SELECT k, {WORDS} FROM {_LAST} GROUP BY k"
    ),
}
FRAMES = (
    "PARTITION BY k ORDER BY ts, id ROWS BETWEEN 4 PRECEDING AND CURRENT ROW",
    "PARTITION BY k ORDER BY ts, id",
    "PARTITION BY k ORDER BY id DESC ROWS BETWEEN 2 PRECEDING AND 3 FOLLOWING",
)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": "17"})
    session.register("moves", MOVES, time_column="ts", delay=20)
    yield session
    session.close()


def plain(value: Any) -> Any:
    """A value that can be sorted and compared: floats rounded, NaN as a word."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else round(value, 9) + 0.0
    if isinstance(value, dict):
        return sorted(value.items())
    return [plain(one) for one in value] if isinstance(value, list) else value


def rows_of(columns: list[list[Any]]) -> list[str]:
    return sorted(repr([plain(value) for value in row]) for row in zip(*columns, strict=True))


def check(session: Session, query: str, words: str) -> None:
    with duckdb.connect() as connection:
        connection.register("moves", MOVES)
        expected = rows_of(list(map(list, zip(*connection.execute(words).fetchall(), strict=True))))
    for parallelism in ("1", "2"):
        session.settings.set("parallelism.default", parallelism)
        assert (
            rows_of([column.to_pylist() for column in session.execute(query).final_rows(PATIENCE_S).columns])
            == expected
        ), parallelism


@pytest.mark.parametrize("query", QUERIES)
def test_groups(session: Session, query: str) -> None:
    check(session, query, QUERIES[query])


@pytest.mark.parametrize("frame", FRAMES)
def test_over(session: Session, frame: str) -> None:
    query = "SELECT id, LISTAGG(s, '-') OVER w, PERCENTILE(v, 0.5) OVER w, BIT_OR(v) OVER w, COUNT_IF(v > 0) OVER w, MEDIAN(v) OVER w FROM moves"
    words = "SELECT id, list_aggregate(list_sort(list(s) FILTER (s IS NOT NULL) OVER w), 'string_agg', '-'), quantile_cont(v, 0.5) OVER w,"
    words += " bit_or(v) OVER w, count(*) FILTER (v > 0) OVER w, quantile_cont(v, 0.5) OVER w FROM moves"
    check(session, query.replace("OVER w", f"OVER ({frame})"), words.replace("OVER w", f"OVER ({frame})"))


@pytest.mark.parametrize("frame", FRAMES)
def test_over_some_rows_and_each_value_once(session: Session, frame: str) -> None:
    query = "SELECT id, COUNT(DISTINCT s) OVER w, SUM(DISTINCT v) OVER w, BIT_XOR(v) FILTER (WHERE id % 3 > 0) OVER w FROM moves"
    check(session, query.replace("OVER w", f"OVER ({frame})"), query.replace("OVER w", f"OVER ({frame})"))


def test_cumulated_windows_and_sessions(session: Session) -> None:
    windows = "CUMULATE(TABLE moves, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '15' SECONDS)"
    cumulated = (
        "(SELECT *, time_bucket(INTERVAL '15 seconds', ts) + to_seconds(5 * n) AS window_end FROM moves, (VALUES (1), (2), (3)) AS c(n)"
        " WHERE ts < time_bucket(INTERVAL '15 seconds', ts) + to_seconds(5 * n))"
    )
    check(
        session,
        f"SELECT window_end, {OURS} FROM {windows} GROUP BY window_start, window_end",
        f"SELECT window_end, {WORDS} FROM {cumulated} GROUP BY ALL",
    )
    windows = "SESSION(TABLE moves PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECONDS)"
    breaks = (
        "(SELECT *, ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) > INTERVAL '2 seconds' AS b FROM moves)"
    )
    sessions = f"(SELECT *, sum(CASE WHEN b THEN 1 ELSE 0 END) OVER (PARTITION BY k ORDER BY ts) AS session FROM {breaks})"
    query = f"SELECT k, window_start, {BY_TS} FROM {windows} GROUP BY k, window_start, window_end"
    check(session, query, f"SELECT k, min(ts), {WORDS} FROM {sessions} GROUP BY k, session")
