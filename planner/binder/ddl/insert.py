"""INSERT: matches the query's columns to the sink's physical columns."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.connectors.filesystem import object_scheme, pipe_fault
from penstock.catalog.connectors.registry import connector_of, options_of
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.functions.registry import can_cast
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field
from penstock.catalog.tables import CatalogTable, MaterializedView
from penstock.catalog.types import STRING, DataType, Null, String, Variant
from penstock.planner.binder.ddl.conflicts import resolve_conflicts
from penstock.planner.binder.expressions.time_precision import cut_cast
from penstock.planner.binder.scope import Relation
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import Cast, Column, Expression, Literal
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.scan import Values
from penstock.planner.logical.sink import Sink
from penstock.planner.statements.nodes import Insert, Name


def sink_for(statement: Insert, table: CatalogTable, relation: Relation) -> Sink:
    """Return the sink of an INSERT: columns in the table's order, cast to its types. Columns that the
    statement does not name are NULL.
    """
    # INSERT INTO a materialized view
    if isinstance(table, MaterializedView):
        message = f'"{table.name}" is a materialized view: its rows are those of its query'
        hint = "write to the tables it reads, or to a table of its own"
        raise PenstockError("SQL-1094", message, span=statement.target.span, hint=hint, sqlstate="42809")
    # INSERT INTO a table that is only read, such as datagen
    if not connector_of(table).sink:
        message = f'table "{table.name}" cannot be written: connector {table.connector} is a source only'
        hint = "write to a table whose connector takes rows, such as filesystem or print"
        raise PenstockError("SQL-1094", message, span=statement.target.span, hint=hint, sqlstate="42809")
    connector_of(table).check_sink(table, statement.target.span)
    if table.connector == "filesystem":
        fault = pipe_fault(options_of(table), partitioned=bool(table.partitioned_by), reads=False)
        if fault is not None:
            raise PenstockError(
                "SQL-1094", fault[0], span=statement.target.span, hint=fault[1], sqlstate="0A000"
            )
    constants = _partition_constants(statement, table)
    targets = target_fields(statement.columns, table, statement.target.span)
    # INSERT INTO t PARTITION (day = '2026-01-01'): the query has the other columns
    if not statement.columns:
        targets = [field for field in targets if field.name.lower() not in constants]
    if len(targets) != len(relation.fields):
        raise _wrong_width(statement, table, targets, relation)
    # INSERT INTO t (b, a) SELECT x, y: column name to its position in the query
    positions = dict(zip((target.name for target in targets), range(len(targets)), strict=True))
    expressions = []
    for field in table.physical_fields:
        index = positions.get(field.name)
        # A column that the list does not name is NULL.
        if (constant := constants.get(field.name.lower())) is not None:
            expressions.append(constant)
        elif index is None:
            expressions.append(_missing(field, statement, table))
        else:
            expressions.append(_stored(index, field, relation, statement))
    rows = _projected(relation.plan, expressions, [field.name for field in table.physical_fields])
    if statement.on_conflict is not None:
        rows = resolve_conflicts(rows, statement.on_conflict, table, statement.target.span)
    return Sink(
        rows,
        table,
        statement.target.span,
        overwrite=_overwritten(statement, table) if statement.overwrite else None,
    )


def _overwritten(statement: Insert, table: CatalogTable) -> tuple[tuple[str, str], ...]:
    """Return the constants of an INSERT OVERWRITE, by partition column in lower case. SQL-1601 for a table
    that is neither in a local directory nor a Delta or Iceberg table, and for partitions whose keys
    others may have.
    """
    remote = object_scheme(table.options.get("path", ""))
    lakehouse = table.connector in ("delta", "iceberg")
    if (table.connector != "filesystem" and not lakehouse) or remote is not None:
        where = f"connector {table.connector}" if remote is None else f"files at {remote}://"
        raise PenstockError(
            "SQL-1601",
            f"INSERT OVERWRITE of {table.name} is not supported: it replaces local files, Delta and Iceberg "
            "tables",
            span=statement.target.span,
            hint=f"{where}: write INSERT INTO, or INSERT OVERWRITE a filesystem table and read that",
            sqlstate="0A000",
        )
    keys = {name.lower() for name in table.primary_key}
    loose = [name for name in table.partitioned_by if name.lower() not in keys]
    if lakehouse and keys and loose:
        # a new row of one partition may have the key of a row that stays in another
        raise PenstockError(
            "SQL-1601",
            f"INSERT OVERWRITE of partitions of {table.name} is not supported: {', '.join(loose)} is not in "
            "its PRIMARY KEY, and other partitions may have rows of the same keys",
            span=statement.target.span,
            hint="INSERT INTO replaces rows by key; a second table of the same place, declared without "
            "PARTITIONED BY, is overwritten whole",
            sqlstate="0A000",
        )
    return tuple(
        (part.column.text.lower(), part.value) for part in statement.partition if part.value is not None
    )


def _partition_constants(statement: Insert, table: CatalogTable) -> dict[str, Expression]:
    """Return the constants of ``PARTITION (..)`` by column, in lower case, cast to the columns' types."""
    fields = {field.name.lower(): field for field in table.physical_fields}
    partitions = [name.lower() for name in table.partitioned_by]
    constants: dict[str, Expression] = {}
    for part in statement.partition:
        name = part.column.text.lower()
        if name not in partitions:
            listed = f"it is partitioned by {', '.join(table.partitioned_by)}"
            raise PenstockError(
                "SQL-1042",
                f'"{part.column.text}" is no partition column of {table.name}',
                span=part.column.span,
                hint=listed if partitions else "write the column into the query",
                sqlstate="42703",
            )
        if any(column.text.lower() == name for column in statement.columns) and part.value is not None:
            raise PenstockError(
                "SQL-1045",
                f'column "{part.column.text}" has a constant and is in the list',
                span=part.column.span,
                sqlstate="42701",
            )
        if part.value is not None:
            text = Literal(STRING, False, value=part.value, span=part.column.span)
            kind = fields[name].type
            cast = Cast(kind, False, arg=text, safe=False, span=part.column.span)
            constants[name] = text if isinstance(kind, String) else cut_cast(cast, STRING, kind)
    return constants


