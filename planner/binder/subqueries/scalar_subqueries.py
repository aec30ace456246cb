"""Subqueries as values: scalar subqueries, and EXISTS and IN outside of WHERE. Placeholders represent them in
expressions. A check proves that a subquery has at most one row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from penstock.catalog.coercion import is_orderable
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import BIGINT, BOOLEAN, Array, Map, Row
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.lambdas import unpacked
from penstock.planner.binder.expressions.nested_access import orderable
from penstock.planner.binder.group_by import AggregateList, AggregateResult
from penstock.planner.binder.relations.join_conditions import key_pair, with_keys
from penstock.planner.binder.scope import Scope
from penstock.planner.binder.subqueries.cardinality import one_row_at_most, one_row_for
from penstock.planner.binder.subqueries.correlation import (
    ORDERED,
    Filtering,
    InnerRows,
    aggregates,
    bound_list,
    bound_rows,
    inner_rows,
    is_plain,
    tested_values,
    unordered,
    whole_rows,
    with_order_listed,
)
from penstock.planner.binder.subqueries.decorrelation import outer_aggregate
from penstock.planner.binder.subqueries.dependent_join import (
    DomainRows,
    by_outer_values,
    first_rows,
    is_positive,
    takes_first_alone,
    with_domain,
)
from penstock.planner.expressions.nodes import (
    FALSE,
    TRUE,
    AggregateCall,
    Call,
    Case,
    Column,
    Direction,
    Expression,
    Literal,
)
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.parser.syntax_nodes import AnyOf, ArrayOf, consume, span_of


@dataclass(frozen=True)
class ScalarSubquery(Expression):
    """A placeholder for a scalar subquery: ``value`` over the one row of ``plan`` whose ``keys`` equal
    ``outer``, NULLs without one. It never leaves the binder.

    ``certain``: the row always exists. ``domain``: the expressions whose distinct values ``OuterValues`` in
    the plan represents.
    """

    outer: tuple[Expression, ...] = ()
    plan: LogicalPlan = None  # type: ignore[assignment]  # dataclass order: every node is built with it
    keys: tuple[int, ...] = ()
    value: Expression = None  # type: ignore[assignment]  # dataclass order: every node is built with it
    certain: bool = False
    domain: tuple[Expression, ...] = ()

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.outer + self.domain

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, outer=children[: len(self.outer)], domain=children[len(self.outer) :])

    def __str__(self) -> str:
        return "(subquery)"


class Attached:
    """A plan to which the subqueries of expressions are joined one by one. Columns are only appended, so
    positions stay valid.
    """

    def __init__(self, plan: LogicalPlan) -> None:
        self.plan = plan
        self._known: list[tuple[ScalarSubquery, int]] = []

    def over(self, expression: Expression) -> Expression:
        """Return an expression with its subqueries replaced by the joined columns."""
        return expression.transform(self._joined_column)

    def _joined_column(self, node: Expression) -> Expression:
        if not isinstance(node, ScalarSubquery):
            return node
        for other, offset in self._known:
            # SELECT of several aggregates in one LATERAL shares a join: only ``value`` differs.
            if replace(other, type=node.type, nullable=node.nullable, value=node.value) == node:
                return _moved(node, offset)
        # WHERE i.k = o.k + 1: o.k + 1 is projected behind the outer columns, as a join key
        wide, left_keys = with_keys(self.plan, node.outer)
        # the subquery's plan reads the distinct outer values; now they are known: those of this plan
        inner = with_domain(node.plan, self.plan, node.domain)
        # LEFT, because an outer row without a match still needs its row, with NULL as the value.
        self.plan = Join(wide, inner, JoinKind.INNER if node.certain else JoinKind.LEFT, left_keys, node.keys)
        self._known.append((node, len(wide.schema)))
        return _moved(node, len(wide.schema))


def attach(
    plan: LogicalPlan, expressions: Sequence[Expression]
) -> tuple[LogicalPlan, tuple[Expression, ...]]:
    """Return the plan with the subqueries of ``expressions`` joined to it, and the expressions over the
    appended columns.
    """
    attached = Attached(plan)
    changed = tuple(attached.over(expression) for expression in expressions)
    return attached.plan, changed


def _moved(node: ScalarSubquery, offset: int) -> Expression:
    return node.value.remap({i: i + offset for i in range(len(node.plan.schema))})


def column(plan: LogicalPlan, index: int, *, padded: bool = False) -> Column:
    """Return a column of a plan. ``padded``: it is read above a join that may pad it with NULLs."""
    field = plan.schema[index]
    return Column(field.type, field.nullable or padded, index=index, name=field.name)


# COUNT(*)
_COUNT = AggregateCall("count", (), BIGINT, False)
_ZERO = Literal(BIGINT, False, value=0)


def logical(function: str, *args: Expression) -> Call:
    """Return a BOOLEAN call on arguments that already have the right types."""
    nullable = function not in ("is_null", "is_not_null") and any(arg.nullable for arg in args)
    return Call(BOOLEAN, nullable, function=function, args=args)


def any_row(plan: LogicalPlan) -> LogicalPlan:
    """Return a plan of one row (TRUE) when the input has rows, else of none."""
    # a count without keys always has a row, so the filter makes it none for an empty input
    counted = Aggregate(plan, (), (_COUNT,), ("rows",))
    return Project(Filter(counted, logical("greater", column(counted, 0), _ZERO)), (TRUE,), ("found",))


def null_facts(plan: LogicalPlan, keys: Sequence[Expression], value: Expression) -> LogicalPlan:
    """Return one row per key: the key, and whether ``value`` is NULL in one of its rows. Without keys there
    is one row when the input has any.
    """
    wide, positions = with_keys(plan, keys)
    # two correlation keys may be one column: the aggregate has it once
    unique = tuple(dict.fromkeys(positions))
    # COUNT(*) > COUNT(value): some value is NULL.
    calls = (_COUNT, AggregateCall("count", (value,), BIGINT, False))
    counted: LogicalPlan = Aggregate(wide, unique, calls, ("rows", "values"))
    rows, values = (column(counted, len(unique) + i) for i in range(2))
    if not unique:
        # Without keys the aggregate has a row even for empty input; that row is dropped.
        counted = Filter(counted, logical("greater", rows, _ZERO))
    outputs = (*(column(counted, unique.index(p)) for p in positions), logical("greater", rows, values))
    return Project(counted, outputs, (*(f"key{i + 1}" for i in range(len(positions))), "holds_null"))


def distinct_keys(plan: LogicalPlan, keys: Sequence[Expression]) -> LogicalPlan:
    """Return one row per key: the key, and TRUE. Without keys there is one row when the input has any."""
    # EXISTS (SELECT .. FROM t), not correlated
    if not keys:
        return any_row(plan)
    wide, positions = with_keys(plan, keys)
    unique = tuple(dict.fromkeys(positions))
    groups = Aggregate(wide, unique, (), ())
    # TRUE where the key has rows; the LEFT JOIN pads it with NULL where it has none
    outputs = (*(column(groups, unique.index(p)) for p in positions), TRUE)
    return Project(groups, outputs, (*(f"key{i + 1}" for i in range(len(positions))), "found"))


@dataclass(frozen=True)
class SubqueryValues:
    """Binds subqueries inside expressions. ``filtering`` binds the WHERE of a subquery."""

    filtering: Filtering

    def value(self, tree: exp.Expr, binder: ExpressionBinder) -> Expression:
        """Return a scalar subquery, EXISTS, IN, a comparison with ANY, or ARRAY of a query as a value."""
        match tree:
            case exp.Exists():
                return self.exists(tree, binder)
            case exp.In():
                consume(tree, "this", "query")
                return self.contains(tree, binder)
            case AnyOf():
                return self.any_of(tree, binder)
            case ArrayOf():
                return self.array(tree, binder)
        return self.scalar(tree, binder)

    def exists(self, tree: exp.Expr, binder: ExpressionBinder) -> Expression:
        """Return EXISTS as a value."""
        rows = inner_rows(
            tree.this, binder.scope, _width(binder), binder.context, self.filtering, list_matters=False
        )
        # SELECT .., EXISTS (SELECT .. WHERE i.k = o.k): one row per distinct k of the subquery
        rows, keys = _equality_pairs(rows, span_of(tree))
        facts = distinct_keys(rows.plan, [key for _, key in keys])
        return _value(
            keys, facts, logical("is_not_null", column(facts, len(keys), padded=True)), span_of(tree), rows
        )

    def contains(self, tree: exp.Expr, binder: ExpressionBinder) -> Expression:
        """Return IN as a value: NULL where only a NULL prevents FALSE."""
        values = [binder.bind(part) for part in tested_values(tree)]
        bound = inner_rows(tree.args["query"], binder.scope, _width(binder), binder.context, self.filtering)
        pairs = bound.pairs(values, tree, binder)
        span = span_of(tree)
        rows, keys = _equality_pairs(bound, span, [right for _, right in pairs])
        inner = [rows.own(right) for _, right in pairs]
        # x IN (SELECT y ..): is there a row with the correlation keys and y = x?
        matches = keys + [(left, right) for (left, _), right in zip(pairs, inner, strict=True)]
        facts = distinct_keys(rows.plan, [key for _, key in matches])
        matched = _value(
            matches, facts, logical("is_not_null", column(facts, len(matches), padded=True)), span, rows
        )
        # without NULLs, IN is TRUE or FALSE: matched decides
        if not any(value.nullable for pair in pairs for value in pair):
            return matched
        if len(pairs) > 1:
            return self._row_contains(bound, pairs, matched, span)
        # Three-valued logic: a match TRUE; no row at all FALSE; a NULL among y, or x NULL, NULL; else FALSE.
        facts = null_facts(rows.plan, [key for _, key in keys], inner[0])
        flag = column(facts, len(keys), padded=True)
        empty = _value(keys, facts, logical("is_null", flag), span, rows)
        unknown = _value(keys, facts, flag, span, rows)
        left = pairs[0][0]
        null = Literal(BOOLEAN, True, value=None)
        whens: list[tuple[Expression, Expression]] = [(matched, TRUE), (empty, FALSE), (unknown, null)]
        if left.nullable:
            whens.append((logical("is_null", left), null))
        return Case(BOOLEAN, True, whens=tuple(whens), default=FALSE, span=span)

    def _row_contains(
        self,
        rows: InnerRows,
        pairs: Sequence[tuple[Expression, Expression]],
        matched: Expression,
        span: Span | None,
    ) -> Expression:
        """Return IN of several values: NULL where no row is equal, and some row is not unequal."""
        if any(isinstance(node, ScalarSubquery) for left, _ in pairs for node in left.walk()):
            hint = "select the inner subquery in a query in FROM, and compare its column"
            message = "IN of several values that may be NULL, of which one is a subquery"
            raise PenstockError("SQL-1601", message, span=span, hint=hint, sqlstate="0A000")
        rows = replace(rows, shared=(*rows.shared, *map(not_false, pairs)))
        rows, keys = _equality_pairs(rows, span)
        facts = distinct_keys(rows.plan, [key for _, key in keys])
        flag = logical("is_not_null", column(facts, len(keys), padded=True))
        unknown = _value(keys, facts, flag, span, rows)
        null = Literal(BOOLEAN, True, value=None)
        return Case(BOOLEAN, True, whens=((matched, TRUE), (unknown, null)), default=FALSE, span=span)

    def any_of(self, tree: exp.Expr, binder: ExpressionBinder) -> Expression:
        """Return ``x < ANY (SELECT y ..)`` by the least and the greatest y: NULL where only a NULL prevents
        FALSE, FALSE without rows.
        """
        span, function = span_of(tree), str(tree.args["function"])
        value = binder.bind(tree.this)
        rows = inner_rows(tree.args["query"], binder.scope, _width(binder), binder.context, self.filtering)
        _one_column(len(rows.items), span_of(tree.args["query"]))
        left, right = binder.call(function, [value, rows.items[0]], span).children
        right = orderable(right, tree.args["query"])
        rows, keys = _equality_pairs(rows, span, [right])
        own = rows.own(right)
        calls = (
            AggregateCall("min", (own,), own.type),
            AggregateCall("max", (own,), own.type),
            AggregateCall("count", (own,), BIGINT, False),
            _COUNT,
        )
        read = _aggregated(rows, keys, calls, span)
        least, greatest, values, count = (read(i, lambda result: result) for i in range(len(calls)))
        # x > ANY is a comparison with the least y, x < ANY with the greatest
        compared = {"greater": [least], "greater_equal": [least]}.get(function, [greatest])
        compared = [least, greatest] if function == "not_equal" else compared
        tests = tuple((logical(function, left, other), TRUE) for other in compared)
        none = logical("equal", read(3, _or_zero), _ZERO)
        null = Literal(BOOLEAN, True, value=None)
        whens = [*tests, (none, FALSE), (logical("less", values, count), null)]
        if left.nullable:
            whens.append((logical("is_null", left), null))
        return Case(BOOLEAN, True, whens=tuple(whens), default=FALSE, span=span)

    def array(self, tree: exp.Expr, binder: ExpressionBinder) -> Expression:
        """Return ``ARRAY(SELECT y ..)``: every y in the query's order, else ordered by its values."""
        query, span, context = tree.args["query"].this, span_of(tree), binder.context
        query, directions = with_order_listed(query)
        relation = context.inside(binder.scope).query(query)
        _one_column(len(relation.fields) - len(directions), span)
        rows = whole_rows(relation, binder.scope, _width(binder), context)
        rows, keys = _equality_pairs(rows, span)
        value, *order = (rows.own(item) for item in rows.items)
        if not directions and not isinstance(value.type, Map):
            order, directions = [value], [Direction()]
        # a list leaves NULLs out, so it is of rows of one field
        packed = Row((("col1", value.type),))
        row = Call(packed, False, function="struct", args=(value,))
        listed = AggregateCall("collect_list", (row, *order), Array(packed), False, order=tuple(directions))

        def array(result: Column) -> Expression:
            some = unpacked(result, span)
            none = Call(some.type, False, function="array", args=())
            missing = logical("is_null", result)
            return Case(some.type, False, whens=((missing, none),), default=some) if result.nullable else some

        return _aggregated(rows, keys, (listed,), span)(0, array)

    def scalar(self, tree: exp.Expr, binder: ExpressionBinder) -> Expression:
        """Return a scalar subquery: NULL where it has no row. Rows that no key makes one are counted."""
        query, span, context = tree.this, span_of(tree), binder.context
        # (SELECT MAX(x) FROM t WHERE t.k = outer.k): one row by construction, correlated or not
        if is_plain(query) and aggregates(query, context) and not query.args.get("distinct"):
            _one_column(len(query.expressions), span)
            if (values := self.aggregated(query, binder, span)) is not None:
                return values[0]
        relation = context.inside(binder.scope).query(query)
        _one_column(len(relation.fields), span)
        rows = whole_rows(relation, binder.scope, _width(binder), context)
        if not rows.needs_domain():
            # (SELECT a FROM t), not correlated
            if not one_row_at_most(relation.plan):
                return self._counted(tree, binder)
            return _value([], relation.plan, column(relation.plan, 0, padded=True), span)
        if aggregates(query, context):
            # SELECT MAX(i.x) .. LIMIT 1, or SELECT DISTINCT MAX(i.x): as without these words
            bare = is_plain(unordered(query)) and keeps_one_row(query, context)
            if bare and (values := self.aggregated(query, binder, span)) is not None:
                return values[0]
        if not one_row_for(relation.plan, ()):
            return self._counted(tree, binder)
        if takes_first_alone(query, context) and not aggregates(query, context):
            return self._one_of(query, binder, span)
        # GROUP BY, UNION, OFFSET, WITH ..: the dependent join
        rows, keys = _equality_pairs(rows, span)
        wide, positions = with_keys(rows.plan, [key for _, key in keys])
        outputs = (*(column(wide, position) for position in positions), column(wide, 0))
        facts = Project(wide, outputs, (*(f"key{i + 1}" for i in range(len(keys))), "value"))
        return _value(keys, facts, column(facts, len(keys), padded=True), span, rows)

    def _counted(self, tree: exp.Expr, binder: ExpressionBinder) -> Expression:
        """Return a scalar subquery whose rows are counted: the value of the only row, else RUN-2026. Raises
        SQL-1086 for values without an order.
        """
        query, span, context = tree.this, span_of(tree), binder.context
        # (SELECT DISTINCT a FROM t): how many rows there are depends on the list
        rows = (
            whole_rows(context.inside(binder.scope).query(query), binder.scope, _width(binder), context)
            if query.args.get("distinct")
            else inner_rows(tree, binder.scope, _width(binder), context, self.filtering)
        )
        if not is_orderable(rows.items[0].type):
            raise _several(span)
        rows, keys = _equality_pairs(rows, span, rows.items)
        value = rows.own(rows.items[0])
        # of one row any aggregate is its value; with several nobody reads it
        calls = (AggregateCall("any_value", (value,), value.type), _COUNT)
        read = _aggregated(rows, keys, calls, span)

        def only(result: Column) -> Expression:
            count = replace(result, type=BIGINT, index=result.index + 1, name=str(_COUNT))
            return Call(result.type, True, function="single_value", args=(result, count), span=span)

        return read(0, only)

    def _one_of(self, query: exp.Expr, binder: ExpressionBinder, span: Span | None) -> Expression:
        """Bind a correlated subquery without aggregates that has one row: the first by its ORDER BY, or the
        only row of a unique key.
        """
        rows = bound_rows(unordered(query), binder.scope, _width(binder), binder.context, self.filtering)
        items = bound_list(rows.scope, query, binder.context)
        _one_column(len(items), span)
        listed = items[0]
        # ORDER BY .. LIMIT 1 chooses a row; without it a unique key must.
        first = any(query.args.get(key) for key in ORDERED)
        if first:
            rows = first_rows(rows, query, binder.context, [listed])
        # ``first_rows`` has already joined the outer values that it needs.
        rows, keys = (rows, _pairs(rows)) if first else _equality_pairs(rows, span, [listed])
        wide, positions = with_keys(rows.plan, [key for _, key in keys])
        outputs = (*(column(wide, position) for position in positions), rows.own(listed))
        facts = Project(wide, outputs, (*(f"key{i + 1}" for i in range(len(keys))), "value"))
        return _value(keys, facts, column(facts, len(keys), padded=True), span, rows)

    def aggregated(
        self, query: exp.Expr, binder: ExpressionBinder, span: Span | None
    ) -> list[Expression] | None:
        """Return the values of a list of aggregates without GROUP BY, grouped by the equalities with the
        outer query; ``None`` if the list reads something else too, and the query is to be bound whole.
        """
        rows = bound_rows(unordered(query), binder.scope, _width(binder), binder.context, self.filtering)
        calls = AggregateList()
        inner = ExpressionBinder(rows.scope, binder.context, "SELECT", calls)
        listed = [
            inner.bind(item.this if isinstance(item, exp.Alias) else item) for item in query.expressions
        ]
        # MAX(outer.x) inside the subquery would be an aggregate of the outer query.
        for call in calls.calls:
            _refuse_outer(call, rows.width, span)
        # SELECT MAX(x) + outer.y: without rows it is not NULL as a padded row is
        if any(i < rows.width for value in listed for i in value.columns()):
            return None
        rows, keys = _equality_pairs(
            rows, span, [e for call in calls.calls for e in (*call.args, call.filter) if e is not None]
        )
        wide, positions = with_keys(rows.plan, [key for _, key in keys])
        unique = tuple(dict.fromkeys(positions))
        own = tuple(call.map(rows.own) for call in calls.calls)
        plan = Aggregate(wide, unique, own, tuple(map(str, own)))
        outer, outputs = tuple(o for o, _ in keys), tuple(unique.index(position) for position in positions)
        values = [
            # Expressions over aggregates, such as SUM(x) / COUNT(*), read the group's columns.
            expression.transform(lambda node: _result(node, plan, bool(keys), binder))
            for expression in listed
        ]
        made = partial(
            ScalarSubquery,
            span=span,
            outer=outer,
            plan=plan,
            keys=outputs,
            # without keys the aggregate has a row even for no input, so the join may be inner
            certain=not keys,
            domain=_domain(rows),
        )
        return [made(value.type, value.nullable, value=value) for value in values]


