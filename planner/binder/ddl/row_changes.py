"""UPDATE and DELETE: the query whose rows are those of the table, each with what becomes of it.

The query is bounded, and a single commit replaces the table by its rows: see ``RowChanges``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, INT
from penstock.planner.binder.built_syntax import (
    case,
    column,
    free_name,
    from_table,
    named,
    number,
    with_spans,
)
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.ddl.changeable_tables import check_ends
from penstock.planner.binder.ddl.insert import stored_value, target_fields
from penstock.planner.binder.scope import Relation
from penstock.planner.expressions.nodes import Case, Column, Expression
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.sink import DELETED, FATE, KEPT, ROW, UPDATED, RowChanges, Sink
from penstock.planner.parser.syntax_nodes import FunctionCall, OverClause, span_of
from penstock.planner.statements.nodes import ChangeRows, Name


@dataclass(frozen=True)
class OwnNames:
    """Names of the query's columns that no user has. ``hit`` says whether WHERE is TRUE, ``source``
    whether there is a row of MERGE's source; ``action`` is the number of a pair's action.
    """

    taken: tuple[str, ...]

    @property
    def hit(self) -> str:
        return free_name("$hit", self.taken)

    @property
    def fate(self) -> str:
        return free_name(FATE, self.taken)

    @property
    def row(self) -> str:
        return free_name(ROW, self.taken)

    @property
    def source(self) -> str:
        return free_name("$source", self.taken)

    @property
    def action(self) -> str:
        return free_name("$action", self.taken)

    @property
    def table(self) -> str:
        """The name by which MERGE's query reads the rows of the source."""
        return free_name("$rows", self.taken)

    def new(self, place: int) -> str:
        """Return the name of a new value."""
        return free_name(f"$new{place}", self.taken)


def own_names(tree: exp.Expr, *columns: Sequence[Field]) -> OwnNames:
    """Return the own names of a statement over tables of these columns."""
    written = [node.name for node in tree.find_all(exp.Identifier)]
    return OwnNames((*written, *(field.name for fields in columns for field in fields)))


def changing_sink(statement: ChangeRows, table: CatalogTable, context: BindContext) -> Sink:
    """Return the sink of an UPDATE or DELETE."""
    tree, span = statement.query.tree, statement.target.span
    assigned = assigned_values(tree.args.get("assignments") or (), table, span)
    for own in (tree.args.get("where"), *assigned.values()):
        if own is not None:
            refuse_calls_over_rows(own, context)
    names = own_names(tree, table.physical_fields)
    relation = context.query(with_spans(_query(tree, table, assigned, names), span))
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
    return sink_of(statement, table, relation.plan, values, names, keyed=tuple(assigned))


def sink_of(
    statement: ChangeRows,
    table: CatalogTable,
    plan: LogicalPlan,
    values: Sequence[Expression],
    names: OwnNames,
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
    row = names.row if by_row else ""
    marks = (Field(names.fate, INT), *((Field(row, BIGINT),) if by_row else ()))
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
        fate=names.fate,
        row=row,
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


def _query(tree: exp.Expr, table: CatalogTable, assigned: dict[str, exp.Expr], names: OwnNames) -> exp.Expr:
    """Return the query of the rows: the columns, whether the row is changed, its fate, and its new values."""
    fate = DELETED if tree.args["kind"] == "DELETE" else UPDATED
    items: list[exp.Expr] = [column(field.name) for field in table.physical_fields]
    # each of them is computed once: the others read it by its name
    items.append(tested_condition(tree.args.get("where"), names.hit))
    items.append(named(case([(column(names.hit), number(fate))], number(KEPT)), names.fate))
    for place, value in enumerate(assigned.values()):
        # of other rows a value is not computed: it may fail there
        new = with_spans(case([(column(names.hit), value.copy())], None), span_of(value))
        items.append(named(new, names.new(place)))
    return exp.Select(expressions=items, from_=from_table(tree.this.copy()))


def tested_condition(where: exp.Expr | None, name: str) -> exp.Expr:
    """Return ``CASE WHEN condition THEN TRUE ELSE FALSE END AS name``: NULL is not TRUE."""
    condition = exp.Boolean(this=True) if where is None else where.copy()
    found = case([(condition, exp.Boolean(this=True))], exp.Boolean(this=False))
    found.args["ifs"][0].meta["clause"] = "WHERE"
    return named(with_spans(found, span_of(where)), name)


def refuse_calls_over_rows(tree: exp.Expr, context: BindContext) -> None:
    """Refuse OVER and aggregates in a condition or value, but for those of its subqueries: they would go over
    rows that the statement does not change, too. SQL-1062, SQL-1601.
    """
    for aggregate in tree.find_all(FunctionCall):
        if context.is_aggregate(aggregate.name) and not aggregate.args.get("over") and _is_outside(aggregate):
            raise PenstockError(
                "SQL-1062",
                f"{aggregate.name} aggregates rows, and a condition or value here is one of a single row",
                span=span_of(aggregate),
                hint=f"write a subquery: (SELECT {aggregate.name}(..) FROM t)",
                sqlstate="42803",
            )
    for clause in tree.find_all(OverClause):
        if _is_outside(clause):
            raise PenstockError(
                "SQL-1601",
                "OVER in a condition or value of UPDATE, DELETE and MERGE is not supported",
                span=span_of(clause) or span_of(tree),
                hint="write it into the source of MERGE: USING (SELECT .., LAG(a) OVER (..) FROM t) AS s",
                sqlstate="0A000",
            )


def _is_outside(part: exp.Expr) -> bool:
    """Return whether a part of the statement is in none of its subqueries."""
    return part.find_ancestor(exp.Select) is None


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
