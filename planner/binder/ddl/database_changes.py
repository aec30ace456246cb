"""UPDATE and DELETE of a table in a database, which tests the condition and computes the new values."""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.planner.binder.built_syntax import from_table, named, with_spans
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.ddl.row_changes import (
    assigned_values,
    new_value,
    own_names,
    refuse_calls_over_rows,
    tested_condition,
)
from penstock.planner.binder.scope import Relation
from penstock.planner.expressions.nodes import Case, Column, Expression
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import RowChanges, Sink
from penstock.planner.parser.syntax_nodes import span_of
from penstock.planner.statements.nodes import ChangeRows


def database_sink(statement: ChangeRows, table: CatalogTable, context: BindContext) -> Sink:
    """Return the sink of an UPDATE or DELETE: the new values of SET, over the rows that WHERE keeps."""
    tree, span = statement.query.tree, statement.target.span
    where, kind = tree.args.get("where"), tree.args["kind"]
    assigned = assigned_values(tree.args.get("assignments") or (), table, span)
    for own in (where, *assigned.values()):
        if own is not None:
            refuse_calls_over_rows(own, context)
            _refuse_subqueries(own, table, kind)
    names = own_names(tree, table.physical_fields)
    items: list[exp.Expr] = [tested_condition(where, names.hit)]
    items += [named(value.copy(), names.new(place)) for place, value in enumerate(assigned.values())]
    query = exp.Select(expressions=items, from_=from_table(tree.this.copy()))
    relation = context.query(with_spans(query, span))
    scan, (tested, *_) = _over_scan(
        relation.plan, [Column(f.type, f.nullable, index=i) for i, f in enumerate(relation.fields)]
    )
    assert isinstance(tested, Case)
    plan: LogicalPlan = scan if where is None else Filter(scan, tested.whens[0][0])
    if assigned:
        values = _new_values(relation, table, assigned)
        plan = Project(plan, tuple(_over_scan(relation.plan, values)[1]), tuple(assigned))
    return Sink(plan, table, span, changes=RowChanges(kind, table))


def _new_values(relation: Relation, table: CatalogTable, assigned: dict[str, exp.Expr]) -> list[Expression]:
    fields = {field.name: field for field in table.physical_fields}
    values = []
    for place, (name, written) in enumerate(assigned.items(), 1):
        value = new_value(relation, place, fields[name], written)
        if value.nullable and not fields[name].nullable:
            raise PenstockError(
                "SQL-1093",
                f'column "{name}" is NOT NULL, and its new value may be NULL',
                span=span_of(written),
                hint="write COALESCE(.., ..) around it",
                sqlstate="23502",
            )
        values.append(value)
    return values


def _over_scan(plan: LogicalPlan, expressions: list[Expression]) -> tuple[Scan, list[Expression]]:
    """Return the scan below a plan of projections, and expressions over the plan as some over the scan."""
    while not isinstance(plan, Scan):
        if isinstance(plan, Project):
            below = plan.expressions
            expressions = [
                one.transform(lambda node: below[node.index] if isinstance(node, Column) else node)  # noqa: B023
                for one in expressions
            ]
        # a watermark adds no column and takes none
        (plan,) = plan.inputs
    return plan, expressions


def _refuse_subqueries(tree: exp.Expr, table: CatalogTable, kind: str) -> None:
    inner = tree.find(exp.Select, exp.SetOperation, exp.Subquery)
    if inner is None:
        return
    raise PenstockError(
        "SQL-1601",
        f"a subquery in {kind} of {table.name} is not supported: {table.connector} carries it out, and "
        "a subquery may read other tables",
        span=span_of(inner) or span_of(tree),
        hint="SELECT the rows first, and name them by their keys; or run the statement in the database",
        sqlstate="0A000",
    )