def not_false(pair: tuple[Expression, Expression]) -> Expression:
    """Return the condition that two values are equal, or one of them is NULL."""
    test: Expression = logical("equal", *pair)
    for value in pair:
        # a = b OR a IS NULL OR b IS NULL: TRUE where a = b is not FALSE
        if value.nullable:
            test = logical("or", test, logical("is_null", value))
    return test


def _or_zero(count: Column) -> Expression:
    # a padded row has no count
    missing = logical("is_null", count)
    return Case(BIGINT, False, whens=((missing, _ZERO),), default=count)


def _aggregated(
    rows: InnerRows,
    keys: Sequence[tuple[Expression, Expression]],
    calls: tuple[AggregateCall, ...],
    span: Span | None,
) -> Callable[[int, Callable[[Column], Expression]], Expression]:
    """Group the rows of a subquery by its correlation keys. Return a function that reads the result of a
    call, by its position, through another function.
    """
    wide, positions = with_keys(rows.plan, [key for _, key in keys])
    unique = tuple(dict.fromkeys(positions))
    plan = Aggregate(wide, unique, calls, tuple(map(str, calls)))
    outer, outputs = tuple(o for o, _ in keys), tuple(unique.index(position) for position in positions)

    made = partial(
        ScalarSubquery,
        span=span,
        outer=outer,
        plan=plan,
        keys=outputs,
        # without keys the aggregate has a row even for no input, so the join may be inner
        certain=not keys,
        domain=_domain(rows),
    )

    def read(index: int, through: Callable[[Column], Expression]) -> Expression:
        value = through(column(plan, len(unique) + index, padded=bool(keys)))
        return made(value.type, value.nullable, value=value)

    return read


