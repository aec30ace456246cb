"""Options of the mqtt connector: topics of a broker."""

from __future__ import annotations

from urllib.parse import urlsplit

from penstock.catalog.connectors.connector import Boundedness, Connector, Options, Spans
from penstock.catalog.connectors.message_formats import (
    check_message_column,
    check_message_formats,
    emits_message_changes,
    message_format_options,
)
from penstock.catalog.connectors.option import Option, OptionKind
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BOOLEAN, INT, STRING, Map

ON_RESTORE = "mqtt.on-restore"
VERSION_5 = "5"
CHECKPOINT, RECEIPT = "checkpoint", "receipt"

MQTT_OPTIONS = (
    Option("url", required=True, help="the broker, such as mqtt://localhost:1883; mqtts:// is TLS"),
    Option("username", OptionKind.STRING, None, "the user, where the broker asks for one"),
    Option("password", OptionKind.STRING, None, "its password", secret=True),
    Option("tls.ca-file", OptionKind.STRING, None, "certificates of authorities to trust, in PEM"),
    Option("tls.certificate-file", OptionKind.STRING, None, "the client's certificate, in PEM"),
    Option("tls.key-file", OptionKind.STRING, None, "the key of the client's certificate, in PEM"),
    Option(
        "topic",
        required=True,
        help="what is read, with wildcards; several are apart by ';', each a split. A sink writes to it",
    ),
    Option("version", OptionKind.ENUM, "3.1.1", "the version of the protocol", ("3.1.1", VERSION_5)),
    Option("qos", OptionKind.ENUM, "1", "the quality of service", ("0", "1", "2")),
    Option(
        "client-id",
        OptionKind.STRING,
        None,
        "the name of the session at the broker; by default one of its own for each job",
    ),
    Option(
        "acknowledge",
        OptionKind.ENUM,
        CHECKPOINT,
        "when messages of 'qos' = '1' are acknowledged: once a checkpoint has their rows, or on receipt",
        (CHECKPOINT, RECEIPT),
    ),
    Option(
        "session-expiry",
        OptionKind.DURATION,
        86_400_000,
        "how long a broker of version 5 keeps messages for a job that is away",
        minimum=1_000,
    ),
    Option(
        # What was acknowledged is not sent again: a restore may lose messages, and so fails unless allowed.
        ON_RESTORE,
        OptionKind.ENUM,
        "fail",
        "whether a job may resume although messages since its last checkpoint may be lost",
        ("fail", "continue"),
    ),
    Option(
        "keep-alive", OptionKind.DURATION, 60_000, "how often a silent connection is tried", minimum=1_000
    ),
    Option("timeout", OptionKind.DURATION, 10_000, "how long to wait for the broker", minimum=1),
    Option(
        "on-error",
        OptionKind.ENUM,
        "fail",
        "what happens to a message that cannot be read: the job fails, it is skipped and counted, or it is "
        "kept in the table <name>$errors",
        ("fail", "skip", "table"),
    ),
    Option("sink.retain", OptionKind.BOOL, False, "whether the broker keeps the last message of the topic"),
    *message_format_options(),
)


def topics_of(options: Options) -> tuple[str, ...]:
    """Return the topics that the option lists."""
    return tuple(part.strip() for part in options.get("topic", "").split(";") if part.strip())


def can_overlap(one: str, other: str) -> bool:
    """Return whether a topic can match two filters."""
    left, right = one.split("/"), other.split("/")
    for place in range(max(len(left), len(right)) + 1):
        a, b = (levels[place] if place < len(levels) else None for levels in (left, right))
        # # matches the level above it and all below
        if "#" in (a, b):
            return True
        if a is None or b is None:
            return a is b
        if a != b and "+" not in (a, b):
            return False
    return True


def _is_filter(topic: str) -> bool:
    levels = topic.split("/")
    return (
        all(level in ("+", "#") or not ("+" in level or "#" in level) for level in levels)
        and "#" not in levels[:-1]
    )


def _check_options(options: Options, spans: Spans, values: Spans) -> None:
    check_message_formats(options, spans, values)
    parts = urlsplit(options["url"])
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname:
        hint = "write it as mqtt://localhost:1883, with TLS as mqtts://localhost:8883"
        raise _wrong("url", "is no address of a broker", hint, values)
    topics = topics_of(options)
    if not topics:
        raise _wrong("topic", "names no topic", "write one such as sensors/+/temperature", values)
    for place, topic in enumerate(topics):
        if not _is_filter(topic):
            hint = "+ is one whole level, # all that follow: sensors/+/temperature, sensors/#"
            raise _wrong("topic", f"has no filter of topics: '{topic[:60]}'", hint, values)
        for other in topics[:place]:
            if can_overlap(topic, other):
                hint = "a message would be read twice: write topics that exclude each other"
                raise _wrong("topic", f"has '{other}' and '{topic}', which overlap", hint, values)
    if "password" in options and "username" not in options:
        message = "'password' needs 'username'"
        raise PenstockError("SQL-1507", message, hint="write both", span=spans.get("password"))


def _wrong(key: str, problem: str, hint: str, values: Spans) -> PenstockError:
    return PenstockError("SQL-1505", f"option '{key}' {problem}", hint=hint, span=values.get(key))


def _check_sink(table: CatalogTable, span: Span | None) -> None:
    topics = topics_of(dict(table.options))
    if len(topics) != 1 or "+" in topics[0] or "#" in topics[0]:
        raise PenstockError(
            "SQL-1512",
            f"table {table.name} cannot be written: its option 'topic' is not one topic",
            hint="write a table with a topic such as 'topic' = 'alerts/new'",
            span=span,
        )


MQTT = Connector(
    "mqtt",
    "topics of an MQTT broker",
    MQTT_OPTIONS,
    holds_variant=True,
    source=True,
    sink=True,
    metadata=(("topic", STRING), ("qos", INT), ("retain", BOOLEAN), ("properties", Map(STRING, STRING))),
    # No option says how many messages a broker sends.
    boundedness=lambda _table: Boundedness.UNBOUNDED,
    emits_changes=lambda table: emits_message_changes(table.options),
    check_options=_check_options,
    check_column=check_message_column,
    check_sink=_check_sink,
)
