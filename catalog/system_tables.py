"""The tables of the built-in database ``system``: what runs in this process, for operators to query.

Their rows are read when a query opens them. They are read-only, and no catalog file has them.
"""

from __future__ import annotations

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable, ObjectPath
from penstock.catalog.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, DataType, Timestamp, TimestampLtz

SYSTEM = "system"
"""The name of the database, and of the connector that reads its tables."""
SYSTEM_PATH = ObjectPath(database=SYSTEM)
_EVENT_TIME, _WALL_TIME = Timestamp(3), TimestampLtz(3)

Columns = tuple[tuple[str, DataType], ...]
# The columns before the first of these are the primary key, so that a stream of changes has updates.
_JOBS: Columns = (
    ("job", STRING),
    ("name", STRING),
    ("state", STRING),
    ("statement", STRING),
    ("submitted_at", _WALL_TIME),
    ("parallelism", INT),
    ("restarts", INT),
    ("rows_in", BIGINT),
    ("rows_out", BIGINT),
    ("rows_in_per_second", BIGINT),
    ("rows_out_per_second", BIGINT),
    ("late_rows", BIGINT),
    ("bad_rows", BIGINT),
    ("state_bytes", BIGINT),
    ("watermark", _EVENT_TIME),
    ("watermark_lag_ms", BIGINT),
    ("watermark_delay", STRING),
    ("checkpoints_completed", BIGINT),
    ("checkpoints_failed", BIGINT),
    ("verdict", STRING),
    ("error_code", STRING),
    ("error", STRING),
)
_OPERATORS: Columns = (
    ("job", STRING),
    ("operator_id", STRING),
    ("operator", STRING),
    ("chain", INT),
    ("is_source", BOOLEAN),
    ("parallelism", INT),
    ("rows_in", BIGINT),
    ("rows_out", BIGINT),
    ("rows_in_per_second", BIGINT),
    ("rows_out_per_second", BIGINT),
    ("busy", DOUBLE),
    ("idle", DOUBLE),
    ("backpressured", DOUBLE),
    ("watermark", _EVENT_TIME),
    ("watermark_lag_ms", BIGINT),
    ("state_entries", BIGINT),
    ("state_bytes", BIGINT),
    ("spilled_bytes", BIGINT),
    ("late_rows", BIGINT),
    ("bad_rows", BIGINT),
    ("pending", BIGINT),
    ("latency_p99_us", BIGINT),
)
_SPLITS: Columns = (
    ("job", STRING),
    ("operator_id", STRING),
    ("split", STRING),
    ("operator", STRING),
    ("rows_read", BIGINT),
    ("rows_per_second", BIGINT),
    ("pending", BIGINT),
    ("last_event", _EVENT_TIME),
    ("watermark", _EVENT_TIME),
    ("idle", BOOLEAN),
    ("delays_watermark", BOOLEAN),
)
_CHECKPOINTS: Columns = (
    ("job", STRING),
    ("checkpoint_id", BIGINT),
    ("kind", STRING),
    ("completed_at", _WALL_TIME),
    ("duration_ms", DOUBLE),
    ("size_bytes", BIGINT),
    ("new_bytes", BIGINT),
    ("channel_state_rows", BIGINT),
    ("channel_state_bytes", BIGINT),
)
_WATERMARKS: Columns = (
    ("job", STRING),
    ("operator_id", STRING),
    ("operator", STRING),
    ("watermark", _EVENT_TIME),
    ("lag_ms", BIGINT),
    ("waits_for_split", STRING),
    ("reason", STRING),
)
_SESSIONS: Columns = (
    ("session", STRING),
    ("principal", STRING),
    ("role", STRING),
    ("listener", STRING),
    ("address", STRING),
    ("opened_at", _WALL_TIME),
)
_ERRORS: Columns = (
    ("job", STRING),
    ("number", INT),
    ("at", _WALL_TIME),
    ("kind", STRING),
    ("message", STRING),
)


def _table(name: str, comment: str, keys: int, columns: Columns) -> CatalogTable:
    # the columns of the key are never NULL
    schema = Schema(tuple(Field(column, of, index >= keys) for index, (column, of) in enumerate(columns)))
    return CatalogTable(
        f"{SYSTEM}.{name}",
        schema,
        schema,
        {"connector": SYSTEM, "name": name},
        primary_key=tuple(column for column, _ in columns[:keys]),
        comment=comment,
    )


_ALL = (
    _table("jobs", "the jobs of this process, one a row", 1, _JOBS),
    _table("operators", "the operators of each job, summed over their subtasks", 2, _OPERATORS),
    _table("splits", "the splits that the sources of each job read", 3, _SPLITS),
    _table("checkpoints", "the latest completed checkpoints of each job", 2, _CHECKPOINTS),
    _table("watermarks", "the operators with event time, and what their watermark waits for", 2, _WATERMARKS),
    _table("sessions", "the open sessions", 1, _SESSIONS),
    _table("errors", "failures, restarts and warnings of each job", 2, _ERRORS),
)
SYSTEM_TABLES: dict[str, CatalogTable] = {table.name: table for table in _ALL}
"""By full name: ``system.jobs``."""


def system_table(name: str) -> CatalogTable | None:
    """Return the system table of a full name, with or without the catalog; None when there is none."""
    path = ObjectPath.of(name)
    return SYSTEM_TABLES.get(path.name_of(name.lower().rpartition(".")[2])) if path == SYSTEM_PATH else None


def refuse_system(path: ObjectPath, what: str, span: Span | None = None) -> None:
    """Raise SQL-1359 for a definition in the built-in database."""
    if path == SYSTEM_PATH:
        raise PenstockError(
            "SQL-1359",
            f"{what} cannot be created, changed or dropped: database {SYSTEM} is built in",
            span=span,
            hint=f"create it in another database; SHOW TABLES IN {SYSTEM} lists the built-in tables",
            sqlstate="42501",
        )
