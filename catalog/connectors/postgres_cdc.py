"""Options of the postgres-cdc connector: the rows of a PostgreSQL table, and then its changes."""

from __future__ import annotations

import re

from penstock.catalog.connectors.connector import Boundedness, Connector, TableOptions
from penstock.catalog.connectors.database import check_column_type
from penstock.catalog.connectors.option import Option, OptionKind
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import (
    BIGINT,
    STRING,
    Binary,
    DataType,
    Decimal,
    String,
    TimestampLtz,
)

CHANGELOG_MODE = "changelog-mode"
APPEND_ONLY = "scan.read-changelog-as-append-only.enabled"

# The names are those of Flink CDC.
POSTGRES_CDC_OPTIONS = (
    Option("hostname", required=True, help="the server's machine, or the directory of its socket"),
    Option("port", OptionKind.INT, 5432, "the port it listens on", minimum=1),
    Option("username", required=True, help="who connects; the role needs REPLICATION"),
    Option("password", help="the word to connect with", secret=True),
    Option("database-name", required=True, help="the database of the table"),
    Option("schema-name", OptionKind.STRING, "public", "the schema of the table"),
    Option("table-name", required=True, help="the table's name in the database, without its schema"),
    Option(
        "slot.name",
        required=True,
        help="the replication slot; it is created when missing, and no other job may use it",
    ),
    Option(
        "publication.name",
        help="the publication; without it penstock_ and the slot's name. It is created when missing",
    ),
    Option(
        "decoding.plugin.name",
        OptionKind.ENUM,
        "pgoutput",
        "the server's output plugin",
        ("pgoutput",),
    ),
    Option(
        "scan.startup.mode",
        OptionKind.ENUM,
        "initial",
        "initial: the rows of the table, then its changes; latest-offset: rows inserted from now on",
        ("initial", "latest-offset"),
    ),
    Option(
        "heartbeat.interval",
        OptionKind.DURATION,
        30_000,
        "how often the server hears what it may discard, and is asked for the slot's state",
        minimum=1,
    ),
    Option(
        "connect.max-retries",
        OptionKind.INT,
        30,
        "how often a lost connection is opened again, a second apart",
        minimum=0,
    ),
    Option(
        CHANGELOG_MODE,
        OptionKind.ENUM,
        "all",
        "all: a change has the row it replaces, the server logs whole rows (REPLICA IDENTITY FULL); upsert: "
        "a change has a key, and the row of each key is stored as state here",
        ("all", "upsert"),
    ),
    Option(
        APPEND_ONLY,
        OptionKind.BOOL,
        False,
        "whether each change is a row of its own; only then can metadata be read",
    ),
)


def _check_options(options: dict[str, str], spans: dict[str, Span], values: dict[str, Span]) -> None:
    """Refuse a slot name that PostgreSQL does not take, and changes as rows that are not whole: SQL-1505."""
    slot = options.get("slot.name", "")
    if re.fullmatch(r"[a-z0-9_]{1,63}", slot) is None:
        raise PenstockError(
            "SQL-1505",
            f"option 'slot.name' cannot be '{slot[:60]}'",
            hint="use at most 63 lower-case letters, digits and underscores",
            span=values.get("slot.name"),
        )
    append_only = options.get(APPEND_ONLY, "false").lower() == "true"
    if append_only and options.get(CHANGELOG_MODE, "all").lower() == "upsert":
        raise PenstockError(
            "SQL-1505",
            f"with '{CHANGELOG_MODE}' = 'upsert' a change is not whole, so it cannot be a row of its own",
            hint=f"leave out '{CHANGELOG_MODE}', or '{APPEND_ONLY}'",
            span=values.get(CHANGELOG_MODE),
        )


def _emits_upserts(table: TableOptions) -> bool:
    """Return whether changes of a table do not say which rows they replace."""
    return table.option(CHANGELOG_MODE) == "upsert"


def _leaves_out(kind: DataType) -> bool:
    # the server stores long values of these types out of line
    return isinstance(kind, String | Binary | Decimal)


def _left_behind(table: TableOptions) -> str:
    slot = table.option("slot.name")
    return (
        f"the server keeps its log for replication slot {slot}; when no job needs it any more, run there: "
        f"SELECT pg_drop_replication_slot('{slot}')"
    )


POSTGRES_CDC = Connector(
    "postgres-cdc",
    "the rows of a PostgreSQL table, and then its changes",
    POSTGRES_CDC_OPTIONS,
    source=True,
    replayable=True,
    needs_primary_key=True,
    metadata=(
        ("op", STRING),
        ("lsn", BIGINT),
        ("op_ts", TimestampLtz(6)),
        ("schema_name", STRING),
        ("table_name", STRING),
    ),
    boundedness=lambda _table: Boundedness.UNBOUNDED,
    emits_changes=lambda table: not table.option(APPEND_ONLY),
    emits_upserts=_emits_upserts,
    leaves_out=_leaves_out,
    left_behind=_left_behind,
    check_options=_check_options,
    check_column=check_column_type,
)
