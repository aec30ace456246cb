"""One text, two engines: our streaming answer and DuckDB's to the same query over the same tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa

from client.session import Session

_SCHEMA = pa.schema([("k", pa.int32()), ("s", pa.string()), ("v", pa.int64())])


def _table(rows: int, step: int) -> pa.Table:
    """Few values, so that rows repeat and meet; NULLs in every column."""
    keys = [None if i % 11 == step else (i * step) % 4 for i in range(rows)]
    names = [None if i % 7 == step else "abcd"[(i * i + step) % 4] for i in range(rows)]
    values = [None if i % 9 == step else (i * 3 + step) % 5 for i in range(rows)]
    return pa.table([keys, names, values], schema=_SCHEMA)


TABLES = {"t": _table(40, 3), "u": _table(23, 5), "small": _table(4, 1), "nothing": _SCHEMA.empty_table()}


def streaming_session(**settings: str) -> Session:
    """A session whose tables are recordings, replayed in small batches."""
    session = Session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": "9", **settings})
    for name, table in TABLES.items():
        session.register(name, table, stream=True)
    return session


def streaming_answer(session: Session, query: str, parallelism: int) -> Counter[tuple[Any, ...]]:
    """Fold the changes of a query to its rows; no row may be taken back that was not given."""
    session.settings.set("parallelism.default", str(parallelism))
    result = session.execute(query)
    total: Counter[tuple[Any, ...]] = Counter()
    while (batch := result.next(60)) is not None:
        weights = [1] * batch.num_rows if batch.weights is None else batch.weights.tolist()
        changed = list(zip(*(column.to_pylist() for column in batch.rows.columns), strict=True))
        for row, weight in zip(changed, weights, strict=True):
            total[row] += weight
        for row in changed:
            assert total[row] >= 0, f"{row} was taken back before it was given"
    return +total


def duckdb_answer(query: str) -> Counter[tuple[Any, ...]] | None:
    """DuckDB's rows, None for the few texts it has no plan for."""
    with duckdb.connect() as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        try:
            return Counter(connection.execute(query).fetchall())
        except duckdb.NotImplementedException:
            return None


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
