"""The dependent join: a subquery that is correlated by more than equalities is joined to the distinct outer
values it reads. LIMIT inside it becomes a Top-N per outer row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from sqlglot import exp

from penstock.catalog.errors import Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.nested_access import orderable
from penstock.planner.binder.relations.join_conditions import key_pair, with_keys
from penstock.planner.binder.relations.joins import join_on
from penstock.planner.binder.scope import Scope
from penstock.planner.binder.subqueries.correlation import (
    ORDERED,
    InnerRows,
    has_subquery,
    is_plain,
    unordered,
)
from penstock.planner.binder.subqueries.decorrelation import DependentJoin, outer_columns
from penstock.planner.binder.subqueries.outer_values import OuterValues, alike, equal
from penstock.planner.expressions.nodes import Call, Cast, Column, Expression, Literal, SortKey, conjunction
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.over import PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project, select_columns
from penstock.planner.logical.sort import TopN
from penstock.planner.parser.syntax_nodes import span_of

# Functions that are NULL when an argument is NULL: a condition built from them rejects NULL. AND is none of
# them: FALSE AND NULL is FALSE, so (a AND i.x > o.y) = FALSE may be TRUE for a NULL o.y.
_STRICT = (
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "add",
    "subtract",
    "multiply",
    "negate",
    "like",
)


@dataclass(frozen=True)
class DomainRows(InnerRows):
    """Rows joined to the distinct outer values, which follow the rows' own columns. ``outer`` maps to their
    positions.

    ``domain``: the outer columns whose distinct values ``OuterValues`` in the plan represents.
    """

    outer: dict[int, int] = field(default_factory=dict)
    domain: tuple[Expression, ...] = ()

    def own(self, expression: Expression) -> Expression:
        return expression.remap(
            {i: self.outer[i] if i < self.width else i - self.width for i in expression.columns()}
        )


def by_outer_values(rows: InnerRows, reads: Iterable[int] = (), span: Span | None = None) -> DomainRows:
    """Return the rows joined to the distinct values of the outer columns in their conditions and in
    ``reads``. The correlation that remains is equalities.

    An outer value that may be NULL in a matching pair is compared with NULL equal to NULL. Raises SQL-1601
    where its type has no such comparison.
    """
    # The domain: every outer column that the subquery reads.
    below = outer_columns(rows.plan, rows.level)
    wanted = sorted({i for part in rows.shared for i in part.columns() if i < rows.width} | {*reads, *below})
    seen = {c.index: c.field for c in (rows.scope.outer.columns if rows.scope.outer is not None else ())}
    fields = [seen[i] for i in wanted]
    values = OuterValues(
        Schema(tuple(Field(f"outer{n + 1}", f.type, f.nullable) for n, f in enumerate(fields)))
    )
    positions = {i: n for n, i in enumerate(wanted)}
    own = len(rows.plan.schema)
    if below:
        # An outer column is read below FROM and WHERE, in groups, unions or joins.
        plan = DependentJoin(rows.level, values, positions, span).push(rows.plan)
        places = {i: own + n for i, n in positions.items()}
        places |= {rows.width + i: i for i in range(own)}
        parts = tuple(part.remap(places) for part in rows.shared)
        plan = Filter(plan, conjunction(parts)) if parts else plan
    else:
        plan = _joined_to_values(rows, values, positions)
    domain = tuple(
        Column(f.type, f.nullable, index=i, name=f.name) for i, f in zip(wanted, fields, strict=True)
    )
    shared: list[Expression] = []
    for n, value in enumerate(domain):
        # The outer query finds its rows by equality with the domain, NULL equal to NULL.
        mine = Column(value.type, value.nullable, index=rows.width + own + n, name=value.name)
        # i.x > o.y is never TRUE for a NULL y, so a plain = finds the same rows
        refused = not below and any(_refuses_null(part, value.index) for part in rows.shared)
        if value.nullable and not refused:
            shared += alike(value, mine, span)
        else:
            shared.append(equal(value, mine))
    # Outer columns that the select list reads come from the domain.
    outer = {i: own + n for n, i in enumerate(wanted)}
    return DomainRows(plan, rows.width, rows.scope, rows.level, tuple(shared), rows.items, {}, outer, domain)


def _joined_to_values(rows: InnerRows, values: OuterValues, positions: dict[int, int]) -> LogicalPlan:
    """Return the rows joined to the outer values by the shared conditions: own columns, then the domain."""
    own, size = len(rows.plan.schema), len(positions)
    # Conditions over outer ++ own are renumbered to domain ++ own.
    beneath = {**positions, **{rows.width + i: size + i for i in range(own)}}
    met = join_on(values, rows.plan, JoinKind.INNER, tuple(part.remap(beneath) for part in rows.shared))
    return select_columns(met, (*range(size, size + own), *range(size)))


def self_contained(rows: InnerRows, plan: LogicalPlan, span: Span | None) -> InnerRows:
    """Return the rows of a subquery of ``plan`` without outer columns below their shared conditions."""
    if not outer_columns(rows.plan, rows.level):
        return rows
    joined = by_outer_values(rows, span=span)
    return replace(joined, plan=with_domain(joined.plan, plan, joined.domain))


def with_domain(plan: LogicalPlan, rows: LogicalPlan, domain: Sequence[Expression]) -> LogicalPlan:
    """Return a plan with its ``OuterValues`` replaced by the distinct values of ``domain`` over ``rows``."""
    if not domain:
        return plan
    wide, positions = with_keys(rows, domain)
    unique = tuple(dict.fromkeys(positions))
    # DISTINCT over the outer columns
    groups = Aggregate(wide, unique, (), ())
    outputs = [unique.index(position) for position in positions]
    columns = tuple(Column(groups.schema[i].type, groups.schema[i].nullable, index=i) for i in outputs)
    values = Project(groups, columns, tuple(f"outer{n + 1}" for n in range(len(columns))))
    return plan.transform(lambda node: values if isinstance(node, OuterValues) else node)


def _refuses_null(part: Expression, index: int) -> bool:
    """Return whether the form of a condition proves that it is not TRUE where a column is NULL."""
    if isinstance(part, Column):
        return part.index == index
    if isinstance(part, Cast) or (isinstance(part, Call) and part.function in _STRICT):
        return any(_refuses_null(child, index) for child in part.children)
    return False


def is_positive(limit: Expression) -> bool:
    """Return whether a bound LIMIT is a whole number above zero."""
    return isinstance(limit, Literal) and isinstance(limit.value, int) and limit.value > 0


def takes_first(query: exp.Expr, context: BindContext) -> bool:
    """Return whether a query is SELECT, FROM and WHERE with ORDER BY and LIMIT together, or with neither. Its
    rows per outer row are then found by key; any other query is bound whole.
    """
    # SELECT DISTINCT a .. LIMIT 2: the rows are those that are left of equal ones
    if query.args.get("distinct"):
        return False
    words = [query.args.get(key) is not None for key in ORDERED]
    if not is_plain(unordered(query)) or words not in ([True, True, False], [False, False, False]):
        return False
    limit = query.args.get("limit")
    return limit is None or is_positive(ExpressionBinder(Scope(), context, "LIMIT").bind(limit))


def takes_first_alone(query: exp.Expr, context: BindContext) -> bool:
    """Return whether a query ``takes_first`` and has no subquery in its WHERE. A query that was bound whole
    is then bound again; a subquery in it would be bound twice as often with each level.
    """
    where = query.args.get("where")
    return (where is None or not has_subquery(where)) and takes_first(query, context)


def first_rows(
    rows: InnerRows, query: exp.Expr, context: BindContext, listed: Sequence[Expression] = ()
) -> InnerRows:
    """Return the Top-N of a correlated subquery that ``takes_first``: its first rows per value of the
    correlating columns. ``listed`` expressions may read outer columns too.
    """
    span = span_of(query)
    bound = ExpressionBinder(Scope(), context, "LIMIT").bind(query.args["limit"])
    assert isinstance(bound, Literal) and isinstance(bound.value, int)
    binder = ExpressionBinder(rows.scope, context, "ORDER BY")
    # ORDER BY may read the outer row: nearest to o.x first
    order = [(binder.bind(node.this), node) for node in query.args["order"].expressions]
    reads = {
        i
        for expression in (*(key for key, _ in order), *listed)
        for i in expression.columns()
        if i < rows.width
    }
    # Equalities partition the rows by themselves; other conditions need the domain.
    if rows.needs_domain(reads):
        rows = by_outer_values(rows, reads, span)
    # own() is asked after the join to the domain: outer columns are then columns of the rows
    keys = tuple(_sort_key(rows.own(expression), node) for expression, node in order)
    pairs = [key_pair(part, rows.width) for part in rows.shared]
    width = len(rows.plan.schema)
    wide, partition = with_keys(rows.plan, [pair[1] for pair in pairs if pair is not None])
    top: LogicalPlan = (
        # Correlated: n rows per partition. Uncorrelated: n rows in all.
        PartitionTop(wide, partition, keys, "row_number", bound.value)
        if partition
        else TopN(wide, keys, bound.value)
    )
    # drop the partition keys that were computed for the Top-N
    if len(wide.schema) > width:
        fields = top.schema.fields[:width]
        top = Project(
            top,
            tuple(Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(fields)),
            tuple(f.name for f in fields),
        )
    return replace(rows, plan=top)


def _sort_key(expression: Expression, node: exp.Expr) -> SortKey:
    return SortKey(
        orderable(expression, node.this), bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
    )
