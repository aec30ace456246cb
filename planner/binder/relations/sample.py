"""TABLESAMPLE as a filter by a hash of the rows' values: a row and its retraction are kept or left out alike,
in each run and on each runtime. Equal rows are all kept or all left out.
"""

from __future__ import annotations

from decimal import Decimal as Number

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.schema import Field, Role
from penstock.catalog.types import BIGINT, STRING, Array, DataType, Decimal, Map, Row, Time, Variant
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.scope import Relation, Scope
from penstock.planner.expressions.nodes import Cast, Column, Expression, Literal
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter
from penstock.planner.logical.sort import Limit
from penstock.planner.parser.syntax_nodes import SampledTable, consume, span_of

_PARTS = 1_000_000
"""A share is a number of so many parts: four digits behind the point of a percentage count."""

# Decimals of more digits are hashed by their bytes on Spark only
_MOST_DIGITS = 18


def bind_sample(tree: SampledTable, table: Relation, context: BindContext) -> Relation:
    """Return some rows of a table. Raises SQL-1012 for a share or a bucket out of its range."""
    consume(tree, "this", "share", "rows", "bucket", "by", "seed", "alias")
    binder = ExpressionBinder(Scope.of(table, None), context, "TABLESAMPLE")
    rows, bucket = tree.args.get("rows"), tree.args.get("bucket")
    if rows is not None:
        return Relation(Limit(table.plan, _whole(rows), 0), table.fields)
    span = span_of(tree)
    if bucket is not None:
        first, count = (_whole(number) for number in bucket)
        if not 1 <= first <= count:
            raise _out_of_range("buckets count from 1 to the number of them", bucket[0])
        test = "equal", _literal(count), _literal(first - 1)
    else:
        kept = _share(tree.args["share"])
        test = "less", _literal(_PARTS), _literal(kept)
    name, modulus, bound = test
    by = [binder.bind(node) for node in tree.args.get("by") or []]
    values = by or [
        _hashable(table.plan, i, field, binder, span)
        for i, field in enumerate(table.fields)
        if _tells_rows(field)
    ]
    if not values:
        raise PenstockError(
            "SQL-1601",
            "TABLESAMPLE has no column to choose rows by",
            span=span,
            hint="choose them by a key: WHERE pmod(xxhash64(key), 100) < 5",
            sqlstate="0A000",
        )
    if (seed := tree.args.get("seed")) is not None:
        values.append(_literal(_whole(seed)))
    if not by:
        context.note("TABLESAMPLE chooses rows by their values: equal rows are all kept or all left out")
    part = binder.call("pmod", [binder.call("xxhash64", values, span), modulus], span)
    return Relation(Filter(table.plan, binder.call(name, [part, bound], span)), table.fields)


def _tells_rows(field: Field) -> bool:
    """Return whether a column's value is that of the row: a clock's is another one each time."""
    return field.role is not Role.PROCESSING_TIME and not isinstance(field.type, Map | Variant)


def _hashable(
    plan: LogicalPlan, index: int, field: Field, binder: ExpressionBinder, span: Span | None
) -> Expression:
    column = Column(field.type, field.nullable, index=index, name=field.name, span=span)
    if isinstance(field.type, Array | Row):
        return binder.call("to_json", [column], span)
    return Cast(STRING, field.nullable, arg=column, span=span) if _is_wide(field.type) else column


def _is_wide(kind: DataType) -> bool:
    return isinstance(kind, Time) or (isinstance(kind, Decimal) and kind.precision > _MOST_DIGITS)


def _literal(value: int) -> Literal:
    return Literal(BIGINT, False, value=value)


def _whole(node: exp.Expr) -> int:
    if not node.name.isdigit():
        raise _out_of_range("a number of rows, a bucket and a seed are whole numbers", node)
    return int(node.name)


def _share(node: exp.Expr) -> int:
    share = Number(node.name)
    if share > 100:
        raise _out_of_range("a share is 0 to 100 of 100", node)
    return int(share * _PARTS / 100)


def _out_of_range(message: str, node: exp.Expr) -> PenstockError:
    return PenstockError(
        "SQL-1012",
        message,
        span=span_of(node),
        hint="write TABLESAMPLE (5 PERCENT), (10 ROWS) or (BUCKET 1 OUT OF 20)",
        sqlstate="2202H",
    )
