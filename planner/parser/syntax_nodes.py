"""The few syntax nodes sqlglot has no word for, and where a node stands in the text.

The syntax nodes of MATCH_RECOGNIZE.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import DataType

NOWHERE = Span(0, 0)


class FunctionCall(exp.Expression):
    """A call by the name the user wrote: ``this`` name, ``expressions`` arguments, ``distinct``, ``star`` for
    COUNT(*), ``filter``, ``over``.

    ``order``: the ORDER BY among its arguments; ``within``: that of WITHIN GROUP; ``nulls``: IGNORE or
    RESPECT.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        **dict.fromkeys(
            ("expressions", "distinct", "star", "order", "within", "nulls", "filter", "over"), False
        ),
    }


class OverClause(exp.Expression):
    """``OVER (..)``: ``partition`` and ``order`` lists, ``unit`` ROWS or RANGE with the bounds ``first`` and
    ``last`` (no unit: no frame written).

    ``name``: the named window it stands for, until the parser has put that in its place.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "name": False,
        "partition": False,
        "order": False,
        "unit": False,
        "first": False,
        "last": False,
    }


class FrameBound(exp.Expression):
    """One end of a frame: ``this`` the distance (none: without end, or the row itself when ``current``),
    ``following`` its side.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "current": False, "following": False}


class Reference(exp.Expression):
    """A name path as written, ``a`` or ``t.a`` or ``t.a.field``: ``expressions`` are its identifiers; the
    binder says what each part is.
    """

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class AllColumns(exp.Expression):
    """``*`` or ``t.*``, with ``EXCEPT (columns)``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "except_": False}


class TypedLiteral(exp.Expression):
    """``TIMESTAMP '..'``, ``DATE '..'``: the string and the upper-case type word."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


class IntervalLiteral(exp.Expression):
    """``INTERVAL '5' MINUTE``: the value's text, its sign, the first unit (none: units are in the text)
    and the last one of a span.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "negative": False, "unit": False, "last": False}


class HostValue(exp.Expression):
    """A value of the Python program; it is held in ``meta['value']``."""

    arg_types: ClassVar[dict[str, bool]] = {}


class CastTo(exp.Expression):
    """CAST or TRY_CAST; the SQL type is held in ``meta['sql_type']``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "safe": False}

    @property
    def sql_type(self) -> DataType:
        """The type to cast to."""
        return self.meta["sql_type"]


class GroupingSets(exp.Expression):
    """The grouping sets of a GROUP BY, multiplied out: ``expressions`` are tuples of keys."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class ColumnAt(exp.Expression):
    """A column the binder has put among the rows itself; its position is held in ``meta['index']``,
    ``this`` is its name.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class EmitClause(exp.Expression):
    """``EMIT ..``: ``this`` what is given, ``every`` and ``lateness`` intervals."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "every": False, "lateness": False}


class HistoryClause(exp.Expression):
    """``WITH HISTORY``."""

    arg_types: ClassVar[dict[str, bool]] = {}


class NamedArgument(exp.Expression):
    """``NAME => value`` in a windowing function."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class Descriptor(exp.Expression):
    """``DESCRIPTOR(column)``."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class TableArgument(exp.Expression):
    """``TABLE t [PARTITION BY ..] [ORDER BY ..]`` or ``TABLE (query)``, the argument of a windowing
    function; ``partition`` and ``order`` are lists of identifiers.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "partition": False, "order": False}


class RowCount(exp.Expression):
    """``100 ROWS`` as the length of a window: ``this`` the number."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class WindowTableFunction(exp.Expression):
    """TUMBLE, HOP, CUMULATE or SESSION in FROM: ``this`` the upper-case name, ``expressions`` the
    arguments, ``alias``.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False, "alias": False}


class TableFunctionCall(exp.Expression):
    """A table function in FROM: ``this`` its name, ``expressions`` the arguments, ``alias``, WITH
    ``ordinality``, LATERAL VIEW ``outer``.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expressions": False,
        "alias": False,
        "ordinality": False,
        "outer": False,
    }


class LambdaFunction(exp.Expression):
    """``(x, y) -> body`` as an argument: ``expressions`` its parameters, ``this`` its body."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class LateralQuery(exp.Expression):
    """``LATERAL (query)``: a query that may read what stands before it in FROM."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": False}


class SnapshotTable(exp.Expression):
    """``LATERAL SNAPSHOT(input => TABLE t, ..)``: ``expressions`` the arguments, ``alias``, ``lateral``
    whether that word stands before it.
    """

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False, "alias": False, "lateral": False}


class RoundedTo(exp.Expression):
    """``FLOOR(x TO unit)``, ``CEIL(x TO unit)``: ``unit`` a string, ``up`` for CEIL."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": True, "up": False}


