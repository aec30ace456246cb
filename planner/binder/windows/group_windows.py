"""Windows named in GROUP BY: ``TUMBLE(ts, i)``, ``HOP``, ``SESSION`` with ``TUMBLE_START`` and so on, and
Spark's ``window`` and ``session_window``.

``with_group_window`` rewrites the SELECT to columns of a window table. ``windowed`` puts that table over
FROM: each row once per window, the window's columns at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.scope import FromClause, Relation, Scope, ScopeColumn
from penstock.planner.binder.windows.window_functions import (
    WindowArguments,
    attach_time_attribute,
    check_window_time,
    windowing,
)
from penstock.planner.expressions.nodes import Column
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import WINDOW_FUNCTIONS
from penstock.planner.parser.syntax_nodes import (
    FunctionCall,
    GroupingSets,
    IntervalLiteral,
    Reference,
    set_span,
    span_of,
)

TABLE = "$window"
"""The table name of the window's columns. No SQL text can spell it."""

# The window functions of GROUP BY, Flink's and Spark's, with the windowing function of each.
_KINDS = {
    "tumble": "TUMBLE",
    "hop": "HOP",
    "session": "SESSION",
    "window": "TUMBLE",
    "session_window": "SESSION",
}
_SPARK = ("window", "session_window")
_PARTS = {"start": "window_start", "end": "window_end", "rowtime": "window_time"}


def with_group_window(tree: exp.Select) -> exp.Select:
    """Return a SELECT whose GROUP BY window is replaced by reads of the window's columns. Its argument
    ``group_window`` is the window call. Other queries are returned as they are.
    """
    group = tree.args.get("group")
    # GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), k
    call = None if group is None else _window_call(group)
    if call is None:
        return tree
    tree = tree.copy()
    tree.set("group", _keys_replaced(tree.args["group"], call))
    # Every clause behind GROUP BY may read the window.
    for clause in ("expressions", "having", "qualify", "order"):
        value = tree.args.get(clause)
        if isinstance(value, list):
            tree.set(clause, [item.transform(_reader(call)) for item in value])
        elif value is not None:
            tree.set(clause, value.transform(_reader(call)))
    tree.set("group_window", call)
    return tree


def _window_call(group: exp.Expr) -> FunctionCall | None:
    # the window of a subquery is its own
    nodes = group.walk(prune=lambda node: isinstance(node, exp.Query))
    calls = [node for node in nodes if isinstance(node, FunctionCall) and str(node.this).lower() in _KINDS]
    # The same window may occur in several grouping sets; two different ones may not.
    for other in calls[1:]:
        if not _same(other, calls[0]):
            hint = (
                "window the rows in FROM: TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), ..)), one subquery for "
                "each window"
            )
            raise PenstockError(
                "SQL-1707",
                "GROUP BY names two different windows",
                span=span_of(other),
                hint=hint,
                sqlstate="0A000",
            )
    return calls[0] if calls else None


def _same(one: FunctionCall, other: FunctionCall) -> bool:
    return str(one.this).lower() == str(other.this).lower() and one.expressions == other.expressions


def _keys_replaced(group: exp.Expr, call: FunctionCall) -> exp.Expr:
    """Replace the window in GROUP BY by its start and its end."""

    def bounds(key: exp.Expr) -> list[exp.Expr]:
        # one key of the text becomes two: a window is its start and its end
        if isinstance(key, FunctionCall) and _same(key, call):
            return [_column("window_start", key), _column("window_end", key)]
        return [key]

    return _map_keys(group, bounds)


def _with_window_time(group: exp.Expr) -> exp.Expr:
    """Group by the time of a window beside its end: groups that no watermark closes do not append it."""

    def with_time(key: exp.Expr) -> list[exp.Expr]:
        return [key, _column("window_time", key)] if key == _column("window_end", key) else [key]

    return _map_keys(group, with_time)


def _map_keys(group: exp.Expr, mapped: Callable[[exp.Expr], list[exp.Expr]]) -> exp.Expr:
    """Return a copy of GROUP BY, each of whose keys is replaced by those that ``mapped`` returns."""

    def replaced(keys: list[exp.Expr]) -> list[exp.Expr]:
        parts: list[exp.Expr] = []
        for key in keys:
            # ((TUMBLE(..), k), k): keys inside grouping sets
            if isinstance(key, exp.Tuple):
                parts.append(with_span_of(exp.Tuple(expressions=replaced(key.expressions)), key))
            elif isinstance(key, GroupingSets):
                changed = key.copy()
                changed.set("expressions", replaced(key.expressions))
                parts.append(changed)
            else:
                parts += mapped(key)
        return parts

    changed = group.copy()
    changed.set("expressions", replaced(group.expressions))
    return changed


