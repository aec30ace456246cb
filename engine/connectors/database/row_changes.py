"""UPDATE and DELETE of a table in a database: one statement there, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import Boolean, Double, is_integer
from penstock.engine.connectors.database.connect import opened, opened_for_writing, stored
from penstock.engine.connectors.database.database import (
    PLACEHOLDER,
    WritableDatabase,
    quoted,
    quoted_table,
    shown,
)
from penstock.engine.connectors.database.expression_text import ExpressionText
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink

_STORED = {Double: "'real', 'integer'", Boolean: "'integer'"}
"""By a declared type, how SQLite stores its values; integers are not listed."""


def check_change(sink: Sink) -> None:
    """Refuse a statement that the database cannot carry out with the same meaning: SQL-1601. Nothing is
    connected.
    """
    _, scan = _parts(sink)
    _statement(sink, [scan.table.source_schema[index] for index in scan.columns])


def change_text(sink: Sink) -> str:
    """Return the statement of the database, with its values."""
    database = opened(_parts(sink)[1].table)
    try:
        text, told = _statement(sink, _stored(sink, database))
        return shown(text, told.values, PLACEHOLDER)
    finally:
        database.close()


def changed_rows(sink: Sink) -> int:
    """Carry the statement out; return how many rows it changed. Nothing is changed where it fails."""
    table = _parts(sink)[1].table
    # a file that is not there is not made by a statement that changes rows
    opened(table).close()
    database = opened_for_writing(table)
    try:
        text, told = _statement(sink, _stored(sink, database))
        with database.transaction():
            if table.connector == "sqlite":
                _check_values(database, table.options["table-name"], told.read.values())
            return database.change(text, told.values)
    finally:
        database.close()


def _parts(sink: Sink) -> tuple[list[LogicalPlan], Scan]:
    """Return the nodes between the sink and the scan, and the scan."""
    nodes: list[LogicalPlan] = []
    plan = sink.input
    while not isinstance(plan, Scan):
        nodes.append(plan)
        (plan,) = plan.inputs
    return nodes, plan


def _stored(sink: Sink, database: WritableDatabase) -> Sequence[Field]:
    scan = _parts(sink)[1]
    return stored(scan.table, [scan.table.source_schema[index] for index in scan.columns], database)


def _statement(sink: Sink, fields: Sequence[Field]) -> tuple[str, ExpressionText]:
    """Return the statement with placeholders, and what has its values."""
    assert sink.changes is not None
    nodes, scan = _parts(sink)
    kind, table = sink.changes.kind, scan.table
    told = ExpressionText(table.connector, fields, f"{kind} of {table.name}")
    text = f"{kind}{' FROM' if kind == 'DELETE' else ''} {quoted_table(table.options['table-name'])}"
    for node in nodes:
        if isinstance(node, Project):
            declared = (scan.table.source_schema[index].name for index in scan.columns)
            columns = {name: quoted(field.name) for name, field in zip(declared, fields, strict=True)}
            values = map(told.assigned, node.expressions)
            pairs = zip(node.names, values, strict=True)
            text += f" SET {', '.join(f'{columns[name]} = {value}' for name, value in pairs)}"
        elif isinstance(node, Filter):
            text += f" WHERE {told.text(node.predicate)}"
    return text, told


def _check_values(database: WritableDatabase, table: str, fields: Iterable[Field]) -> None:
    """Refuse values of SQLite that are none of the declared type, as a scan does: DAT-4704. It stores any
    value in any column, and compares values of two types in its own way.
    """
    for field in fields:
        kinds = _STORED.get(type(field.type), "") if not is_integer(field.type) else "'integer'"
        if not kinds:
            continue
        name = quoted(field.name)
        found = database.run(
            f"SELECT typeof({name}) FROM {quoted_table(table)} "
            f"WHERE typeof({name}) NOT IN ({kinds}, 'null') LIMIT 1"
        )
        if found:
            raise PenstockError(
                "DAT-4704",
                f"column {field.name} of {table} holds what is no {field.type}: {found[0][0]}",
                hint="declare it as STRING to see it",
                kind=Kind.EXTERNAL,
            )
