"""``python -m bench.server.postgres [fetch|points|streams]``: the PostgreSQL wire of one server process.

The server runs in a process of its own, whose processor time is read from the system. Clients are sockets that
decode nothing, so that a figure is the server's. Latencies are by the wall clock: a busy machine makes them
longer, processor time does not.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, KEYS = 4_000_000, 1_000_000
PER_SECOND, SECONDS = 2_000, 20
STREAMS, IDLE = 50, 1_000
_TICK = os.sysconf("SC_CLK_TCK")


def serve(folder: Path) -> None:
    """Serve until the input ends; print the port."""
    from penstock.catalog.settings import Settings
    from penstock.client.execution.engine_state import EngineState
    from penstock.client.server.postgres.listener import PostgresListener
    from penstock.client.server.principal import LOCAL, Principal
    from penstock.client.server.server_sessions import ServerSessions
    from penstock.client.session import Session

    class Trust:
        required = False

        def by_token(self, token: str) -> Principal:
            return LOCAL

    resource.setrlimit(resource.RLIMIT_NOFILE, (8_192, 8_192))
    settings = {"bounded.backend": "duckdb"}
    engine = EngineState(Settings(settings), is_shared=True)
    sessions = ServerSessions(lambda own: Session({**settings, **own}, engine=engine), lambda: 0)
    listener = PostgresListener(sessions, Trust(), port=0)  # type: ignore[arg-type]
    listener.start()
    print(listener.port, flush=True)
    # as penstock serve does
    gc.set_threshold(50_000, 20, 20)
    gc.freeze()
    sys.stdin.read()
    listener.close()
    os._exit(0)


class Client:
    """A socket that sends messages and reads up to ReadyForQuery, counting what comes."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = bytearray()
        body = struct.pack(">i", 196608) + b"user\0bench\0database\0bench\0\0"
        self.socket.sendall(struct.pack(">i", len(body) + 4) + body)
        self.until_ready()

    def send(self, tag: bytes, body: bytes = b"") -> None:
        """Send a message."""
        self.socket.sendall(tag + struct.pack(">i", len(body) + 4) + body)

    def query(self, sql: str) -> None:
        """Run a statement by the simple protocol."""
        self.send(b"Q", sql.encode() + b"\0")
        self.until_ready()

    def until_ready(self) -> tuple[int, int]:
        """Read to the end of a statement; return rows and bytes. RuntimeError for an error of the server."""
        rows = size = 0
        while True:
            at = 0
            while len(self._data) - at >= 5:
                end = at + 1 + int.from_bytes(self._data[at + 1 : at + 5], "big")
                if len(self._data) < end:
                    break
                tag = self._data[at]
                if tag == ord("E"):
                    raise RuntimeError(bytes(self._data[at + 5 : end]))
                rows += tag == ord("D")
                at = end
                if tag == ord("Z"):
                    del self._data[:at]
                    return rows, size
            del self._data[:at]
            piece = self.socket.recv(1 << 20)
            size += len(piece)
            self._data += piece


@contextmanager
def server(folder: Path) -> Iterator[tuple[int, int]]:
    """Start a server; yield its port and process."""
    command = [sys.executable, "-m", "bench.server.postgres", "serve", "--folder", str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline()), process.pid
    finally:
        process.kill()
        process.communicate()