def with_span_of(node: exp.Expr, other: exp.Expr) -> exp.Expr:
    """Set the span of a node to that of another; return the node."""
    span = span_of(other)
    return node if span is None else set_span(node, span.start, span.end)


def _column(name: str, where: exp.Expr) -> exp.Expr:
    parts = [with_span_of(exp.Identifier(this=part, quoted=True), where) for part in (TABLE, name)]
    return with_span_of(Reference(expressions=parts), where)


def _window_row(call: FunctionCall) -> exp.Expr:
    """Return the row of a window's start and end."""
    fields = [
        with_span_of(
            exp.Alias(this=_column(column, call), alias=with_span_of(exp.to_identifier(name), call)), call
        )
        for name, column in (("start", "window_start"), ("end", "window_end"))
    ]
    return with_span_of(FunctionCall(this="struct", expressions=fields), call)


def _reader(call: FunctionCall) -> Callable[[exp.Expr], exp.Expr]:
    """Return a function that replaces reads of the window, such as ``TUMBLE_START``, by its columns.
    Subqueries are left alone.
    """
    function = str(call.this).lower()

    def replaced(node: exp.Expr) -> exp.Expr:
        if (
            isinstance(node, Reference)
            and function in _SPARK
            and len(node.expressions) == 2
            and node.find_ancestor(exp.Query) is None
        ):
            # Spark: window.start, window.end
            table, part = (identifier.name.lower() for identifier in node.expressions)
            return _column(part, node) if table == function and part in ("start", "end") else node
        if not isinstance(node, FunctionCall) or node.find_ancestor(exp.Query) is not None:
            return node
        # SELECT TUMBLE(ts, ..): a window is two columns, not a value
        name = str(node.this).lower()
        # Spark: SELECT window(ts, '5 minutes') AS w is a row of both
        if name == function and function in _SPARK and node.expressions == call.expressions:
            return _window_row(node)
        if name == function and function in _KINDS:
            raise PenstockError(
                "SQL-1708",
                f"the window {name} is no value by itself",
                span=span_of(node),
                hint=f"select {function}.start and {function}.end"
                if function in _SPARK
                else f"select {name}_start(..) and {name}_end(..)",
                sqlstate="42803",
            )
        # Spark: window_time(window)
        if name == "window_time" and function in _SPARK and not node.expressions:
            return _column("window_time", node)
        # Flink: TUMBLE_START(ts, i), TUMBLE_ROWTIME(ts, i), TUMBLE_PROCTIME(ts, i)
        kind, _, part = name.partition("_")
        if kind != function or part not in (*_PARTS, "proctime"):
            return node
        # The arguments identify the window, so they must repeat those of GROUP BY.
        if node.expressions != call.expressions:
            hint = f"repeat the arguments of {kind} in GROUP BY"
            raise PenstockError(
                "SQL-1708",
                f"{name} reads another window than GROUP BY names",
                span=span_of(node),
                hint=hint,
                sqlstate="42803",
            )
        return (
            with_span_of(FunctionCall(this="proctime", expressions=[]), node)
            if part == "proctime"
            else _column(_PARTS[part], node)
        )

    return replaced


