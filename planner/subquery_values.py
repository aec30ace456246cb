"""Subqueries as values: a scalar subquery, and EXISTS and IN where they are no condition of WHERE by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import PenstockError, Span
from catalog.types import BIGINT, BOOLEAN
from planner.binder_aggregates import AggregateList, AggregateResult
from planner.binder_expressions import ExpressionBinder
from planner.binder_joins import key_pair, with_keys
from planner.expressions import FALSE, TRUE, AggregateCall, Call, Case, Column, Expression, Literal
from planner.inner_query import Filtering, InnerRows, aggregates, bound_rows, inner_rows, is_plain, reaching_out, tested_values
from planner.logical import Aggregate, Filter, Limit, LogicalPlan, Project, TopN, Values
from planner.subqueries import ScalarSubquery, column
from planner.syntax import span_of

_COUNT = AggregateCall("count", (), BIGINT, False)
_ZERO = Literal(BIGINT, False, value=0)


def logical(function: str, *args: Expression) -> Call:
    """Return a BOOLEAN call on arguments that have their types already."""
    nullable = function not in ("is_null", "is_not_null") and any(arg.nullable for arg in args)
    return Call(BOOLEAN, nullable, function=function, args=args)


def any_row(plan: LogicalPlan) -> LogicalPlan:
    """Return one row (TRUE) when a plan has rows, else none."""
    counted = Aggregate(plan, (), (_COUNT,), ("rows",))
    return Project(Filter(counted, logical("greater", column(counted, 0), _ZERO)), (TRUE,), ("found",))


def null_facts(plan: LogicalPlan, keys: Sequence[Expression], value: Expression) -> LogicalPlan:
    """Return one row per key (without keys: one when there are rows): the key, and whether a value of its rows is NULL."""
    wide, positions = with_keys(plan, keys)
    unique = tuple(dict.fromkeys(positions))
    calls = (_COUNT, AggregateCall("count", (value,), BIGINT, False))
    counted: LogicalPlan = Aggregate(wide, unique, calls, ("rows", "values"))
    rows, values = (column(counted, len(unique) + i) for i in range(2))
    if not unique:
        counted = Filter(counted, logical("greater", rows, _ZERO))
    outputs = (*(column(counted, unique.index(p)) for p in positions), logical("greater", rows, values))
    return Project(counted, outputs, (*(f"key{i + 1}" for i in range(len(positions))), "holds_null"))


def found_facts(plan: LogicalPlan, keys: Sequence[Expression]) -> LogicalPlan:
    """Return one row per key (without keys: one when there are rows): the key, and TRUE."""
    if not keys:
        return any_row(plan)
    wide, positions = with_keys(plan, keys)
    unique = tuple(dict.fromkeys(positions))
    groups = Aggregate(wide, unique, (), ())
    outputs = (*(column(groups, unique.index(p)) for p in positions), TRUE)
    return Project(groups, outputs, (*(f"key{i + 1}" for i in range(len(positions))), "found"))


@dataclass(frozen=True)
class SubqueryValues:
    """Binds subqueries inside expressions; ``filtering`` filters a subquery's own FROM."""

    filtering: Filtering

    def exists(self, tree: exp.Expr, binder: ExpressionBinder) -> Expression:
        """Return EXISTS as a value."""
        rows = inner_rows(tree.this, binder.scope, _width(binder), binder.context, self.filtering, list_matters=False)
        keys = _keys(rows, span_of(tree))
        facts = found_facts(rows.plan, [key for _, key in keys])
        return _value(keys, facts, logical("is_not_null", column(facts, len(keys), padded=True)), span_of(tree))

    def contains(self, tree: exp.Expr, binder: ExpressionBinder) -> Expression:
        """Return IN as a value: NULL where only a NULL keeps it from being FALSE."""
        values = [binder.bind(part) for part in tested_values(tree)]
        rows = inner_rows(tree.args["query"], binder.scope, _width(binder), binder.context, self.filtering)
        pairs = rows.pairs(values, tree, binder)
        span, keys = span_of(tree), _keys(rows, span_of(tree))
        inner = [rows.own(right) for _, right in pairs if self._reads_own(right, rows, span)]
        matches = keys + [(left, right) for (left, _), right in zip(pairs, inner, strict=True)]
        facts = found_facts(rows.plan, [key for _, key in matches])
        found = _value(matches, facts, logical("is_not_null", column(facts, len(matches), padded=True)), span)
        if not any(value.nullable for pair in pairs for value in pair):
            return found
        if len(pairs) > 1:
            hint = "put it among the conditions of WHERE by itself, or say that the columns are NOT NULL"
            raise PenstockError(
                "SQL-1601", "IN of several values that may be NULL is a condition of WHERE only", span=span, hint=hint, sqlstate="0A000"
            )
        facts = null_facts(rows.plan, [key for _, key in keys], inner[0])
        flag = column(facts, len(keys), padded=True)
        empty = _value(keys, facts, logical("is_null", flag), span)
        unknown = _value(keys, facts, flag, span)
        left = pairs[0][0]
        null = Literal(BOOLEAN, True, value=None)
        whens: list[tuple[Expression, Expression]] = [(found, TRUE), (empty, FALSE), (unknown, null)]
        if left.nullable:
            whens.append((logical("is_null", left), null))
        return Case(BOOLEAN, True, whens=tuple(whens), default=FALSE, span=span)

    @staticmethod
    def _reads_own(item: Expression, rows: InnerRows, span: Span | None) -> bool:
        if all(i >= rows.width for i in item.columns()):
            return True
        raise _listed_outer(span)

    def scalar(self, tree: exp.Expr, binder: ExpressionBinder) -> Expression:
        """Return a subquery's one value, NULL where it has no row; raise SQL-1086 where it may have several."""
        query, span = tree.this, span_of(tree)
        if is_plain(query) and aggregates(query, binder.context) and not query.args.get("distinct"):
            _one_column(len(query.expressions), span)
            try:
                return self.aggregated(query, binder, span)[0]
            except PenstockError as error:
                raise reaching_out(error, query, binder.scope) from None
        try:
            relation = binder.context.query(query)
        except PenstockError as error:
            raise reaching_out(error, query, binder.scope) from None
        _one_column(len(relation.fields), span)
        if not _one_row_at_most(relation.plan):
            hint = "aggregate it, as in SELECT max(..), or add LIMIT 1"
            raise PenstockError("SQL-1086", "a subquery that is a value may give one row only", span=span, hint=hint, sqlstate="21000")
        return _value([], relation.plan, column(relation.plan, 0, padded=True), span)

    def aggregated(self, query: exp.Expr, binder: ExpressionBinder, span: Span | None) -> list[Expression]:
        """Return the values of a list of aggregates without GROUP BY: grouped by the columns the query shares with the outer rows."""
        rows = bound_rows(query, binder.scope, _width(binder), binder.context, self.filtering)
        keys = _keys(rows, span)
        calls = AggregateList()
        inner = ExpressionBinder(rows.scope, binder.context, "SELECT", calls)
        listed = [inner.bind(item.this if isinstance(item, exp.Alias) else item) for item in query.expressions]
        wide, positions = with_keys(rows.plan, [key for _, key in keys])
        unique = tuple(dict.fromkeys(positions))
        own = tuple(call.map(rows.own) for call in calls.calls if _reads_own_rows(call, rows, span))
        plan = Aggregate(wide, unique, own, tuple(map(str, own)))
        outer, outputs = tuple(o for o, _ in keys), tuple(unique.index(position) for position in positions)
        values = [expression.transform(lambda node: _result(node, plan, bool(keys), binder)) for expression in listed]
        return [ScalarSubquery(v.type, v.nullable, span=span, outer=outer, plan=plan, keys=outputs, value=v, certain=not keys) for v in values]


