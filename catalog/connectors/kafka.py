"""Options of the connectors kafka and upsert-kafka: topics, where reading begins and ends, formats of keys
and values. The names are Flink's.
"""

from __future__ import annotations

import re

from penstock.catalog.connectors.connector import Boundedness, Connector, Options, Spans, TableOptions
from penstock.catalog.connectors.filesystem import BAD_RECORD_POLICIES
from penstock.catalog.connectors.kafka_properties import (
    CLIENT_PROPERTIES,
    CONSUMER_PROPERTIES,
    JAVA_NAMES,
    PROPERTIES,
)
from penstock.catalog.connectors.kafka_sink import (
    PRODUCER_JAVA_NAMES,
    PRODUCER_PROPERTIES,
    WRITE_OPTIONS,
    check_kafka_sink,
)
from penstock.catalog.connectors.message_formats import (
    FORMATS_OF_MESSAGES,
    check_message_column,
    check_message_formats,
    message_format_options,
)
from penstock.catalog.connectors.option import Option, OptionKind
from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, BINARY, INT, STRING, Map, TimestampLtz

KAFKA_CONNECTORS = ("kafka", "upsert-kafka")
UPSERT_KAFKA = "upsert-kafka"
STARTUP_MODES = ("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
BOUNDED_MODES = ("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets")

KAFKA_METADATA = (
    ("topic", STRING),
    ("partition", INT),
    ("offset", BIGINT),
    ("timestamp", TimestampLtz(3)),
    ("timestamp-type", STRING),
    ("headers", Map(STRING, BINARY)),
    ("leader-epoch", INT),
    ("key", BINARY),
)

TOPIC_OPTIONS = (
    Option("topic", help="the topic to read or write; several to read: 'a;b'"),
    Option("topic-pattern", help="a regular expression of whole names of the topics to read"),
)

FORMAT_OPTIONS = (
    Option("key.fields", help="the columns in keys: 'a;b'; by default the primary key of upsert-kafka"),
    Option("key.fields-prefix", OptionKind.STRING, "", "what names of columns have before those in keys"),
    Option(
        "value.fields-include",
        OptionKind.ENUM,
        "all",
        "whether columns of the key are in values too",
        ("all", "except_key"),
    ),
)

SCAN_OPTIONS = (
    Option("scan.startup.mode", OptionKind.ENUM, "earliest-offset", "where a new job begins", STARTUP_MODES),
    Option(
        "scan.startup.timestamp-millis",
        OptionKind.INT,
        None,
        "begin at the first message as late as this, milliseconds since 1970",
        minimum=0,
    ),
    Option("scan.startup.specific-offsets", help="'partition:0,offset:42;partition:1,offset:300'"),
    Option("scan.bounded.mode", OptionKind.ENUM, "unbounded", "where reading ends", BOUNDED_MODES),
    Option(
        "scan.bounded.timestamp-millis",
        OptionKind.INT,
        None,
        "end before the first message as late as this, milliseconds since 1970",
        minimum=0,
    ),
    Option("scan.bounded.specific-offsets", help="'partition:0,offset:42', the first offset not read"),
    # Flink's default too
    Option(
        "scan.topic-partition-discovery.interval",
        OptionKind.DURATION,
        300_000,
        "how often to look for new partitions and topics; '0 ms' is never",
        minimum=0,
    ),
    Option(
        "on-error",
        OptionKind.ENUM,
        "fail",
        "what happens to a message that cannot be decoded, or a row that cannot be written; table keeps it "
        "in <name>$errors",
        BAD_RECORD_POLICIES,
    ),
)

READ_OPTIONS = (*TOPIC_OPTIONS, *FORMAT_OPTIONS, *SCAN_OPTIONS)
# each value is a change: an insertion, an update or a deletion
_CHANGELOG_FORMATS = frozenset(name for name, one in FORMATS_OF_MESSAGES.items() if one.emits_changes)

KAFKA_OPTIONS = (
    *READ_OPTIONS,
    *WRITE_OPTIONS,
    *CLIENT_PROPERTIES,
    *CONSUMER_PROPERTIES,
    *PRODUCER_PROPERTIES,
    *message_format_options(keys=True),
)


def value_format(options: Options) -> str | None:
    """Return the format of values, in lower case."""
    text = options.get("value.format", options.get("format"))
    return None if text is None else text.strip().lower()


def is_kafka(connector: str) -> bool:
    """Return whether a connector reads and writes topics of Kafka."""
    return connector in KAFKA_CONNECTORS


def topics_of(options: Options) -> tuple[str, ...]:
    """Return the topics that the option topic lists."""
    return tuple(name.strip() for name in options.get("topic", "").split(";") if name.strip())


def specific_offsets(text: str) -> dict[tuple[str | None, int], int]:
    """Return the offsets of ``[topic:t,]partition:0,offset:42;..`` by topic (``None``: any) and partition;
    ValueError for another text.
    """
    found: dict[tuple[str | None, int], int] = {}
    for part in text.split(";"):
        match = re.fullmatch(
            r"\s*(?:topic:([\w.-]+)\s*,\s*)?partition:(\d{1,9})\s*,\s*offset:(\d{1,18})\s*", part
        )
        if match is None:
            raise ValueError(part)
        found[(match[1], int(match[2]))] = int(match[3])
    return found


def _excluded(message: str, hint: str, key: str, spans: Spans) -> PenstockError:
    return PenstockError("SQL-1507", message, hint=hint, span=spans.get(key, spans.get("connector")))


def _missing(option: str, hint: str, spans: Spans) -> PenstockError:
    message = f"connector 'kafka' needs option '{option}'"
    return PenstockError("SQL-1504", message, hint=hint, span=spans.get("connector"))


def _check_topics(options: Options, spans: Spans, values: Spans) -> None:
    if "topic" not in options and "topic-pattern" not in options:
        raise _missing("topic", "add 'topic' = '..', or 'topic-pattern' to read several", spans)
    if "topic" in options and "topic-pattern" in options:
        raise _excluded("topic and topic-pattern exclude each other", "keep one", "topic-pattern", spans)
    for name in topics_of(options) if "topic" in options else ():
        if re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) is None:
            raise PenstockError(
                "SQL-1505",
                f"option 'topic' cannot be '{name[:60]}'",
                hint="a topic has letters, digits, '.', '_' and '-'; several are apart by ';'",
                span=values.get("topic"),
            )
    if "topic" in options and not topics_of(options):
        raise PenstockError(
            "SQL-1505", "option 'topic' names no topic", hint="write its name", span=values.get("topic")
        )
    if "topic-pattern" in options:
        try:
            re.compile(options["topic-pattern"])
        except re.error as error:
            raise PenstockError(
                "SQL-1505",
                f"option 'topic-pattern' is no regular expression: {error.msg}",
                hint="write one such as 'orders-.*'",
                span=values.get("topic-pattern"),
            ) from None


