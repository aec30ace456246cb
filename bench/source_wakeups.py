"""What a source costs that has no rows, and how long one row takes that comes alone:
``python -m bench.source_wakeups [redis|nats|mqtt|socket|events|websocket|postgres|kafka]``, all without a word.

A query over each source runs in this process; its server is another one. Idle is processor time of this
process, all threads, without the session's own. A row is sent 30 to 70 ms after the last; its time is from
before it is sent until the program has it.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import penstock

_IDLE_S = 5.0
_ROWS = 60
Send = Callable[[int], Any]


def _text(number: int) -> bytes:
    return b'{"n": %d}' % number


@contextmanager
def redis(folder: Path) -> Iterator[tuple[dict[str, str], Send]]:
    """Serve a stream of Redis."""
    from tests.harness.redis_server import redis_server

    with redis_server(folder) as server:
        options = {"connector": "redis-stream", "url": server.url, "stream": "s"}
        yield options, lambda number: server.client.xadd("s", {"value": _text(number)})


@contextmanager
def nats(folder: Path) -> Iterator[tuple[dict[str, str], Send]]:
    """Serve a stream of JetStream."""
    from tests.harness.nats_server import nats_server

    with nats_server(folder) as server:
        server.create("s", "s.in")
        options = {"connector": "nats", "url": server.url, "stream": "s"}
        yield options, lambda number: server.publish("s.in", _text(number))


@contextmanager
def mqtt(folder: Path) -> Iterator[tuple[dict[str, str], Send]]:
    """Serve a topic of MQTT."""
    from tests.harness.mqtt_broker import mqtt_broker

    with mqtt_broker(folder) as broker:
        client = broker.client()
        client.loop_start()
        options = {"connector": "mqtt", "url": broker.url, "topic": "t"}
        yield options, lambda number: client.publish("t", _text(number), qos=1)
        client.loop_stop()


@contextmanager
def _sender(kind: str) -> Iterator[tuple[str, Send]]:
    words = [sys.executable, "-m", "bench.source_wakeups", "--serve", kind]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        stdin = process.stdin

        def send(number: int) -> None:
            stdin.write(_text(number) + b"\n")
            stdin.flush()

        try:
            yield process.stdout.readline().decode().strip(), send
        finally:
            process.kill()


@contextmanager
def socket(_folder: Path) -> Iterator[tuple[dict[str, str], Send]]:
    """Serve lines over TCP."""
    with _sender("socket") as (port, send):
        yield {"connector": "socket", "hostname": "127.0.0.1", "port": port}, send


@contextmanager
def events(_folder: Path) -> Iterator[tuple[dict[str, str], Send]]:
    """Serve server-sent events."""
    with _sender("events") as (port, send):
        yield {"connector": "http", "url": f"http://127.0.0.1:{port}/", "mode": "events"}, send


@contextmanager
def websocket(_folder: Path) -> Iterator[tuple[dict[str, str], Send]]:
    """Serve messages of a websocket."""
    with _sender("websocket") as (port, send):
        yield {"connector": "http", "url": f"ws://127.0.0.1:{port}/", "mode": "websocket"}, send


@contextmanager
def postgres(_folder: Path) -> Iterator[tuple[dict[str, str], Send]]:
    """Serve the changes of a table of PostgreSQL."""
    import psycopg

    from tests.harness.postgres_server import logical_server

    server = logical_server()
    with psycopg.connect(server.database_url("postgres"), autocommit=True) as connection:
        connection.execute(
            "DROP TABLE IF EXISTS wakeups; CREATE TABLE wakeups (n BIGINT PRIMARY KEY);"
            "ALTER TABLE wakeups REPLICA IDENTITY FULL"
        )
        options = server.options("postgres", "wakeups", "wakeups")
        options["scan.read-changelog-as-append-only.enabled"] = "true"
        yield options, lambda number: connection.execute("INSERT INTO wakeups VALUES (%s)", [number])


@contextmanager
def kafka(_folder: Path) -> Iterator[tuple[dict[str, str], Send]]:
    """Serve a topic of Kafka, whose fetches wait."""
    from confluent_kafka import Producer

    from tests.harness.kafka_broker import KafkaTopics, new_broker
    from tests.harness.kafka_long_poll import long_polls

    broker = new_broker()
    with long_polls(broker.port) as bootstrap:
        topic = KafkaTopics(bootstrap).create()
        producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 0})

        def send(number: int) -> None:
            producer.produce(topic, _text(number))
            producer.flush(10)

        yield {"connector": "kafka", "topic": topic, "properties.bootstrap.servers": bootstrap}, send
    broker.kill()


SOURCES = {made.__name__: made for made in (redis, nats, mqtt, socket, events, websocket, postgres, kafka)}


def serve(kind: str) -> None:
    """Send each line of standard input to the one client that connects."""
    if kind == "websocket":
        from websockets.sync.server import serve as websockets

        def handle(connection: Any) -> None:
            for line in sys.stdin:
                connection.send(line.strip())

        with websockets(handle, "127.0.0.1", 0) as server:
            _say(str(server.socket.getsockname()[1]))
            server.serve_forever()
    import socket as sockets

    with sockets.create_server(("127.0.0.1", 0)) as listening:
        _say(str(listening.getsockname()[1]))
        client, _ = listening.accept()
        client.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
        if kind == "events":
            client.recv(1 << 16)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for line in sys.stdin.buffer:
            client.sendall(b"data: " + line.strip() + b"\n\n" if kind == "events" else line)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _used_s() -> float:
    """Return the processor time of this process while nothing is asked of it."""
    began_s = time.process_time()
    time.sleep(_IDLE_S)
    return time.process_time() - began_s


def measure(options: dict[str, str], send: Send) -> tuple[float, np.ndarray]:
    """Return the share of a processor that a source without rows takes, in percent, and milliseconds a row."""
    arrived: dict[int, float] = {}
    changed = threading.Condition()
    with penstock.connect() as connection:
        idle_s = _used_s()
        form = {} if options["connector"] in ("postgres-cdc", "socket") else {"format": "json"}
        written = ", ".join(f"'{key}' = '{value}'" for key, value in (options | form).items())
        key = ", PRIMARY KEY (n) NOT ENFORCED" if options["connector"] == "postgres-cdc" else ""
        connection.execute(f"CREATE TABLE t (n BIGINT{key}) WITH ({written})")
        result = connection.execute("SELECT n FROM t")

        def read() -> None:
            for row in result:
                with changed:
                    arrived[int(row[0])] = time.perf_counter()
                    changed.notify_all()

        threading.Thread(target=read, daemon=True).start()
        # the first rows also load what the query needs
        number = 0
        while not arrived:
            assert number < 60, "no row comes"
            send(number)
            number += 1
            time.sleep(0.5)
        used_s = _used_s() - idle_s
        times = []
        chance = random.Random(7)
        for each in range(number, number + _ROWS):
            time.sleep(chance.uniform(0.03, 0.07))
            began = time.perf_counter()
            send(each)
            with changed:
                wanted = partial(arrived.__contains__, each)
                assert changed.wait_for(wanted, 30), "the row does not come"
            times.append((arrived[each] - began) * 1e3)
        result.close()
    return 100 * used_s / _IDLE_S, np.array(times)


def main() -> None:
    """Print the figures that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.source_wakeups", description=__doc__)
    parser.add_argument("which", nargs="*", help="sources (all)")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    _say(f"{'source':12} {'idle, % of a processor':>24} {'p50 ms':>8} {'p99 ms':>8}")
    for name in arguments.which or SOURCES:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            share, times = measure(*stack.enter_context(SOURCES[name](folder)))
        p50, p99 = np.percentile(times, (50, 99))
        _say(f"{name:12} {share:24.2f} {p50:8.1f} {p99:8.1f}")


if __name__ == "__main__":
    main()
