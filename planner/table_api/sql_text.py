"""The Table API's trees as SQL text. The text binds to the plan that the tree binds to. Names are quoted
where they need it, and each value is a literal of its own type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.persistence.show_create import quoted_name, quoted_text, type_text
from penstock.planner.parser.keywords import KEYWORDS
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    CastTo,
    FrameBound,
    FunctionCall,
    HostValue,
    IntervalLiteral,
    OverClause,
    Reference,
)

Lines = tuple[str, ...]
# keys of a tree's meta: the SQL text it was parsed from, and the clauses that were added to it since
TEXT, ADDED = "text", "added"

# names that mean the same without quotes; the parser folds no case, so neither does this
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "AND",
    exp.Or: "OR",
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
    exp.RegexpLike: "RLIKE",
}


def name_text(name: str) -> str:
    """Return a name as SQL reads it back, in backticks unless it is a plain word and no keyword."""
    return name if _PLAIN.fullmatch(name) and name.upper() not in KEYWORDS else quoted_name(name)


def path_text(name: str) -> str:
    """Return a relation's name, which may have catalog and database before dots."""
    return ".".join(map(name_text, name.split(".")))


def names_text(names: Sequence[str]) -> str:
    """Return a list of names."""
    return ", ".join(map(name_text, names))


def indented(lines: Lines) -> Lines:
    """Return lines two blanks further right. A line break within a line is part of a value: it stays."""
    return tuple("  " + line for line in lines)


def value_text(value: Any) -> str:
    """Return a Python value as a literal. Raises SQL-1014 for a value that has no SQL type."""
    match value:
        case None:
            return "NULL"
        # before int: bool is an int in Python
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return _signed(str(value))
        case float():
            return _float_text(value)
        # BD: 1.50 keeps its scale, and 100 is no INT
        case Decimal() if value.is_finite():
            return _signed(f"{value:f}BD")
        case str():
            return quoted_text(value)
        case bytes():
            return f"X'{value.hex()}'"
        # before date: a datetime is a date in Python; an instant is written in UTC
        case datetime():
            zoned = value.tzinfo is not None
            moment = (value.astimezone(UTC) if zoned else value).isoformat(sep=" ")
            return f"{'TIMESTAMP_LTZ' if zoned else 'TIMESTAMP'} '{moment}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case time():
            return f"TIME '{value.isoformat()}'"
        case timedelta():
            return _interval_text(value)
        case UUID():
            return quoted_text(str(value))
        case list() | tuple():
            return f"ARRAY[{', '.join(map(value_text, value))}]"
        case dict() if value:
            parts = ", ".join(value_text(part) for item in value.items() for part in item)
            # a row where all keys are names, as parameters are bound
            return f"NAMED_STRUCT({parts})" if all(isinstance(key, str) for key in value) else f"MAP[{parts}]"
    message = f"a constant of Python type {type(value).__name__} has no SQL type"
    hint = "use None, a number, str, bytes, date, time, datetime, timedelta, UUID, list or dict"
    raise PenstockError("SQL-1014", message, hint=hint)


def _signed(text: str) -> str:
    # a - -1 without parentheses would begin a comment
    return f"({text})" if text.startswith("-") else text


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"CAST('{name}' AS DOUBLE)"
    text = repr(value)
    # 1.5 is a DECIMAL, 1.5e0 a DOUBLE
    return _signed(text if "e" in text else text + "e0")


def _interval_text(value: timedelta) -> str:
    # in integers: a float of seconds would lose microseconds
    total = value // timedelta(microseconds=1)
    seconds, micros = divmod(abs(total), 1_000_000)
    fraction = f".{micros:06}" if micros else ""
    return f"INTERVAL '{'-' if total < 0 else ''}{seconds}{fraction}' SECOND"


def expression_text(tree: exp.Expr) -> str:
    """Return the text of an expression, a select item or a sort item that Python operators built."""
    # expr("a + 1"), order_by="a DESC": parsed from text, which is written again
    text = tree.meta.get(TEXT)
    if text is not None:
        return str(text) + _clauses_text(tree, tree.meta.get(ADDED, ()))
    symbol = _BINARY.get(type(tree))
    if symbol is not None:
        return f"({expression_text(tree.this)} {symbol} {expression_text(tree.expression)})"
    writer = _WRITERS.get(type(tree))
    # a node that only SQL text builds keeps that text; Python operators build those of the table
    assert writer is not None, type(tree).__name__
    return writer(tree)


def outer_text(tree: exp.Expr) -> str:
    """Return the text of a whole expression, without the parentheses that it needs inside another."""
    text = expression_text(tree)
    wrapped = type(tree) in _BINARY or isinstance(tree, exp.In | exp.Is | exp.Between | exp.Neg | exp.Not)
    return text[1:-1] if wrapped and tree.meta.get(TEXT) is None else text


