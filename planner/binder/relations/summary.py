"""SUMMARIZE as one aggregate of a whole table: a row of facts for each of its columns, as DuckDB has it."""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.coercion import is_orderable
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Role
from penstock.catalog.types import Boolean, Date, String, Time, is_numeric, is_timestamp
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.scope import Relation
from penstock.planner.logical.scan import endless
from penstock.planner.parser.query_parser import parse_query
from penstock.planner.parser.syntax_nodes import SummarizedTable, consume, span_of

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
    rows = ", ".join(_row(field, name) for field, name in zip(table.fields, names, strict=True))
    text = (
        f"SELECT u.* FROM (SELECT ARRAY[{rows}] AS a FROM `{_TABLE}`) AS t "
        f"CROSS JOIN UNNEST(t.a) AS u ({', '.join(f'`{name}`' for name in _COLUMNS)})"
    )
    query = parse_query(text)
    _set_spans(query, tree)
    return context.with_table(_TABLE, table.renamed(names)).query(query)


def _row(field: Field, name: str) -> str:
    """Return the row of a column, whose parts have the types of every column's row."""
    kind = field.type
    # the clock is no value of the table
    readable = field.role is not Role.PROCESSING_TIME
    number, timed = is_numeric(kind), isinstance(kind, Date | Time) or is_timestamp(kind)
    shown = readable and (number or timed or isinstance(kind, String | Boolean))
    ranked = readable and (number or timed) and not isinstance(kind, Time)
    parts = [_quoted(field.name), _quoted(str(kind))]
    parts += [_cast(f"{call}({name})" if shown else "NULL", "STRING") for call in ("min", "max")]
    parts.append(_cast(f"count(DISTINCT {name})" if readable and is_orderable(kind) else "NULL", "BIGINT"))
    parts += [
        _cast(f"{call}({name})" if readable and number else "NULL", "DOUBLE")
        for call in ("avg", "stddev_samp")
    ]
    parts += [
        _cast(f"percentile_approx({name}, {share})" if ranked else "NULL", "STRING") for share in _SHARES
    ]
    absent = f"count_if({name} IS NULL)" if readable else "0"
    parts += ["count(*)", _cast(f"100 * {absent} / nullif(count(*), 0)", "DECIMAL(9, 2)")]
    return (
        f"named_struct({', '.join(f'{_quoted(c)}, {part}' for c, part in zip(_COLUMNS, parts, strict=True))})"
    )


def _cast(value: str, kind: str) -> str:
    return f"CAST({value} AS {kind})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _set_spans(query: exp.Expr, tree: exp.Expr) -> None:
    """Give all parts of a query the span of the statement, for errors."""
    span = span_of(tree)
    for node in query.walk():
        if span is not None and "start" in node.meta:
            node.meta["start"], node.meta["end"] = span.start, span.end - 1
