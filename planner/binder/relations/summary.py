"""SUMMARIZE as one aggregate of a whole table: a row of facts for each of its columns, as DuckDB has it."""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.coercion import is_orderable
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Role
from penstock.catalog.types import (
    BIGINT,
    DOUBLE,
    STRING,
    Boolean,
    DataType,
    Date,
    Decimal,
    String,
    Time,
    is_numeric,
    is_timestamp,
)
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.scope import Relation
from penstock.planner.logical.scan import endless
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    CastTo,
    FunctionCall,
    Reference,
    SummarizedTable,
    TableFunctionCall,
    consume,
    moved,
    span_of,
)

_TABLE = "$summarized"
"""What the query calls the table; no statement can write this name."""
_COLUMNS = (
    "column_name", "column_type", "min", "max", "approx_unique", "avg", "std", "q25", "q50", "q75", "count",
    "null_percentage",
)  # fmt: skip
_SHARES = ("0.25", "0.5", "0.75")


def bind_summary(tree: SummarizedTable, table: Relation, context: BindContext) -> Relation:
    """Return a row for each column of a table: its type, its least and greatest value, how many different
    ones it has, mean and spread of numbers, quartiles of numbers and times, and the share of NULLs.

    Raises SQL-1601 for a table that does not end.
    """
    consume(tree, "this", "alias")
    if endless(table.plan):
        raise PenstockError(
            "SQL-1601",
            "SUMMARIZE of a table that does not end is not supported",
            span=span_of(tree),
            hint="write SELECT COUNT(*), MIN(COLUMNS(*)), MAX(COLUMNS(*)) FROM t, whose row is updated",
            sqlstate="0A000",
        )
    # by position: two columns may have one name
    names = [f"c{index}" for index in range(len(table.fields))]
    rows = [_row(field, name) for field, name in zip(table.fields, names, strict=True)]
    query = moved(_one_row_each(_call("array", *rows)), span_of(tree))
    return context.with_table(_TABLE, table.renamed(names)).query(query)


def _one_row_each(rows: exp.Expr) -> exp.Select:
    """Return ``SELECT u.* FROM (SELECT rows AS a FROM table) AS t CROSS JOIN UNNEST(t.a) AS u (columns)``."""
    inner = exp.Select(
        expressions=[exp.Alias(this=rows, alias=exp.to_identifier("a"))],
        from_=exp.From(this=exp.Table(this=exp.to_identifier(_TABLE, quoted=True))),
    )
    unnested = TableFunctionCall(
        this="UNNEST",
        expressions=[_column("t", "a")],
        alias=exp.TableAlias(
            this=exp.to_identifier("u"),
            columns=[exp.to_identifier(name, quoted=True) for name in _COLUMNS],
        ),
    )
    return exp.Select(
        expressions=[AllColumns(this=exp.to_identifier("u"))],
        from_=exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("t")))),
        joins=[exp.Join(this=unnested, kind="CROSS")],
    )


def _row(field: Field, name: str) -> exp.Expr:
    """Return the row of a column, whose parts have the types of every column's row."""
    kind = field.type
    # the clock is no value of the table
    readable = field.role is not Role.PROCESSING_TIME
    number, timed = is_numeric(kind), isinstance(kind, Date | Time) or is_timestamp(kind)
    shown = readable and (number or timed or isinstance(kind, String | Boolean))
    ranked = readable and (number or timed) and not isinstance(kind, Time)

    def fact(given: bool, call: str, *args: exp.Expr, **clauses: bool) -> exp.Expr:
        return _call(call, _column(name), *args, **clauses) if given else exp.Null()

    rows = _call("count", star=True)
    absent = _call("count_if", exp.Is(this=_column(name), expression=exp.Null()))
    share = exp.Div(
        this=exp.Mul(this=_number("100"), expression=absent if readable else _number("0")),
        expression=_call("nullif", rows.copy(), _number("0")),
    )
    parts = [
        *(exp.Literal.string(field.name), exp.Literal.string(str(kind))),
        *(_cast(fact(shown, call), STRING) for call in ("min", "max")),
        _cast(fact(readable and is_orderable(kind), "count", distinct=True), BIGINT),
        *(_cast(fact(readable and number, call), DOUBLE) for call in ("avg", "stddev_samp")),
        *(_cast(fact(ranked, "percentile_approx", _number(of)), STRING) for of in _SHARES),
        *(rows, _cast(share, Decimal(9, 2))),
    ]
    named = (part for pair in zip(map(exp.Literal.string, _COLUMNS), parts, strict=True) for part in pair)
    return _call("named_struct", *named)


def _call(name: str, *args: exp.Expr, **clauses: bool) -> FunctionCall:
    return FunctionCall(this=name, expressions=list(args), **clauses)


def _column(*parts: str) -> Reference:
    return Reference(expressions=[exp.to_identifier(part) for part in parts])


def _number(text: str) -> exp.Expr:
    return exp.Literal.number(text)


def _cast(value: exp.Expr, kind: DataType) -> CastTo:
    node = CastTo(this=value, safe=False)
    node.meta["sql_type"] = kind
    return node
