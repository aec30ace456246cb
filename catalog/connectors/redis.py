"""Options of the redis-stream connector: streams of Redis and Valkey."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from penstock.catalog.connectors.connector import Boundedness, Connector, Options, Spans, TableOptions
from penstock.catalog.connectors.message_formats import (
    check_message_column,
    check_message_formats,
    emits_message_changes,
    message_format_options,
)
from penstock.catalog.connectors.option import Option, OptionKind
from penstock.catalog.errors import PenstockError
from penstock.catalog.types import STRING, Map, TimestampLtz

EARLIEST, LATEST, FROM_ID = "earliest", "latest", "id"
# <milliseconds>-<number>
_ENTRY_ID = re.compile(r"\d{1,20}-\d{1,20}")

REDIS_OPTIONS = (
    Option("url", required=True, help="the server, such as redis://localhost:6379/0; rediss:// is TLS"),
    Option("username", OptionKind.STRING, None, "the user, where the server asks for one"),
    Option("password", OptionKind.STRING, None, "its password", secret=True),
    Option("stream", required=True, help="the key of the stream; several to read are separated by ;"),
    Option("value.field", OptionKind.STRING, "value", "the field of an entry that holds the message"),
    Option(
        "scan.startup.mode",
        OptionKind.ENUM,
        EARLIEST,
        "where a job without state begins",
        (EARLIEST, LATEST, FROM_ID),
    ),
    Option("scan.startup.id", OptionKind.STRING, None, "the entry to begin behind, such as 1700000000000-0"),
    Option(
        "scan.bounded.mode",
        OptionKind.ENUM,
        "unbounded",
        "where reading ends: never, or at the entries there are when it begins",
        ("unbounded", LATEST),
    ),
    Option(
        "scan.on-trimmed",
        OptionKind.ENUM,
        "fail",
        "what happens when the server has trimmed entries that were not read",
        ("fail", "skip"),
    ),
    Option("timeout", OptionKind.DURATION, 10_000, "how long to wait for the server", minimum=1),
    Option(
        "on-error",
        OptionKind.ENUM,
        "fail",
        "what happens to a message that cannot be read: the job fails, it is skipped and counted, or it is "
        "kept in the table <name>$errors",
        ("fail", "skip", "table"),
    ),
    Option(
        "sink.max-length",
        OptionKind.INT,
        None,
        "about how many entries the stream keeps; older ones are trimmed",
        minimum=1,
    ),
    *message_format_options(),
)


def _boundedness(table: TableOptions) -> Boundedness:
    bounded = table.option("scan.bounded.mode") == LATEST
    return Boundedness.REPLAY if bounded else Boundedness.UNBOUNDED


def _check_options(options: Options, spans: Spans, values: Spans) -> None:
    check_message_formats(options, spans, values)
    parts = urlsplit(options["url"])
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise PenstockError(
            "SQL-1505",
            "option 'url' is no address of a Redis server",
            hint="write it as redis://localhost:6379/0",
            span=values.get("url"),
        )
    begins = options.get("scan.startup.mode", EARLIEST).strip().lower()
    if (begins == FROM_ID) != ("scan.startup.id" in options):
        message = "'scan.startup.mode' = 'id' and 'scan.startup.id' belong together"
        key = "scan.startup.id" if "scan.startup.id" in options else "scan.startup.mode"
        raise PenstockError("SQL-1507", message, hint="give both, or neither", span=spans.get(key))
    entry = options.get("scan.startup.id")
    if entry is not None and not _ENTRY_ID.fullmatch(entry.strip()):
        raise PenstockError(
            "SQL-1505",
            "option 'scan.startup.id' is no id of an entry",
            hint="write it as 1700000000000-0",
            span=values.get("scan.startup.id"),
        )


REDIS_STREAM = Connector(
    "redis-stream",
    "streams of Redis and Valkey",
    REDIS_OPTIONS,
    holds_variant=True,
    source=True,
    sink=True,
    replayable=True,
    exactly_once=True,
    metadata=(
        ("stream", STRING),
        ("id", STRING),
        ("timestamp", TimestampLtz(3)),
        ("fields", Map(STRING, STRING)),
    ),
    boundedness=_boundedness,
    emits_changes=lambda table: emits_message_changes(table.options),
    check_options=_check_options,
    check_column=check_message_column,
)
