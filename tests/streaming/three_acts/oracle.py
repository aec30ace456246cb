"""The oracle we did not write: DuckDB over the same files, asked in DuckDB's own words."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parent.parent.parent.parent
FLIGHTS = ROOT / "queries" / "data" / "flights"
QUERIES = ("flights", "cancellations", "top_airports", "weather")

_TABLES = """
CREATE TABLE flights AS
SELECT *, make_timestamp(year, month, day, 0, 0, 0)
          + to_minutes((coalesce(dep_time, sched_dep_time) // 100 * 60 + coalesce(dep_time, sched_dep_time) % 100)::INT) AS departed
FROM read_csv('{flights}', nullstr = 'NA');
CREATE TABLE airlines AS FROM read_csv('{data}/airlines.csv.gz', nullstr = 'NA');
CREATE TABLE airports AS FROM read_csv('{data}/airports.csv.gz', nullstr = 'NA');
CREATE TABLE planes AS FROM read_csv('{data}/planes.csv.gz', nullstr = 'NA');
CREATE TABLE weather AS FROM read_csv('{data}/weather.csv.gz', nullstr = 'NA');
"""


@cache
def _database(flights: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.execute(_TABLES.format(data=ROOT / "queries" / "data", flights=flights / "*.csv*"))
    return connection


@cache
def expected(query: str, flights: Path = FLIGHTS) -> Counter[tuple[Any, ...]]:
    """Return DuckDB's answer to a query of ``queries/`` over a directory of flights, as a multiset of
    rows.
    """
    text = (Path(__file__).parent / "expected" / f"{query}.sql").read_text(encoding="utf-8")
    return Counter(_database(flights).execute(text).fetchall())


def sample(difference: Counter[tuple[Any, ...]]) -> str:
    """Return a few rows of a difference, for a failing test's message."""
    return "\n".join(f"{count} x {row}" for row, count in list(difference.items())[:5])


def assert_same(got: Counter[tuple[Any, ...]], query: str, flights: Path = FLIGHTS) -> None:
    """Demand that a multiset of rows is DuckDB's answer."""
    want = expected(query, flights)
    assert got == want, (
        f"{query}: {sum(got.values())} rows, expected {sum(want.values())}\nmissing:\n{sample(want - got)}\nextra:\n{sample(got - want)}"
    )
