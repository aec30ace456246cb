"""``python -m bench.server.flight``: rows fetched from a server by Flight SQL, beside the same rows in this
process.

Each way has a first run and warm ones. Rates are by the clock; processor time is of client and server apart,
as it does not depend on who else is at work. Memory is the most that the server had.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import adbc_driver_flightsql.dbapi as adbc
import duckdb
import pyarrow as pa

import penstock
from penstock.client.connection import Connection

_MEMORY = re.compile(r"VmHWM:\s+(\d+) kB")
_ADDRESS = re.compile(r"\"flight\": \"([^\"]+)\"")


def main() -> None:
    """Print a line for each way of fetching, then how soon a first row comes."""
    parser = argparse.ArgumentParser(prog="python -m bench.server.flight", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table (10 million)")
    parser.add_argument("--runs", type=int, default=3, help="warm runs of each way (3)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        table = Path(name) / "rows.parquet"
        with duckdb.connect() as maker:
            columns = "i AS a, i * 0.5 AS b, CAST(i % 1000 AS INTEGER) AS c"
            maker.execute(f"COPY (SELECT {columns} FROM range({arguments.rows}) AS t (i)) TO '{table}'")
        query = f"SELECT a, b, c FROM '{table}'"
        with _server(Path(name) / "state") as (address, pid):
            print(f"{'way':32} {'first':>9} {'warm':>9}   {'cpu ns/row: client':>18} {'server':>8}")
            settings = {"bounded.backend": "duckdb"}
            with penstock.connect(settings=settings) as here:
                _report("in process, arrow()", lambda: _fetched(here, query), arguments, os.getpid())
            with penstock.connect(f"penstock://{address}", settings=settings) as there:
                _report("penstock://, arrow()", lambda: _fetched(there, query), arguments, pid)
                _report("penstock://, fetchmany(100000)", lambda: _tuples(there, query), arguments, pid)
            with adbc.connect(f"grpc://{address}", autocommit=True) as driver:
                driver.cursor().execute("SET 'bounded.backend' = 'duckdb'")
                _report("ADBC, fetch_arrow_table()", lambda: _by_adbc(driver, query), arguments, pid)
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
            if (found := _MEMORY.search(status)) is not None:
                print(f"most memory of the server: {int(found[1]) / 1024:,.0f} MiB")


def _fetched(connection: Connection, query: str) -> int:
    return connection.execute(query).arrow().num_rows


def _tuples(connection: Connection, query: str) -> int:
    cursor, count = connection.execute(query), 0
    while rows := cursor.fetchmany(100_000):
        count += len(rows)
    return count


def _by_adbc(driver: adbc.Connection, query: str) -> int:
    with driver.cursor() as cursor:
        cursor.execute(query)
        table: pa.Table = cursor.fetch_arrow_table()
        return table.num_rows


def _report(name: str, fetch: Callable[[], int], arguments: argparse.Namespace, pid: int) -> None:
    walls, clients, servers = [], [], []
    for _ in range(1 + arguments.runs):
        server_s, client_s, start = _cpu_s(pid), _own_cpu_s(), time.perf_counter()
        rows = fetch()
        walls.append(time.perf_counter() - start)
        clients.append(_own_cpu_s() - client_s)
        servers.append(_cpu_s(pid) - server_s)
        assert rows == arguments.rows
    first, warm = arguments.rows / walls[0] / 1e6, arguments.rows / statistics.median(walls[1:]) / 1e6
    per_row = [statistics.median(each[1:]) * 1e9 / arguments.rows for each in (clients, servers)]
    server = f"{per_row[1]:8.0f}" if pid != os.getpid() else f"{'-':>8}"
    print(f"{name:32} {first:5.1f} M/s {warm:5.1f} M/s   {per_row[0]:18.0f} {server}", flush=True)


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _cpu_s(pid: int) -> float:
    # utime and stime are the fields 14 and 15; the name before them may hold blanks
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _server(state: Path) -> Iterator[tuple[str, int]]:
    command = (sys.executable, "-m", "penstock", "serve", "--state", str(state), "--flight-port", "0")
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stderr=pipe, stdout=nothing, text=True) as process:
        assert process.stderr is not None
        # the first lines are of its log
        address = next(found[1] for line in process.stderr if (found := _ADDRESS.search(line)))
        try:
            yield address, process.pid
        finally:
            process.terminate()
            process.stderr.read()


if __name__ == "__main__":
    main()