class AsOf(exp.Expression):
    """``t FOR SYSTEM_TIME AS OF time`` behind JOIN: ``this`` the table with its alias, ``expression`` the
    time.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


@dataclass(frozen=True)
class OptionEntry:
    """One ``'key' = 'value'``; the key is folded to lower case."""

    key: str
    value: str
    key_span: Span = field(default=NOWHERE, compare=False)
    value_span: Span = field(default=NOWHERE, compare=False)


def set_span(node: exp.Expr, start: int, end: int) -> Any:
    """Set the span of a node to the characters from ``start`` up to ``end`` (exclusive); return the node."""
    node.meta["start"] = start
    node.meta["end"] = end - 1
    return node


def span_of(node: exp.Expr | None) -> Span | None:
    """Return the span of a node in the statement; ``None`` for a node that was not written there."""
    if node is None or "start" not in node.meta:
        return None
    return Span(node.meta["start"], node.meta["end"] + 1)


def balanced(kind: type[exp.Expr], operands: list[exp.Expr]) -> exp.Expr:
    """Join operands of an associative connective into a tree of logarithmic depth."""
    while len(operands) > 1:
        pairs = [
            set_span(kind(this=a, expression=b), a.meta["start"], b.meta["end"] + 1)
            for a, b in zip(operands[::2], operands[1::2], strict=False)
        ]
        operands = pairs + ([operands[-1]] if len(operands) % 2 else [])
    return operands[0]


def moved(tree: exp.Expr, span: Span | None) -> exp.Expr:
    """Make a whole tree stand at one place: that of the view it is the query of."""
    for node in tree.walk():
        if span is not None:
            set_span(node, span.start, span.end)
        else:
            node.meta.pop("start", None)
    return tree


_CLAUSE_WORDS = {
    "joins": "JOIN",
    "with_": "WITH",
    "order": "ORDER BY",
    "within": "WITHIN GROUP",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "distinct": "DISTINCT",
    "filter": "FILTER",
    "over": "OVER",
    "emit": "EMIT",
    "late_rows": "LATE ROWS INTO",
    "history": "WITH HISTORY",
    "qualify": "QUALIFY",
}


def consume(node: exp.Expr, *names: str) -> None:
    """Refuse a node that carries something its reader does not read: nothing a parser lets through is ever
    dropped in silence.
    """
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []):
            word = _CLAUSE_WORDS.get(name, name.strip("_").upper().replace("_", " "))
            where = (
                value
                if isinstance(value, exp.Expr)
                else value[0]
                if isinstance(value, list) and isinstance(value[0], exp.Expr)
                else node
            )
            raise PenstockError(
                "SQL-1601",
                f"{word} is not supported here",
                span=span_of(where) or span_of(node),
                sqlstate="0A000",
            )


class Semantics(exp.Expression):
    """``RUNNING call`` or ``FINAL call``: ``this`` the call, ``final``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "final": False}


class RowDefinition(exp.Expression):
    """``v AS condition`` in DEFINE: ``this`` the condition, ``alias`` the variable."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": True}


class RowSubset(exp.Expression):
    """``U = (A, B)`` in SUBSET: ``this`` the new name, ``expressions`` the variables."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class AfterMatch(exp.Expression):
    """AFTER MATCH SKIP: ``kind`` past, next, first or last; ``this`` the variable of the latter two."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "kind": True}


class RowPattern(exp.Expression):
    """The text between PATTERN's parentheses: ``this`` as written; it stands at its place."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class RowMatches(exp.Expression):
    """``t MATCH_RECOGNIZE (..)`` in FROM; ``all_rows`` for ALL ROWS PER MATCH."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "partition": False,
        "order": False,
        "measures": False,
        "all_rows": False,
        "skip": False,
        "pattern": True,
        "within": False,
        "subsets": False,
        "defines": True,
        "alias": False,
    }
