"""``python -m bench.server.web``: what the web listener costs, in processor time, and how fast a query ends whose
reader leaves.
"""

from __future__ import annotations

import contextlib
import random
import socket
import statistics
import time

import numpy as np
import pyarrow as pa

from penstock.client.monitoring.job_facts import job_facts
from penstock.client.session import Session
from tests.harness.web_listener import WebServer, web_server

READERS = 100
GARBAGE = 5_000
ROWS = 200_000


def main() -> None:
    """Print the figures, the unfavourable ones first."""
    with web_server(Session({"execution.runtime-mode": "streaming"})) as server:
        for statement in (
            "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')",
            "CREATE TABLE hole (k BIGINT, c BIGINT) WITH ('connector' = 'blackhole')",
            "INSERT INTO hole SELECT n % 10, COUNT(*) FROM numbers GROUP BY n % 10",
        ):
            server.session.execute(statement)
        numbers = pa.array(np.arange(ROWS))
        server.session.register("many", pa.table({"n": numbers, "s": numbers.cast(pa.string())}))
        job = server.session.jobs()[0]
        while not job.metrics().rows_out:
            job.wait(0.05)
        print(f"rows as JSON events: {json_rate(server):,.0f} rows a second of processor time, both ends")
        print(f"{GARBAGE:,} requests of garbage: {garbage(server):.2f} ms of processor time each, both ends")
        print(f"{READERS} readers of the list of jobs: {watched(server):.2f} processors")
        before = time.process_time()
        for _ in range(200):
            job_facts(job)
        print(f"facts of a job: {(time.process_time() - before) / 200 * 1e3:.2f} ms of processor time")
        ends = [leaving(server) for _ in range(20)]
        print(
            f"a reader leaves, its query ends: median {statistics.median(ends):.3f} s, most {max(ends):.3f} s"
        )


def json_rate(server: WebServer) -> float:
    """Return the rows a second of processor time that a query sends to a reader of this process."""
    sql = "SELECT n, s FROM many"
    rows, before = 0, time.process_time()
    with server.events("POST", "/api/v1/query/stream", {"sql": sql}) as events:
        for name, data in events:
            rows += len(data["data"][0]) if name == "rows" else 0
    return rows / (time.process_time() - before)


def leaving(server: WebServer) -> float:
    """Return the seconds from the end of a reader's connection to the end of its query."""
    with server.events("POST", "/api/v1/query/stream", {"sql": "SELECT n FROM numbers"}) as events:
        shape = next(events)[1]
        next(events)
    began = time.monotonic()
    job = next(job for job in server.session.jobs() if job.job_id == shape["job"])
    assert job.wait(60)
    return time.monotonic() - began


def watched(server: WebServer) -> float:
    """Return the processors that many readers of the list keep busy."""
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(server.events("GET", "/api/v1/jobs/stream")) for _ in range(READERS)]
        for events in streams:
            next(events)
        before, began = time.process_time(), time.monotonic()
        for _ in range(5):
            for events in streams:
                next(events)
        return (time.process_time() - before) / (time.monotonic() - began)


def garbage(server: WebServer) -> float:
    """Send what is no request, and half of one; return the milliseconds of processor time of each."""
    host, _, port = server.listener.address.rpartition(":")
    chance, before = random.Random(7), time.process_time()
    head = b"POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for number in range(GARBAGE):
        noise = chance.randbytes(chance.randrange(1, 400))
        data = noise if number % 2 else head + b"Content-Length: %d\r\n\r\n" % len(noise) + noise
        with socket.create_connection((host, int(port))) as connection, contextlib.suppress(OSError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(4_000)
            assert b" 500 " not in answer[:16]
            assert b"Traceback" not in answer
    assert server.get("/health").status == 200
    return (time.process_time() - before) / GARBAGE * 1e3


if __name__ == "__main__":
    main()