def keeps_one_row(query: exp.Expr, context: BindContext) -> bool:
    """Return whether the ORDER BY, LIMIT and OFFSET of a list of aggregates, which is one row, change nothing
    of it.
    """
    limit = query.args.get("limit")
    kept = limit is None or is_positive(ExpressionBinder(Scope(), context, "LIMIT").bind(limit))
    return kept and query.args.get("order") is None and query.args.get("offset") is None


def _refuse_outer(call: AggregateCall, width: int, span: Span | None) -> None:
    """Refuse an aggregate over outer columns only."""
    read = {i for e in (*call.args, call.filter) if e is not None for i in e.columns()}
    if read and max(read) < width:
        raise outer_aggregate(call, span)


def _result(node: Expression, plan: Aggregate, padded: bool, binder: ExpressionBinder) -> Expression:
    """Return an aggregate's result as a column. A key without rows has no group, and COUNT is then 0."""
    # SELECT x, MAX(y) FROM t, without GROUP BY
    if isinstance(node, Column):
        message = f'column "{node.name}" is used beside an aggregate in a subquery'
        hint = f"write any_value({node.name}), or read it outside of the subquery"
        raise PenstockError("SQL-1061", message, span=node.span, hint=hint, sqlstate="42803")
    if not isinstance(node, AggregateResult):
        return node
    result = column(plan, len(plan.keys) + node.index, padded=padded)
    # SUM, MAX and others are NULL without rows, as the padding is.
    if not padded or plan.aggregates[node.index].nullable:
        return result
    # COLLECT_LIST without rows is an empty array.
    if isinstance(result.type, Array):
        none: Expression = Call(result.type, False, function="array", args=())
    else:
        none = _ZERO  # what is never NULL and no array is a count
    return binder.call("coalesce", [result, none], node.span)


