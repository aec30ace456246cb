"""Options of the connector of Iceberg tables: the catalog a table is in, which of its snapshots are read, how
it is written.
"""

from __future__ import annotations

from penstock.catalog.connectors.connector import Boundedness, Connector, Options, Spans, TableOptions
from penstock.catalog.connectors.delta import (
    CHANGE_FEED,
    LAKEHOUSE_SINK_OPTIONS,
    SCAN_MODE,
    SCAN_TIMESTAMP,
    check_lakehouse_column,
    instant,
)
from penstock.catalog.connectors.option import Option, OptionKind
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.schema import Field
from penstock.catalog.types import SMALLINT, TINYINT

ICEBERG_TYPE = "iceberg"
SNAPSHOT_ID, END_SNAPSHOT_ID = "scan.snapshot-id", "scan.end-snapshot-id"
# Settings of the catalog and of the store behind it, handed over as they are.
CATALOG_SETTING = "catalog."
CATALOG_TYPES = ("rest", "sql", "hive", "glue", "dynamodb")

# Also the options of CREATE CATALOG .. WITH ('type' = 'iceberg', ..).
ICEBERG_CATALOG_OPTIONS = (
    Option("catalog-type", OptionKind.ENUM, None, "the kind of catalog", CATALOG_TYPES, required=True),
    Option("uri", help="where the catalog is: https://host/path, or sqlite:////path/of/catalog.db"),
    Option("warehouse", help="where tables are made, or the warehouse of a REST catalog"),
    Option(
        f"{CATALOG_SETTING}*",
        help="a setting of the catalog or its store, such as catalog.token or catalog.s3.endpoint",
        secret=True,
    ),
)

ICEBERG_OPTIONS = (
    Option("table-name", required=True, help="the table in the catalog: database.table"),
    *ICEBERG_CATALOG_OPTIONS,
    Option(
        SCAN_MODE,
        OptionKind.ENUM,
        "snapshot",
        "snapshot: one snapshot, as a table; full: a snapshot, then what is added; latest: what is added "
        "from now on; from-snapshot: what scan.snapshot-id and later ones added",
        ("snapshot", "full", "latest", "from-snapshot"),
    ),
    Option(
        SNAPSHOT_ID,
        OptionKind.INT,
        None,
        "the snapshot that is read, or where reading begins; by default the newest",
        minimum=1,
    ),
    Option(
        SCAN_TIMESTAMP, help="read the snapshot that was the newest at this time, e.g. 2026-11-23T10:00:00Z"
    ),
    Option(END_SNAPSHOT_ID, OptionKind.INT, None, "a stream ends after this snapshot", minimum=1),
    Option("monitor-interval", OptionKind.DURATION, 10_000, "look for new snapshots this often", minimum=1),
    Option(
        CHANGE_FEED,
        OptionKind.BOOL,
        False,
        "read updates and deletions, too: a snapshot is compared with the one before it",
    ),
    *LAKEHOUSE_SINK_OPTIONS,
)


def _boundedness(table: TableOptions) -> Boundedness:
    if table.option(SCAN_MODE) == "snapshot":
        return Boundedness.BOUNDED
    return Boundedness.UNBOUNDED if table.option(END_SNAPSHOT_ID) is None else Boundedness.REPLAY


def _check_options(options: Options, spans: Spans, values: Spans) -> None:
    def refuse(key: str, message: str, hint: str) -> PenstockError:
        return PenstockError("SQL-1507", message, hint=hint, span=spans.get(key))

    if options["table-name"].count(".") != 1:
        raise PenstockError(
            "SQL-1505",
            f"option 'table-name' cannot be '{options['table-name'][:60]}'",
            hint="write database.table",
            span=values.get("table-name"),
        )
    mode = options.get(SCAN_MODE, "snapshot").strip().lower()
    if mode == "from-snapshot" and SNAPSHOT_ID not in options:
        raise refuse(SCAN_MODE, f"'{SCAN_MODE}' = 'from-snapshot' needs a snapshot", f"add '{SNAPSHOT_ID}'")
    if mode == "latest" and SNAPSHOT_ID in options:
        hint = f"leave it out, or write '{SCAN_MODE}' = 'from-snapshot'"
        raise refuse(SNAPSHOT_ID, f"latest begins at the newest snapshot, whatever {SNAPSHOT_ID} is", hint)
    if SCAN_TIMESTAMP in options:
        if SNAPSHOT_ID in options or mode != "snapshot":
            hint = "leave one of the two out" if SNAPSHOT_ID in options else f"leave '{SCAN_MODE}' out"
            raise refuse(SCAN_TIMESTAMP, f"'{SCAN_TIMESTAMP}' names the one snapshot that is read", hint)
        instant(options[SCAN_TIMESTAMP], spans.get(SCAN_TIMESTAMP))
    for key in (END_SNAPSHOT_ID, "monitor-interval"):
        if key in options and mode == "snapshot":
            raise refuse(key, f"'{key}' is of a stream", f"add '{SCAN_MODE}' = 'full'")
    if options.get(CHANGE_FEED, "false").strip().lower() == "true" and mode == "snapshot":
        hint = f"add '{SCAN_MODE}' = 'full' or 'from-snapshot'"
        raise refuse(CHANGE_FEED, "one snapshot of a table has rows, and no changes", hint)


def _check_column(_options: Options, field: Field, span: Span | None) -> None:
    check_lakehouse_column(ICEBERG_TYPE, field, span)
    if field.type in (TINYINT, SMALLINT):
        raise PenstockError(
            "SQL-1509",
            f"column {field.name} of a table of connector iceberg cannot be {field.type}",
            hint="declare it INT",
            span=span,
        )


ICEBERG = Connector(
    ICEBERG_TYPE,
    "an Iceberg table of a REST, SQL, Hive or Glue catalog, without a JVM",
    ICEBERG_OPTIONS,
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
    check_column=_check_column,
)