def target_fields(names: Sequence[Name], table: CatalogTable, span: Span) -> list[Field]:
    """Return the columns of a table that names are of, all of them for no names. SQL-1042, SQL-1045."""
    physical = {field.name.lower(): field for field in table.physical_fields}
    # Without a column list the query's columns match by position.
    if not names:
        return list(table.physical_fields)
    seen: set[str] = set()
    for name in names:
        if name.text.lower() not in physical:
            raise _no_target(name, table, list(physical))
        if name.text.lower() in seen:
            raise PenstockError(
                "SQL-1045", f'column "{name.text}" occurs twice in the list', span=name.span, sqlstate="42701"
            )
        seen.add(name.text.lower())
    return [physical[name.text.lower()] for name in names]


def _no_target(name: Name, table: CatalogTable, physical: list[str]) -> PenstockError:
    # The table has the column, but it is computed or metadata.
    if table.schema.index_of(name.text) is not None:
        hint = "leave it out: it is computed, or filled by the connector"
        return PenstockError(
            "SQL-1091",
            f'column "{name.text}" of {table.name} cannot be written',
            span=name.span,
            hint=hint,
            sqlstate="428C9",
        )
    hint = did_you_mean(name.text, physical, others=True) or ""
    return PenstockError(
        "SQL-1042",
        f'column "{name.text}" does not exist in {table.name}',
        span=name.span,
        hint=hint,
        sqlstate="42703",
    )


