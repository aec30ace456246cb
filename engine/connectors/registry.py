"""The source and the sink writer of each connector. A connector is imported with the first table that uses
it.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.catalog.connectors.filesystem import STANDARD_INPUT, STANDARD_OUTPUT, object_scheme
from penstock.catalog.connectors.third_party import installed_plugin
from penstock.catalog.errors import PenstockError
from penstock.engine.api.sink import SinkRequest, SinkWriter
from penstock.engine.api.source import ScanRequest, SourceConnector


# One function a connector, each with its import inside: a query loads only the connectors it uses.
def _filesystem_source(request: ScanRequest) -> SourceConnector:
    if request.table.options["path"] in STANDARD_INPUT:
        from penstock.engine.connectors.filesystem.standard_input import StandardInputSource

        return StandardInputSource(request)
    from penstock.engine.connectors.filesystem.source import FilesystemSource

    return FilesystemSource(request)


def _datagen_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.generated.datagen_source import DatagenSource

    return DatagenSource(request)


def _nexmark_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.generated.nexmark_source import NexmarkSource

    return NexmarkSource(request)


def _registered_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.in_process.registered_source import RegisteredTableSource

    return RegisteredTableSource(request)


def _errors_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.in_process.bad_records import ErrorsSource

    return ErrorsSource(request)


def _materialized_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.in_process.materialized_views import MaterializedSource

    return MaterializedSource(request)


def _late_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.in_process.late_rows import LateSource

    return LateSource(request)


def _system_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.in_process.system_tables import SystemSource

    return SystemSource(request)


def _state_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.in_process.state_tables import StateSource

    return StateSource(request)


def _kafka_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.kafka.source import KafkaSource

    return KafkaSource(request)


def _socket_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.socket.source import SocketSource

    return SocketSource(request)


def _delta_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.delta.source import DeltaSource

    return DeltaSource(request)


def _python_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.python.source import PythonSourceConnector

    return PythonSourceConnector(request)


def _postgres_cdc_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.postgres_cdc.source import PostgresCdcSource

    return PostgresCdcSource(request)


def _http_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.http.source import HttpSource

    return HttpSource(request)


def _redis_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.redis.source import RedisStreamSource

    return RedisStreamSource(request)


def _nats_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.nats.source import NatsSource

    return NatsSource(request)


def _mqtt_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.mqtt.source import MqttSource

    return MqttSource(request)


def _iceberg_source(request: ScanRequest) -> SourceConnector:
    from penstock.engine.connectors.iceberg.source import IcebergSource

    return IcebergSource(request)


def _filesystem_sink(request: SinkRequest) -> SinkWriter:
    if request.table is not None and request.table.options["path"] in STANDARD_OUTPUT:
        from penstock.engine.connectors.filesystem.standard_output import StandardOutputSink

        return StandardOutputSink(request)
    if request.table is not None and object_scheme(request.table.options["path"]) is not None:
        from penstock.engine.connectors.epoch_sink import EpochSink
        from penstock.engine.connectors.filesystem.object_target import ObjectFilesTarget

        return EpochSink(request, ObjectFilesTarget(request))
    from penstock.engine.connectors.filesystem.sink import FilesystemSink

    return FilesystemSink(request)


def _delta_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.delta.target import DeltaTarget
    from penstock.engine.connectors.epoch_sink import EpochSink

    assert request.table is not None, "a sink of a connector has a table"
    return EpochSink(request, DeltaTarget(request.table, request.metrics, request.report_event))


def _iceberg_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.epoch_sink import EpochSink
    from penstock.engine.connectors.iceberg.target import IcebergTarget

    assert request.table is not None, "a sink of a connector has a table"
    return EpochSink(request, IcebergTarget(request.table, request.metrics))


def _print_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.print_sink import PrintSink

    return PrintSink(request)


def _blackhole_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.blackhole_sink import BlackholeSink

    return BlackholeSink(request)


def _collect_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.in_process.result_channels import CollectSink

    return CollectSink(request)


def _python_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.python.sink import python_sink

    return python_sink(request)


def _database_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.database.sink import DatabaseSink

    return DatabaseSink(request)


def _kafka_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.kafka.sink import kafka_sink

    return kafka_sink(request)


def _webhook_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.epoch_sink import EpochSink
    from penstock.engine.connectors.http.webhook import WebhookTarget

    return EpochSink(request, WebhookTarget(request))


def _redis_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.epoch_sink import EpochSink
    from penstock.engine.connectors.redis.target import RedisStreamTarget

    return EpochSink(request, RedisStreamTarget(request))


def _nats_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.nats.target import nats_sink

    return nats_sink(request)


def _mqtt_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.mqtt.sink import MqttSink

    return MqttSink(request)


def _postgres_sink(request: SinkRequest) -> SinkWriter:
    from penstock.engine.connectors.database.postgres_sink import PostgresSink

    return PostgresSink(request)


# No databases: a scan of one is a bounded input, which runs on a bounded backend.
SOURCES: dict[str, Callable[[ScanRequest], SourceConnector]] = {
    "filesystem": _filesystem_source,
    "datagen": _datagen_source,
    "nexmark": _nexmark_source,
    "registered": _registered_source,
    "errors": _errors_source,
    "state": _state_source,
    "materialized": _materialized_source,
    "late": _late_source,
    "system": _system_source,
    "socket": _socket_source,
    "delta": _delta_source,
    "kafka": _kafka_source,
    "upsert-kafka": _kafka_source,
    "python": _python_source,
    "postgres-cdc": _postgres_cdc_source,
    "http": _http_source,
    "redis-stream": _redis_source,
    "nats": _nats_source,
    "mqtt": _mqtt_source,
    "iceberg": _iceberg_source,
}
SINKS: dict[str, Callable[[SinkRequest], SinkWriter]] = {
    "filesystem": _filesystem_sink,
    "delta": _delta_sink,
    "iceberg": _iceberg_sink,
    "print": _print_sink,
    "blackhole": _blackhole_sink,
    "collect": _collect_sink,
    "python": _python_sink,
    "postgres": _postgres_sink,
    "sqlite": _database_sink,
    "duckdb": _database_sink,
    "kafka": _kafka_sink,
    "upsert-kafka": _kafka_sink,
    "http": _webhook_sink,
    "redis-stream": _redis_sink,
    "nats": _nats_sink,
    "mqtt": _mqtt_sink,
}


def source_connector(request: ScanRequest) -> SourceConnector:
    """Return the connector that reads a table. SQL-1511 when its connector only writes."""
    # the connector exists (CREATE TABLE has checked it), but may have no source
    made = SOURCES.get(request.table.connector)
    # a connector of an installed package
    plugin = installed_plugin(request.table.connector) if made is None else None
    if plugin is not None and plugin.source is not None:
        source: SourceConnector = plugin.source(request)
        return source
    if made is None:
        message = (
            f"table {request.table.name} cannot be read: connector '{request.table.connector}' only writes"
        )
        raise PenstockError("SQL-1511", message, hint=f"these can be read: {', '.join(sorted(SOURCES))}")
    return made(request)


def sink_writer(request: SinkRequest) -> SinkWriter:
    """Return the writer of one subtask for a table (the client when there is none). SQL-1512 when its
    connector only reads.
    """
    # a SELECT has no table: its rows go to the client
    name = "collect" if request.table is None else request.table.connector
    made = SINKS.get(name)
    plugin = installed_plugin(name) if made is None else None
    if plugin is not None and plugin.target is not None:
        from penstock.engine.connectors.epoch_sink import EpochSink

        return EpochSink(request, plugin.target(request))
    if plugin is not None and plugin.sink is not None:
        writer: SinkWriter = plugin.sink(request)
        return writer
    if made is None:
        raise PenstockError(
            "SQL-1512",
            f"connector '{name}' only reads",
            hint=f"these can be written: {', '.join(sorted(SINKS))}",
        )
    return made(request)
