"""Options of the nats connector: streams of JetStream."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from penstock.catalog.connectors.connector import Boundedness, Connector, Options, Spans, TableOptions
from penstock.catalog.connectors.kafka_sink import AT_LEAST_ONCE, DELIVERY_GUARANTEE, EXACTLY_ONCE
from penstock.catalog.connectors.message_formats import (
    check_message_column,
    check_message_formats,
    emits_message_changes,
    message_format_options,
)
from penstock.catalog.connectors.option import Option, OptionKind
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, STRING, Map, TimestampLtz

EARLIEST, LATEST, FROM_SEQUENCE, FROM_TIMESTAMP = "earliest", "latest", "sequence", "timestamp"
CREATE = "stream.create"
# what a start mode other than earliest and latest reads
_START_OPTIONS = {FROM_SEQUENCE: "scan.startup.sequence", FROM_TIMESTAMP: "scan.startup.timestamp-millis"}
_SCHEMES = ("nats", "tls", "ws", "wss")
# tokens apart by dots; * is any token, > any that follow
_SUBJECT = re.compile(r"(?:[^\s.*>]+|\*)(?:\.(?:[^\s.*>]+|\*))*(?:\.>)?|>")
_STREAM = re.compile(r"[^\s.*>/\\]{1,255}")

NATS_OPTIONS = (
    Option("url", required=True, help="the server, such as nats://localhost:4222; several are apart by ','"),
    Option("username", OptionKind.STRING, None, "the user, where the server asks for one"),
    Option("password", OptionKind.STRING, None, "its password", secret=True),
    Option("token", OptionKind.STRING, None, "the token, where the server asks for one", secret=True),
    Option(
        "credentials-file", OptionKind.STRING, None, "a file .creds with the user's JWT and seed", secret=True
    ),
    Option("nkey-seed-file", OptionKind.STRING, None, "a file with the seed of an nkey"),
    Option("tls.ca-file", OptionKind.STRING, None, "certificates of authorities to trust, in PEM"),
    Option("tls.certificate-file", OptionKind.STRING, None, "the client's certificate, in PEM"),
    Option("tls.key-file", OptionKind.STRING, None, "the key of the client's certificate, in PEM"),
    Option("stream", required=True, help="the stream of JetStream"),
    Option(
        "subject",
        OptionKind.STRING,
        None,
        "what is read of the stream, with wildcards; several are apart by ';', and each is a split. "
        "A sink writes to it",
    ),
    Option(
        "scan.startup.mode",
        OptionKind.ENUM,
        EARLIEST,
        "where a job without state begins",
        (EARLIEST, LATEST, FROM_SEQUENCE, FROM_TIMESTAMP),
    ),
    Option("scan.startup.sequence", OptionKind.INT, None, "the first sequence that is read", minimum=1),
    Option(
        "scan.startup.timestamp-millis",
        OptionKind.INT,
        None,
        "begin at the first message as late as this, milliseconds since 1970",
        minimum=0,
    ),
    Option(
        "scan.bounded.mode",
        OptionKind.ENUM,
        "unbounded",
        "where reading ends: never, or at the messages there are when it begins",
        ("unbounded", LATEST),
    ),
    Option(
        "scan.on-trimmed",
        OptionKind.ENUM,
        "fail",
        "what happens when the server has deleted messages that were not read",
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
        DELIVERY_GUARANTEE,
        OptionKind.ENUM,
        None,
        "exactly-once: atomic batches with the epoch, of a server from 2.12 on; at-least-once: as rows come. "
        "The default is exactly-once where the job keeps checkpoints",
        (EXACTLY_ONCE, AT_LEAST_ONCE),
    ),
    Option(
        CREATE,
        OptionKind.BOOL,
        False,
        "whether a sink makes the stream, or adds to it what exactly-once needs",
    ),
    *message_format_options(),
)


def subjects_of(options: Options) -> tuple[str, ...]:
    """Return the subjects that the option lists; none: the whole stream."""
    return tuple(part.strip() for part in options.get("subject", "").split(";") if part.strip())


def can_overlap(one: str, other: str) -> bool:
    """Return whether a subject can match two filters."""
    left, right = one.split("."), other.split(".")
    for a, b in zip(left, right, strict=False):
        # > matches all tokens that follow, one at least
        if ">" in (a, b):
            return True
        if a != b and "*" not in (a, b):
            return False
    return len(left) == len(right)


def _boundedness(table: TableOptions) -> Boundedness:
    bounded = table.option("scan.bounded.mode") == LATEST
    return Boundedness.REPLAY if bounded else Boundedness.UNBOUNDED


def _check_options(options: Options, spans: Spans, values: Spans) -> None:
    check_message_formats(options, spans, values)
    for server in options["url"].split(","):
        parts = urlsplit(server.strip())
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise _wrong("url", "is no address of a NATS server", "write it as nats://localhost:4222", values)
    if _STREAM.fullmatch(options["stream"].strip()) is None:
        hint = "a name has no spaces, '.', '*', '>', '/' and '\\'"
        raise _wrong("stream", "is no name of a stream", hint, values)
    subjects = subjects_of(options)
    for place, subject in enumerate(subjects):
        if _SUBJECT.fullmatch(subject) is None:
            raise _wrong("subject", f"has no subject: '{subject[:60]}'", "write one such as orders.*", values)
        for other in subjects[:place]:
            if can_overlap(subject, other):
                hint = "a message would be read twice: write subjects that exclude each other"
                raise _wrong("subject", f"has '{other}' and '{subject}', which overlap", hint, values)
    mode = options.get("scan.startup.mode", EARLIEST).strip().lower()
    for needed, key in _START_OPTIONS.items():
        if (mode == needed) != (key in options):
            message = f"'scan.startup.mode' = '{needed}' and '{key}' belong together"
            shown = spans.get(key if key in options else "scan.startup.mode")
            raise PenstockError("SQL-1507", message, hint="write both, or neither", span=shown)
    if ("username" in options) != ("password" in options):
        key = "username" if "username" in options else "password"
        message = "'username' and 'password' belong together"
        raise PenstockError("SQL-1507", message, hint="write both, or neither", span=spans.get(key))


def _wrong(key: str, problem: str, hint: str, values: Spans) -> PenstockError:
    return PenstockError("SQL-1505", f"option '{key}' {problem}", hint=hint, span=values.get(key))


def _check_sink(table: CatalogTable, span: Span | None) -> None:
    subjects = subjects_of(dict(table.options))
    if len(subjects) != 1 or "*" in subjects[0] or ">" in subjects[0]:
        raise PenstockError(
            "SQL-1512",
            f"table {table.name} cannot be written: its option 'subject' is not one subject",
            hint="write a table with a subject such as 'subject' = 'orders.new'",
            span=span,
        )


NATS = Connector(
    "nats",
    "streams of NATS JetStream",
    NATS_OPTIONS,
    holds_variant=True,
    source=True,
    sink=True,
    replayable=True,
    exactly_once=True,
    metadata=(
        ("subject", STRING),
        ("sequence", BIGINT),
        ("timestamp", TimestampLtz(3)),
        ("headers", Map(STRING, STRING)),
    ),
    boundedness=_boundedness,
    emits_changes=lambda table: emits_message_changes(table.options),
    check_options=_check_options,
    check_column=check_message_column,
    check_sink=_check_sink,
)
