"""ALTER TABLE: the table's declaration with one change, bound again as CREATE TABLE binds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.persistence.show_create import create_statement
from penstock.catalog.tables import CatalogTable
from penstock.planner.parser.syntax_nodes import OptionEntry, Reference, moved
from penstock.planner.statements.nodes import (
    Alteration,
    AlterTable,
    ChangeParts,
    ColumnDef,
    ComputedColumnDef,
    CreateTable,
    DropColumns,
    DropKey,
    DropWatermark,
    Name,
    PositionedColumn,
    RenameColumn,
    RenameTable,
    ResetOptions,
    SetOptions,
    SqlExpression,
)
from penstock.planner.statements.script import parse_statement


def altered_declaration(statement: AlterTable, table: CatalogTable) -> CreateTable:
    """Return the declaration of a table after a change. Raises SQL-13xx for a change that is not possible."""
    # The declaration is read back from its text, secrets included.
    base = parse_statement(create_statement(table, redact=False))
    assert isinstance(base, CreateTable)
    span = statement.name.span
    columns = tuple(_at(column, span) for column in base.columns)
    if base.watermark is not None:
        rule = base.watermark
        base = replace(
            base,
            watermark=replace(
                rule, column=Name(rule.column.text, span), expression=_expression_at(rule.expression, span)
            ),
        )
    # Errors in old parts point to the table's name, errors in the change to the change.
    options = tuple(replace(option, key_span=span, value_span=span) for option in base.options)
    return _changed(
        replace(base, name=Name(base.name.text, span), columns=columns, options=options), statement.change
    )


def _at(column: ColumnDef, span: Span) -> ColumnDef:
    """Return an earlier declaration with the span of the table's name, so that an error points there."""
    if isinstance(column, ComputedColumnDef):
        column = replace(column, expression=_expression_at(column.expression, span))
    return replace(column, name=Name(column.name.text, span))


def _expression_at(expression: SqlExpression, span: Span) -> SqlExpression:
    return replace(expression, tree=moved(expression.tree, span), span=span)


def _changed(base: CreateTable, change: Alteration) -> CreateTable:
    match change:
        # SET ('key' = 'value'): old options keep their order, new ones follow.
        case SetOptions(options):
            # SET of a known key replaces its value in place: pop leaves the new keys
            changed = {option.key: option for option in options}
            merged = tuple(changed.pop(option.key, option) for option in base.options)
            return replace(base, options=merged + tuple(changed.values()))
        # RESET ('key')
        case ResetOptions(keys):
            return replace(base, options=_without(base.options, keys))
        # ADD or MODIFY columns, watermark, primary key
        case ChangeParts():
            return _with_parts(base, change)
        # DROP (a, b)
        case DropColumns(names):
            return _without_columns(base, names)
        # DROP WATERMARK
        case DropWatermark(span):
            if base.watermark is None:
                raise PenstockError("SQL-1341", f'table "{base.name}" has no watermark', span=span)
            return replace(base, watermark=None)
        # DROP PRIMARY KEY
        case DropKey():
            if not base.primary_key:
                raise PenstockError(
                    "SQL-1341", f'table "{base.name}" has no primary key', span=base.name.span
                )
            return replace(base, primary_key=())
        # RENAME a TO b
        case RenameColumn(old, new):
            return _renamed(base, old, new)
        # RENAME TO new
        case RenameTable(new):
            return replace(base, name=new)
    raise AssertionError(change)


def _without(options: tuple[OptionEntry, ...], keys: Sequence[Name]) -> tuple[OptionEntry, ...]:
    known = [option.key for option in options]
    for key in keys:
        # another connector would read other data under the same name
        if key.text == "connector":
            hint = "drop the table and create it again"
            raise PenstockError("SQL-1341", "a table cannot be without a connector", span=key.span, hint=hint)
        if key.text not in known:
            near = did_you_mean(key.text, known, others=True)
            raise PenstockError("SQL-1341", f"option '{key.text}' is not set", span=key.span, hint=near)
    gone = {key.text for key in keys}
    return tuple(option for option in options if option.key not in gone)


def _with_parts(base: CreateTable, change: ChangeParts) -> CreateTable:
    if change.watermark is not None:
        # ADD WATERMARK of a table that has one, MODIFY of one that has none
        _refuse_mismatch(
            base, "watermark", base.watermark is not None, change.modify, change.watermark.column.span
        )
    if change.primary_key:
        _refuse_mismatch(
            base, "primary key", bool(base.primary_key), change.modify, change.primary_key[0].span
        )
    columns = list(base.columns)
    for placed in change.columns:
        _insert_at(base, columns, placed, change.modify)
    watermark, key = change.watermark or base.watermark, change.primary_key or base.primary_key
    return replace(base, columns=tuple(columns), watermark=watermark, primary_key=key)


