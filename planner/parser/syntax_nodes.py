"""Syntax nodes that sqlglot lacks, those of MATCH_RECOGNIZE among them, and the spans of nodes."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import DataType

# the span of nodes that were not written in a statement
NOWHERE = Span(0, 0)


class FunctionCall(exp.Expression):
    """A function call: ``this`` is the name as written, ``expressions`` the arguments, ``star`` is set for
    COUNT(*).

    ``order`` is the ORDER BY among the arguments, ``within`` that of WITHIN GROUP. ``nulls`` is IGNORE or
    RESPECT; of JSON functions it is NULL or ABSENT. ``from_last`` is FROM LAST of NTH_VALUE.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        **dict.fromkeys(
            ("expressions", "distinct", "star", "order", "within", "nulls", "from_last", "filter", "over"),
            False,
        ),
    }


class OverClause(exp.Expression):
    """``OVER (..)``: lists ``partition`` and ``order``, and a frame of ``unit`` ROWS, RANGE or GROUPS with
    bounds ``first`` and ``last``, and ``exclude``, the words behind EXCLUDE. Without a unit no frame was
    written.

    ``name`` is the name of a WINDOW clause; the parser replaces such a node by the named window, to which
    the other parts are added.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "name": False,
        "partition": False,
        "order": False,
        "unit": False,
        "first": False,
        "last": False,
        "exclude": False,
    }


class FrameBound(exp.Expression):
    """One bound of a frame: ``this`` is the distance, ``following`` the side. No distance is UNBOUNDED, or
    CURRENT ROW when ``current``.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "current": False, "following": False}


class Reference(exp.Expression):
    """A name path as written: ``a``, ``t.a`` or ``t.a.field``. ``expressions`` are its identifiers; the
    binder resolves each part.
    """

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class AllColumns(exp.Expression):
    """``*`` or ``t.*``, with ``EXCEPT (columns)``, ``REPLACE (value AS column)`` and ``RENAME (a AS b)``.
    ``path`` is the whole name of ``t.row.*``.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": False,
        "path": False,
        "except_": False,
        "replace": False,
        "rename": False,
    }


class TypedLiteral(exp.Expression):
    """``TIMESTAMP '..'``, ``DATE '..'``: the string, and the type word in upper case."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


class IntervalLiteral(exp.Expression):
    """``INTERVAL '5' MINUTE``: the value's text, its sign, its first unit and the last unit after TO. Without
    a unit the units are in the text.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "negative": False, "unit": False, "last": False}


class HostValue(exp.Expression):
    """A value of the Python program, in ``meta['value']``."""

    arg_types: ClassVar[dict[str, bool]] = {}


class CastTo(exp.Expression):
    """CAST, or TRY_CAST when ``safe``. The SQL type is in ``meta['sql_type']``, the units of an INTERVAL are
    in ``meta['interval_units']``.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "safe": False}

    @property
    def sql_type(self) -> DataType:
        """The target type."""
        return self.meta["sql_type"]

    @property
    def interval_units(self) -> tuple[str, ...]:
        """The first and the last unit of an INTERVAL, as written; nothing for another type."""
        return self.meta.get("interval_units", ())


class UnsignedRightShift(exp.Expression):
    """``a >>> n``: zeros come from above."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class GroupingSets(exp.Expression):
    """The grouping sets of a GROUP BY, multiplied out: ``expressions`` are tuples of keys. ``distinct``:
    equal sets count once.
    """

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True, "distinct": False}


class ColumnAt(exp.Expression):
    """A column that the binder itself added to the rows: ``this`` is its name, ``meta['index']`` its
    position.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class EmitClause(exp.Expression):
    """``EMIT ..``: ``this`` is the mode in lower case, ``every`` and ``lateness`` are intervals, ``rows``
    is a number.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "every": False, "rows": False, "lateness": False}


class HistoryClause(exp.Expression):
    """The clause ``WITH HISTORY``."""

    arg_types: ClassVar[dict[str, bool]] = {}


class NamedArgument(exp.Expression):
    """``NAME => value`` in a windowing function."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class Descriptor(exp.Expression):
    """``DESCRIPTOR(column)``."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class TableArgument(exp.Expression):
    """``TABLE t [PARTITION BY ..] [ORDER BY ..]`` or ``TABLE (query)``, the argument of a windowing function.
    ``partition`` is a list of identifiers, ``order`` one of ``exp.Ordered`` over identifiers.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "partition": False, "order": False}


class RowCount(exp.Expression):
    """``100 ROWS`` as the length of a window: ``this`` is the number."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class WindowTableFunction(exp.Expression):
    """A windowing function in FROM (TUMBLE, HOP, CUMULATE, SESSION): ``this`` is its name in upper case,
    ``expressions`` its arguments.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False, "alias": False}


