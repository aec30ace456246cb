"""The dependent join: a subquery that is correlated by more than equalities is joined to the distinct outer
values it reads. LIMIT inside it becomes a Top-N per outer row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from decimal import Decimal as PyDecimal

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    STRING,
    Array,
    BigInt,
    Binary,
    DataType,
    Decimal,
    Double,
    Float,
    Int,
    Map,
    Row,
    SmallInt,
    TimestampLtz,
    TinyInt,
)
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.nested_access import orderable
from penstock.planner.binder.relations.join_conditions import key_pair, with_keys
from penstock.planner.binder.relations.joins import join_on
from penstock.planner.binder.scope import Scope
from penstock.planner.binder.subqueries.correlation import InnerRows
from penstock.planner.expressions.nodes import Call, Case, Cast, Column, Expression, Literal, SortKey
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.over import PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
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
class OuterValues(LogicalPlan):
    """A placeholder for the distinct values of outer columns, until the plan of the outer rows replaces it.
    It never leaves the binder.
    """

    values: Schema

    @property
    def schema(self) -> Schema:
        return self.values


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
    wanted = sorted({i for part in rows.shared for i in part.columns() if i < rows.width} | set(reads))
    seen = {c.index: c.field for c in (rows.scope.outer.columns if rows.scope.outer is not None else ())}
    fields = [seen[i] for i in wanted]
    values = OuterValues(
        Schema(tuple(Field(f"outer{n + 1}", f.type, f.nullable) for n, f in enumerate(fields)))
    )
    positions = {i: n for n, i in enumerate(wanted)}
    own = len(rows.plan.schema)
    # Conditions over outer ++ own are renumbered to domain ++ own.
    beneath = {**positions, **{rows.width + i: len(wanted) + i for i in range(own)}}
    met = join_on(values, rows.plan, JoinKind.INNER, tuple(part.remap(beneath) for part in rows.shared))
    # Own columns first, as in the subquery before, then the domain.
    order = (*range(len(wanted), len(wanted) + own), *range(len(wanted)))
    columns = tuple(Column(f.type, f.nullable, index=i, name=f.name) for i in order for f in (met.schema[i],))
    plan = Project(met, columns, tuple(c.name for c in columns))
    domain = tuple(
        Column(f.type, f.nullable, index=i, name=f.name) for i, f in zip(wanted, fields, strict=True)
    )
    shared: list[Expression] = []
    for n, value in enumerate(domain):
        # The outer query finds its rows by equality with the domain, NULL equal to NULL.
        mine = Column(value.type, value.nullable, index=rows.width + own + n, name=value.name)
        # i.x > o.y is never TRUE for a NULL y, so a plain = finds the same rows
        if value.nullable and not any(_refuses_null(part, value.index) for part in rows.shared):
            shared += _alike(value, mine, span)
        else:
            shared.append(_equal(value, mine))
    # Outer columns that the select list reads come from the domain.
    outer = {i: own + n for n, i in enumerate(wanted)}
    return DomainRows(plan, rows.width, rows.scope, tuple(shared), rows.items, {}, outer, domain)


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


def _equal(left: Expression, right: Expression) -> Call:
    return Call(BOOLEAN, left.nullable or right.nullable, function="equal", args=(left, right))


def _alike(left: Expression, right: Expression, span: Span | None) -> list[Expression]:
    """Return two equalities that both hold exactly where two values are equal or both NULL."""
    flags = [Call(BOOLEAN, False, function="is_null", args=(side,)) for side in (left, right)]
    # COALESCE(a, 0) = COALESCE(b, 0); the flags tell a NULL from a real 0
    filled = [_filled(side, span) for side in (left, right)]
    return [_equal(*flags), _equal(*filled)]


def _filled(value: Expression, span: Span | None) -> Expression:
    zero = _zero(value.type)
    if zero is None:
        if isinstance(value.type, Array | Map | Row | Binary):
            hint = "say that the column is NOT NULL, or join with a query in FROM"
            message = f"a scalar subquery cannot be correlated by a {value.type} that may be NULL"
            raise PenstockError("SQL-1601", message, span=span, hint=hint, sqlstate="0A000")
        # Types without a zero are compared by a value that maps one to one: microseconds or text.
        if isinstance(value.type, TimestampLtz):  # as text two instants of an hour that comes twice are one
            value, zero = (
                Call(BIGINT, True, function="unix_micros", args=(value,)),
                Literal(BIGINT, False, value=0),
            )
        else:
            value, zero = Cast(STRING, True, arg=value), Literal(STRING, False, value="")
    null = Call(BOOLEAN, False, function="is_null", args=(value,))
    return Case(value.type, False, whens=((null, zero),), default=value)


def _zero(kind: DataType) -> Literal | None:
    match kind:
        case TinyInt() | SmallInt() | Int() | BigInt():
            return Literal(kind, False, value=0)
        case Float() | Double():
            return Literal(kind, False, value=0.0)
        case Decimal(scale=scale):
            return Literal(kind, False, value=PyDecimal(0).scaleb(-scale))
        case _:
            return None


def first_rows(
    rows: InnerRows, query: exp.Expr, context: BindContext, listed: Sequence[Expression] = ()
) -> InnerRows:
    """Return the Top-N of a correlated subquery: its first rows per value of the correlating columns.
    ``listed`` expressions may read outer columns too.

    Raises SQL-1601 for ORDER BY or LIMIT alone, and for OFFSET.
    """
    span = span_of(query)
    limit = query.args.get("limit")
    # Top-N per outer row: LIMIT without an order would choose rows at random.
    if limit is None or query.args.get("offset") is not None or query.args.get("order") is None:
        message = "a correlated subquery needs ORDER BY and LIMIT together, without OFFSET"
        raise PenstockError(
            "SQL-1601", message, span=span, hint="write ORDER BY .. LIMIT n", sqlstate="0A000"
        )
    bound = ExpressionBinder(Scope(), context, "LIMIT").bind(limit)
    # LIMIT 0 would be no partition at all
    if not isinstance(bound, Literal) or not isinstance(bound.value, int) or bound.value < 1:
        raise PenstockError(
            "SQL-1012", "LIMIT takes a whole number above zero here", span=span_of(limit), sqlstate="2201W"
        )
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
    if reads or any(key_pair(part, rows.width) is None for part in rows.shared):
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
