"""OVER: collects the calls of the select list, projects their partition keys, and builds one node for all
calls of equal partition, order and frame.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from sqlglot import exp

from penstock.catalog.coercion import is_orderable
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.functions.registry import function_names
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field, Role
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    INT,
    Variant,
    holds,
)
from penstock.planner.binder.aggregate_calls import bind_aggregate_call
from penstock.planner.binder.composed_calls import composed
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.window_frames import (
    FRAMELESS,
    bind_frame,
    check_frame_of_rank,
    order_with_distances,
)
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import (
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
    SortKey,
    expression_role,
    is_processing_time,
)
from penstock.planner.logical.over import (
    NEIGHBOURS,
    OVER_ONLY,
    PLACES,
    RANKS,
    RUNNING,
    Frame,
    FrameUnit,
    Over,
    nth_of,
    settled_roles,
)
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.time_attributes import ProcessingTime
from penstock.planner.logical.windows import AttachedWindow
from penstock.planner.parser.syntax_nodes import (
    FunctionCall,
    consume,
    span_of,
)

# Clauses of a call that OVER does not support yet: (word in the error, hint).
_NOT_OVER = {
    "distinct": ("DISTINCT", "GROUP BY the values first, in a subquery"),
    "filter": ("FILTER", "write CASE WHEN .. THEN x END inside the call"),
    "order": ("ORDER BY inside a call", "order the rows in OVER"),
    "within": ("WITHIN GROUP", "write percentile(x, p), or order the rows in OVER"),
}


@dataclass(frozen=True)
class OverResult(Expression):
    """A placeholder for the result of the ``index``-th call with OVER. It exists while the select list is
    bound and never leaves the binder.
    """

    index: int = 0


@dataclass(frozen=True)
class OverCall:
    """A bound call with OVER: its partition, order and frame, all over the input of the select list.
    ``frame`` is None for functions that ignore frames.
    """

    call: AggregateCall
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    frame: Frame | None

    def map(self, rewrite: Callable[[Expression], Expression]) -> OverCall:
        """Return the call with ``rewrite`` applied to every expression in it."""
        order = tuple(replace(key, expression=rewrite(key.expression)) for key in self.order)
        return OverCall(
            self.call.map(rewrite), tuple(rewrite(key) for key in self.partition), order, self.frame
        )


@dataclasses.dataclass
class OverList:
    """The distinct calls with OVER of one SELECT, in the order in which the binder meets them."""

    calls: list[OverCall] = field(default_factory=list)

    def add(self, call: FunctionCall, binder: ExpressionBinder) -> Expression:
        """Bind a call with OVER over the input rows and return a placeholder for its result."""
        clauses = ("distinct", "star", "order", "within", "nulls", "from_last", "filter", "over")
        consume(call, "this", "expressions", *clauses)
        clause = call.args["over"]
        check_frame_of_rank(clause, str(call.this).lower())
        # NTILE and others are expressions of calls with OVER
        whole = composed(call, binder, lambda part: self.add(part, binder))
        if whole is not None:
            return whole
        # SUM(ROW_NUMBER() OVER ..) OVER .. is refused; SUM(SUM(x)) OVER .. is not
        known = {
            name: expression
            for name, expression in binder.aliases.items()
            if not any(isinstance(node, OverResult) for node in expression.walk())
        }
        inner = replace(binder, clause="OVER", windows=None, aliases=known)
        # PARTITION BY compares keys, so their type must be comparable.
        partition = tuple(inner.bind(node) for node in clause.args["partition"])
        for key, node in zip(partition, clause.args["partition"], strict=True):
            if not is_orderable(key.type):
                raise PenstockError(
                    "SQL-1103",
                    f"PARTITION BY cannot compare {key.type}",
                    hint="partition by a value in it: v:name::STRING" if holds(key.type, Variant) else None,
                    span=span_of(node),
                    sqlstate="42804",
                )
        keys = tuple(_sort_key(node, inner) for node in clause.args["order"])
        order, scale = order_with_distances(keys, clause, inner.call)
        bound = _call(call, inner)
        # Ranks and neighbours are defined by the order alone; ROW_NUMBER breaks its ties by all columns.
        if bound.function in FRAMELESS - {"row_number"} and not order:
            hint = "write OVER (PARTITION BY .. ORDER BY ..)"
            raise PenstockError(
                "SQL-1065",
                f"{bound.function} needs an ORDER BY",
                span=span_of(clause),
                hint=hint,
                sqlstate="42P20",
            )
        frame = bind_frame(clause, order, bound.function, scale)
        placed = OverCall(bound, partition, order, frame)
        # Equal calls share one column.
        if placed not in self.calls:
            self.calls.append(placed)
        return OverResult(bound.type, bound.nullable, index=self.calls.index(placed), span=span_of(call))


def _sort_key(node: exp.Expr, binder: ExpressionBinder) -> SortKey:
    consume(node, "this", "desc", "nulls_first")
    key = binder.bind(node.this)
    if not is_orderable(key.type):
        raise PenstockError(
            "SQL-1103", f"ORDER BY cannot compare {key.type}", span=span_of(node), sqlstate="42804"
        )
    return SortKey(key, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def _call(tree: FunctionCall, binder: ExpressionBinder) -> AggregateCall:
    name, span = (
        {"first": "first_value", "last": "last_value"}.get(word := str(tree.this).lower(), word),
        span_of(tree),
    )
    args = [binder.bind(arg) for arg in tree.expressions]
    for key, (word, hint) in _NOT_OVER.items():
        # Aggregates support DISTINCT and FILTER with OVER, ranks and neighbours do not.
        if tree.args.get(key) and (key not in ("distinct", "filter") or name in RANKS | PLACES):
            raise _not_over(word, hint, span)
    takes_nulls = name in PLACES | {"any_value"} or not (name in RANKS or binder.context.is_aggregate(name))
    if tree.args.get("nulls") and not takes_nulls:
        raise PenstockError(
            "SQL-1105",
            f"{tree.args['nulls']} NULLS does not go with {name}",
            span=span,
            hint="lag, lead, first_value, last_value and nth_value take it",
            sqlstate="42809",
        )
    # ROW_NUMBER, RANK, DENSE_RANK
    if name in RANKS:
        _check_count(name, len(args), 0, 0, tree)
        return AggregateCall(name, (), INT, False, span=span)
    # LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE
    if name in PLACES:
        return _value_function(name, args, tree)
    # Only aggregates are left: an unknown name and a scalar function have errors of their own.
    if not binder.context.is_aggregate(name):
        if name not in function_names():
            known = [*OVER_ONLY, *binder.context.catalog.functions.names(), *function_names()]
            hint = did_you_mean(name, known) or "SHOW FUNCTIONS lists every function"
            raise PenstockError(
                "SQL-1101", f"there is no function {name}", span=span, hint=hint, sqlstate="42883"
            )
        hint = (
            "OVER goes with aggregates, row_number, rank, dense_rank, lag, lead, first_value, last_value"
            " and nth_value"
        )
        raise PenstockError(
            "SQL-1065", f"{name} does not go with OVER", span=span, hint=hint, sqlstate="42809"
        )
    return bind_aggregate_call(tree, binder)


def _not_over(word: str, hint: str, span: Span | None) -> PenstockError:
    return PenstockError(
        "SQL-1601", f"{word} with OVER is not supported yet", span=span, hint=hint, sqlstate="0A000"
    )


def _value_function(name: str, args: Sequence[Expression], tree: FunctionCall) -> AggregateCall:
    """Bind a call of the value of one row. IGNORE NULLS is its FILTER: rows with a value."""
    nulls = tree.args.get("nulls")
    # FIRST_VALUE(x, TRUE) is Spark's spelling of IGNORE NULLS
    if name in ("first_value", "last_value") and len(args) == 2 and nulls is None:
        flag = args[1]
        if isinstance(flag, Literal) and isinstance(flag.value, bool):
            nulls, args = "IGNORE" if flag.value else "RESPECT", args[:1]
    if name in NEIGHBOURS:
        call = _neighbour(name, args, tree)
    elif name == "nth_value":
        call = _nth_value(args, tree)
    else:
        _check_count(name, len(args), 1, 1, tree)
        # NULL for an empty frame
        call = AggregateCall(name, tuple(args), args[0].type, True, span=span_of(tree))
    # LAG(x, 0) is x, with a value or without
    if nulls != "IGNORE" or not args[0].nullable or nth_of(call) == 0:
        return call
    known = Call(BOOLEAN, False, function="is_not_null", args=(args[0],), span=span_of(tree))
    return replace(call, filter=known, nullable=True)


def _nth_value(args: Sequence[Expression], tree: FunctionCall) -> AggregateCall:
    """Bind NTH_VALUE(x, n): below zero n counts from the last row of the frame."""
    _check_count("nth_value", len(args), 2, 2, tree)
    count = args[1].value if isinstance(args[1], Literal) else None
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count < 1 << 31:
        raise PenstockError(
            "SQL-1102",
            "nth_value takes a whole number of rows, from 1",
            span=span_of(tree.expressions[1]),
            hint="write nth_value(x, 2)",
            sqlstate="22016",
        )
    number = Literal(BIGINT, False, value=-count if tree.args.get("from_last") else count)
    return AggregateCall("nth_value", (args[0], number), args[0].type, True, span=span_of(tree))


def _neighbour(name: str, args: Sequence[Expression], tree: FunctionCall) -> AggregateCall:
    """Bind LAG or LEAD: a value, a distance in rows (1 by default), and a constant for a missing row (NULL by
    default).
    """
    _check_count(name, len(args), 1, 3, tree)
    # LAG(x) is LAG(x, 1, NULL)
    distance = args[1] if len(args) > 1 else Literal(INT, False, value=1)
    count = distance.value if isinstance(distance, Literal) else None
    # bool is an int in Python; LAG(x, TRUE) is an error all the same.
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < 1 << 31:
        hint = f"write {name}(x, 2)"
        raise PenstockError(
            "SQL-1102",
            f"{name} takes a whole number of rows",
            span=span_of(tree.expressions[1]),
            hint=hint,
            sqlstate="22016",
        )
    # the default is cast to x's type: the result has that type whatever the default is
    fallback = coerced(args[2], args[0].type) if len(args) > 2 else Literal(args[0].type, True, value=None)
    if not isinstance(fallback, Literal):
        hint = "wrap the call in COALESCE"
        raise PenstockError(
            "SQL-1601",
            f"{name} takes a constant default",
            span=span_of(tree.expressions[2]),
            hint=hint,
            sqlstate="0A000",
        )
    nullable = args[0].nullable or fallback.nullable
    return AggregateCall(
        name,
        # always three arguments, so that the operator has one form to read
        (args[0], Literal(BIGINT, False, value=count), fallback),
        args[0].type,
        nullable,
        span=span_of(tree),
    )


def _check_count(name: str, count: int, least: int, most: int, tree: FunctionCall) -> None:
    if not least <= count <= most or tree.args.get("star"):
        wanted = (
            "no argument"
            if not most
            else f"{least} argument"
            if least == most
            else f"{least} to {most} arguments"
        )
        raise PenstockError(
            "SQL-1102", f"{name} takes {wanted}, not {count or '*'}", span=span_of(tree), sqlstate="42883"
        )


# plan nodes


def append_over(
    plan: LogicalPlan, fields: Sequence[Field], calls: Sequence[OverCall]
) -> tuple[LogicalPlan, list[Field], list[int]]:
    """Return the input with one column per call appended, its fields, and the position of each
    call's result.
    """
    # ORDER BY PROCTIME(): the projection beneath computes it, so that the order reads a column.
    clocks = [
        key.expression for call in calls for key in call.order[:1] if is_processing_time(key.expression)
    ]
    plan, shown, keys = _project_keys(
        plan, list(fields), [*(key for call in calls for key in call.partition), *clocks]
    )
    calls = [replace(call, order=_over_the_clock(call.order, shown, keys)) for call in calls]
    positions = [0] * len(calls)
    # One Over node per group, each above the last; results are appended, so positions stay valid.
    for members in _shared(calls):
        # all members have its partition and order
        first = calls[members[0]]
        plan, shown = _by_the_clock(plan, shown, first.order)
        # Calls that ignore frames adopt the frame of their group.
        frame = next((calls[i].frame for i in members if calls[i].frame is not None), None) or RUNNING
        partition = tuple(dict.fromkeys(keys[key] for key in first.partition))
        # a complete partition is freed when its window closes, instead of kept for ever
        window = _window(partition, shown)
        bound = tuple(calls[i].call for i in members)
        names = tuple(f"over{i + 1}" for i in members)
        # timely: each row is emitted once, when the watermark passes it, and is never revised
        timely = _is_timely(first.order, frame, bound, shown)
        for offset, member in enumerate(members):
            positions[member] = len(shown) + offset
        plan = Over(plan, partition, first.order, frame, bound, names, timely, window)
        # A row whose result may still change is emitted again after its time, so event times end.
        carried = tuple(shown) if timely else settled_roles(tuple(shown), window)
        shown = [
            *carried,
            *(Field(name, call.type, call.nullable) for name, call in zip(names, bound, strict=True)),
        ]
    return plan, shown, positions


def _over_the_clock(
    order: tuple[SortKey, ...], fields: Sequence[Field], positions: Mapping[Expression, int]
) -> tuple[SortKey, ...]:
    """Return an order that begins with PROCTIME(), rewritten to the column that the projection beneath
    computes.
    """
    if not order or not is_processing_time(order[0].expression):
        return order
    # only a leading PROCTIME() makes the order that of arrival; a later one is a key like any other
    position = positions[order[0].expression]
    field = fields[position]
    return (
        replace(order[0], expression=Column(field.type, field.nullable, index=position, name=field.name)),
        *order[1:],
    )


def _by_the_clock(
    plan: LogicalPlan, shown: list[Field], order: Sequence[SortKey]
) -> tuple[LogicalPlan, list[Field]]:
    """Return the input for one order. An ascending processing time is arrival order, so a ProcessingTime node
    stamps the rows by the clock.
    """
    first = order[0].expression if order and not order[0].descending else None
    if not isinstance(first, Column) or shown[first.index].role is not Role.PROCESSING_TIME:
        return plan, shown
    plan = ProcessingTime(plan, first.index)
    return plan, list(plan.schema.fields)


def _shared(calls: Sequence[OverCall]) -> list[list[int]]:
    """Return groups of calls that share one Over node: those of equal partition, order and frame. A call that
    ignores frames joins the first group of its partition and order.
    """
    groups: list[list[int]] = []
    for i, call in enumerate(calls):
        for members in groups:
            frames = {calls[m].frame for m in members} | {call.frame}
            like = calls[members[0]]
            # None is compatible with every frame.
            if (like.partition, like.order) == (call.partition, call.order) and len(frames - {None}) <= 1:
                members.append(i)
                break
        else:
            groups.append([i])
    return groups


def _project_keys(
    plan: LogicalPlan, fields: list[Field], keys: Sequence[Expression]
) -> tuple[LogicalPlan, list[Field], dict[Expression, int]]:
    """Project the partition keys that are no plain columns. Return the plan, its fields and the position of
    each key.
    """
    # an expression is its own key: PARTITION BY a + 1 in two calls is computed once
    positions: dict[Expression, int] = {}
    expressions: list[Expression] = [
        Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(fields)
    ]
    for key in keys:
        if isinstance(key, Column):
            positions[key] = key.index
        elif key not in positions:
            positions[key] = len(fields)
            fields.append(Field(str(key), key.type, key.nullable, expression_role(key, fields)))
            expressions.append(key)
    # all keys are columns: no projection
    if len(expressions) == len(plan.schema):
        return plan, fields, positions
    return Project(plan, tuple(expressions), tuple(f.name for f in fields)), fields, positions


def _window(partition: Sequence[int], fields: Sequence[Field]) -> AttachedWindow | None:
    # PARTITION BY window_start, window_end: the partition is complete when its window closes.
    # both bounds, because windows of several sizes may share a start or an end
    starts = [i for i in partition if fields[i].role is Role.WINDOW_START]
    ends = [i for i in partition if fields[i].role is Role.WINDOW_END]
    return AttachedWindow(starts[0], ends[0]) if starts and ends else None


def _is_timely(
    order: Sequence[SortKey], frame: Frame, calls: Sequence[AggregateCall], fields: Sequence[Field]
) -> bool:
    """Return whether a row's result is final once the watermark has passed the row's time."""
    first = order[0] if order else None
    if (
        first is None
        or first.descending
        or not isinstance(first.expression, Column)
        or not fields[first.expression.index].is_event_time
    ):
        return False
    # Rows after the current one, in the frame or by LEAD, arrive later.
    if frame.end is None or frame.end > 0 or any(call.function == "lead" for call in calls):
        return False
    # A frame from the partition's first row is its totals and the rows of one watermark. One that ends before
    # its row would need the totals of some rows ago; the row before is the end of the totals.
    of_rows = any(call.function in PLACES - NEIGHBOURS for call in calls)
    until_before = frame.unit is FrameUnit.ROWS and frame.end == -1 and not of_rows
    return frame.start is not None or frame.end == 0 or until_before