def _check_mode(options: Options, spans: Spans, values: Spans, end: str) -> None:
    """Refuse options of one mode with another; ``end`` is startup or bounded."""
    mode = options.get(f"scan.{end}.mode", "").strip().lower()
    for name, needed in (("timestamp-millis", "timestamp"), ("specific-offsets", "specific-offsets")):
        key = f"scan.{end}.{name}"
        if mode == needed and key not in options:
            raise _missing(key, f"scan.{end}.mode '{mode}' reads it", spans)
        if mode != needed and key in options:
            raise _excluded(
                f"option '{key}' has no effect without scan.{end}.mode '{needed}'",
                f"add 'scan.{end}.mode' = '{needed}', or leave it out",
                key,
                spans,
            )
    if mode == "specific-offsets":
        key = f"scan.{end}.specific-offsets"
        try:
            specific_offsets(options[key])
        except ValueError as bad:
            raise PenstockError(
                "SQL-1505",
                f"option '{key}' cannot have '{str(bad)[:60]}'",
                hint="write 'partition:0,offset:42;partition:1,offset:300'",
                span=values.get(key),
            ) from None
    if mode == "group-offsets" and not options.get(PROPERTIES + "group.id"):
        raise _missing("properties.group.id", f"scan.{end}.mode 'group-offsets' reads its offsets", spans)


def _check_formats(options: Options, spans: Spans) -> None:
    upserts = options["connector"] == UPSERT_KAFKA
    only = options.get("value.fields-include", "").strip().lower() == "except_key"
    if options.get("key.fields-prefix") and not only:
        raise _excluded(
            "key.fields-prefix has no effect on columns that values hold too",
            "add 'value.fields-include' = 'except_key'",
            "key.fields-prefix",
            spans,
        )
    if upserts and "key.format" not in options:
        raise _missing("key.format", "the key of a message is the primary key of its row", spans)
    if "key.format" in options and "key.fields" not in options and not upserts:
        raise _missing("key.fields", "it lists the columns that are in keys: 'a;b'", spans)
    if "key.fields" in options and "key.format" not in options:
        raise _missing("key.format", "the columns of key.fields are decoded by it", spans)
    if upserts and "key.fields" in options:
        raise _excluded(
            "upsert-kafka has no key.fields: its key is the PRIMARY KEY", "leave it out", "key.fields", spans
        )
    if upserts and value_format(options) in _CHANGELOG_FORMATS:
        raise _excluded(
            f"upsert-kafka cannot read {value_format(options)}: its values are changes themselves",
            "use connector 'kafka' with this format",
            "value.format" if "value.format" in options else "format",
            spans,
        )


