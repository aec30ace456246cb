"""DEFINE conditions compiled to programs. Parts that read only the row being tried become columns; parts that
read earlier rows of the match become a stack program.

Columns are computed for all rows at once. A program runs for each row tried; it loads cells of columns at
rows of the match, and running aggregates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum, StrEnum

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import (
    BigInt,
    Boolean,
    DataType,
    Date,
    DayTimeInterval,
    Decimal,
    Double,
    Float,
    Int,
    Null,
    SmallInt,
    String,
    Timestamp,
    TimestampLtz,
    TinyInt,
    YearMonthInterval,
)
from penstock.planner.expressions.nodes import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    conjunction,
    conjuncts,
)
from penstock.planner.logical.match_recognize import (
    Definition,
    MatchFact,
    Rows,
    RowsAggregate,
    RowValue,
    Value,
)

# values on the stack of a program; the engine allocates this many cells
MAX_STACK = 64


class Op(IntEnum):
    """Instructions of programs with operands ``a`` and ``b``. Suffix I is arithmetic on integers, F on
    floating-point numbers.
    """

    LOAD_I = 0  # column a at place b
    LOAD_F = 1
    TOTAL_I = 2  # running aggregate a
    TOTAL_F = 3
    TO_FLOAT = 4  # a whole number divided by 10**a
    SCALE = 5  # times 10**a
    UNITS = 6  # divided by a, towards zero
    ADD_I = 7  # within a bits
    SUBTRACT_I = 8
    MULTIPLY_I = 9
    ADD_F = 10
    SUBTRACT_F = 11
    MULTIPLY_F = 12
    DIVIDE_F = 13
    NEGATE_I = 14
    NEGATE_F = 15
    ABS_I = 16
    ABS_F = 17
    COMPARE_I = 18  # a: the number of a comparison
    COMPARE_F = 19
    AND = 20
    OR = 21
    NOT = 22
    IS_NULL = 23
    IS_NOT_NULL = 24
    IS_TRUE = 25
    IS_FALSE = 26


COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "null_safe_equal")
_LOGIC = {
    "and": Op.AND,
    "or": Op.OR,
    "not": Op.NOT,
    "is_null": Op.IS_NULL,
    "is_not_null": Op.IS_NOT_NULL,
    "is_true": Op.IS_TRUE,
    "is_false": Op.IS_FALSE,
}
_ARITHMETIC = {
    "add": "ADD",
    "subtract": "SUBTRACT",
    "multiply": "MULTIPLY",
    "divide": "DIVIDE",
    "negate": "NEGATE",
    "abs": "ABS",
}
# integers that overflow below 64 bits raise, so ADD_I and the like carry their width
_BITS = {TinyInt: 8, SmallInt: 16, Int: 32}
_WHOLE = (TinyInt, SmallInt, Int, BigInt)
_TIMES = (Timestamp, TimestampLtz, DayTimeInterval)
_UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}
# aggregates that can be updated row by row while a match grows
TOTALS = ("count", "sum", "min", "max", "avg")


class CellKind(StrEnum):
    """The representation of a column's values: integers, floating-point numbers, or texts as their rank among
    all texts.
    """

    WHOLE = "whole"
    FLOAT = "float"
    TEXT = "text"


@dataclass(frozen=True)
class CellColumn:
    """An expression over ``values`` by position, all read at one row."""

    expression: Expression
    values: tuple[RowValue, ...]
    kind: CellKind


@dataclass(frozen=True)
class MatchRow:
    """A row of the match: ``offset`` rows from the first or last of ``rows``. Without ``rows`` it is the row
    being tried.
    """

    rows: Rows | None
    first: bool = False
    offset: int = 0


@dataclass(frozen=True)
class Total:
    """A running aggregate at ``rows`` over the cells of a column, or over rows when ``column`` is None."""

    function: str
    column: int | None
    rows: Rows


@dataclass(frozen=True)
class RowTest:
    """The condition that a row alone must meet for a variable: ``condition`` over ``values`` by position, all
    read at the row being tried.
    """

    variable: int
    condition: Expression
    values: tuple[Value, ...]


@dataclasses.dataclass
class Programs:
    """The row tests of all variables, the programs by variable as (op, a, b), and the columns, rows and
    aggregates they load.
    """

    tests: list[RowTest] = field(default_factory=list)
    code: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    columns: list[CellColumn] = field(default_factory=list)
    places: list[MatchRow] = field(default_factory=list)
    totals: list[Total] = field(default_factory=list)

    def add(self, definition: Definition) -> None:
        """Compile a condition. Raise SQL-1601 for an expression that programs do not support."""
        alone: list[Expression] = []
        along: list[Expression] = []
        # a part that reads only the row being tried is tested for all rows at once, as a column
        for part in conjuncts(definition.condition):
            rows = _rows_read(part, definition)
            (alone if rows is not None and all(row.rows is None for row in rows) else along).append(part)
        if alone:
            self.tests.append(RowTest(definition.variable, conjunction(tuple(alone)), definition.values))
        if along:
            writer = _Writer(self, definition)
            # p1 p2 AND p3 AND: each part leaves one truth value on the stack
            for turn, part in enumerate(along):
                writer.write(part)
                if turn:
                    writer.put(Op.AND)
            self.code[definition.variable] = writer.code


def programs_of(definitions: Sequence[Definition]) -> Programs:
    """Return the programs of DEFINE conditions."""
    programs = Programs()
    for definition in definitions:
        programs.add(definition)
    return programs


def _rows_read(expression: Expression, definition: Definition) -> set[MatchRow] | None:
    """Return the match rows that an expression reads; None when it reads an aggregate."""
    rows = set()
    # columns of the expression are positions in the definition's values
    for index in expression.columns():
        value = definition.values[index]
        if not isinstance(value, RowValue):
            return None
        # in DEFINE A, LAST(A.x) is the row being tried: MatchRow(None)
        tried = definition.variable in value.rows and not value.first and not value.offset
        rows.add(MatchRow(None) if tried else MatchRow(value.rows, value.first, value.offset))
    return rows


def _kind(kind: DataType) -> CellKind | None:
    if isinstance(kind, Float | Double):
        return CellKind.FLOAT
    if isinstance(kind, String):
        return CellKind.TEXT
    # a cell is an int64: unscaled decimals, microseconds, days, months, 0 and 1
    if isinstance(kind, (*_WHOLE, *_TIMES, Boolean, Null, Date, Decimal, YearMonthInterval)):
        return CellKind.WHOLE
    return None


def _index(items: list[object], item: object) -> int:
    # equal columns, rows and aggregates are loaded from one place
    if item not in items:
        items.append(item)
    return items.index(item)


class _Writer:
    """Compiles one condition."""

    def __init__(self, programs: Programs, definition: Definition) -> None:
        self._programs = programs
        self._definition = definition
        self.code: list[tuple[int, int, int]] = []

    def put(self, op: Op, a: int = 0, b: int = 0) -> None:
        """Append an instruction."""
        self.code.append((int(op), a, b))

    def write(self, expression: Expression) -> None:
        """Append the instructions that push an expression's value on the stack."""
        rows = _rows_read(expression, self._definition)
        # an expression over one row is a column: load its cell
        if rows is not None and len(rows) <= 1:
            self._load(expression, next(iter(rows), MatchRow(None)))
            return
        match expression:
            # SUM(A.x), COUNT(*)
            case Column(index=index):
                self._total(self._definition.values[index], expression)
            # CAST(.. AS DOUBLE)
            case Cast(safe=False):
                self._cast(expression)
            # AND, OR, NOT, IS NULL
            case Call(function=function) if function in _LOGIC:
                self._operands(expression.args)
                self.put(_LOGIC[function])
            # =, <>, <, <=, >, >=, <=>
            case Call(function=function) if function in COMPARISONS:
                self._compare(expression)
            # +, -, *, /, ABS
            case Call(function=function) if function in _ARITHMETIC:
                self._arithmetic(expression)
            # TIMESTAMPDIFF(MINUTE, FIRST(A.ts), B.ts)
            case Call(function="timestampdiff"):
                self._units(expression)
            case _:
                raise self._beyond(expression)
        if len(self.code) > 1000:
            raise self._beyond(expression)

    def _beyond(self, expression: Expression, hint: str = "") -> PenstockError:
        name = expression.function if isinstance(expression, Call) else type(expression).__name__.upper()
        message = f"{name} over several rows of a match is not supported in DEFINE"
        default_hint = (
            "compute it at one row, as LAST(f(A.x)); between rows there are + - * /, ABS, "
            "TIMESTAMPDIFF, comparisons, AND, OR, NOT and IS NULL"
        )
        return PenstockError(
            "SQL-1601", message, span=expression.span, hint=hint or default_hint, sqlstate="0A000"
        )

    def _operands(self, args: Sequence[Expression]) -> None:
        for arg in args:
            self.write(arg)

    def _load(self, expression: Expression, row: MatchRow) -> None:
        kind = _kind(expression.type)
        if kind is None:
            raise self._beyond(expression)
        # renumbered to the values that this column reads, so that equal columns compare equal
        values: list[RowValue] = []
        positions = {}
        for index in sorted(expression.columns()):
            value = self._definition.values[index]
            assert isinstance(value, RowValue)
            positions[index] = len(values)
            values.append(value)
        column = CellColumn(expression.remap(positions).unplaced(), tuple(values), kind)
        op = Op.LOAD_F if kind is CellKind.FLOAT else Op.LOAD_I
        self.put(op, _index(self._programs.columns, column), _index(self._programs.places, row))  # type: ignore[arg-type]  # lists of one kind each

    def _total(self, value: Value, expression: Expression) -> None:
        assert isinstance(value, RowsAggregate) and not isinstance(value, MatchFact)
        call = value.call
        if call.function not in TOTALS or (call.function == "avg" and isinstance(call.args[0].type, Decimal)):
            hint = (
                "in DEFINE there are COUNT, SUM, MIN, MAX, and AVG of numbers that are not DECIMAL: "
                "write AVG(CAST(A.x AS DOUBLE))"
            )
            message = (
                f"{call.function} of {call.args[0].type if call.args else 'rows'} is not supported in DEFINE"
            )
            raise PenstockError("SQL-1601", message, span=expression.span, hint=hint, sqlstate="0A000")
        # COUNT(*) needs no column
        column, kind = None, CellKind.WHOLE
        if call.args:
            arg = call.args[0]
            cells = _kind(arg.type)
            if cells is None:
                raise self._beyond(expression)
            # the argument at each row; the operator adds it up as rows join the match
            read = RowValue(arg.type, arg.nullable, expression=arg.unplaced(), rows=value.rows)
            cell_column = CellColumn(Column(arg.type, arg.nullable, index=0), (read,), cells)
            column = _index(self._programs.columns, cell_column)  # type: ignore[arg-type]
            kind = (
                CellKind.FLOAT
                if call.function == "avg"
                else CellKind.WHOLE
                if call.function == "count"
                else cells
            )
        total = _index(self._programs.totals, Total(call.function, column, value.rows))  # type: ignore[arg-type]
        self.put(Op.TOTAL_F if kind is CellKind.FLOAT else Op.TOTAL_I, total)

    def _cast(self, cast: Cast) -> None:
        source, target = cast.arg.type, cast.type
        self.write(cast.arg)
        whole = isinstance(source, (*_WHOLE, Decimal))
        scale = source.scale if isinstance(source, Decimal) else 0
        # floating point: the cell is a double already
        if isinstance(source, Float | Double) and isinstance(target, Double):
            return
        # an integer or decimal to DOUBLE: divide by 10 ** scale
        if whole and isinstance(target, Double):
            self.put(Op.TO_FLOAT, scale)
        # to a decimal of more digits: multiply the integer
        elif whole and isinstance(target, Decimal) and target.scale >= scale:
            self.put(Op.SCALE, target.scale - scale)
        # to BIGINT, or between precisions of one time type, the int64 stays as it is
        elif not (isinstance(source, _WHOLE) and isinstance(target, BigInt)) and not (
            isinstance(source, _TIMES) and type(source) is type(target)
        ):
            raise self._beyond(cast, "cast the columns themselves: CAST(A.x AS DOUBLE)")

    def _compare(self, call: Call) -> None:
        left, right = call.args
        # both sides need one representation and, of decimals, one scale
        kinds = {_kind(left.type), _kind(right.type)}
        scales = {arg.type.scale for arg in call.args if isinstance(arg.type, Decimal)}
        if len(kinds) > 1 or len(scales) > 1 or None in kinds:
            raise self._beyond(call, "cast both sides to one type: CAST(A.x AS DOUBLE)")
        self._operands(call.args)
        op = Op.COMPARE_F if CellKind.FLOAT in kinds else Op.COMPARE_I
        self.put(op, COMPARISONS.index(call.function))

    def _arithmetic(self, call: Call) -> None:
        kinds = [arg.type for arg in call.args]
        # floating point
        if all(isinstance(kind, Double) for kind in [*kinds, call.type]):
            self._operands(call.args)
            self.put(Op[f"{_ARITHMETIC[call.function]}_F"])
            return
        # integers, decimals as integers of one scale, times as microseconds
        whole = all(isinstance(kind, (*_WHOLE, Decimal)) for kind in [*kinds, call.type])
        times = call.function in ("add", "subtract") and all(
            isinstance(kind, _TIMES) for kind in [*kinds, call.type]
        )
        if call.function == "divide" or not (whole or times):
            raise self._beyond(call, "compute with DOUBLE: CAST(A.x AS DOUBLE)")
        target = call.type.scale if isinstance(call.type, Decimal) else 0
        scales = [kind.scale if isinstance(kind, Decimal) else 0 for kind in kinds]
        # the product has the sum of the scales, so the factors stay as they are
        if call.function == "multiply":
            if sum(scales) != target:
                raise self._beyond(call, "compute with DOUBLE: CAST(A.x AS DOUBLE)")
            scales = [target, target]
        for arg, scale in zip(call.args, scales, strict=False):
            self.write(arg)
            if scale > target:
                raise self._beyond(call, "compute with DOUBLE: CAST(A.x AS DOUBLE)")
            if scale < target:
                self.put(Op.SCALE, target - scale)
        self.put(Op[f"{_ARITHMETIC[call.function]}_I"], _BITS.get(type(call.type), 64))

    def _units(self, call: Call) -> None:
        """Compile TIMESTAMPDIFF: whole units between two times."""
        unit, start, end = call.args
        word = str(unit.value).lower().removesuffix("s") if isinstance(unit, Literal) else ""
        if (
            word not in _UNITS_US
            or not isinstance(start.type, Timestamp | TimestampLtz)
            or type(start.type) is not type(end.type)
        ):
            raise self._beyond(call, "subtract the times: B.ts - FIRST(A.ts) < INTERVAL '1' HOUR")
        # end - start, then whole units
        self._operands((end, start))
        self.put(Op.SUBTRACT_I, 64)
        self.put(Op.UNITS, _UNITS_US[word])