def cpu_s(process: int) -> float:
    """Return the processor seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def fetch(folder: Path) -> None:
    """Print rows per processor second of a bounded SELECT, in both formats."""
    numbers = np.arange(ROWS)
    path = folder / "rows.parquet"
    table = {
        "k": numbers,
        "price": numbers * 0.25,
        "name": pa.array([f"name {i % 1000}" for i in range(ROWS)]),
        "ts": pa.array(numbers * 1_000_000, pa.timestamp("us")),
        "amount": pa.array(numbers % 100_000).cast(pa.decimal128(21, 2)),
    }
    pq.write_table(pa.table(table), path)
    with server(folder) as (port, process):
        client = Client(port)
        for name, form in (("binary", 1), ("text", 0)):
            figures = []
            for _ in range(3):
                before = cpu_s(process)
                # only what the fetch itself costs: a COUNT reads the same file
                client.send(b"P", b"\0SELECT * FROM '" + str(path).encode() + b"'\0\0\0")
                client.send(b"B", b"\0\0\0\0\0\0" + struct.pack(">hh", 1, form))
                client.send(b"E", b"\0\0\0\0\0")
                client.send(b"S")
                began = time.perf_counter()
                rows, size = client.until_ready()
                figures.append((cpu_s(process) - before, time.perf_counter() - began, size))
                assert rows == ROWS, rows
            cpu, wall, size = max(figures)
            print(
                f"fetch, {name}: {ROWS / cpu / 1e6:.2f} M rows/s of processor time (slowest of 3), "
                f"{ROWS / wall / 1e6:.2f} M rows/s by the clock, {size / 1e6:.0f} MB, 5 columns"
            )


def points(folder: Path) -> None:
    """Print the latency of point queries at a fixed rate, while the view is idle, and their processor time."""
    path = folder / "keys.parquet"
    keys = np.arange(KEYS)
    pq.write_table(pa.table({"k": keys, "v": keys * 2, "name": [f"n{i}" for i in range(KEYS)]}), path)
    with server(folder) as (port, process):
        client = Client(port)
        client.query(
            f"CREATE MATERIALIZED VIEW m AS SELECT k, MAX(v) AS v, MAX(name) AS name FROM '{path}' GROUP BY k"
        )
        filled = 0
        while filled != 1:
            client.send(b"Q", f"SELECT 1 FROM (SELECT COUNT(*) AS n FROM m) AS c WHERE n = {KEYS}\0".encode())
            filled, _ = client.until_ready()
        client.send(b"P", b"s\0SELECT v, name FROM m WHERE k = $1\0\0\0")
        client.send(b"S")
        client.until_ready()
        # the first builds the index
        began = time.perf_counter()
        _point(client, 5)
        print(f"points: the index of {KEYS:,} keys is built in {time.perf_counter() - began:.2f} s")
        random = np.random.default_rng(3).integers(0, KEYS, PER_SECOND * SECONDS)
        before, own, waits, start = cpu_s(process), time.process_time(), [], time.perf_counter()
        for number, key in enumerate(random.tolist()):
            due = start + number / PER_SECOND
            if (early := due - time.perf_counter()) > 0:
                time.sleep(early)
            _point(client, key)
            # from when it was due: one that waits behind a slow one counts as late
            waits.append(time.perf_counter() - due)
        spent, own = (cpu_s(process) - before) / len(random), (time.process_time() - own) / len(random)
        rate = len(random) / (time.perf_counter() - start)
        p50, p99, p999 = np.percentile(np.array(waits) * 1000, (50, 99, 99.9))
        print(
            f"points: {rate:,.0f}/s over one connection, p50 {p50:.2f} ms, p99 {p99:.2f} ms, p99.9 {p999:.2f} ms, "
            f"{spent * 1000:.3f} ms of the server's processor time each, {own * 1000:.3f} ms of this client's"
        )
    _in_process()


def _point(client: Client, key: int) -> None:
    value = str(key).encode()
    bind = b"\0s\0\0\0\0\1" + struct.pack(">i", len(value)) + value + struct.pack(">hh", 1, 1)
    message = b"".join(
        tag + struct.pack(">i", len(body) + 4) + body
        for tag, body in ((b"B", bind), (b"E", b"\0\0\0\0\0"), (b"S", b""))
    )
    client.socket.sendall(message)
    rows, _ = client.until_ready()
    assert rows == 1, rows


def _in_process() -> None:
    import penstock

    keys = 20_000
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as connection:
        connection.register("source", pa.table({"k": np.arange(keys), "v": np.arange(keys)}), stream=True)
        connection.execute("CREATE MATERIALIZED VIEW m AS SELECT k, MAX(v) AS v FROM source GROUP BY k")
        cursor = connection.cursor()
        while cursor.execute("SELECT COUNT(*) FROM m").fetchone() != (keys,):
            time.sleep(0.1)
        sql = "SELECT v FROM m WHERE k = ?"
        for _ in range(3):
            cursor.execute(sql, [1]).fetchall()
        before, count = time.process_time(), 5_000
        for key in range(count):
            assert cursor.execute(sql, [key]).fetchall() == [(key,)]
        print(
            f"points: Cursor.execute in process, {(time.process_time() - before) / count * 1000:.3f} ms of CPU"
        )


def streams(folder: Path) -> None:
    """Print what 50 endless streams and 1,000 idle sessions cost, and how fast a killed client's query ends."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8_192, 8_192))
    with server(folder) as (port, process):
        first = Client(port)
        first.query("CREATE TABLE g (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '20')")
        began = time.perf_counter()
        idle = [Client(port) for _ in range(IDLE)]
        print(f"streams: {len(idle):,} idle sessions opened in {time.perf_counter() - began:.1f} s")
        readers = [Client(port) for _ in range(STREAMS)]
        counts = [0] * STREAMS

        def read(number: int) -> None:
            client = readers[number]
            client.send(b"Q", b"SELECT k FROM g\0")
            while piece := client.socket.recv(1 << 16):
                counts[number] += piece.count(b"D\0\0\0")

        threads = [threading.Thread(target=read, args=(i,), daemon=True) for i in range(STREAMS)]
        for thread in threads:
            thread.start()
        while min(counts) < 20:
            time.sleep(0.1)
        before, rows, began = cpu_s(process), sum(counts), time.perf_counter()
        time.sleep(10)
        lasted = time.perf_counter() - began
        print(
            f"streams: {STREAMS} endless streams, {(sum(counts) - rows) / lasted:,.0f} rows/s of "
            f"{20 * STREAMS:,}, {(cpu_s(process) - before) / lasted:.2f} processors of the server"
        )
        memory = int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        tasks = len(list(Path(f"/proc/{process}/task").iterdir()))
        print(f"streams: {memory / 2**20:,.0f} MB resident, {tasks} threads")
        began = time.perf_counter()
        idle[0].query("SELECT 1")
        print(
            f"streams: SELECT 1 of an idle session takes {(time.perf_counter() - began) * 1000:.0f} ms meanwhile"
        )


def main() -> None:
    """Run the benches that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.server.postgres", description=__doc__)
    parser.add_argument("which", nargs="*", choices=["fetch", "points", "streams", "serve", []])
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    if "serve" in arguments.which:
        serve(arguments.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, bench in (("fetch", fetch), ("points", points), ("streams", streams)):
            if name in (arguments.which or ("fetch", "points", "streams")):
                bench(Path(folder))


if __name__ == "__main__":
    main()
