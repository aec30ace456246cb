"""The domain of a correlated subquery: a placeholder for the distinct values of the outer columns that it
reads, and equality of values that may be NULL.
"""

from __future__ import annotations

from decimal import Decimal as PyDecimal

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
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
from penstock.planner.expressions.nodes import Call, Case, Cast, Expression, Literal
from penstock.planner.logical.plan import LogicalPlan


@dataclass(frozen=True)
class OuterValues(LogicalPlan):
    """A placeholder for the distinct values of outer columns, until the plan of the outer rows replaces it.
    It never leaves the binder.
    """

    values: Schema

    @property
    def schema(self) -> Schema:
        return self.values


def equal(left: Expression, right: Expression) -> Call:
    """Return the equality of two values of one type."""
    return Call(BOOLEAN, left.nullable or right.nullable, function="equal", args=(left, right))


def alike(left: Expression, right: Expression, span: Span | None) -> list[Expression]:
    """Return two equalities that both hold exactly where two values are equal or both NULL."""
    flags = [Call(BOOLEAN, False, function="is_null", args=(side,)) for side in (left, right)]
    # COALESCE(a, 0) = COALESCE(b, 0); the flags tell a NULL from a real 0
    filled = [_filled(side, span) for side in (left, right)]
    return [equal(*flags), equal(*filled)]


def _filled(value: Expression, span: Span | None) -> Expression:
    zero = _zero(value.type)
    if zero is None:
        if isinstance(value.type, Map | Row):
            hint = "say that the column is NOT NULL, or join with a query in FROM"
            message = f"a subquery cannot be correlated by a {value.type} that may be NULL"
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


def _zero(kind: DataType) -> Expression | None:
    match kind:
        case Array():
            return Call(kind, False, function="array", args=())
        case Binary():
            return Literal(kind, False, value=b"")
        case TinyInt() | SmallInt() | Int() | BigInt():
            return Literal(kind, False, value=0)
        case Float() | Double():
            return Literal(kind, False, value=0.0)
        case Decimal(scale=scale):
            return Literal(kind, False, value=PyDecimal(0).scaleb(-scale))
        case _:
            return None
