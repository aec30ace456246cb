"""The tables that UPDATE, DELETE and MERGE change: what a statement rewrites whole, in one commit."""

from __future__ import annotations

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.database import DATABASES
from penstock.catalog.connectors.filesystem import object_scheme
from penstock.catalog.connectors.registry import boundedness, connector_of, emits_changes
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.tables import CatalogTable, MaterializedView
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan

_LAKEHOUSE = ("delta", "iceberg")
_CHANGEABLE = "local files, Delta and Iceberg tables"
_LOGS = ("kafka", "upsert-kafka", "nats", "redis-stream", "mqtt", "http", "socket")
_OF_ONE_VERSION = ("scan.version", "scan.snapshot-id", "scan.timestamp")


def check_changeable(table: CatalogTable, span: Span, kind: str) -> None:
    """Refuse a table whose rows no statement can change, with what to write instead. SQL-1094, SQL-1601."""
    if isinstance(table, MaterializedView):
        message = f'"{table.name}" is a materialized view: its rows are those of its query'
        hint = f"{kind} the tables it reads: the view follows those that are streams"
        raise PenstockError("SQL-1094", message, span=span, hint=hint, sqlstate="42809")
    is_local = table.connector == "filesystem" and object_scheme(table.options.get("path", "")) is None
    if table.connector in DATABASES and kind in ("UPDATE", "DELETE"):
        return
    if table.connector not in _LAKEHOUSE and not is_local:
        why, instead = _refusal(table)
        raise PenstockError(
            "SQL-1601",
            f"{kind} of {table.name} is not supported: {why}",
            span=span,
            hint=instead,
            sqlstate="0A000",
        )
    connector_of(table).check_sink(table, span)
    if is_local and table.options.get("on-error", "fail").strip().lower() != "fail":
        raise PenstockError(
            "SQL-1601",
            f"{kind} of {table.name} is not supported: records that 'on-error' leaves out would be lost",
            span=span,
            hint="INSERT the rows INTO another table, and change that",
            sqlstate="0A000",
        )
    read = next((option for option in _OF_ONE_VERSION if option in table.options), None)
    if read is None and boundedness(table) is Boundedness.BOUNDED and not emits_changes(table):
        return
    what = f"'{read}' names one version of it" if read is not None else "it is declared as a stream"
    raise PenstockError(
        "SQL-1601",
        f"{kind} of {table.name} is not supported: {what}, and rows of the newest version are changed",
        span=span,
        hint="declare another table of the same place, without options that begin with scan",
        sqlstate="0A000",
    )


def _refusal(table: CatalogTable) -> tuple[str, str]:
    """Return why rows of a table are not changed, and what to write instead."""
    connector = table.connector
    if connector in DATABASES:
        return (
            f"{connector} changes its rows itself, and only by UPDATE and DELETE",
            "run it in the database; INSERT INTO a table with a PRIMARY KEY replaces rows by key",
        )
    if connector in _LOGS:
        return (
            f"connector {connector} sends and receives messages, and none that was sent can be changed",
            "send another row of the same key, or write to a Delta or Iceberg table",
        )
    if connector == "filesystem":
        scheme = object_scheme(table.options.get("path", ""))
        return (
            f"files at {scheme}:// cannot be replaced in one step",
            "write the rows into a Delta or Iceberg table there, whose rows can be changed",
        )
    return (
        f"connector {connector} keeps no rows that a statement could replace",
        f"UPDATE, DELETE and MERGE change {_CHANGEABLE}: INSERT the rows INTO one of them",
    )


def check_ends(plan: LogicalPlan, span: Span, kind: str) -> None:
    """Refuse a statement that reads a stream: it would never commit. SQL-1311."""
    for node in plan.walk():
        if isinstance(node, Scan) and boundedness(node.table) is Boundedness.UNBOUNDED:
            raise PenstockError(
                "SQL-1311",
                f"table {node.table.name} never ends, and {kind} is a statement of rows that end",
                span=span,
                hint="read a table that ends; INSERT INTO a table with a PRIMARY KEY follows a stream",
            )
