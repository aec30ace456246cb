"""Calls of process table functions in FROM: ``f(input => TABLE t PARTITION BY k, uid => 'x')``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from penstock.catalog.coercion import implicit_cast
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.process_table_functions import PythonProcessTable, TableDeclaration
from penstock.catalog.types import DataType
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.host_values import host_literal
from penstock.planner.binder.scope import Relation, Scope
from penstock.planner.expressions.expression_properties import is_deterministic
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import Expression, Literal
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.process_table import ProcessTable
from penstock.planner.logical.windows import WINDOW_FUNCTIONS, window_functions_text
from penstock.planner.parser.syntax_nodes import (
    Descriptor,
    NamedArgument,
    ProcessTableCall,
    TableArgument,
    consume,
    span_of,
)

ON_TIME, UID = "on_time", "uid"

BindSource = Callable[[exp.Expr, BindContext], Any]


def bind_process_table(tree: ProcessTableCall, context: BindContext, bind_source: BindSource) -> Relation:
    """Return the rows of a process table function.

    Raises SQL-1101 for a name that is none, SQL-1102 and SQL-1103 for its arguments, and SQL-1733 for tables
    that are not partitioned or timed as it declares.
    """
    consume(tree, "this", "expressions", "alias")
    function = _function(tree, context)
    values = _arguments(tree, function)
    plans: list[LogicalPlan] = []
    keys: list[tuple[int, ...]] = []
    orders: list[tuple[tuple[int, bool, bool], ...]] = []
    scopes: list[Scope] = []
    for name, declared in function.tables:
        data = _needed(values, name, function, tree)
        if not isinstance(data, TableArgument):
            message = f"{function.name}: the argument {name} is a table"
            raise _wrong_argument(message, span_of(data), function)
        consume(data, "this", "partition", "order")
        source = bind_source(data.this, context)
        plans.append(source.relation.plan)
        scopes.append(Scope.of(source.relation, None))
        keys.append(_partition(function, name, declared, data, scopes[-1]))
        orders.append(_order(function, name, declared, data, scopes[-1]))
    _check_alike(function, plans, keys, span_of(tree))
    node = ProcessTable(
        tuple(plans),
        function,
        tuple(tuple(column.field.name for column in scope.columns) for scope in scopes),
        tuple(keys),
        tuple(_constant(values, name, kind, function, tree, context) for name, kind in function.arguments),
        _times(values.get(ON_TIME), function, scopes, tree),
        tuple(tuple(i for i, _, _ in order) for order in orders) if any(orders) else (),
        _uid(values.get(UID), function, context),
        span_of(tree),
    )
    # the default, ascending with NULLs first, is written nowhere: older checkpoints have no other
    if any((descending, nulls) != (False, True) for order in orders for _, descending, nulls in order):
        node = replace(
            node,
            descending=tuple(tuple(descending for _, descending, _ in order) for order in orders),
            nulls_first=tuple(tuple(nulls for _, _, nulls in order) for order in orders),
        )
    return Relation(node, node.schema.fields)


def _function(tree: ProcessTableCall, context: BindContext) -> PythonProcessTable:
    name, span = tree.this.name, span_of(tree.this)
    function = context.catalog.functions.find(name, span)
    if isinstance(function, PythonProcessTable):
        return function
    if function is not None:
        message = f"{name} takes values, and is called with a table"
        hint = f"write {function.usage}, or LATERAL TABLE({function.usage}) if it returns rows"
        raise PenstockError("SQL-1107", message, span=span, hint=hint, sqlstate="42809")
    # TUMBEL(TABLE t, ..): a misspelt window
    ours = [e.name for e in context.catalog.functions.entries() if isinstance(e.function, PythonProcessTable)]
    hint = (
        did_you_mean(name, ours)
        or did_you_mean(name.upper(), (*WINDOW_FUNCTIONS, "SNAPSHOT"))
        or f"the table functions are {window_functions_text('and')}"
    )
    message = f'table function "{name}" does not exist'
    raise PenstockError("SQL-1101", message, span=span, hint=hint, sqlstate="42883")


def _arguments(tree: ProcessTableCall, function: PythonProcessTable) -> dict[str, exp.Expr]:
    """Return the arguments by name in lower case. By position tables come first, then constants, ``on_time``
    and ``uid``.
    """
    declared = [name for name, _ in (*function.tables, *function.arguments)]
    order = [*(name.lower() for name in declared), ON_TIME, UID]
    values: dict[str, exp.Expr] = {}
    for position, argument in enumerate(tree.expressions):
        span = span_of(argument)
        if isinstance(argument, NamedArgument):
            name, value = str(argument.this).lower(), argument.args["expression"]
            if name not in order:
                hint = did_you_mean(name, [*declared, ON_TIME, UID], others=True)
                message = f"{function.name} has no argument {name}"
                raise PenstockError("SQL-1102", message, span=span, hint=hint, sqlstate="42883")
        elif position >= len(order):
            raise _wrong_argument(f"{function.name} takes at most {len(order)} arguments", span, function)
        else:
            name, value = order[position], argument
        if name in values:
            raise _wrong_argument(f"the argument {name} is given twice", span, function)
        values[name] = value
    return values


def _needed(
    values: dict[str, exp.Expr], name: str, function: PythonProcessTable, tree: ProcessTableCall
) -> exp.Expr:
    if name.lower() not in values:
        raise _wrong_argument(f"{function.name} needs the argument {name}", span_of(tree), function)
    return values[name.lower()]


def _partition(
    function: PythonProcessTable, name: str, declared: TableDeclaration, data: TableArgument, scope: Scope
) -> tuple[int, ...]:
    columns = data.args.get("partition") or []
    if columns and not declared.set_semantics:
        hint = f"leave it out, or declare {name} with semantics='set'"
        message = f"{function.name} takes the rows of {name} one by one, without PARTITION BY"
        raise _refused(message, span_of(columns[0]), hint)
    if not columns and declared.set_semantics and not declared.optional_partition_by:
        hint = (
            f"write {name} => TABLE t PARTITION BY k; to make one partition of all rows, declare {name} "
            "with optional_partition_by=True"
        )
        raise _refused(f"{function.name} needs PARTITION BY for its table {name}", span_of(data), hint)
    return tuple(dict.fromkeys(scope.resolve([column])[0].index for column in columns))


def _order(
    function: PythonProcessTable, name: str, declared: TableDeclaration, data: TableArgument, scope: Scope
) -> tuple[tuple[int, bool, bool], ...]:
    """Return the columns of ORDER BY: an event time, by which rows are complete, and others behind it. Each
    with whether it descends, and whether its NULLs come first.
    """
    order = data.args.get("order") or []
    if not order:
        return ()
    columns = [scope.resolve([column.this])[0] for column in order]
    if not columns[0].field.is_event_time:
        times = [one.field.name for one in scope.columns if one.field.is_event_time]
        message = f"ORDER BY in {function.name} begins with the event time of {name}"
        before = f"write ORDER BY {times[0]}, {order[0].this.name}; or" if times else ""
        hint = f"{before} keep the rows in a list state, and process them in on_timer".strip()
        raise _refused(message, span_of(order[0]), hint, "SQL-1601")
    # the first row of such an order is the last one to come
    if order[0].args.get("desc"):
        raise _refused(
            f"ORDER BY {order[0].this.name} DESC in {function.name}: rows come in order of time",
            span_of(order[0]),
            f"write ORDER BY {order[0].this.name}; columns behind it may be DESC",
            "SQL-1601",
        )
    if not declared.set_semantics or declared.updates:
        what = "accepts retractions" if declared.updates else "has no partitions"
        hint = f"leave ORDER BY out, or declare {name} with semantics='set' and without updates"
        raise _refused(f"ORDER BY in {function.name}: its table {name} {what}", span_of(order[0]), hint)
    found: dict[int, tuple[int, bool, bool]] = {}
    for column, key in zip(columns, order, strict=True):
        found.setdefault(column.index, (column.index, bool(key.args["desc"]), bool(key.args["nulls_first"])))
    return tuple(found.values())


def _check_alike(
    function: PythonProcessTable,
    plans: Sequence[LogicalPlan],
    keys: Sequence[tuple[int, ...]],
    span: Span | None,
) -> None:
    """Refuse tables partitioned by columns of different types: their rows would never meet."""
    kinds = [[str(plan.schema[i].type) for i in k] for plan, k in zip(plans, keys, strict=True)]
    for (name, _), one in zip(function.tables, kinds, strict=True):
        if one != kinds[0]:
            first = function.tables[0][0]
            message = (
                f"{function.name}: {first} is partitioned by ({', '.join(kinds[0])}), {name} by "
                f"({', '.join(one)})"
            )
            hint = "partition all tables by columns of the same types: write TABLE (SELECT CAST(k AS ..) ..)"
            raise _refused(message, span, hint)


def _constant(
    values: dict[str, exp.Expr],
    name: str,
    kind: DataType,
    function: PythonProcessTable,
    tree: ProcessTableCall,
    context: BindContext,
) -> Expression:
    defaults = dict(function.defaults)
    if name.lower() not in values and name in defaults:
        # the declaration has checked it
        return coerced(host_literal(defaults[name]) or Literal(kind, True, value=None), kind)
    given = _needed(values, name, function, tree)
    if isinstance(given, TableArgument | Descriptor):
        raise _wrong_argument(f"{function.name}: the argument {name} is a {kind}", span_of(given), function)
    # no column is visible: an argument has one value for the whole query
    bound = ExpressionBinder(Scope(), context, f"the arguments of {function.name}").bind(given)
    if not implicit_cast(bound.type, kind):
        message = f"{function.name}: {name} is {bound.type}, wanted {kind}"
        hint = f"write CAST(.. AS {kind}) if that is meant"
        raise PenstockError("SQL-1103", message, span=span_of(given), hint=hint, sqlstate="42804")
    if not is_deterministic(bound):
        message = f"{function.name}: {name} has another value each time it is computed"
        raise _refused(message, span_of(given), "write a constant")
    return coerced(bound, kind)


def _times(
    descriptor: exp.Expr | None, function: PythonProcessTable, scopes: Sequence[Scope], tree: ProcessTableCall
) -> tuple[int, ...]:
    """Return the time column of each table: one name for all of them, or one name for each."""
    usage = "write on_time => DESCRIPTOR(ts)"
    if descriptor is None:
        if any(table.requires_time for _, table in function.tables):
            raise _refused(f"{function.name} needs on_time", span_of(tree), usage)
        return ()
    names = descriptor.expressions if isinstance(descriptor, Descriptor) else []
    if len(names) not in (1, len(scopes)):
        message = "on_time names one column of all tables, or one of each"
        raise _refused(message, span_of(descriptor), usage)
    columns = []
    for scope, identifier in zip(scopes, names * len(scopes) if len(names) == 1 else names, strict=True):
        column, _ = scope.resolve([identifier])
        if not column.field.is_event_time:
            times = [one.field.name for one in scope.columns if one.field.is_event_time]
            hint = f"the event time is {times[0]}" if times else "give the table a WATERMARK"
            message = f'on_time: "{identifier.name}" is no event-time column'
            raise _refused(message, span_of(identifier), hint)
        columns.append(column)
    kinds = list(dict.fromkeys(str(column.field.type) for column in columns))
    if len(kinds) > 1:
        message = f"on_time: the columns are of the types {' and '.join(kinds)}"
        raise _refused(message, span_of(descriptor), "give the tables times of one type")
    return tuple(column.index for column in columns)


def _uid(tree: exp.Expr | None, function: PythonProcessTable, context: BindContext) -> str | None:
    if tree is None:
        return None
    bound = ExpressionBinder(Scope(), context, "uid").bind(tree)
    value = bound.value if isinstance(bound, Literal) else None
    if not isinstance(value, str) or not value.strip():
        message = f"{function.name}: uid is a text that is written down"
        raise _refused(message, span_of(tree), f"write uid => 'my-{function.name.lower()}'")
    return value


def _wrong_argument(message: str, span: Span | None, function: PythonProcessTable) -> PenstockError:
    return PenstockError("SQL-1102", message, span=span, hint=f"write {function.usage}", sqlstate="42883")


def _refused(message: str, span: Span | None, hint: str, code: str = "SQL-1733") -> PenstockError:
    return PenstockError(code, message, span=span, hint=hint, sqlstate="0A000")
