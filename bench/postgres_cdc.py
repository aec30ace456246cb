"""How fast rows and changes of PostgreSQL come in by postgres-cdc, and how fast a sink writes: beside the bare
COPY of the driver. Process CPU of this side, and wall time with the server's share.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, INT, STRING, Decimal, TimestampLtz
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.database.postgres import csv_text
from penstock.engine.connectors.database.postgres_sink import PostgresSink
from penstock.engine.connectors.database.sink import DatabaseSink
from tests.harness.cdc_reading import cdc_table
from tests.harness.postgres_server import PostgresServer, logical_server
from tests.harness.reading import Taken, open_source

COLUMNS = {"id": BIGINT, "g": INT, "name": STRING, "amount": Decimal(12, 2), "at": TimestampLtz(6)}
_SELECT = (
    "SELECT g::bigint AS id, (g % 1000)::int AS g, 'name ' || g % 5000 AS name, (g * 1.25)::numeric(12,2) AS amount, "
    "timestamptz '2026-01-01' + g * interval '1 s' AS at FROM generate_series(1, {rows}) g"
)
Timing = tuple[float, float]


def timed(act: Callable[[], Any]) -> Timing:
    """Return wall and CPU seconds."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - wall_s, time.process_time() - cpu_s


def made(there: Any, name: str, rows: int) -> None:
    """Make a table."""
    there.execute(f"DROP TABLE IF EXISTS {name}; DROP PUBLICATION IF EXISTS penstock_bench_slot")
    there.execute(
        f"CREATE TABLE {name} (id bigint PRIMARY KEY, g int, name text, amount numeric(12,2), at timestamptz)"
    )
    there.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    there.execute(f"INSERT INTO {name} {_SELECT.format(rows=rows)}")
    there.execute(f"ANALYZE {name}")


def source_timings(server: PostgresServer, there: Any, rows: int) -> dict[str, Timing]:
    """Time the snapshot, and a stream of as many inserts."""
    made(there, "bench_in", rows)
    slot = "bench_slot"
    operator = open_source(
        cdc_table(server, "bench_in", COLUMNS, slot__name=slot, heartbeat__interval="1 h"),
        clock=SystemClock(),
    )  # type: ignore[arg-type]
    received = 0

    def until(count: int) -> None:
        nonlocal received
        while received < count:
            out = Taken()
            operator.poll(out)
            found = sum(batch.num_rows for batch in out.batches)
            received += found
            # an empty batch: there was something, so there may be more
            if not out.batches:
                time.sleep(0.01)

    timings = {"snapshot": timed(lambda: until(rows))}
    # the stream is on before it is measured
    there.execute("INSERT INTO bench_in VALUES (0, 0, '', 0, now())")
    until(rows + 1)
    there.execute("INSERT INTO bench_in SELECT -id, g, name, amount, at FROM bench_in WHERE id > 0")
    timings["stream, inserts"] = timed(lambda: until(2 * rows + 1))
    there.execute("UPDATE bench_in SET g = g + 1 WHERE id > 0")
    timings["stream, updates (old and new row)"] = timed(lambda: until(4 * rows + 1))
    operator.close()
    for _ in range(1000):
        try:
            there.execute("SELECT pg_drop_replication_slot(%s)", [slot])
            break
        except psycopg.errors.ObjectInUse:
            time.sleep(0.01)
    return timings


def sink_timings(server: PostgresServer, there: Any, rows: int) -> dict[str, Timing]:
    """Time bare COPY, and sinks that append and upsert in ten epochs."""
    made(there, "bench_out", 0)
    schema = Schema(tuple(Field(name, kind) for name, kind in COLUMNS.items()))
    with there.cursor() as cursor:
        cursor.execute(_SELECT.format(rows=rows))
        columns = list(zip(*cursor.fetchall(), strict=True))
    whole = pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, schema.to_arrow().types, strict=True)],
        schema=schema.to_arrow(),
    )
    size = rows // 10
    pieces = [whole.slice(start, size) for start in range(0, rows, size)]

    def bare() -> None:
        with there.cursor() as cursor:
            for piece in pieces:
                with cursor.copy("COPY bench_out FROM STDIN (FORMAT csv)") as copy:
                    copy.write(csv_text(piece))

    def epochs(kind: Callable[[SinkRequest], Any], *, key: bool) -> Callable[[], None]:
        options = {"connector": "postgres", "url": server.url, "table-name": "bench_out"}
        table = CatalogTable("out", schema, schema, options, primary_key=("id",) if key else ())

        def run() -> None:
            request = SinkRequest(
                table, schema, (0,) if key else None, "op", "job", 0, 1, Services(), owner=kind.__name__
            )
            writer = kind(request)
            writer.recover([])
            for number, piece in enumerate(pieces, 1):
                writer.write(Batch(piece, np.ones(piece.num_rows, np.int64) if key else None))
                writer.commit(writer.prepare(number))
            writer.close()

        return run

    timings = {}
    for name, act in (
        ("bare COPY of the same rows", bare),
        ("sink by epoch, append", epochs(PostgresSink, key=False)),
        ("sink by epoch, upsert of new keys", epochs(PostgresSink, key=True)),
        ("rows staged in the database, append", epochs(DatabaseSink, key=False)),
        ("rows staged in the database, upsert", epochs(DatabaseSink, key=True)),
    ):
        there.execute("DROP TABLE IF EXISTS penstock_epochs, penstock_staged; TRUNCATE bench_out")
        timings[name] = timed(act)
        (count,) = there.execute("SELECT count(*) FROM bench_out").fetchone()
        assert count == rows, (name, count)
    return timings


def main() -> None:
    """``python -m bench.postgres_cdc``."""
    parser = argparse.ArgumentParser(prog="python -m bench.postgres_cdc", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="rows of five columns (200,000)")
    parser.add_argument("--runs", type=int, default=3, help="runs, of which the median counts (3)")
    arguments = parser.parse_args()
    server = logical_server()
    found: dict[str, list[Timing]] = {}
    with psycopg.connect(server.url, autocommit=True) as there:
        for _ in range(arguments.runs):
            for timings in (
                source_timings(server, there, arguments.rows),
                sink_timings(server, there, arguments.rows),
            ):
                for name, timing in timings.items():
                    found.setdefault(name, []).append(timing)
    print(f"{'':38} {'rows/s wall':>12} {'rows/s of CPU here':>19}")
    for name, timings in found.items():
        wall_s, cpu_s = (statistics.median(column) for column in zip(*timings, strict=True))
        rows = arguments.rows * (2 if "updates" in name else 1)
        print(f"{name:38} {rows / wall_s:12,.0f} {rows / cpu_s:19,.0f}")


if __name__ == "__main__":
    main()