class TableFunctionCall(exp.Expression):
    """A table function in FROM: ``this`` is its name, ``expressions`` its arguments. ``ordinality`` is WITH
    ORDINALITY, ``outer`` that of LATERAL VIEW OUTER.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expressions": False,
        "alias": False,
        "ordinality": False,
        "outer": False,
    }


class ProcessTableCall(exp.Expression):
    """A function over tables in FROM: ``this`` is the identifier of its name, ``expressions`` its
    arguments.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False, "alias": False}


class FileTable(exp.Table):
    """A file in FROM: ``path``, its ``format`` where a function says it, and ``this``, the name of its
    columns' table. The options of the function are its meta ``entries``.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "path": True, "format": False, "alias": False}


class StateTable(exp.Table):
    """A state in FROM: ``reference`` is a ``StateReference``, ``this`` the name of its columns' table."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "reference": True, "alias": False}


class ViewVersion(exp.Table):
    """``view AS OF CHECKPOINT n`` or ``AS OF TIMESTAMP '..'``: ``moment`` is the number or the time."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "checkpoint": True, "moment": True, "alias": False}


class VersionDifference(exp.Table):
    """``DIFF(before, after)`` of two versions of a view."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "before": True, "after": True, "alias": False}


class LambdaFunction(exp.Expression):
    """``(x, y) -> body`` as an argument: ``expressions`` are its parameters, ``this`` its body."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class LateralQuery(exp.Expression):
    """``LATERAL (query)``: a query that may read the preceding tables of FROM."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": False}


class SampledTable(exp.Expression):
    """``t TABLESAMPLE (..)``: ``share`` is a number of 100, ``rows`` a number of rows, ``bucket`` a bucket
    and of how many; one of the three is set. ``by`` are the expressions of ON, ``seed`` that of REPEATABLE.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "share": False,
        "rows": False,
        "bucket": False,
        "by": False,
        "seed": False,
        "alias": False,
    }


class PivotedTable(exp.Expression):
    """``t PIVOT (SUM(x) AS s FOR (a, b) IN ((1, 2) AS c, ..))``: ``expressions`` are the aggregates, perhaps
    with aliases, ``columns`` those of FOR, ``values`` the lists of IN, each an alias of a tuple.

    Of DuckDB's statement ``columns`` may be expressions, ``keys`` are the columns of GROUP BY, and with
    ``titled`` the alias of a single aggregate is in the names of columns.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expressions": True,
        "columns": True,
        "values": True,
        "keys": False,
        "titled": False,
        "alias": False,
    }


class UnpivotedTable(exp.Expression):
    """``t UNPIVOT (v FOR n IN (a, b AS 'x'))``: ``values`` are the new columns, ``name`` the column of names,
    ``columns`` the lists of IN, each an alias of a tuple of columns. ``nulls``: rows of NULLs stay.

    Of DuckDB's statement the parts of ``columns`` may be expressions, and COLUMNS(..). ``complete``: a row
    with one NULL of several values is left out too.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "values": True,
        "name": True,
        "columns": True,
        "nulls": False,
        "complete": False,
        "alias": False,
    }


class SummarizedTable(exp.Expression):
    """``SUMMARIZE t`` and ``SUMMARIZE SELECT ..``: ``this`` is the table, or the query as a subquery."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": False}


class SnapshotTable(exp.Expression):
    """``LATERAL SNAPSHOT(input => TABLE t, ..)``: ``expressions`` are the arguments, ``lateral`` is set when
    the word LATERAL was written.
    """

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False, "alias": False, "lateral": False}


class JoinedTables(exp.Expression):
    """``(a JOIN b ON ..)`` in FROM: ``this`` is the first table, ``joins`` follow it."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "joins": True}


class AnyOf(exp.Expression):
    """``x < ANY (query)`` by any comparison but equality; ``function`` is its name, such as ``less``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "query": True, "function": True}


class ArrayOf(exp.Expression):
    """``ARRAY(query)``: the values of the query's one column, NULLs among them."""

    arg_types: ClassVar[dict[str, bool]] = {"query": True}


class RoundedTo(exp.Expression):
    """``FLOOR(x TO unit)`` or, with ``up``, ``CEIL(x TO unit)``; ``unit`` is a string literal."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": True, "up": False}


class RowChange(exp.Expression):
    """UPDATE, DELETE or MERGE, by ``kind``: ``this`` is the table with its alias. UPDATE has ``assignments``,
    and ``where`` as DELETE; MERGE has the table ``source``, its condition ``on``, and ``actions``.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "this": True,
        "assignments": False,
        "where": False,
        "source": False,
        "on": False,
        "actions": False,
    }


