"""Options of the http connector: answers of a server, its events, a websocket; and rows sent to a server."""

from __future__ import annotations

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
from penstock.catalog.types import STRING

ON_RESTORE = "http.on-restore"
POLL, EVENTS, WEBSOCKET = "poll", "events", "websocket"
_SCHEMES = {POLL: ("http", "https"), EVENTS: ("http", "https"), WEBSOCKET: ("ws", "wss")}

HTTP_OPTIONS = (
    Option("url", required=True, help="the address, such as https://api.example.com/orders"),
    # A header may be a token: all of them are masked.
    Option("headers.*", OptionKind.STRING, None, "a header of each request", secret=True),
    Option(
        "mode",
        OptionKind.ENUM,
        POLL,
        "how rows are read: an answer to each request, server-sent events, or messages of a websocket",
        (POLL, EVENTS, WEBSOCKET),
    ),
    Option(
        "poll-interval",
        OptionKind.DURATION,
        None,
        "how often to ask again; without it the table is what one answer holds",
        minimum=10,
    ),
    Option(
        "records",
        OptionKind.ENUM,
        "auto",
        "what an answer holds: the elements of a JSON array, a record a line, or one record; auto decides "
        "by the content type and the first letter",
        ("auto", "array", "lines", "single"),
    ),
    Option(
        "timeout", OptionKind.DURATION, 30_000, "how long to wait for a connection, or for bytes", minimum=1
    ),
    Option("max-retries", OptionKind.INT, 5, "how often a request that failed is sent again", minimum=0),
    Option(
        "max-answer-size", OptionKind.MEMORY, 256 << 20, "a longer answer or message is refused", minimum=1
    ),
    Option(
        "on-error",
        OptionKind.ENUM,
        "fail",
        "what happens to a record that cannot be read: the job fails, it is skipped and counted, or it is "
        "kept in the table <name>$errors",
        ("fail", "skip", "table"),
    ),
    Option(
        # An answer cannot be asked for again: a restore may lose records, and so fails unless allowed.
        ON_RESTORE,
        OptionKind.ENUM,
        "fail",
        "whether a job may resume although what was sent since its last checkpoint may be lost",
        ("fail", "continue"),
    ),
    Option("sink.method", OptionKind.ENUM, "post", "the method of requests that carry rows", ("post", "put")),
    Option(
        "sink.request.max-rows",
        OptionKind.INT,
        1_000,
        "the most rows of one request; 1: a request a row",
        minimum=1,
    ),
    Option(
        "sink.body",
        OptionKind.ENUM,
        "array",
        "how the rows of a request are put together: a JSON array, a record a line, or one record alone",
        ("array", "lines", "single"),
    ),
    *message_format_options(),
)


def _boundedness(table: TableOptions) -> Boundedness:
    once = table.option("mode") == POLL and table.option("poll-interval") is None
    return Boundedness.BOUNDED if once else Boundedness.UNBOUNDED


def _check_options(options: Options, spans: Spans, values: Spans) -> None:
    check_message_formats(options, spans, values)
    mode = options.get("mode", POLL).strip().lower()
    parts = urlsplit(options["url"])
    if parts.scheme.lower() not in _SCHEMES[mode] or not parts.hostname:
        example = f"{_SCHEMES[mode][1]}://example.com/orders"
        raise PenstockError(
            "SQL-1505",
            f"option 'url' is no address of mode '{mode}'",
            hint=f"write it as {example}"
            + ("" if mode == WEBSOCKET else "; ws:// needs 'mode' = 'websocket'"),
            span=values.get("url"),
        )
    if mode != POLL and "poll-interval" in options:
        message = f"option 'poll-interval' is of mode 'poll', the mode is '{mode}'"
        raise PenstockError("SQL-1507", message, hint="leave it out", span=spans.get("poll-interval"))
    body, rows = options.get("sink.body", "array").strip().lower(), options.get("sink.request.max-rows")
    if body == "single" and rows is not None and rows.strip() != "1":
        message = "a request whose body is one record cannot have several rows"
        hint = "leave 'sink.request.max-rows' out, or set 'sink.body' to 'array' or 'lines'"
        raise PenstockError("SQL-1507", message, hint=hint, span=spans.get("sink.request.max-rows"))


HTTP = Connector(
    "http",
    "what an HTTP server answers, its events, a websocket; rows sent to a server",
    HTTP_OPTIONS,
    holds_variant=True,
    source=True,
    sink=True,
    # of server-sent events: their type and their id
    metadata=(("event", STRING), ("id", STRING)),
    boundedness=_boundedness,
    emits_changes=lambda table: emits_message_changes(table.options),
    check_options=_check_options,
    check_column=check_message_column,
)