def _refuse_mismatch(base: CreateTable, noun: str, present: bool, modify: bool, span: Span) -> None:
    if present != modify:
        message = f'table "{base.name}" has {"a" if present else "no"} {noun}{" already" if present else ""}'
        raise PenstockError(
            "SQL-1341", message, span=span, hint=f"write {'MODIFY' if present else 'ADD'} {noun.upper()} .."
        )


def _insert_at(base: CreateTable, columns: list[ColumnDef], placed: PositionedColumn, modify: bool) -> None:
    name = placed.column.name
    old_index = next((i for i, column in enumerate(columns) if _same(column.name, name)), None)
    if modify and old_index is None:
        raise _no_column(base, name)
    if not modify and old_index is not None:
        hint = "write MODIFY to change it"
        raise PenstockError(
            "SQL-1301",
            f'table "{base.name}" has a column "{name.text}" already',
            span=name.span,
            hint=hint,
            sqlstate="42701",
        )
    # MODIFY: the column is taken out and inserted again, perhaps elsewhere
    if old_index is not None:
        del columns[old_index]
    # ADD c INT AFTER b
    if placed.after is not None:
        target = placed.after
        index = next((i + 1 for i, column in enumerate(columns) if _same(column.name, target)), None)
        if index is None:
            raise _no_column(base, target)
    else:
        # FIRST; ADD appends; MODIFY leaves the column where it is.
        index = 0 if placed.first else len(columns) if old_index is None else old_index
    columns.insert(index, placed.column)


def _without_columns(base: CreateTable, names: Sequence[Name]) -> CreateTable:
    columns = list(base.columns)
    for name in names:
        dropped = next((column for column in columns if _same(column.name, name)), None)
        if dropped is None:
            raise _no_column(base, name)
        columns.remove(dropped)
    # Only what remains counts: a column and one computed from it may be dropped together.
    remaining = replace(base, columns=tuple(columns))
    for name in names:
        _refuse_if_used(remaining, name, "be dropped", keys_too=True)
    return remaining


def _renamed(base: CreateTable, old: Name, new: Name) -> CreateTable:
    if not any(_same(column.name, old) for column in base.columns):
        raise _no_column(base, old)
    # a TO A changes the case only.
    if any(_same(column.name, new) for column in base.columns) and not _same(old, new):
        raise PenstockError(
            "SQL-1301",
            f'table "{base.name}" has a column "{new.text}" already',
            span=new.span,
            sqlstate="42701",
        )
    _refuse_if_used(base, old, "be renamed", keys_too=False)

    # keys and partitions name columns, so they are renamed along; expressions are not, see _refuse_if_used
    def named(names: tuple[Name, ...]) -> tuple[Name, ...]:
        return tuple(new if _same(name, old) else name for name in names)

    columns = tuple(
        replace(column, name=new) if _same(column.name, old) else column for column in base.columns
    )
    return replace(
        base, columns=columns, primary_key=named(base.primary_key), partitioned_by=named(base.partitioned_by)
    )


def _refuse_if_used(base: CreateTable, name: Name, what: str, keys_too: bool) -> None:
    """Raise SQL-1342 when a computed column, the watermark, the key or the partitioning reads a column."""
    users = [
        f'column "{column.name.text}" is computed from it'
        for column in base.columns
        if _computed_from(column, name)
    ]
    rule = base.watermark
    if rule is not None and (_same(rule.column, name) or _reads(rule.expression, name)):
        users.append("the watermark goes by it")
    # a renamed column stays in keys and partitions, a dropped one cannot
    if keys_too:
        users += ["it is part of the primary key"] * any(_same(key, name) for key in base.primary_key)
        users += ["rows are partitioned by it"] * any(_same(key, name) for key in base.partitioned_by)
    if users:
        message = f'column "{name.text}" cannot {what}: {users[0]}'
        raise PenstockError(
            "SQL-1342", message, span=name.span, hint="drop or change that first", sqlstate="2BP01"
        )


def _computed_from(column: ColumnDef, name: Name) -> bool:
    return isinstance(column, ComputedColumnDef) and _reads(column.expression, name)


def _reads(expression: SqlExpression, name: Name) -> bool:
    return any(
        part.name.lower() == name.text.lower()
        # any part of the path: r.f reads column r, and a table's name may precede it
        for node in expression.tree.find_all(Reference)
        for part in node.expressions
    )


def _same(one: Name, other: Name) -> bool:
    return one.text.lower() == other.text.lower()


def _no_column(base: CreateTable, name: Name) -> PenstockError:
    hint = did_you_mean(name.text, [column.name.text for column in base.columns], others=True)
    return PenstockError(
        "SQL-1042",
        f'column "{name.text}" does not exist in {base.name}',
        span=name.span,
        hint=hint,
        sqlstate="42703",
    )