class Assignment(exp.Expression):
    """``a = value`` in SET: ``this`` is the identifier of the column."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class MergeAction(exp.Expression):
    """``WHEN .. THEN ..`` of MERGE: ``matched`` says by what, ``both``, ``target`` or ``source``, and
    ``kind`` is UPDATE, DELETE, INSERT or NOTHING. ``every`` is ``*``; INSERT has ``columns`` and the tuple
    ``values``.

    Of ``target`` is a row of the source that no row of the target matches, of ``source`` the other way round.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "matched": True,
        "condition": False,
        "kind": True,
        "every": False,
        "assignments": False,
        "columns": False,
        "values": False,
    }


class AsOf(exp.Expression):
    """``t FOR SYSTEM_TIME AS OF time`` behind JOIN: ``this`` is the table with its alias, ``expression`` the
    time.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


@dataclass(frozen=True)
class OptionEntry:
    """One ``'key' = 'value'``. The key is in lower case, except of Spark settings and in the
    hints of SELECT.
    """

    key: str
    value: str
    key_span: Span = field(default=NOWHERE, compare=False)
    value_span: Span = field(default=NOWHERE, compare=False)


def set_span(node: exp.Expr, start: int, end: int) -> Any:
    """Set the span of a node to the characters from ``start`` up to ``end`` (exclusive); return it."""
    # in sqlglot's own keys of positions, whose end is inclusive
    node.meta["start"] = start
    node.meta["end"] = end - 1
    return node


def span_of(node: exp.Expr | None) -> Span | None:
    """Return the span of a node in the statement, or ``None`` for a node that was not written there."""
    if node is None or "start" not in node.meta:
        return None
    return Span(node.meta["start"], node.meta["end"] + 1)


def balanced(kind: type[exp.Expr], operands: list[exp.Expr]) -> exp.Expr:
    """Combine the operands of an associative connective into a tree of logarithmic depth."""
    # pair neighbours until one tree is left
    while len(operands) > 1:
        pairs = [
            set_span(kind(this=a, expression=b), a.meta["start"], b.meta["end"] + 1)
            for a, b in zip(operands[::2], operands[1::2], strict=False)
        ]
        operands = pairs + ([operands[-1]] if len(operands) % 2 else [])
    return operands[0]


def moved(tree: exp.Expr, span: Span | None) -> exp.Expr:
    """Set the span of every node of a view's query to ``span``, the view's name in the statement. ``None``
    removes the spans.
    """
    for node in tree.walk():
        # errors inside a view point to the view's name, as its text is not in the statement
        if span is not None:
            set_span(node, span.start, span.end)
        else:
            # without a start a node has no span
            node.meta.pop("start", None)
    return tree


# clauses whose argument name is not the SQL word
_CLAUSE_WORDS = {
    "joins": "JOIN",
    "with_": "WITH",
    "order": "ORDER BY",
    "within": "WITHIN GROUP",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "distinct": "DISTINCT",
    "filter": "FILTER",
    "from_last": "FROM LAST",
    "over": "OVER",
    "emit": "EMIT",
    "late_rows": "LATE ROWS INTO",
    "history": "WITH HISTORY",
    "qualify": "QUALIFY",
}


def consume(node: exp.Expr, *names: str) -> None:
    """Raise SQL-1601 for a node with a clause that is not among ``names``, the clauses its caller handles. No
    clause that parses is ever ignored.
    """
    for name, value in node.args.items():
        # a clause that was written, and that the caller does not handle
        if name not in names and value not in (None, False, []):
            word = _CLAUSE_WORDS.get(name, name.strip("_").upper().replace("_", " "))
            # the most exact position: of the clause, of its first part, of the node
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
    """``RUNNING call`` or, with ``final``, ``FINAL call``: ``this`` is the call."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "final": False}


class RowDefinition(exp.Expression):
    """``v AS condition`` in DEFINE: ``this`` is the condition, ``alias`` the variable."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": True}


class RowSubset(exp.Expression):
    """``U = (A, B)`` in SUBSET: ``this`` is the new name, ``expressions`` the variables."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class AfterMatch(exp.Expression):
    """AFTER MATCH SKIP: ``kind`` is past, next, first or last; ``this`` is the variable of the latter two."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "kind": True}


class RowPattern(exp.Expression):
    """The text between PATTERN's parentheses: ``this`` is the text as written, and the span is that of the
    text.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class RowMatches(exp.Expression):
    """``t MATCH_RECOGNIZE (..)`` in FROM; ``all_rows`` is ALL ROWS PER MATCH."""

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
