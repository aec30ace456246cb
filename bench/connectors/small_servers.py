"""How fast messages of JetStream and MQTT are read and written: CPU of this process, first run and warm, and
its memory.

``python -m bench.connectors.small_servers [nats|mqtt] --rows 200000``: JSON of three columns, 60 bytes each.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.catalog.connectors.registry import check_options
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, STRING, Double
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.epoch_target import EpochWriter
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import SinkRequest
from penstock.engine.api.source import ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.mqtt.sink import MqttSink
from penstock.engine.connectors.mqtt.source import MqttSource
from penstock.engine.connectors.nats.source import NatsSource
from penstock.engine.connectors.nats.target import NatsTarget
from tests.harness.mqtt_broker import MqttProcess, mqtt_broker
from tests.harness.nats_server import NatsProcess, nats_server

SCHEMA = Schema((Field("id", BIGINT), Field("user_name", STRING), Field("price", Double())))
# rows of one checkpoint, and of one call of a sink
_EPOCH = 20_000


def _table(options: dict[str, str]) -> CatalogTable:
    written = {"format": "json", **options}
    check_options(written, {})
    return CatalogTable("t", SCHEMA, SCHEMA, written)


def _messages(rows: int) -> list[bytes]:
    return [b'{"id": %d, "user_name": "user-%06d", "price": %d.25}' % (n, n % 5_000, n) for n in range(rows)]


def _rows(count: int) -> pa.RecordBatch:
    columns = [
        pa.array(range(count), pa.int64()),
        pa.array([f"user-{n % 5_000:06}" for n in range(count)]),
        pa.array([n + 0.25 for n in range(count)]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA.to_arrow())


def _print(what: str, rows: int, act: Callable[[], Any]) -> None:
    """Print the rate of the first run and of the second."""
    rates = []
    for _ in range(2):
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        act()
        rates.append((rows / (time.process_time() - cpu_s), rows / (time.perf_counter() - wall_s)))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    (first, _), (warm, wall) = rates
    print(
        f"{what:32} {first:9,.0f} {warm:9,.0f} messages/s of CPU, warm {wall:9,.0f} of wall time, {megabytes} MB",
        flush=True,
    )


def _read(source: Any, rows: int, position: dict[str, Any] | None = None) -> None:
    reader = source.open(source.splits()[0], position)
    count = 0
    while count < rows:
        batch = reader.poll(65_536)
        if batch is None:
            time.sleep(0.001)
        else:
            count += batch.num_rows
            if isinstance(source, MqttSource):
                reader.checkpoint_completed(reader.position())
    reader.close()


def _request(options: dict[str, str]) -> ScanRequest:
    return ScanRequest(_table(options), (0, 1, 2), None, 65_536, SystemClock(), Services())


def report_nats(server: NatsProcess, rows: int) -> None:
    """Print the rates of JetStream."""
    server.create("bench", "bench.in")
    server.publish("bench.in", *_messages(rows))
    named = {"connector": "nats", "url": server.url}
    reads = named | {"stream": "bench", "scan.bounded.mode": "latest"}
    _print("nats: read", rows, lambda: _read(NatsSource(_request(reads)), rows))
    writes = named | {"stream": "out", "subject": "out.new", "stream.create": "true"}
    target = NatsTarget(SinkRequest(_table(writes), SCHEMA, None, "sink", "j", 0, 1, Services()))
    writer, epochs = EpochWriter("j", "sink", 0), iter(range(1, 1 << 20))
    target.fence([writer])

    def write() -> None:
        for _ in range(rows // _EPOCH):
            target.commit(writer, next(epochs), [_rows(_EPOCH)])

    _print("nats: written exactly once", rows, write)
    target.close()


def report_mqtt(broker: MqttProcess, rows: int) -> None:
    """Print the rates of MQTT with quality 1."""
    named = {"connector": "mqtt", "url": broker.url}
    messages = _messages(rows)
    sessions = []
    for _ in range(2):
        source = MqttSource(_request(named | {"topic": "in"}))
        reader = source.open("in", None)
        sessions.append((source, reader.position()))
        reader.close()
    # both sessions have all messages before they are read
    broker.publish("in", *messages)
    turns = iter(sessions)

    def read() -> None:
        source, position = next(turns)
        _read(source, rows, position)

    _print("mqtt: read", rows, read)
    sink = MqttSink(SinkRequest(_table(named | {"topic": "out"}), SCHEMA, None, "s", "j", 0, 1, Services()))

    def write() -> None:
        for _ in range(rows // _EPOCH):
            sink.write(Batch(_rows(_EPOCH)))

    _print("mqtt: written", rows, write)
    sink.close()


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.connectors.small_servers", description=__doc__)
    parser.add_argument("which", nargs="*", choices=["nats", "mqtt", []])
    parser.add_argument("--rows", type=int, default=200_000)
    arguments = parser.parse_args()
    which = arguments.which or ["nats", "mqtt"]
    with tempfile.TemporaryDirectory() as folder:
        if "nats" in which:
            with nats_server(Path(folder) / "nats") as server:
                report_nats(server, arguments.rows)
        if "mqtt" in which:
            with mqtt_broker(Path(folder) / "mqtt", in_flight=10_000) as broker:
                report_mqtt(broker, min(arguments.rows, 60_000))


if __name__ == "__main__":
    main()
