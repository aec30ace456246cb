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
from penstock.planner.binder.built_syntax import call, column, from_table, is_null, named, number
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.scope import Relation
from penstock.planner.logical.scan import endless
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    CastTo,
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
    query = moved(_one_row_each(call("array", *rows)), span_of(tree))
    return context.with_table(_TABLE, table.renamed(names)).query(query)


def _one_row_each(rows: exp.Expr) -> exp.Select:
    """Return ``SELECT u.* FROM (SELECT rows AS a FROM table) AS t CROSS JOIN UNNEST(t.a) AS u (columns)``."""
    inner = exp.Select(
        expressions=[named(rows, "a")],
        from_=from_table(_TABLE),
    )
    unnested = TableFunctionCall(
        this="UNNEST",
        expressions=[column("t", "a")],
        alias=exp.TableAlias(
            this=exp.to_identifier("u"),
            columns=[exp.to_identifier(name, quoted=True) for name in _COLUMNS],
        ),
    )
    return exp.Select(
        expressions=[AllColumns(this=exp.to_identifier("u"))],
        from_=from_table(exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("t")))),
        joins=[exp.Join(this=unnested, kind="CROSS")],
    )


def _row(field: Field, name: str) -> exp.Expr:
    """Return the row of a column, whose parts have the types of every column's row."""
    kind = field.type
    # the clock is no value of the table
    readable = field.role is not Role.PROCESSING_TIME
    numeric, timed = is_numeric(kind), isinstance(kind, Date | Time) or is_timestamp(kind)
    shown = readable and (numeric or timed or isinstance(kind, String | Boolean))
    ranked = readable and (numeric or timed) and not isinstance(kind, Time)

    def fact(given: bool, function: str, *args: exp.Expr, **clauses: bool) -> exp.Expr:
        return call(function, column(name), *args, **clauses) if given else exp.Null()

    rows = call("count", star=True)
    absent = call("count_if", is_null(column(name)))
    share = exp.Div(
        this=exp.Mul(this=number("100"), expression=absent if readable else number("0")),
        expression=call("nullif", rows.copy(), number("0")),
    )
    parts = [
        *(exp.Literal.string(field.name), exp.Literal.string(str(kind))),
        *(_cast(fact(shown, function), STRING) for function in ("min", "max")),
        _cast(fact(readable and is_orderable(kind), "count", distinct=True), BIGINT),
        *(_cast(fact(readable and numeric, function), DOUBLE) for function in ("avg", "stddev_samp")),
        *(_cast(fact(ranked, "percentile_approx", number(of)), STRING) for of in _SHARES),
        *(rows, _cast(share, Decimal(9, 2))),
    ]
    named = (part for pair in zip(map(exp.Literal.string, _COLUMNS), parts, strict=True) for part in pair)
    return call("named_struct", *named)


def _cast(value: exp.Expr, kind: DataType) -> CastTo:
    node = CastTo(this=value, safe=False)
    node.meta["sql_type"] = kind
    return node
