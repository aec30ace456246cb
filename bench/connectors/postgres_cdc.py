"""How fast rows and changes of PostgreSQL come in by postgres-cdc, and how fast a sink writes: beside the bare
COPY of the driver. Processor time of this side and of all processes of the server, and wall time. The first
run, with everything it loads, is apart from the warm ones.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc

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
Timing = tuple[float, float, float]
_TICKS = os.sysconf("SC_CLK_TCK")


def server_seconds(directory: Path) -> float:
    """Return the processor seconds of a server's processes, those that have ended included."""
    # the postmaster's own times and those of the children that it has waited for
    postmaster = int((directory / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    ticks = 0
    for process, fields in [(str(postmaster), (11, 12, 13, 14)), *((child, (11, 12)) for child in children)]:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(words[field]) for field in fields)
    return ticks / _TICKS


def timed(act: Callable[[], Any], directory: Path) -> Timing:
    """Return wall seconds, and CPU seconds of this side and of the server."""
    wall_s, cpu_s, server_s = time.perf_counter(), time.process_time(), server_seconds(directory)
    act()
    here = time.perf_counter() - wall_s, time.process_time() - cpu_s
    return *here, server_seconds(directory) - server_s


def made(there: Any, name: str, rows: int) -> None:
    """Make a table."""
    there.execute(f"DROP TABLE IF EXISTS {name}; DROP PUBLICATION IF EXISTS penstock_bench_slot")
    there.execute(
        f"CREATE TABLE {name} (id bigint PRIMARY KEY, g int, name text, amount numeric(12,2), at timestamptz)"
    )
    there.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    there.execute(f"INSERT INTO {name} {_SELECT.format(rows=rows)}")
    there.execute(f"ANALYZE {name}")


def source_timings(server: PostgresServer, there: Any, rows: int, directory: Path) -> dict[str, Timing]:
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

    timings = {"snapshot": timed(lambda: until(rows), directory)}
    # the stream is on before it is measured
    there.execute("INSERT INTO bench_in VALUES (0, 0, '', 0, now())")
    until(rows + 1)
    there.execute("INSERT INTO bench_in SELECT -id, g, name, amount, at FROM bench_in WHERE id > 0")
    timings["stream, inserts"] = timed(lambda: until(2 * rows + 1), directory)
    there.execute("UPDATE bench_in SET g = g + 1 WHERE id > 0")
    timings["stream, updates (old and new row)"] = timed(lambda: until(4 * rows + 1), directory)
    operator.close()
    for _ in range(1000):
        try:
            there.execute("SELECT pg_drop_replication_slot(%s)", [slot])
            break
        except psycopg.errors.ObjectInUse:
            time.sleep(0.01)
    return timings


def pieces_of(schema: pa.Schema, rows: int, size: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``_SELECT`` in pieces, made without a server."""
    for start in range(0, rows, size):
        ids = np.arange(start + 1, min(start + size, rows) + 1)
        cents = pa.array(ids * 125).cast(pa.decimal128(20, 0)).cast(pa.string())
        columns = [
            pa.array(ids),
            pa.array((ids % 1000).astype(np.int32)),
            pc.binary_join_element_wise("name", pa.array(ids % 5000).cast(pa.string()), " "),
            pc.divide(cents.cast(pa.decimal128(14, 2)), pa.scalar(100, pa.decimal128(5, 2))).cast(
                pa.decimal128(12, 2)
            ),
            pa.array(1_767_225_600_000_000 + ids * 1_000_000).cast(pa.timestamp("us", "UTC")),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def sink_timings(
    server: PostgresServer, there: Any, rows: int, directory: Path, size: int
) -> dict[str, Timing]:
    """Time bare COPY, and sinks that append and upsert, in epochs of so many rows."""
    made(there, "bench_out", 0)
    schema = Schema(tuple(Field(name, kind) for name, kind in COLUMNS.items()))
    # made anew each time: ten million rows are not kept
    pieces = partial(pieces_of, schema.to_arrow(), rows, size)

    def bare() -> None:
        with there.cursor() as cursor:
            for piece in pieces():
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
            for number, piece in enumerate(pieces(), 1):
                writer.write(Batch(piece, np.ones(piece.num_rows, np.int64) if key else None))
                writer.commit(writer.prepare(number))
            writer.close()

        return run

    timings = {}
    for name, act in (
        ("bare COPY of the same rows", bare),
        ("sink by epoch, append", epochs(PostgresSink, key=False)),
        ("sink by epoch, upsert of new keys", epochs(PostgresSink, key=True)),
        ("sink by epoch, upsert of keys there", epochs(PostgresSink, key=True)),
        ("rows staged in the database, append", epochs(DatabaseSink, key=False)),
        ("rows staged in the database, upsert", epochs(DatabaseSink, key=True)),
    ):
        there.execute("DROP TABLE IF EXISTS penstock_epochs, penstock_staged")
        if "keys there" not in name:
            there.execute("TRUNCATE bench_out")
        timings[name] = timed(act, directory)
        (count,) = there.execute("SELECT count(*) FROM bench_out").fetchone()
        assert count == rows, (name, count)
    return timings


def peak_mib() -> float:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(title: str, found: dict[str, list[Timing]], rows: int) -> None:
    """Print rows a second by wall and by processor time."""
    print(f"{title:38} {'rows/s wall':>12} {'of CPU here':>12} {'of CPU there':>12} {'of both':>10}")
    for name, timings in found.items():
        wall_s, cpu_s, server_s = (statistics.median(column) for column in zip(*timings, strict=True))
        count = rows * (2 if "updates" in name else 1)
        figures = (count / max(spent_s, 0.01) for spent_s in (wall_s, cpu_s, server_s, cpu_s + server_s))
        print(
            f"{name:38} "
            + " ".join(f"{value:{width},.0f}" for value, width in zip(figures, (12, 12, 12, 10), strict=True))
        )


def main() -> None:
    """``python -m bench.connectors.postgres_cdc``."""
    parser = argparse.ArgumentParser(prog="python -m bench.connectors.postgres_cdc", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="rows of five columns (200,000)")
    parser.add_argument("--runs", type=int, default=3, help="warm runs, of which the median counts (3)")
    parser.add_argument("--epoch", type=int, default=20_000, help="rows of an epoch of the sink (20,000)")
    parser.add_argument("--only", choices=("source", "sink"))
    arguments = parser.parse_args()
    server = logical_server()
    with psycopg.connect(server.url, autocommit=True) as there:
        directory = Path(there.execute("SHOW data_directory").fetchone()[0])

        def run() -> dict[str, Timing]:
            timings: dict[str, Timing] = {}
            if arguments.only != "sink":
                timings |= source_timings(server, there, arguments.rows, directory)
            if arguments.only != "source":
                timings |= sink_timings(server, there, arguments.rows, directory, arguments.epoch)
            return timings

        before_mib = peak_mib()
        show("the first run", {name: [timing] for name, timing in run().items()}, arguments.rows)
        warm = [run() for _ in range(arguments.runs)]
    if warm:
        show("warm", {name: [timings[name] for timings in warm] for name in warm[0]}, arguments.rows)
    print(f"memory here: {before_mib:,.0f} MiB before, at most {peak_mib():,.0f} MiB")


if __name__ == "__main__":
    main()
