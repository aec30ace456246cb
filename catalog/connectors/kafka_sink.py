"""Options of tables that are written to Kafka: the guarantee, transactions, partitions, and properties of
producers. The names are Flink's.
"""

from __future__ import annotations

from penstock.catalog.connectors.kafka_properties import PROPERTIES
from penstock.catalog.connectors.option import Option, OptionKind
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import INT, STRING, Binary, DataType, Map, String, Timestamp, TimestampLtz

EXACTLY_ONCE, AT_LEAST_ONCE = "exactly-once", "at-least-once"
DELIVERY_GUARANTEE = "sink.delivery-guarantee"
ID_PREFIX = "sink.transactional-id-prefix"
PARTITIONER = "sink.partitioner"
PARTITIONERS = ("default", "fixed", "round-robin")

WRITE_OPTIONS = (
    Option(
        DELIVERY_GUARANTEE,
        OptionKind.ENUM,
        None,
        "exactly-once: a transaction a checkpoint; at-least-once: as rows come. The default is exactly-once "
        "where the job keeps checkpoints",
        (EXACTLY_ONCE, AT_LEAST_ONCE),
    ),
    Option(
        ID_PREFIX,
        OptionKind.STRING,
        "penstock",
        "what transactional ids and groups begin with: the user needs rights for them",
    ),
    Option(
        PARTITIONER,
        OptionKind.ENUM,
        "default",
        "the partition of a record. default: the hash of its key, as Java's clients; fixed: one for each "
        "subtask; round-robin: one after another",
        PARTITIONERS,
    ),
)

PRODUCER_PROPERTIES = (
    Option(
        PROPERTIES + "acks",
        OptionKind.ENUM,
        None,
        "which replicas must have a record",
        ("all", "-1", "0", "1"),
    ),
    Option(
        PROPERTIES + "compression.type",
        OptionKind.ENUM,
        None,
        "how records are compressed",
        ("none", "gzip", "snappy", "lz4", "zstd"),
    ),
    Option(
        PROPERTIES + "compression.level", OptionKind.INT, None, "how much records are compressed, -1 to 12"
    ),
    Option(
        PROPERTIES + "linger.ms",
        OptionKind.INT,
        None,
        "milliseconds to wait for more records of a request",
        minimum=0,
    ),
    Option(PROPERTIES + "batch.size", OptionKind.INT, None, "bytes of a request", minimum=1),
    Option(PROPERTIES + "batch.num.messages", OptionKind.INT, None, "records of a request", minimum=1),
    Option(
        PROPERTIES + "message.max.bytes",
        OptionKind.INT,
        None,
        "bytes of key and value of a record; the topic's max.message.bytes must be as large",
        minimum=1000,
    ),
    Option(
        PROPERTIES + "message.timeout.ms",
        OptionKind.INT,
        None,
        "milliseconds until a record that is not delivered has failed",
        minimum=1,
    ),
    Option(
        PROPERTIES + "transaction.timeout.ms",
        OptionKind.INT,
        None,
        "milliseconds a transaction may take; the broker's transaction.max.timeout.ms is the most",
        minimum=1000,
    ),
    Option(PROPERTIES + "retry.backoff.ms", OptionKind.INT, None, "milliseconds until a request is repeated"),
    Option(
        PROPERTIES + "enable.idempotence",
        OptionKind.BOOL,
        None,
        "whether a repeated request adds no second record (at-least-once)",
    ),
)
"""Those of writers."""

PRODUCER_JAVA_NAMES = {"max.request.size": "message.max.bytes", "delivery.timeout.ms": "message.timeout.ms"}

# What METADATA columns of a sink can hold, by key, and the types such a column may have.
_WRITABLE: dict[str, tuple[DataType, ...]] = {
    "timestamp": (TimestampLtz(3), TimestampLtz(6), Timestamp(3), Timestamp(6)),
    "headers": (Map(STRING, Binary()), Map(STRING, String())),
    "partition": (INT,),
}


def check_kafka_sink(table: CatalogTable, span: Span | None) -> None:
    """Refuse to write a table that is only meant to be read. SQL-1094."""
    topics = [name.strip() for name in table.options.get("topic", "").split(";") if name.strip()]
    if len(topics) != 1:
        names = f"topics {', '.join(topics[:3])}" if topics else "a pattern of topics"
        raise _refused(table, f"it reads {names}", "create a table with one 'topic' for the rows", span)
    for column in table.metadata:
        if column.virtual:
            continue
        kinds = _WRITABLE.get(column.key)
        if kinds is None:
            raise _refused(
                table,
                f"column {column.name} is the metadata '{column.key}', which brokers assign",
                f"declare it METADATA FROM '{column.key}' VIRTUAL",
                span,
            )
        declared = next(field for field in table.source_schema if field.name == column.name)
        if declared.type not in kinds:
            raise _refused(
                table,
                f"column {column.name} of type {declared.type} cannot be written as '{column.key}'",
                f"declare it {kinds[0]}, or VIRTUAL",
                span,
            )


def _refused(table: CatalogTable, reason: str, hint: str, span: Span | None) -> PenstockError:
    message = f'table "{table.name}" cannot be written: {reason}'
    return PenstockError("SQL-1094", message, span=span, hint=hint, sqlstate="42809")
