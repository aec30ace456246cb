"""MERGE: a full join of the target with the source, and for each pair the first action whose condition holds.

The target's rows are numbered, so that the commit knows the ones that several rows of the source match.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BOOLEAN, INT
from penstock.planner.binder.built_syntax import (
    call,
    case,
    column,
    from_table,
    is_null,
    named,
    number,
    with_columns,
    with_spans,
)
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.ddl.insert import target_fields
from penstock.planner.binder.ddl.row_changes import (
    OwnNames,
    assigned_values,
    chosen,
    column_of,
    new_value,
    own_names,
    refuse_calls_over_rows,
    sink_of,
)
from penstock.planner.binder.scope import Relation
from penstock.planner.expressions.nodes import Call, Expression, Literal
from penstock.planner.logical.projection import Filter
from penstock.planner.logical.sink import DELETED, INSERTED, KEPT, NO_ROW, UPDATED, Sink
from penstock.planner.parser.syntax_nodes import AllColumns, FrameBound, OverClause, span_of
from penstock.planner.statements.nodes import ChangeRows, Name

_FATES = {"UPDATE": UPDATED, "DELETE": DELETED, "INSERT": INSERTED}


@dataclass(frozen=True)
class _Action:
    """One WHEN: its number from 1, and the new values by column. A column of INSERT without one is NULL."""

    number: int
    tree: exp.Expr
    values: dict[str, exp.Expr]

    @property
    def kind(self) -> str:
        return str(self.tree.args["kind"])

    @property
    def matched(self) -> str:
        return str(self.tree.args["matched"])


def merging_sink(statement: ChangeRows, table: CatalogTable, context: BindContext) -> Sink:
    """Return the sink of a MERGE."""
    tree, span = statement.query.tree, statement.target.span
    source = _name_of(tree.args["source"], span)
    target = tree.this.alias or statement.target.text.rpartition(".")[2]
    actions = [
        _Action(number, action, _values(action, table, source, span))
        for number, action in enumerate(tree.args["actions"], 1)
    ]
    _refuse_unreachable(actions)
    for own in (tree.args["on"], *(action.tree for action in actions)):
        refuse_calls_over_rows(own, context)
    given = [(action, name) for action in actions for name in action.values]
    rows = context.query(_rows_of(tree.args["source"], span))
    names = own_names(tree, table.physical_fields, rows.fields)
    query = with_spans(_query(tree, table, (target, source), actions, given, names), span)
    relation = context.with_table(names.table, rows).query(query)
    width = len(table.physical_fields)
    action_of = column_of(relation, width + 2)
    values: list[Expression] = []
    for place, field in enumerate(table.physical_fields):
        whens = [
            (_is(action_of, action.number), _new(relation, width + 4, given, action, field, table, span))
            for action in actions
            if action.kind == "INSERT" or field.name in action.values
        ]
        values.append(chosen(whens, column_of(relation, place), field))
    fate = column_of(relation, width + 3)
    values += [fate, column_of(relation, width)]
    there = Filter(relation.plan, _call("not_equal", fate, _number(NO_ROW)))
    inserts = any(action.kind == "INSERT" for action in actions)
    updated = {name for action in actions for name in action.values}
    lone = actions[0].tree
    return sink_of(
        statement,
        table,
        there,
        values,
        names,
        keyed=None if inserts else tuple(updated),
        lone_delete=len(actions) == 1 and actions[0].kind == "DELETE" and not lone.args.get("condition"),
    )


def _query(
    tree: exp.Expr,
    table: CatalogTable,
    aliases: tuple[str, str],
    actions: list[_Action],
    given: list[tuple[_Action, str]],
    names: OwnNames,
) -> exp.Expr:
    """Return the query of the pairs: the columns of the target, the number of its row, whether there is a row
    of the source, the action, the fate, and the new values of each action.
    """
    target, source = aliases
    items: list[exp.Expr] = [column(target, field.name) for field in table.physical_fields]
    items += [
        column(target, names.row),
        column(source, names.source),
        named(_action_of_pair(actions, names), names.action),
    ]
    # an action that does nothing keeps the row, if there is one
    kept = case([(is_null(column(names.row)), number(NO_ROW))], number(KEPT))
    fates = [
        (_takes(action, names), number(_FATES[action.kind])) for action in actions if action.kind in _FATES
    ]
    items.append(named(case(fates, kept), names.fate))
    for place, (action, name) in enumerate(given):
        # of other pairs a value is not computed: it may fail there
        value = action.values[name]
        new = with_spans(case([(_takes(action, names), value.copy())], None), span_of(value))
        items.append(named(new, names.new(place)))
    numbered = with_columns(from_table(tree.this.copy()), named(_row_number(), names.row), name=target)
    marked = with_columns(from_table(names.table), named(exp.Boolean(this=True), names.source), name=source)
    join = exp.Join(this=marked, kind="FULL", on=tree.args["on"].copy())
    return exp.Select(expressions=items, from_=from_table(numbered), joins=[join])


def _action_of_pair(actions: list[_Action], names: OwnNames) -> exp.Expr:
    """Return the number of the action of a pair, 0 for none."""
    whens: dict[str, list[tuple[exp.Expr, exp.Expr]]] = {"both": [], "source": [], "target": []}
    for action in actions:
        condition = action.tree.args.get("condition")
        test = exp.Boolean(this=True) if condition is None else condition.copy()
        whens[action.matched].append((test, number(action.number)))
    both, alone, missing = (case(some, number(0)) for some in whens.values())
    return case([(is_null(column(names.row)), missing), (is_null(column(names.source)), alone)], both)


def _takes(action: _Action, names: OwnNames) -> exp.Expr:
    return exp.EQ(this=column(names.action), expression=number(action.number))


def _row_number() -> exp.Expr:
    """Return the number of a row in any order, from 1. It is a BIGINT, which ROW_NUMBER is not."""
    window = OverClause(
        partition=[],
        order=[exp.Ordered(this=exp.Null(), desc=False, nulls_first=True)],
        unit="ROWS",
        first=FrameBound(following=False),
        last=FrameBound(current=True),
    )
    return call("count", star=True, over=window)


def _values(action: exp.Expr, table: CatalogTable, source: str, span: Span) -> dict[str, exp.Expr]:
    """Return the new values of an action by column, in the order of the text. ``*`` takes the columns of the
    source that have the names of the target's.
    """
    where = span_of(action) or span
    if action.args.get("every"):
        return {field.name: with_spans(column(source, field.name), where) for field in table.physical_fields}
    if action.args["kind"] == "UPDATE":
        return assigned_values(action.args.get("assignments") or (), table, span)
    if action.args["kind"] != "INSERT":
        return {}
    names = tuple(Name(one.name, span_of(one) or span) for one in action.args.get("columns") or ())
    fields, values = target_fields(names, table, span), action.args["values"].expressions
    if len(fields) != len(values):
        raise PenstockError(
            "SQL-1090",
            f"INSERT of MERGE has {len(values)} value{'s' if len(values) != 1 else ''} for {len(fields)} "
            f"column{'s' if len(fields) != 1 else ''}",
            span=span_of(action.args["values"]),
            hint=f"the columns are {', '.join(field.name for field in fields)}",
            sqlstate="42601",
        )
    return {field.name: value for field, value in zip(fields, values, strict=True)}


def _new(
    relation: Relation,
    first: int,
    given: list[tuple[_Action, str]],
    action: _Action,
    field: Field,
    table: CatalogTable,
    span: Span,
) -> Expression:
    """Return the new value that an action gives a column."""
    value = action.values.get(field.name)
    if value is not None:
        return new_value(relation, first + given.index((action, field.name)), field, value)
    if not field.nullable:
        raise PenstockError(
            "SQL-1093",
            f'column "{field.name}" of {table.name} is NOT NULL and is given no value',
            span=span_of(action.tree) or span,
            hint=f"add {field.name} to the columns of INSERT",
            sqlstate="23502",
        )
    return Literal(field.type, True, value=None)


def _refuse_unreachable(actions: list[_Action]) -> None:
    """Refuse an action behind one of the same kind of pair that has no condition. SQL-1001."""
    ended: set[str] = set()
    for action in actions:
        if action.matched in ended:
            raise PenstockError(
                "SQL-1001",
                "this action is never taken: the one before it has no condition",
                span=span_of(action.tree),
                hint="write WHEN .. AND condition THEN for all of them but the last",
                sqlstate="42601",
            )
        if action.tree.args.get("condition") is None:
            ended.add(action.matched)


def _rows_of(source: exp.Expr, span: Span) -> exp.Expr:
    query = exp.Select(expressions=[AllColumns()], from_=from_table(source.copy()))
    return with_spans(query, span_of(source) or span)


def _name_of(source: exp.Expr, span: Span) -> str:
    """Return the name by which a statement reads the source. SQL-1601 for one without a name."""
    name = source.alias or (source.name.rpartition(".")[2] if isinstance(source, exp.Table) else "")
    if not name:
        raise PenstockError(
            "SQL-1601",
            "the source of MERGE needs a name",
            span=span_of(source) or span,
            hint="write USING (SELECT ..) AS s",
            sqlstate="0A000",
        )
    return name


def _is(value: Expression, number: int) -> Expression:
    return _call("equal", value, _number(number))


def _call(function: str, *args: Expression) -> Expression:
    return Call(BOOLEAN, False, function=function, args=args)


def _number(value: int) -> Expression:
    return Literal(INT, False, value=value)
