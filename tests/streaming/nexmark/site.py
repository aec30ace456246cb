"""The auction site of the tests: its events as Arrow tables read straight off the connector, and DuckDB's
answers over them.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from penstock.catalog.connectors.generated import NEXMARK_TABLES
from penstock.planner.statements.nodes import Insert, Query, Statement
from tests.harness.case_files import case_files
from tests.harness.reading import drain, open_source, table_of
from tests.streaming.three_acts.oracle import ROOT

FOLDER = ROOT / "queries" / "nexmark"
QUERIES = tuple(sorted((path.stem for path in case_files(FOLDER, "q*.sql")), key=lambda name: int(name[1:])))


def events(table: str, **options: str) -> pa.Table:
    """Return all rows of a nexmark table, in the order the connector gives them."""
    declared = table_of(
        NEXMARK_TABLES[table],
        {"connector": "nexmark", "table": table} | {key.replace("_", "."): v for key, v in options.items()},
    )
    batches = [batch.rows for batch in drain(open_source(declared)).batches]
    return pa.Table.from_batches(batches, batches[0].schema)


def duckdb_text(query: str) -> str:
    """Return a query in DuckDB's words: its own text where those are the same."""
    other = FOLDER / "duckdb" / f"{query}.sql"
    return (
        (other if other.exists() else FOLDER / f"{query}.sql").read_text(encoding="utf-8").strip().rstrip(";")
    )


@cache
def database(count: int, rate: int) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB that knows so many events, in one split and in order."""
    connection = duckdb.connect()
    for name in ("person", "auction", "bid"):
        rows = events(name, **{"events.num": str(count), "event-rate": str(rate)})
        connection.register("rows", rows)
        connection.execute(f"CREATE TABLE {name} AS FROM rows")
        connection.unregister("rows")
    return connection


@cache
def expected(query: str, count: int, rate: int) -> Counter[tuple[Any, ...]]:
    """Return DuckDB's answer to a query, as a multiset of rows."""
    return Counter(database(count, rate).execute(duckdb_text(query)).fetchall())


def script(query: str, count: int, rate: int, tables: str = "tables", **options: str) -> str:
    """Return tables and a query as one script, over so many events in four splits (``options`` of the
    connector besides).
    """
    more = "".join(f", '{key}' = '{value}'" for key, value in ({"event-rate": str(rate)} | options).items())
    text = (
        (FOLDER / f"{tables}.sql")
        .read_text(encoding="utf-8")
        .replace("'events.num' = '100000'", f"'events.num' = '{count}'{more}")
    )
    return text.replace("'splits' = '2'", "'splits' = '4'") + asked(query)


def asked(query: str) -> str:
    """Return a query's text; how many windows of our own clock q12 has is not known, so its counts are
    summed over them.
    """
    text = (FOLDER / f"{query}.sql").read_text(encoding="utf-8")
    if query != "q12":
        return text
    before, _, select = text.rpartition("\n\n")
    return f"{before}\nSELECT bidder, SUM(bids) FROM (\n{select.rstrip().rstrip(';')}\n) GROUP BY bidder;\n"


def asked_of(node: Statement) -> Query:
    """Return the query of a statement that is one, or that writes one's rows."""
    assert isinstance(node, Query | Insert)
    return node.query if isinstance(node, Insert) else node


def rounded(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Return the rows with floating values cut to twelve digits: sums of them depend on the order they are
    added in.
    """
    out: Counter[tuple[Any, ...]] = Counter()
    for row, count in rows.items():
        out[tuple(float(f"{value:.12g}") if isinstance(value, float) else value for value in row)] += count
    return out