def _listed(trees: Sequence[exp.Expr]) -> str:
    return ", ".join(map(expression_text, trees))


def _star_text(tree: exp.Expr) -> str:
    hidden = tree.args.get("except_") or []
    return f"* EXCEPT ({names_text([name.name for name in hidden])})" if hidden else "*"


def _in_text(tree: exp.Expr) -> str:
    return f"({expression_text(tree.this)} IN ({_listed(tree.expressions)}))"


def _between_text(tree: exp.Expr) -> str:
    low, high = expression_text(tree.args["low"]), expression_text(tree.args["high"])
    return f"({expression_text(tree.this)} BETWEEN {low} AND {high})"


def _not_text(tree: exp.Expr) -> str:
    # a IS NOT NULL is a predicate of its own in a plan
    if isinstance(tree.this, exp.Is):
        return f"({expression_text(tree.this.this)} IS NOT {expression_text(tree.this.expression)})"
    return f"(NOT {expression_text(tree.this)})"


def _case_text(tree: exp.Expr) -> str:
    branches = " ".join(
        f"WHEN {expression_text(branch.this)} THEN {expression_text(branch.args['true'])}"
        for branch in tree.args["ifs"]
    )
    default = tree.args.get("default")
    return f"CASE {branches}{'' if default is None else f' ELSE {expression_text(default)}'} END"


def _sort_text(tree: exp.Expr) -> str:
    descending, first = bool(tree.args.get("desc")), bool(tree.args.get("nulls_first"))
    # NULLS FIRST is the default of ASC, NULLS LAST that of DESC
    nulls = "" if first is not descending else f" NULLS {'FIRST' if first else 'LAST'}"
    return f"{expression_text(tree.this)}{' DESC' if descending else ''}{nulls}"


def _call_text(tree: exp.Expr) -> str:
    star = tree.args.get("star")
    distinct = "DISTINCT " if tree.args.get("distinct") else ""
    function = str(tree.this)
    # LEFT(x, 2): a function may be called as a keyword is, but not in backticks
    name = function if _PLAIN.fullmatch(function) else quoted_name(function)
    text = f"{name}({'*' if star else distinct + _listed(tree.expressions)})"
    return text + _clauses_text(tree, ("filter", "over"))


def _clauses_text(tree: exp.Expr, clauses: Sequence[str]) -> str:
    condition, over = tree.args.get("filter"), tree.args.get("over")
    text = ""
    if "filter" in clauses and condition is not None:
        text += f" FILTER (WHERE {expression_text(condition)})"
    if "over" in clauses and over is not None:
        text += f" OVER ({_over_text(over)})"
    return text


def _over_text(tree: OverClause) -> str:
    parts = []
    if tree.args.get("partition"):
        parts.append(f"PARTITION BY {_listed(tree.args['partition'])}")
    if tree.args.get("order"):
        parts.append(f"ORDER BY {_listed(tree.args['order'])}")
    if tree.args.get("unit"):
        first, last = _bound_text(tree.args["first"]), _bound_text(tree.args["last"])
        parts.append(f"{tree.args['unit']} BETWEEN {first} AND {last}")
    return " ".join(parts)


def _bound_text(tree: FrameBound) -> str:
    if tree.args.get("current"):
        return "CURRENT ROW"
    distance = "UNBOUNDED" if tree.this is None else expression_text(tree.this)
    return f"{distance} {'FOLLOWING' if tree.args.get('following') else 'PRECEDING'}"


_WRITERS: dict[type[exp.Expr], Callable[[Any], str]] = {
    Reference: lambda tree: ".".join(name_text(part.name) for part in tree.expressions),
    HostValue: lambda tree: value_text(tree.meta["value"]),
    exp.Literal: lambda tree: str(tree.this),
    IntervalLiteral: lambda tree: f"INTERVAL {quoted_text(tree.this)} {tree.args.get('unit') or ''}".strip(),
    AllColumns: _star_text,
    FunctionCall: _call_text,
    CastTo: lambda tree: (
        f"{'TRY_CAST' if tree.args.get('safe') else 'CAST'}"
        f"({expression_text(tree.this)} AS {type_text(tree.sql_type)})"
    ),
    exp.Alias: lambda tree: f"{expression_text(tree.this)} AS {name_text(tree.args['alias'].name)}",
    exp.Ordered: _sort_text,
    exp.Neg: lambda tree: f"(-{expression_text(tree.this)})",
    exp.Not: _not_text,
    exp.Null: lambda tree: "NULL",
    exp.Is: lambda tree: f"({expression_text(tree.this)} IS {expression_text(tree.expression)})",
    exp.In: _in_text,
    exp.Between: _between_text,
    exp.Case: _case_text,
    exp.Bracket: lambda tree: f"{expression_text(tree.this)}[{_listed(tree.expressions)}]",
}