def _wrong_width(
    statement: Insert, table: CatalogTable, targets: Sequence[Field], relation: Relation
) -> PenstockError:
    message = (
        f'"{table.name}" takes {len(targets)} column{"s" if len(targets) != 1 else ""}, the query returns '
        f"{len(relation.fields)}"
    )
    hint = f"the columns are {', '.join(field.name for field in targets)}"
    return PenstockError("SQL-1090", message, span=statement.query.span, hint=hint, sqlstate="42601")


def _missing(field: Field, statement: Insert, table: CatalogTable) -> Expression:
    if not field.nullable:
        message = f'column "{field.name}" of {table.name} is NOT NULL and is given no value'
        raise PenstockError(
            "SQL-1093",
            message,
            span=statement.target.span,
            hint=f"add {field.name} to the column list",
            sqlstate="23502",
        )
    # there are no column defaults
    return Literal(field.type, True, value=None)


def _stored(index: int, field: Field, relation: Relation, statement: Insert) -> Expression:
    # Only a NULL that is certain is an error at planning.
    if not field.nullable and _always_null(relation.plan, index):
        message = f'column "{field.name}" is NOT NULL and is given NULL'
        raise PenstockError(
            "SQL-1093",
            message,
            span=_span_of_column(relation.plan, index) or statement.query.span,
            sqlstate="23502",
        )
    return stored_value(index, field, relation, _span_of_column(relation.plan, index) or statement.query.span)


def stored_value(
    index: int, field: Field, relation: Relation, span: Span | None, what: str = "the query returns"
) -> Expression:
    """Return a column of a query as a table's column stores it. SQL-1092 where it would need a CAST."""
    source = relation.fields[index]
    if not storable(source.type, field.type):
        message = f'column "{field.name}" is {field.type}, {what} {source.type}'
        hint = (
            f"write parse_json({source.name or '..'}) for JSON in a text"
            if isinstance(source.type, String) and isinstance(field.type, Variant)
            else f"write CAST({source.name or '..'} AS {field.type})"
            if can_cast(source.type, field.type)
            else f"give it a {field.type}"
        )
        raise PenstockError("SQL-1092", message, span=span, hint=hint, sqlstate="42804")
    column = Column(source.type, source.nullable, index=index, name=source.name)
    # a column of TIME(0) stores whole seconds, wherever the query has more digits
    return cut_cast(coerced(column, field.type), source.type, field.type)


def storable(source: DataType, wanted: DataType) -> bool:
    """Return whether a column may store a value without CAST. This is Spark's ANSI rule: text goes into text
    columns only.
    """
    # 1 goes into BIGINT by a cast; '1' does not go into INT: each row might fail
    if source == wanted or isinstance(source, Null):
        return True
    return not isinstance(source, String) and can_cast(source, wanted)


def _always_null(plan: LogicalPlan, index: int) -> bool:
    """Return whether a column is certainly NULL in some row: a NULL literal in VALUES or in the
    select list.
    """
    # VALUES (1, NULL)
    if isinstance(plan, Values):
        return any(row[index].value is None for row in plan.rows)
    # SELECT .., NULL
    if isinstance(plan, Project):
        expression = plan.expressions[index]
        return isinstance(expression, Literal) and expression.value is None
    return False


def _span_of_column(plan: LogicalPlan, index: int) -> Span | None:
    """Return the span of an output column, if the query ends in its select list or VALUES."""
    if isinstance(plan, Project):
        return plan.expressions[index].span
    if isinstance(plan, Values) and plan.rows:
        return next((row[index] for row in plan.rows if row[index].value is None), plan.rows[0][index]).span
    return None


def _projected(plan: LogicalPlan, expressions: Sequence[Expression], names: Sequence[str]) -> LogicalPlan:
    fields = plan.schema.fields
    plain = [isinstance(e, Column) and e.index == i for i, e in enumerate(expressions)]
    # The query already has the table's columns, names and order.
    if len(expressions) == len(fields) and all(plain) and [f.name for f in fields] == list(names):
        return plan
    return Project(plan, tuple(expressions), tuple(names))