def _result(node: Expression, plan: Aggregate, padded: bool, binder: ExpressionBinder) -> Expression:
    """An aggregate's result as a column; where no row shares the key there is no group, and a count is 0."""
    if isinstance(node, Column):
        message = f'column "{node.name}" stands beside an aggregate in a subquery'
        hint = f"write any_value({node.name}), or read it outside of the subquery"
        raise PenstockError("SQL-1061", message, span=node.span, hint=hint, sqlstate="42803")
    if not isinstance(node, AggregateResult):
        return node
    found = column(plan, len(plan.keys) + node.index, padded=padded)
    if not padded or plan.aggregates[node.index].nullable:
        return found
    if plan.aggregates[node.index].function == "count":
        return binder.call("coalesce", [found, _ZERO], node.span)
    message, hint = f"{plan.aggregates[node.index].function} in a correlated subquery is not supported", "join with the grouped table instead"
    raise PenstockError("SQL-1601", message, span=node.span, hint=hint, sqlstate="0A000")


def _reads_own_rows(call: AggregateCall, rows: InnerRows, span: Span | None) -> bool:
    reads = [e for e in (*call.args, call.filter) if e is not None]
    if all(i >= rows.width for expression in reads for i in expression.columns()):
        return True
    raise _listed_outer(call.span or span)


def _listed_outer(span: Span | None) -> PenstockError:
    hint = "compute with it outside of the subquery"
    message = "a subquery that is a value reads the query around it in its WHERE only"
    return PenstockError("SQL-1601", message, span=span, hint=hint, sqlstate="0A000")


def _keys(rows: InnerRows, span: Span | None) -> list[tuple[Expression, Expression]]:
    """The equalities a subquery shares with the outer rows, (outer, own) each; refuse any other shared condition."""
    keys = []
    for part in rows.shared:
        pair = key_pair(part, rows.width)
        if pair is None:
            hint = "compare with = there, or put EXISTS or IN among the conditions of WHERE by itself"
            message = "a subquery that is a value shares equalities with the query around it, this is another condition"
            raise PenstockError("SQL-1601", message, span=part.span or span, hint=hint, sqlstate="0A000")
        keys.append(pair)
    return keys


def _value(keys: Sequence[tuple[Expression, Expression]], facts: LogicalPlan, value: Expression, span: Span | None) -> ScalarSubquery:
    outer = tuple(left for left, _ in keys)
    return ScalarSubquery(value.type, value.nullable, span=span, outer=outer, plan=facts, keys=tuple(range(len(keys))), value=value)


def _one_column(count: int, span: Span | None) -> None:
    if count != 1:
        message = f"a subquery that is a value gives one column, this gives {count}"
        raise PenstockError("SQL-1085", message, span=span, hint="list one column", sqlstate="42601")


def _one_row_at_most(plan: LogicalPlan) -> bool:
    """Whether a query gives one row or none by its very form."""
    match plan:
        case Aggregate(keys=keys):
            return not keys
        case Values(rows=rows):
            return len(rows) <= 1
        case TopN(limit=limit) if limit <= 1:
            return True
        case Limit(limit=limit) if limit is not None and limit <= 1:
            return True
        case Project() | Filter() | Limit() | TopN():
            return _one_row_at_most(plan.inputs[0])
    return False


def _width(binder: ExpressionBinder) -> int:
    """The columns of the rows a binder reads, as far as they have names."""
    return max((c.index + 1 for c in binder.scope.columns), default=0)