def _equality_pairs(
    rows: InnerRows, span: Span | None, reads: Sequence[Expression] = ()
) -> tuple[InnerRows, list[tuple[Expression, Expression]]]:
    """Return the rows and their correlating equalities as pairs (outer, own).

    With other correlating conditions, or outer columns in ``reads``, the rows are joined to the distinct
    outer values.
    """
    # Equalities alone need no join: the outer row finds its group by key.
    outer = {i for expression in reads for i in expression.columns() if i < rows.width}
    if rows.needs_domain(outer):
        rows = by_outer_values(rows, outer, span)
    return rows, _pairs(rows)


def _pairs(rows: InnerRows) -> list[tuple[Expression, Expression]]:
    return [pair for part in rows.shared if (pair := key_pair(part, rows.width)) is not None]


def _several(span: Span | None) -> PenstockError:
    hint = "aggregate it, as in SELECT max(..), or add ORDER BY .. LIMIT 1"
    return PenstockError(
        "SQL-1086", "a scalar subquery may return one row only", span=span, hint=hint, sqlstate="21000"
    )


def _domain(rows: InnerRows) -> tuple[Expression, ...]:
    return rows.domain if isinstance(rows, DomainRows) else ()


def _value(
    keys: Sequence[tuple[Expression, Expression]],
    facts: LogicalPlan,
    value: Expression,
    span: Span | None,
    rows: InnerRows | None = None,
) -> ScalarSubquery:
    outer = tuple(left for left, _ in keys)
    domain = () if rows is None else _domain(rows)
    return ScalarSubquery(
        value.type,
        value.nullable,
        span=span,
        outer=outer,
        plan=facts,
        keys=tuple(range(len(keys))),
        value=value,
        domain=domain,
    )


def _one_column(count: int, span: Span | None) -> None:
    if count != 1:
        message = f"a scalar subquery returns one column, this returns {count}"
        hint = "list one column; several are compared as in (a, b) = (SELECT x, y ..), without ROW"
        raise PenstockError("SQL-1085", message, span=span, hint=hint, sqlstate="42601")


def _width(binder: ExpressionBinder) -> int:
    """Return the width of the binder's input, as far as its columns have names."""
    return max((c.index + 1 for c in binder.scope.columns), default=0)
