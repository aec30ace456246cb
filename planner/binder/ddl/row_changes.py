"""UPDATE and DELETE: the query whose rows are those of the table, each with what becomes of it.

The query is bounded, and a single commit replaces the table by its rows: see ``RowChanges``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.persistence.show_create import quoted_name
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import INT
from penstock.planner.binder.ddl.changeable_tables import check_changeable, check_ends
from penstock.planner.binder.ddl.insert import stored_value, target_fields
from penstock.planner.binder.scope import Relation
from penstock.planner.expressions.nodes import Case, Column, Expression
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.sink import DELETED, FATE, KEPT, ROW, UPDATED, RowChanges, Sink
from penstock.planner.parser.query_parser import parse_query
from penstock.planner.parser.syntax_nodes import OverClause, Reference, moved, span_of
from penstock.planner.statements.nodes import ChangeRows, Name

BindQuery = Callable[[exp.Expr], Relation]
_HIT = "$hit"
"""The column of the query that says whether WHERE is TRUE."""


def changing_sink(statement: ChangeRows, table: CatalogTable, bind: BindQuery) -> Sink:
    """Return the sink of an UPDATE or DELETE."""
    tree, span = statement.query.tree, statement.target.span
    check_changeable(table, span, tree.args["kind"])
    assigned = assigned_values(tree.args.get("assignments") or (), table, span)
    relation = bind(_query(tree, table, assigned, span))
    width = len(table.physical_fields)
    hit = column_of(relation, width)
    values: list[Expression] = []
    changed = list(assigned)
    for place, field in enumerate(table.physical_fields):
        old = column_of(relation, place)
        if field.name in assigned:
            new = new_value(relation, width + 2 + changed.index(field.name), field, assigned[field.name])
            values.append(chosen([(hit, new)], old, field))
        else:
            values.append(old)
    values.append(column_of(relation, width + 1))
    return sink_of(statement, table, relation.plan, values, keyed=tuple(assigned))


def sink_of(
    statement: ChangeRows,
    table: CatalogTable,
    plan: LogicalPlan,
    values: Sequence[Expression],
    *,
    keyed: tuple[str, ...] | None,
    lone_delete: bool = False,
) -> Sink:
    """Return the sink of rows with their fates. ``keyed``: the columns that get new values, None for all of
    them. MERGE has the number of the target's row behind the fate.
    """
    kind = statement.query.tree.args["kind"]
    check_ends(plan, statement.target.span, kind)
    by_row = len(values) > len(table.physical_fields) + 1
    marks = (Field(FATE, INT), *((Field(ROW, INT),) if by_row else ()))
    schema = Schema((*table.physical_fields, *marks))
    # a table without a key or partitions: rows are written as they come, and are replaced all
    staged = replace(
        table,
        source_schema=schema,
        schema=schema,
        metadata=(),
        computed=(),
        watermark=None,
        primary_key=(),
        partitioned_by=(),
    )
    keys = {name.lower() for name in table.primary_key}
    changes = RowChanges(
        kind,
        table,
        lone_delete=lone_delete,
        changes_keys=bool(keys) and (keyed is None or any(name.lower() in keys for name in keyed)),
    )
    projected = Project(plan, tuple(values), tuple(schema.names))
    return Sink(projected, staged, statement.target.span, overwrite=(), changes=changes)


def assigned_values(assignments: Sequence[exp.Expr], table: CatalogTable, span: Span) -> dict[str, exp.Expr]:
    """Return the values of SET by the names of columns, in the order of the text. SQL-1042, SQL-1045."""
    names = tuple(Name(one.this.name, span_of(one.this) or span) for one in assignments)
    if not names:
        return {}
    fields = target_fields(names, table, span)
    return {field.name: one.args["expression"] for field, one in zip(fields, assignments, strict=True)}


def _query(tree: exp.Expr, table: CatalogTable, assigned: dict[str, exp.Expr], span: Span) -> exp.Expr:
    fate = DELETED if tree.args["kind"] == "DELETE" else UPDATED
    items = [quoted_name(field.name) for field in table.physical_fields]
    condition = "`$where`" if tree.args.get("where") is not None else "TRUE"
    # each of them is computed once: the others read it by its name
    items.append(f"CASE WHEN {condition} THEN TRUE ELSE FALSE END AS `{_HIT}`")
    items.append(f"CASE WHEN `{_HIT}` THEN {fate} ELSE {KEPT} END AS `{FATE}`")
    parts = {} if tree.args.get("where") is None else {"$where": tree.args["where"]}
    for number, value in enumerate(assigned.values()):
        # of other rows a value is not computed: it may fail there
        items.append(f"CASE WHEN `{_HIT}` THEN `$value{number}` END AS `$new{number}`")
        parts[f"$value{number}"] = value
    query = filled(f"SELECT {', '.join(items)} FROM t", parts, span)
    query.set("from_", exp.From(this=tree.this.copy()))
    return query


def filled(text: str, parts: dict[str, exp.Expr], span: Span) -> exp.Expr:
    """Return the tree of a query with expressions of the statement in place of names. What was not written
    there has the span of the target.
    """
    for own in parts.values():
        _refuse_windows(own)
    query = moved(parse_query(text), span)
    for node in list(query.find_all(Reference)):
        part = parts.get(node.expressions[-1].name)
        if part is not None:
            node.replace(part.copy())
    return query


def _refuse_windows(tree: exp.Expr) -> None:
    """Refuse OVER in a condition or value: it would go over rows that the statement does not change, too."""
    for clause in tree.find_all(OverClause):
        if clause.find_ancestor(exp.Select) is None:
            raise PenstockError(
                "SQL-1601",
                "OVER in a condition or value of UPDATE, DELETE and MERGE is not supported",
                span=span_of(clause) or span_of(tree),
                hint="write it into the source of MERGE: USING (SELECT .., LAG(a) OVER (..) FROM t) AS s",
                sqlstate="0A000",
            )


def column_of(relation: Relation, place: int) -> Expression:
    """Return a column of a relation."""
    field = relation.fields[place]
    return Column(field.type, field.nullable, index=place, name=field.name)


def new_value(relation: Relation, place: int, field: Field, value: exp.Expr) -> Expression:
    """Return the new value of a column, as INSERT would store it. SQL-1092, SQL-1093 at the value."""
    if isinstance(value, exp.Null) and not field.nullable:
        raise PenstockError(
            "SQL-1093",
            f'column "{field.name}" is NOT NULL and is given NULL',
            span=span_of(value),
            sqlstate="23502",
        )
    # its name is the binder's own: hints do not show it
    unnamed = relation.renamed(["" if name.startswith("$") else name for name in relation.names])
    return stored_value(place, field, unnamed, span_of(value), "the value is")


def chosen(whens: Sequence[tuple[Expression, Expression]], default: Expression, field: Field) -> Expression:
    """Return the value of a column: that of the first condition that is TRUE, else its old one."""
    return Case(field.type, True, whens=tuple(whens), default=default) if whens else default
