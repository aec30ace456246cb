"""The values that DEFINE and MEASURES read from a match: columns of variables, FIRST, LAST, PREV, aggregates,
CLASSIFIER and MATCH_NUMBER.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field, replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.functions.registry import is_aggregate, is_deterministic, resolve_aggregate
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.types import BIGINT, NULL, STRING, DataType
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import AggregateCall, Call, Column, Expression, Literal
from penstock.planner.logical.match_recognize import Fact, MatchFact, Rows, RowsAggregate, RowValue, Value
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    FunctionCall,
    Reference,
    Semantics,
    consume,
    span_of,
)

_NAVIGATION = ("first", "last")
_FACTS = {"classifier": Fact.CLASSIFIER, "match_number": Fact.NUMBER, "match_rowtime": Fact.ROWTIME}
_MATCH_FUNCTIONS = frozenset({*_NAVIGATION, "prev", "next", *_FACTS})
# The largest number of rows that PREV, FIRST and LAST may count.
_MOST_ROWS = 10_000


@dataclass(frozen=True)
class Variables:
    """The variables of a row pattern, by number. Maps each variable and subset, in lower case and as written,
    to the variables it covers.
    """

    names: tuple[str, ...]
    rows: Mapping[str, Rows]
    written: tuple[str, ...]

    @property
    def every(self) -> Rows:
        """All rows of a match."""
        return frozenset(range(len(self.names)))

    def of(self, name: exp.Identifier) -> Rows:
        """Return the variables that a name covers."""
        # A.x, or S.x of SUBSET S = (A, B)
        rows = self.rows.get(name.name.lower())
        if rows is None:
            hint = did_you_mean(name.name, self.written, others=True)
            raise PenstockError(
                "SQL-1742",
                f'"{name.name}" is no variable of the pattern',
                span=span_of(name),
                hint=hint,
                sqlstate="42703",
            )
        return rows


@dataclasses.dataclass
class RowBinder(ExpressionBinder):
    """Binds an expression over one row of a match and records its variable."""

    variables: Variables = field(kw_only=True)
    rows: Rows | None = None

    def _bind(self, tree: exp.Expr) -> Expression:
        # A.x or x; a lambda parameter is no column.
        if isinstance(tree, Reference) and self.parameter(tree) is None:
            return self._column(tree)
        # SUM(LAST(A.x)): the inner call would be read at one row, the outer one at many
        if isinstance(tree, FunctionCall) and (
            tree.this.lower() in _MATCH_FUNCTIONS or is_aggregate(tree.this)
        ):
            message = f"{tree.this.upper()} cannot be used inside another navigation call"
            hint = "only PREV goes around FIRST or LAST: PREV(LAST(A.x), 2)"
            raise PenstockError("SQL-1746", message, span=span_of(tree), hint=hint, sqlstate="42601")
        return _without_clock(super()._bind(tree))

    def _column(self, tree: Reference) -> Expression:
        """Bind ``A.x``, ``x`` or a field of either."""
        parts = tree.expressions
        # A.x: A is a variable, or an unknown name, which is then reported as no variable.
        of_variable = len(parts) > 1 and (
            parts[0].name.lower() in self.variables.rows or not self.scope.find(parts[0].name)
        )
        # x without a variable is of any row of the match
        rows = self.variables.of(parts[0]) if of_variable else self.variables.every
        # One value is read at one row, so all its columns belong to one variable.
        if self.rows is not None and rows != self.rows:
            message = "the columns inside one call are read at one row, so they go by one variable"
            hint = "write a call for each variable: SUM(A.x) + SUM(B.x)"
            raise PenstockError("SQL-1746", message, span=span_of(tree), hint=hint, sqlstate="42601")
        self.rows = rows
        read = tree.copy()
        # a bool as an index: 1 drops the variable's name
        read.set("expressions", parts[of_variable:])
        return self._reference(read)


@dataclasses.dataclass
class MatchBinder(ExpressionBinder):
    """Binds conditions and measures over ``values``, which it collects.

    ``defining``: the variable whose condition it is. ``ends``: values are of the whole match. ``time``: the
    event time's type.
    """

    variables: Variables = field(kw_only=True)
    defining: int | None = None
    ends: bool = False
    time: DataType = NULL
    values: list[Value] = field(default_factory=list)

    def _bind(self, tree: exp.Expr) -> Expression:
        # FINAL LAST(A.x), RUNNING SUM(A.x)
        if isinstance(tree, Semantics):
            return self._over_all(tree)
        # A.x alone is LAST(A.x): the last row so far that is A's
        if isinstance(tree, Reference) and self.parameter(tree) is None:
            return self._at_row(tree, tree, self.ends)
        if isinstance(tree, FunctionCall) and tree.args.get("over") is None:
            name = tree.this.lower()
            # Navigation, CLASSIFIER and aggregates are values; all else is computed over values.
            if name in _MATCH_FUNCTIONS or is_aggregate(name):
                return self._call(tree, self.ends)
        return _without_clock(super()._bind(tree))

    def _over_all(self, tree: Semantics) -> Expression:
        consume(tree, "this", "final")
        word = "FINAL" if tree.args.get("final") else "RUNNING"
        call = tree.this
        name = call.this.lower() if isinstance(call, FunctionCall) else ""
        if name not in (*_NAVIGATION, "prev") and not is_aggregate(name):
            hint = f"write {word} LAST(A.x)"
            raise PenstockError(
                "SQL-1746",
                f"{word} goes before FIRST, LAST, PREV and aggregates",
                span=span_of(tree),
                hint=hint,
                sqlstate="42601",
            )
        # DEFINE is evaluated while the match grows.
        if self.defining is not None and word == "FINAL":
            message = "FINAL cannot be used in DEFINE: the match has not ended while DEFINE tests a row"
            raise PenstockError(
                "SQL-1746",
                message,
                span=span_of(tree),
                hint="leave FINAL out, or test it with WHERE",
                sqlstate="42601",
            )
        # ONE ROW PER MATCH has only the row at the end, where RUNNING and FINAL are the same
        return self._call(call, bool(tree.args.get("final")) or (self.ends and self.defining is None))

    def _call(self, tree: FunctionCall, final: bool) -> Expression:
        name, span = tree.this.lower(), span_of(tree)
        # running aggregates over rows of a match have neither
        for key, word in (("filter", "FILTER"), ("distinct", "DISTINCT")):
            if tree.args.get(key):
                hint = (
                    "write CASE WHEN .. THEN x END inside the call"
                    if key == "filter"
                    else "match first, and count the values in a query over ALL ROWS PER MATCH"
                )
                raise PenstockError(
                    "SQL-1601",
                    f"{word} is not supported in MATCH_RECOGNIZE",
                    span=span,
                    hint=hint,
                    sqlstate="0A000",
                )
        consume(tree, "this", "expressions", "star")
        # CLASSIFIER(), MATCH_NUMBER(), MATCH_ROWTIME()
        if name in _FACTS:
            return self._fact(tree, _FACTS[name])
        if name == "next":
            hint = "add a variable behind it: PATTERN (.. A B) with B AS TRUE, and read B.x"
            message = "NEXT looks at rows that are not matched yet and may never come; it is not supported"
            raise PenstockError("SQL-1601", message, span=span, hint=hint, sqlstate="0A000")
        # PREV(A.x, n), PREV(LAST(A.x), n)
        if name == "prev":
            inner, count = self._counted(tree, 1)
            return self._at_row(inner, tree, final, before=count)
        # FIRST(A.x, n), LAST(A.x, n)
        if name in _NAVIGATION:
            return self._at_row(tree, tree, final)
        return self._aggregate(tree, final)

    def _counted(self, tree: FunctionCall, default: int) -> tuple[exp.Expr, int]:
        """Return a call's first argument and its second, a number of rows."""
        name, args = tree.this.upper(), tree.expressions
        if not 1 <= len(args) <= 2 or tree.args.get("star"):
            message = f"{name} takes 1 to 2 arguments, not {len(args) or '*'}"
            raise PenstockError(
                "SQL-1102", message, span=span_of(tree), hint=f"write {name}(A.x, 2)", sqlstate="42883"
            )
        if len(args) == 1:
            return args[0], default
        # without columns in scope only constants bind
        bound = ExpressionBinder(replace(self.scope, columns=()), self.context, name).bind(args[1])
        count = bound.value if isinstance(bound, Literal) else None
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _MOST_ROWS:
            message = f"{name} takes a whole number of rows, at most {_MOST_ROWS:,}"
            raise PenstockError(
                "SQL-1102", message, span=span_of(args[1]), hint=f"write {name}(A.x, 2)", sqlstate="22016"
            )
        return args[0], count

    def _at_row(self, tree: exp.Expr, whole: exp.Expr, final: bool, before: int = 0) -> Expression:
        """Return a value of one row: the first or last row of its variable, or ``before`` rows before it."""
        first, offset = False, 0
        if isinstance(tree, FunctionCall) and tree.this.lower() in _NAVIGATION:
            consume(tree, "this", "expressions")
            first = tree.this.lower() == "first"
            # FIRST(A.x, 1): the second A row; LAST(A.x, 1): the last but one
            tree, offset = self._counted(tree, 0)
        expression, rows = self._read(tree)
        # In DEFINE A, LAST(A.x) is the row being tested, so it exists.
        tried = self.defining is not None and self.defining in rows
        # Any other value may lack its row and is then NULL.
        always = (
            not before
            and not offset
            and not first
            and (tried if self.defining is not None else rows == self.variables.every)
        )
        value = RowValue(
            expression.type,
            expression.nullable or not always,
            final=final,
            expression=expression,
            rows=rows,
            first=first,
            offset=offset,
            before=before,
        )
        return self._value(value, span_of(whole))

    def _read(self, tree: exp.Expr) -> tuple[Expression, Rows]:
        # LAST(A.x + A.y): an expression of one row; the binder notes whose row it is
        binder = RowBinder(self.scope, self.context, self.clause, variables=self.variables)
        expression = binder.bind(tree)
        return expression, self.variables.every if binder.rows is None else binder.rows

    def _aggregate(self, tree: FunctionCall, final: bool) -> Expression:
        name, span = tree.this.lower(), span_of(tree)
        if tree.args.get("star") or (
            len(tree.expressions) == 1 and isinstance(tree.expressions[0], AllColumns)
        ):
            # SUM(A.*)
            if name != "count":
                raise PenstockError(
                    "SQL-1102",
                    f"{name}(*) does not exist",
                    span=span,
                    hint="only COUNT takes *",
                    sqlstate="42809",
                )
            rows = (
                self.variables.every if tree.args.get("star") else self.variables.of(tree.expressions[0].this)
            )
            call = AggregateCall("count", (), BIGINT, False)
        else:
            read = [self._read(arg) for arg in tree.expressions]
            # CORR(A.x, B.y) would pair rows of two variables.
            if len({rows for _, rows in read}) > 1:
                hint = "write a call for each variable: SUM(A.x) + SUM(B.x)"
                raise PenstockError(
                    "SQL-1746",
                    f"the arguments of {name} go by one variable",
                    span=span,
                    hint=hint,
                    sqlstate="42601",
                )
            if not read:
                raise PenstockError(
                    "SQL-1102",
                    f"{name}() has no argument",
                    span=span,
                    hint=f"write {name}(A.x)",
                    sqlstate="42883",
                )
            args = [expression for expression, _ in read]
            signature = resolve_aggregate(name, args, False, span)
            wanted = tuple(coerced(arg, kind) for arg, kind in zip(args, signature.arg_types, strict=False))
            call = AggregateCall(
                signature.canonical, wanted, signature.result, signature.nullable is not False, span=span
            )
            rows = read[0][1]
        return self._value(RowsAggregate(call.type, call.nullable, final=final, call=call, rows=rows), span)

    def _fact(self, tree: FunctionCall, fact: Fact) -> Expression:
        span = span_of(tree)
        if tree.expressions or tree.args.get("star"):
            raise PenstockError(
                "SQL-1102",
                f"{fact.value} takes no argument",
                span=span,
                hint=f"write {fact.value}()",
                sqlstate="42883",
            )
        # while a row is tried, neither its variable nor the match's number is settled
        if self.defining is not None:
            message = f"{fact.value} cannot be used in DEFINE: only whole matches have it"
            raise PenstockError("SQL-1746", message, span=span, hint="use it in MEASURES", sqlstate="42601")
        kind = {Fact.CLASSIFIER: STRING, Fact.NUMBER: BIGINT, Fact.ROWTIME: self.time}[fact]
        return self._value(MatchFact(kind, False, final=self.ends, fact=fact), span)

    def _value(self, value: Value, span: Span | None) -> Expression:
        # Equal values share one slot.
        if value not in self.values:
            self.values.append(value)
        text = value.words(self.variables.names, self._fields())
        return Column(value.type, value.nullable, index=self.values.index(value), name=text, span=span)

    def _fields(self) -> list[str]:
        # by position in the plan; positions without a name in scope stay empty
        names = [""] * (max((column.index for column in self.scope.columns), default=-1) + 1)
        for column in self.scope.columns:
            names[column.index] = column.field.name
        return names


def _without_clock(bound: Expression) -> Expression:
    """Refuse functions of the current time. The matcher tests a row repeatedly until the watermark passes it,
    each time at another time.
    """
    if isinstance(bound, Call) and not is_deterministic(bound.function):
        message = f"{bound.function} cannot be asked in MATCH_RECOGNIZE: a row may be tried at several times"
        hint = (
            "compute it as a column of the rows: FROM (SELECT *, CURRENT_TIMESTAMP AS now FROM t) "
            "MATCH_RECOGNIZE (..)"
        )
        raise PenstockError("SQL-1746", message, span=bound.span, hint=hint, sqlstate="0A000")
    return bound
