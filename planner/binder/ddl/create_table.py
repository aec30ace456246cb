"""CREATE TABLE, also with LIKE and AS: binds declarations to catalog tables and checks the rules of changelog
tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog.connectors.registry import (
    check_column,
    check_options,
    check_table,
    connector_of,
    emits_changes,
    metadata_keys,
    upserts_rows,
    written_changes,
)
from penstock.catalog.errors import PenstockError
from penstock.catalog.functions.registry import can_cast, is_deterministic
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.persistence.show_create import create_statement
from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.tables import (
    CatalogTable,
    ComputedColumn,
    MetadataColumn,
    WatermarkRule,
)
from penstock.catalog.types import Null, is_timestamp
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.relations.upserted_table import check_watermark
from penstock.planner.binder.scope import Relation, Scope
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import Call, Column, Expression, expression_of, expression_role
from penstock.planner.logical.scan import Values
from penstock.planner.parser.syntax_nodes import OptionEntry
from penstock.planner.statements.nodes import (
    ColumnDef,
    ComputedColumnDef,
    CreateTable,
    CreateTableAs,
    CreateTableLike,
    MetadataColumnDef,
    Name,
    PhysicalColumnDef,
    WatermarkDef,
)
from penstock.planner.statements.script import parse_statement


def check_changes(table: CatalogTable, statement: CreateTable) -> None:
    """Refuse declarations that a changelog table cannot have.

    Raises SQL-1515 for metadata columns, partitions, and columns computed by a function that is not
    deterministic. Raises SQL-1516 for an upsert sink without a primary key, or with partitions or its own
    column ``op``.
    """
    # The rules of a sink that writes changes as records; those that replace rows are exempt.
    if written_changes(table) != "append" and not upserts_rows(table):
        _check_written(table, statement)
    if connector_of(table).needs_primary_key and not table.primary_key:
        hint = "add PRIMARY KEY (..) NOT ENFORCED with the key that the table has there"
        message = f"a table of connector '{table.connector}' needs its key"
        raise PenstockError("SQL-1516", message, span=statement.name.span, hint=hint)
    # The rules below are for sources: a retraction must equal the row that it retracts.
    if not emits_changes(table):
        return
    for column in statement.columns:
        if isinstance(column, MetadataColumnDef):
            message = f'column "{column.name.text}": a table of changes has no metadata columns'
            hint = "a retraction would carry other metadata than its row; leave the column out"
            raise PenstockError("SQL-1515", message, span=column.name.span, hint=hint, sqlstate="0A000")
    if statement.partitioned_by:
        hint = "an update may move a row from one partition to another; leave PARTITIONED BY out"
        raise PenstockError(
            "SQL-1515",
            "files of changes have no partitions",
            span=statement.partitioned_by[0].span,
            hint=hint,
            sqlstate="0A000",
        )
    names = {column.name.text: column.name.span for column in statement.columns}
    try:
        check_watermark(table)
    except PenstockError as error:
        raise error.with_span(names[table.watermark.column] if table.watermark else None) from None
    for computed in table.computed:
        if any(
            isinstance(node, Call) and not is_deterministic(node.function)
            for node in expression_of(computed.expression).walk()
        ):
            message = (
                f'column "{computed.name}" of a table of changes has another value each time it is computed'
            )
            hint = "a retraction must equal its row; compute the column from the row's own columns"
            raise PenstockError("SQL-1515", message, span=names[computed.name], hint=hint, sqlstate="0A000")


def _check_written(table: CatalogTable, statement: CreateTable) -> None:
    span = next(
        (option.key_span for option in statement.options if option.key == "changelog.mode"),
        statement.name.span,
    )
    if written_changes(table) == "upsert" and not table.primary_key:
        hint = "add PRIMARY KEY (..) NOT ENFORCED, or write 'changelog.mode' = 'retract'"
        raise PenstockError("SQL-1516", "upserts go by a key, and the table has none", span=span, hint=hint)
    if table.schema.index_of("op") is not None or table.partitioned_by:
        fault = (
            "files of changes have no partitions"
            if table.partitioned_by
            else 'column "op" is reserved: it has the kind of each change'
        )
        raise PenstockError(
            "SQL-1516",
            fault,
            span=span,
            hint="leave it out" if table.partitioned_by else "give the column another name",
        )


def bind_table(statement: CreateTable, context: BindContext) -> CatalogTable:
    """Return the table that CREATE TABLE declares. Raises SQL-13xx, SQL-15xx (options) and SQL-17xx
    (watermarks) with spans.
    """
    # first what the text alone shows, then options, columns, computed columns, watermark, keys
    _refuse_repeated(statement)
    options = checked_options(statement)
    # Columns in dependency order: physical and metadata, computed over them, the watermark over all.
    source, metadata = _source_columns(statement, options.get("connector", ""))
    _check_columns(statement, options, source)
    computed = _computed(statement, source, context)
    declared = _declared(statement, source, computed)
    watermark = (
        _watermark(statement.watermark, declared, context) if statement.watermark is not None else None
    )
    if watermark is not None:
        # the watermark's column becomes the event-time attribute of every query over the table
        declared = Schema(
            tuple(replace(f, role=Role.EVENT_TIME) if f.name == watermark.column else f for f in declared)
        )
    table = CatalogTable(
        context.catalog.qualified(statement.name.text, statement.name.span),
        source,
        declared,
        options,
        metadata,
        computed,
        watermark,
        _named(statement.primary_key, declared, "PRIMARY KEY"),
        _partitions(statement, source),
        statement.temporary,
        statement.comment,
    )
    check_table(table, {option.key: option.key_span for option in statement.options})
    check_changes(table, statement)
    return table


def _refuse_repeated(statement: CreateTable) -> None:
    seen: dict[str, Name] = {}
    for column in statement.columns:
        # Column names ignore case.
        known = seen.setdefault(column.name.text.lower(), column.name)
        if known is not column.name:
            raise PenstockError(
                "SQL-1301",
                f'column "{column.name.text}" is declared twice',
                span=column.name.span,
                sqlstate="42701",
            )
    # Option keys do not.
    keys: set[str] = set()
    for option in statement.options:
        if option.key in keys:
            raise PenstockError("SQL-1307", f"option '{option.key}' is given twice", span=option.key_span)
        keys.add(option.key)


def _check_columns(statement: CreateTable, options: dict[str, str], source: Schema) -> None:
    """Refuse columns that the connector cannot have (SQL-1509), and ``fields.<column>`` options of columns
    that the table does not have (SQL-1510).
    """
    for column in statement.columns:
        if isinstance(column, PhysicalColumnDef):
            check_column(options, Field(column.name.text, column.type), column.name.span)
    for option in statement.options:
        if option.key.startswith("fields."):
            # fields.<column>.<option> configures one column of a generator.
            name = option.key.split(".")[1]
            if source.index_of(name) is None:
                hint = did_you_mean(name, source.names, others=True)
                message = f"option '{option.key}': {statement.name.text} has no column {name}"
                raise PenstockError("SQL-1510", message, hint=hint, span=option.key_span)


def checked_options(statement: CreateTable) -> dict[str, str]:
    """Return the WITH clause as a dictionary, as its connector accepts it. Raises SQL-15xx with spans."""
    options = {option.key: option.value for option in statement.options}
    try:
        check_options(
            options,
            {option.key: option.key_span for option in statement.options},
            {option.key: option.value_span for option in statement.options},
        )
    except PenstockError as error:
        raise error.with_span(statement.name.span) from None
    return options


def _source_columns(statement: CreateTable, connector: str) -> tuple[Schema, tuple[MetadataColumn, ...]]:
    # PRIMARY KEY (k) NOT ENFORCED: no connector checks it, the planner relies on it
    keys = {name.text.lower() for name in statement.primary_key}
    fields, metadata = [], []
    for column in statement.columns:
        if isinstance(column, ComputedColumnDef):
            continue
        # Key columns are NOT NULL.
        nullable = column.nullable and column.name.text.lower() not in keys
        fields.append(Field(column.name.text, column.type, nullable))
        if isinstance(column, MetadataColumnDef):
            check_metadata(column, connector)
            metadata.append(MetadataColumn(column.name.text, column.key, column.virtual))
    if not any(isinstance(column, PhysicalColumnDef) for column in statement.columns):
        hint = "declare at least one column that the connector fills"
        raise PenstockError(
            "SQL-1308",
            f'table "{statement.name.text}" has no physical column',
            span=statement.name.span,
            hint=hint,
        )
    return Schema(tuple(fields)), tuple(metadata)


def check_metadata(column: MetadataColumnDef, connector: str) -> None:
    """Refuse a metadata column that the connector cannot fill, or not with its type: SQL-1306."""
    # timestamp TIMESTAMP METADATA FROM 'key'
    known = metadata_keys(connector)
    if column.key not in known:
        hint = did_you_mean(column.key, known, others=True) or f"connector {connector} has no metadata"
        message = f"connector {connector} has no metadata '{column.key}'"
        raise PenstockError("SQL-1306", message, span=column.key_span, hint=hint, sqlstate="42703")
    # A metadata column may have any type that the connector's own casts to.
    if not can_cast(known[column.key], column.type):
        message = f"metadata '{column.key}' is {known[column.key]}, not {column.type}"
        raise PenstockError(
            "SQL-1306",
            message,
            span=column.name.span,
            hint=f"declare it as {known[column.key]}",
            sqlstate="42804",
        )


def _computed(statement: CreateTable, source: Schema, context: BindContext) -> tuple[ComputedColumn, ...]:
    """Bind computed columns over the source columns. A computed column that reads an earlier one gets that
    one's expression inlined.
    """
    computed: list[ComputedColumn] = []
    fields = list(source.fields)
    for column in statement.columns:
        if not isinstance(column, ComputedColumnDef):
            continue
        bound = _over(fields, statement.name.text, context, f'column "{column.name.text}"').bind(
            column.expression.tree
        )
        # A computed column may read an earlier one; inlined, all of them are over the source columns.
        inlined = bound.transform(lambda node: _inlined(node, len(source), computed))
        # The catalog outlives this statement, so the expression loses its spans.
        computed.append(ComputedColumn(column.name.text, inlined.unplaced(), column.expression.text))
        fields.append(Field(column.name.text, inlined.type, inlined.nullable))
    return tuple(computed)


def _inlined(node: Expression, width: int, computed: Sequence[ComputedColumn]) -> Expression:
    # a position behind the source columns is an earlier computed column
    if isinstance(node, Column) and node.index >= width:
        return expression_of(computed[node.index - width].expression)
    return node


def _over(fields: Sequence[Field], table: str, context: BindContext, clause: str) -> ExpressionBinder:
    # no rows: only names and types matter
    relation = Relation(Values((), Schema(tuple(fields))), tuple(fields))
    return ExpressionBinder(Scope.of(relation, table), context, clause)


def _declared(statement: CreateTable, source: Schema, computed: Sequence[ComputedColumn]) -> Schema:
    # the order of the text: physical, metadata and computed columns mixed
    kinds = {column.name: expression_of(column.expression) for column in computed}
    fields = []
    for column in statement.columns:
        fields.append(_declared_field(column, source, kinds))
    return Schema(tuple(fields))


def _declared_field(column: ColumnDef, source: Schema, computed: dict[str, Expression]) -> Field:
    name = column.name.text
    if isinstance(column, ComputedColumnDef):
        return Field(name, computed[name].type, computed[name].nullable, expression_role(computed[name]))
    index = source.index_of(name)
    assert index is not None
    return source[index]


def _watermark(rule: WatermarkDef, declared: Schema, context: BindContext) -> WatermarkRule:
    # a computed column may carry the watermark: WATERMARK FOR ts, ts AS to_timestamp(s)
    index = declared.index_of(rule.column.text)
    if index is None:
        hint = did_you_mean(rule.column.text, declared.names, others=True)
        message = f'column "{rule.column.text}" of WATERMARK FOR does not exist'
        raise PenstockError("SQL-1042", message, span=rule.column.span, hint=hint, sqlstate="42703")
    field = declared[index]
    # WATERMARK FOR a column of another type: the hint suggests a computed one.
    if not is_timestamp(field.type):
        hint = (
            f"add a computed column, for instance event_time AS to_timestamp({field.name}), and "
            "watermark that"
        )
        message = f'a watermark needs a TIMESTAMP column, "{field.name}" is {field.type}'
        raise PenstockError("SQL-1702", message, span=rule.column.span, hint=hint, sqlstate="42804")
    # WATERMARK FOR ts AS ts - INTERVAL '5' SECOND: an expression over all columns of the row
    bound = _over(declared.fields, "", context, "WATERMARK").bind(rule.expression.tree)
    if not is_timestamp(bound.type):
        hint = f"write {field.name} - INTERVAL '5' SECOND"
        message = f"a watermark is a point in time, this is {bound.type}"
        raise PenstockError("SQL-1702", message, span=rule.expression.span, hint=hint, sqlstate="42804")
    return WatermarkRule(field.name, coerced(bound, field.type).unplaced(), rule.expression.text)


def _named(names: Sequence[Name], schema: Schema, clause: str) -> tuple[str, ...]:
    resolved: list[str] = []
    for name in names:
        index = schema.index_of(name.text)
        if index is None:
            hint = did_you_mean(name.text, schema.names, others=True)
            raise PenstockError(
                "SQL-1042",
                f'column "{name.text}" of {clause} does not exist',
                span=name.span,
                hint=hint,
                sqlstate="42703",
            )
        # PRIMARY KEY (a, A)
        if schema[index].name in resolved:
            raise PenstockError(
                "SQL-1301", f'column "{name.text}" occurs twice in {clause}', span=name.span, sqlstate="42701"
            )
        resolved.append(schema[index].name)
    return tuple(resolved)


def _partitions(statement: CreateTable, source: Schema) -> tuple[str, ...]:
    names = _named(statement.partitioned_by, source, "PARTITIONED BY")
    # Partition columns are in the path and not in the files.
    if names and len(names) == len(source):
        span = statement.partitioned_by[0].span
        raise PenstockError(
            "SQL-1308",
            "PARTITIONED BY names every column, so none is left to write",
            span=span,
            hint="leave one out",
        )
    return names


def copied_table(statement: CreateTableLike, source: CatalogTable) -> CreateTable:
    """Return the declaration of a LIKE copy: the source's columns, then the new ones. New options, watermark
    and key replace the old ones.
    """
    # The source's declaration is read back from its text, secrets included.
    base = parse_statement(create_statement(source, redact=False))
    assert isinstance(base, CreateTable)
    new, out = statement.table, statement.excluding

    def copies(part: str) -> bool:
        return part not in out and "ALL" not in out

    columns = tuple(
        _at(column, statement.source)
        for column in base.columns
        if _is_copied(column, copies("GENERATED"), copies("METADATA"))
    )
    # CREATE TABLE b (..) WITH ('path' = '..') LIKE a: an option of b replaces a's
    replaced = {option.key for option in new.options}
    old = tuple(
        OptionEntry(o.key, o.value, new.name.span, new.name.span)
        for o in base.options
        if copies("OPTIONS") and o.key not in replaced
    )
    return replace(
        new,
        # what EXCLUDING leaves out may be declared anew
        columns=columns + new.columns,
        options=old + new.options,
        watermark=new.watermark or (base.watermark if copies("WATERMARKS") else None),
        primary_key=new.primary_key or (base.primary_key if copies("CONSTRAINTS") else ()),
        partitioned_by=new.partitioned_by or (base.partitioned_by if copies("PARTITIONS") else ()),
        comment=new.comment or base.comment,
    )


def _is_copied(column: ColumnDef, generated: bool, metadata: bool) -> bool:
    if isinstance(column, ComputedColumnDef):
        return generated
    # physical columns are always copied
    return metadata or not isinstance(column, MetadataColumnDef)


def _at(column: ColumnDef, source: Name) -> ColumnDef:
    """Return a copied column with the span of the source's name, so that an error points there."""
    return replace(column, name=Name(column.name.text, source.span))


def table_of_query(statement: CreateTableAs, relation: Relation) -> CreateTable:
    """Return a CREATE TABLE with the columns of a query. Raises SQL-1309 for a column that is always NULL,
    because it has no type.
    """
    columns: list[ColumnDef] = []
    for field in relation.fields:
        # SELECT NULL AS x
        if isinstance(field.type, Null):
            hint = f"write CAST(NULL AS type) AS {field.name}"
            message = f'column "{field.name}" is always NULL, so the table cannot know its type'
            raise PenstockError("SQL-1309", message, span=statement.query.span, hint=hint, sqlstate="42P18")
        columns.append(PhysicalColumnDef(Name(field.name, statement.query.span), field.type, field.nullable))
    return replace(statement.table, columns=tuple(columns))