def key_fields(table: CatalogTable) -> tuple[str, ...]:
    """Return the columns of a table that are in keys of its messages."""
    if table.connector == UPSERT_KAFKA:
        return table.primary_key
    return tuple(name.strip() for name in table.options.get("key.fields", "").split(";") if name.strip())


def check_kafka_table(table: CatalogTable, spans: Spans) -> None:
    """Refuse columns of keys that the table does not have: SQL-1504, 1507 and 1510."""
    if table.connector == UPSERT_KAFKA and not table.primary_key:
        raise PenstockError(
            "SQL-1504",
            "connector 'upsert-kafka' needs a PRIMARY KEY: a message replaces the row of its key",
            hint="add PRIMARY KEY (column) NOT ENFORCED to the columns",
            span=spans.get("connector"),
        )
    facts = {column.name for column in table.metadata}
    known = [field.name for field in table.source_schema if field.name not in facts]
    prefix = table.options.get("key.fields-prefix", "")
    for name in key_fields(table):
        if name not in known:
            raise PenstockError(
                "SQL-1510",
                f"option 'key.fields': {table.name} has no column {name} that messages hold",
                hint=did_you_mean(name, known, others=True),
                span=spans.get("key.fields"),
            )
        if not name.startswith(prefix):
            raise _excluded(
                f"column {name} of the key does not begin with key.fields-prefix '{prefix}'",
                "name the column so, or leave the prefix out",
                "key.fields-prefix",
                spans,
            )


def check_kafka(options: Options, spans: Spans, values: Spans) -> None:
    """Refuse a WITH clause of kafka or upsert-kafka that cannot work: SQL-1504, 1505 and 1507."""
    _check_topics(options, spans, values)
    check_message_formats(options, spans, values)
    _check_formats(options, spans)
    for key in options:
        # rows of keys that it does not read would be missing
        if options["connector"] == UPSERT_KAFKA and key.startswith("scan.startup."):
            raise _excluded(
                "upsert-kafka reads a topic from its beginning: its rows are the last ones of all keys",
                "leave it out, or use connector 'kafka'",
                key,
                spans,
            )
    for end in ("startup", "bounded"):
        _check_mode(options, spans, values, end)


def java_name_hint(key: str) -> str | None:
    """Return what to write for a property of the Java client that librdkafka has otherwise."""
    name = key.removeprefix(PROPERTIES)
    if name == "sasl.jaas.config":
        return "write 'properties.sasl.username' and 'properties.sasl.password'"
    if name.startswith("ssl.truststore"):
        return "write 'properties.ssl.ca.location' with a PEM file"
    names = JAVA_NAMES | PRODUCER_JAVA_NAMES
    return f"write '{PROPERTIES}{names[name]}'" if name in names else None


def _boundedness(table: TableOptions) -> Boundedness:
    # a finite recording of a stream, never a table: rows have an order
    ends = table.option("scan.bounded.mode") != "unbounded"
    return Boundedness.REPLAY if ends else Boundedness.UNBOUNDED


KAFKA = Connector(
    "kafka",
    "topics of Apache Kafka",
    KAFKA_OPTIONS,
    holds_variant=True,
    source=True,
    sink=True,
    replayable=True,
    exactly_once=True,
    metadata=KAFKA_METADATA,
    boundedness=_boundedness,
    emits_changes=lambda table: value_format(dict(table.options)) in _CHANGELOG_FORMATS,
    check_options=check_kafka,
    check_column=check_message_column,
    check_table=check_kafka_table,
    other_name=java_name_hint,
    check_sink=check_kafka_sink,
)
# A record replaces the row of its key, one without a value deletes it.
KAFKA_UPSERTS = Connector(
    UPSERT_KAFKA,
    "topics of Apache Kafka with the last row of each key",
    KAFKA_OPTIONS,
    holds_variant=True,
    source=True,
    sink=True,
    replayable=True,
    exactly_once=True,
    upserts=True,
    emits_upserts=lambda _table: True,
    metadata=KAFKA_METADATA,
    boundedness=_boundedness,
    emits_changes=lambda _table: True,
    check_options=check_kafka,
    check_column=check_message_column,
    check_table=check_kafka_table,
    other_name=java_name_hint,
    check_sink=check_kafka_sink,
)
