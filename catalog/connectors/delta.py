"""Options of the connector of Delta tables: where the table is, which of its versions are read, how it is
written.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from penstock.catalog.connectors.connector import Boundedness, Connector, TableOptions
from penstock.catalog.connectors.option import Option, OptionKind
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.schema import Field
from penstock.catalog.types import (
    Array,
    Binary,
    Boolean,
    DataType,
    Date,
    Decimal,
    Double,
    Float,
    Map,
    Row,
    String,
    is_integer,
    is_timestamp,
)

SCAN_MODE, SCAN_VERSION, SCAN_END = "scan.mode", "scan.version", "scan.end-version"
SCAN_TIMESTAMP, CHANGE_FEED = "scan.timestamp", "read-change-feed"
STORAGE = "storage."

# How a lakehouse table is written; Iceberg's connector has the same keys.
LAKEHOUSE_SINK_OPTIONS = (
    Option(
        "sink.schema-evolution",
        OptionKind.ENUM,
        "fail",
        "what happens to a declared column that the table has not: additive adds it",
        ("fail", "additive"),
    ),
    Option(
        "sink.max-retries",
        OptionKind.INT,
        20,
        "how often a commit that another writer got ahead of is tried again",
        minimum=0,
    ),
)

DELTA_OPTIONS = (
    Option("table-path", required=True, help="the directory of the table: a local path, or s3://bucket/path"),
    Option(
        f"{STORAGE}*",
        help="a setting of the object store, such as storage.aws_region or storage.aws_endpoint",
        secret=True,
    ),
    Option(
        SCAN_MODE,
        OptionKind.ENUM,
        "snapshot",
        "snapshot: one version, as a table; full: a version, then what is added; latest: what is added "
        "from now on; from-version: what scan.version and later ones added",
        ("snapshot", "full", "latest", "from-version"),
    ),
    Option(
        SCAN_VERSION,
        OptionKind.INT,
        None,
        "the version that is read, or where reading begins; by default the newest",
        minimum=0,
    ),
    Option(
        SCAN_TIMESTAMP, help="read the version that was the newest at this time, e.g. 2026-11-23T10:00:00Z"
    ),
    Option(SCAN_END, OptionKind.INT, None, "a stream ends after this version", minimum=0),
    Option("monitor-interval", OptionKind.DURATION, 10_000, "look for new versions this often", minimum=1),
    Option(
        CHANGE_FEED,
        OptionKind.BOOL,
        False,
        "read updates and deletions, too: from the change data feed, where there is none from the files",
    ),
    Option(
        "change-data-feed",
        OptionKind.BOOL,
        False,
        "whether a table that penstock creates keeps its change data feed",
    ),
    *LAKEHOUSE_SINK_OPTIONS,
    Option(
        "auto-compaction", OptionKind.BOOL, False, "whether small files are merged after some checkpoints"
    ),
    Option(
        "compaction.commits",
        OptionKind.INT,
        100,
        "merge small files after so many commits of a job",
        minimum=1,
    ),
    Option(
        "compaction.file-size",
        OptionKind.MEMORY,
        128 << 20,
        "files of less than this size are merged up to it",
        minimum=1,
    ),
)


def _boundedness(table: TableOptions) -> Boundedness:
    if table.option(SCAN_MODE) == "snapshot":
        return Boundedness.BOUNDED
    return Boundedness.UNBOUNDED if table.option(SCAN_END) is None else Boundedness.REPLAY


def _check_options(options: dict[str, str], spans: dict[str, Span], _values: dict[str, Span]) -> None:
    def refuse(key: str, message: str, hint: str) -> PenstockError:
        return PenstockError("SQL-1507", message, hint=hint, span=spans.get(key))

    mode = options.get(SCAN_MODE, "snapshot").strip().lower()
    streams = mode != "snapshot"
    if mode == "from-version" and SCAN_VERSION not in options:
        raise refuse(
            SCAN_MODE, f"'{SCAN_MODE}' = 'from-version' needs a version", f"add '{SCAN_VERSION}' = '0'"
        )
    if mode == "latest" and SCAN_VERSION in options:
        raise refuse(
            SCAN_VERSION,
            "latest begins at the newest version, whatever scan.version is",
            f"leave it out, or write '{SCAN_MODE}' = 'from-version'",
        )
    if SCAN_TIMESTAMP in options and (SCAN_VERSION in options or streams):
        hint = "leave one of the two out" if SCAN_VERSION in options else f"leave '{SCAN_MODE}' out"
        raise refuse(SCAN_TIMESTAMP, f"'{SCAN_TIMESTAMP}' names the one version that is read", hint)
    if SCAN_TIMESTAMP in options:
        instant(options[SCAN_TIMESTAMP], spans.get(SCAN_TIMESTAMP))
    for key in (SCAN_END, "monitor-interval"):
        if key in options and not streams:
            raise refuse(key, f"'{key}' is of a stream", f"add '{SCAN_MODE}' = 'full'")
    if options.get(CHANGE_FEED, "false").strip().lower() == "true" and not streams:
        raise refuse(
            CHANGE_FEED,
            "one version of a table has rows, and no changes",
            f"add '{SCAN_MODE}' = 'full' or 'from-version'",
        )
    if options.get("auto-compaction", "false").strip().lower() != "true":
        for key in ("compaction.commits", "compaction.file-size"):
            if key in options:
                raise refuse(
                    key, f"{key} has no effect without auto-compaction", "add 'auto-compaction' = 'true'"
                )


def instant(text: str, span: Span | None = None) -> str:
    """Return a moment as RFC 3339 text, in UTC where it names no zone. SQL-1505 for a text that is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise PenstockError(
            "SQL-1505",
            f"option '{SCAN_TIMESTAMP}' cannot be '{text[:60]}'",
            hint="write it as 2026-11-23T10:00:00Z",
            span=span,
        ) from None
    return moment.isoformat() if moment.tzinfo is not None else f"{moment.isoformat()}+00:00"


def _leaves(kind: DataType) -> Iterator[DataType]:
    match kind:
        case Array(element):
            yield from _leaves(element)
        case Map(key, value):
            yield from _leaves(key)
            yield from _leaves(value)
        case Row(fields):
            for _, field in fields:
                yield from _leaves(field)
        case _:
            yield kind


def check_lakehouse_column(connector: str, field: Field, span: Span | None) -> None:
    """Refuse a column of a type that lakehouse tables do not have. SQL-1509."""
    for kind in _leaves(field.type):
        if not (
            is_integer(kind)
            or is_timestamp(kind)
            or isinstance(kind, Boolean | Float | Double | Decimal | String | Binary | Date)
        ):
            raise PenstockError(
                "SQL-1509",
                f"column {field.name} of a table of connector {connector} cannot be {field.type}",
                hint=f"the format has no {kind}: declare it as STRING and CAST",
                span=span,
            )


DELTA = Connector(
    "delta",
    "a Delta table, local or in an object store, without a JVM",
    DELTA_OPTIONS,
    source=True,
    sink=True,
    pushes_filters=True,
    prunes=True,
    replayable=True,
    exactly_once=True,
    upserts=True,
    boundedness=_boundedness,
    emits_changes=lambda table: bool(table.option(CHANGE_FEED)),
    check_options=_check_options,
    check_column=lambda _options, field, span: check_lakehouse_column("delta", field, span),
)