def window_arguments(call: FunctionCall) -> tuple[str, dict[str, exp.Expr]]:
    """Return the windowing function of a call in GROUP BY and its arguments by name. Raises SQL-1102 for a
    wrong number of them.
    """
    function = str(call.this).lower()
    arguments = list(call.expressions)
    names = {
        "tumble": ("TIMECOL", "SIZE", "OFFSET"),
        "hop": ("TIMECOL", "SLIDE", "SIZE", "OFFSET"),
        "session": ("TIMECOL", "GAP"),
        "window": ("TIMECOL", "SIZE", "SLIDE", "OFFSET"),
        "session_window": ("TIMECOL", "GAP"),
    }[function]
    least = 3 if function == "hop" else 2
    if not least <= len(arguments) <= len(names):
        usage = {
            "hop": "HOP(ts, slide, size)",
            "window": "window(ts, '10 minutes')",
            "session_window": "session_window(ts, '5 minutes')",
        }
        hint = f"write {usage.get(function, f'{function.upper()}(ts, INTERVAL .. MINUTE)')}"
        raise PenstockError(
            "SQL-1102",
            f"{function} in GROUP BY takes a time column and its lengths",
            span=span_of(call),
            hint=hint,
            sqlstate="42883",
        )
    # names of windowing functions in FROM, so that both forms are bound by the same code
    values = dict(zip(names, arguments, strict=False))
    if function in _SPARK:
        values = {name: value if name == "TIMECOL" else _interval(value) for name, value in values.items()}
    # Spark's window with a slide is HOP.
    kind = "HOP" if function == "window" and "SLIDE" in values else _KINDS[function]
    return kind, values


def _interval(value: exp.Expr) -> exp.Expr:
    """Read Spark's string length, with or without the word INTERVAL, as an interval."""
    if not (isinstance(value, exp.Literal) and value.is_string):
        return value
    text = value.name.strip()
    text = text[len("interval") :] if text.lower().startswith("interval ") else text
    return with_span_of(IntervalLiteral(this=text.strip()), value)


def windowed(
    source: FromClause, tree: exp.Select, fields: Sequence[Field], context: BindContext
) -> FromClause:
    """Return FROM under the window of GROUP BY. Raises SQL-1701 for a time that is an expression.

    GROUP BY of ``tree``, a copy that the window made, is changed where the watermark does not close windows.
    """
    call = tree.args["group_window"]
    kind, values = window_arguments(call)
    binder = ExpressionBinder(source.scope, context, kind)
    time = binder.bind(values["TIMECOL"])
    if not isinstance(time, Column):
        hint = (
            f"add a computed column with a WATERMARK to the table, or write {kind}(ts, ..) with its "
            "time attribute"
        )
        raise PenstockError(
            "SQL-1701",
            f"{kind} takes a time attribute, not an expression",
            span=time.span,
            hint=hint,
            sqlstate="42804",
        )
    rows = Relation(source.plan, tuple(fields))
    check_window_time(fields[time.index], rows, context, time.span)
    merging = WINDOW_FUNCTIONS[kind].merging
    # A session belongs to one value of the other keys; other windows do not depend on keys.
    keys = _partition(tree, binder) if merging else ()
    window = windowing(WindowArguments(kind, values, span_of(call)), time.index, keys, context)
    timed = attach_time_attribute(rows, time.index)
    plan = WindowTable(timed.plan, window, timed.fields[time.index].is_time)
    if not plan.closes:
        tree.set("group", _with_window_time(tree.args["group"]))
    # Processing-time and session windows emit rows after their event time.
    shown = source.scope if timed is rows and not merging else source.scope.without_roles()
    return FromClause(plan, Scope(shown.columns + _columns(plan)))


def _columns(plan: WindowTable) -> tuple[ScopeColumn, ...]:
    # WindowTable appends start, end and time, in this order
    first = len(plan.input.schema)
    # The columns are not part of *; Spark's names for them are aliases of the same columns.
    own = tuple(ScopeColumn(first + i, plan.schema[first + i], TABLE, merged=True) for i in range(3))
    spark = (
        replace(own[0], field=own[0].field.renamed("start")),
        replace(own[1], field=own[1].field.renamed("end")),
    )
    return spark + own


def _partition(tree: exp.Select, binder: ExpressionBinder) -> tuple[int, ...]:
    """Return the positions of the other keys of GROUP BY, which partition sessions. Raises SQL-1706 for a key
    that is no column.
    """
    columns = []
    for key in tree.args["group"].expressions:
        # the window's own start and end
        if isinstance(key, Reference) and key.expressions[0].name == TABLE:
            continue
        bound = None if isinstance(key, GroupingSets | exp.Literal) else binder.bind(key)
        if not isinstance(bound, Column):
            hint = "compute the key in a subquery in FROM and group by its column"
            raise PenstockError(
                "SQL-1706",
                "sessions in GROUP BY go with keys that are columns",
                span=span_of(key),
                hint=hint,
                sqlstate="0A000",
            )
        columns.append(bound.index)
    return tuple(dict.fromkeys(columns))
