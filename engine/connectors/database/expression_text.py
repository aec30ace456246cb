"""Bound expressions as SQL of a database, with the meaning they have here.

Only what surely means the same is written: columns are read as declared, texts are compared by their bytes,
and a result that overflows is an error. Everything else is refused with its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import (
    BigInt,
    Binary,
    Boolean,
    DataType,
    Date,
    Decimal,
    Double,
    Float,
    Int,
    SmallInt,
    String,
    TimestampLtz,
    TinyInt,
    is_integer,
    is_timestamp,
)
from penstock.engine.connectors.database.database import PLACEHOLDER, quoted
from penstock.engine.connectors.database.sqlite import parameters
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.formats.decoded_batch import empty_columns
from penstock.planner.expressions.expression_properties import is_deterministic, reads_clock
from penstock.planner.expressions.nodes import Call, Case, Cast, Column, Expression

_COMPARISONS = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}
_TYPES: dict[type[DataType], tuple[str, str]] = {
    TinyInt: ("smallint", "TINYINT"),
    SmallInt: ("smallint", "SMALLINT"),
    Int: ("integer", "INTEGER"),
    BigInt: ("bigint", "BIGINT"),
    Float: ("real", "REAL"),
    Double: ("double precision", "DOUBLE"),
    String: ("text", "VARCHAR"),
    Binary: ("bytea", "BLOB"),
    Boolean: ("boolean", "BOOLEAN"),
    Date: ("date", "DATE"),
}
"""Names of types in PostgreSQL and in DuckDB."""
_NAMES = {"postgres": "PostgreSQL", "duckdb": "DuckDB", "sqlite": "SQLite"}
_BITS: dict[type[DataType], int] = {TinyInt: 8, SmallInt: 16, Int: 32, BigInt: 64}
# the one call of SQLite that fails: there is no greatest absolute value
_OVERFLOW = "abs(-9223372036854775808)"


class ExpressionText:
    """Writes expressions over the columns of one table. ``values`` are those of the placeholders of all texts
    that were written, in order; ``read`` has the columns they read.

    Raises SQL-1601 at an expression that the database has no equal of.
    """

    def __init__(self, database: str, fields: Sequence[Field], statement: str) -> None:
        """``fields``: the columns under their names in the database. ``statement`` begins the refusals."""
        self._database, self._fields, self._statement = database, fields, statement
        self.values: list[Any] = []
        self.read: dict[str, Field] = {}

    def assigned(self, expression: Expression) -> str:
        """Return a value that is stored."""
        # the stored form of a column is that of another one of its type
        if isinstance(expression, Column) and self._database == "sqlite":
            return quoted(self._column(expression).name)
        return self.text(expression)

    def text(self, node: Expression) -> str:
        """Return an expression."""
        if not node.columns() and is_deterministic(node) and not reads_clock(node):
            return self._constant(node)
        match node:
            case Column():
                return self._read(node)
            case Cast() if not node.safe:
                return self._cast(node)
            case Case():
                whens = " ".join(f"WHEN {self.text(test)} THEN {self.text(to)}" for test, to in node.whens)
                return f"CASE {whens} ELSE {self.text(node.default)} END"
            case Call():
                return self._call(node)
        raise self._refused(node)

    def _call(self, node: Call) -> str:
        function, args = node.function, node.args
        if function in ("and", "or"):
            return f"({f' {function.upper()} '.join(map(self.text, args))})"
        if function == "not":
            return f"(NOT {self.text(args[0])})"
        if function in ("is_null", "is_not_null"):
            # a column is NULL where its form is
            tested = self.assigned(args[0]) if isinstance(args[0], Column) else self.text(args[0])
            return f"({tested} {'IS NULL' if function == 'is_null' else 'IS NOT NULL'})"
        if function in _COMPARISONS and self._compares(args):
            left, right = map(self._operand, args)
            return f"({left} {_COMPARISONS[function]} {right})"
        if function == "in" and self._compares(args):
            first, *others = map(self._operand, args)
            return f"({first} IN ({', '.join(others)}))"
        if function == "coalesce":
            return f"COALESCE({', '.join(map(self.text, args))})"
        if function in ("concat", "concat_op") and all(isinstance(arg.type, String) for arg in args):
            return f"({' || '.join(map(self.text, args))})"
        if function == "like" and len(args) == 2 and self._database != "sqlite":
            # SQLite's LIKE takes a for A; a backslash escapes there, and here
            return f"({self._operand(args[0])} LIKE {self.text(args[1])})"
        if function in _ARITHMETIC and all(arg.type == node.type for arg in args):
            return self._arithmetic(node, _ARITHMETIC[function])
        raise self._refused(node)

    def _compares(self, args: Sequence[Expression]) -> bool:
        """Whether the database compares values of these types as we do."""
        kind = args[0].type
        if any(arg.type != kind for arg in args):
            return False
        # SQLite has dates, times and decimals as texts
        exact = is_timestamp(kind) or isinstance(kind, Date | Decimal)
        return (
            is_integer(kind)
            or isinstance(kind, String | Double | Boolean)
            or ((exact or isinstance(kind, Binary)) and self._database != "sqlite")
        )

    def _operand(self, node: Expression) -> str:
        """Return a side of a comparison: texts are compared by their bytes, whatever the column says."""
        text = self.text(node)
        if not isinstance(node.type, String):
            return text
        return f'{text} COLLATE "{"BINARY" if self._database == "sqlite" else "C"}"'

    def _arithmetic(self, node: Call, symbol: str) -> str:
        left, right = map(self.text, node.args)
        kind, sqlite = node.type, self._database == "sqlite"
        # PostgreSQL has no integer of 8 bits
        narrow = self._database == "postgres" and isinstance(kind, TinyInt)
        if narrow or not (is_integer(kind) or isinstance(kind, Double)):
            raise self._refused(node)
        if not sqlite:
            return f"({left} {symbol} {right})"
        # beyond 64 bits SQLite goes on with doubles, and a NaN is NULL
        if isinstance(kind, Double):
            fits = "v IS NOT NULL OR l IS NULL OR r IS NULL"
        else:
            most = 1 << (_BITS[type(kind)] - 1)
            fits = f"v IS NULL OR typeof(v) = 'integer' AND v BETWEEN {-most} AND {most - 1}"
        return (
            f"(SELECT CASE WHEN {fits} THEN v ELSE {_OVERFLOW} END FROM "
            f"(SELECT l, r, l {symbol} r AS v FROM (SELECT {left} AS l, {right} AS r)))"
        )

    def _cast(self, node: Cast) -> str:
        source, wanted = node.arg.type, node.type
        if is_integer(source) and is_integer(wanted) and _BITS[type(source)] <= _BITS[type(wanted)]:
            return self._as(self.text(node.arg), wanted)
        if is_integer(source) and isinstance(wanted, Double):
            text = self.text(node.arg)
            return f"CAST({text} AS REAL)" if self._database == "sqlite" else self._as(text, wanted)
        whole = is_integer(source) or (isinstance(source, Decimal) and isinstance(wanted, Decimal))
        # digits behind the point may become more, but none is rounded away
        finer = not isinstance(source, Decimal) or source.scale <= getattr(wanted, "scale", 0)
        if self._database != "sqlite" and whole and finer and isinstance(wanted, Decimal):
            return self._as(self.text(node.arg), wanted)
        raise self._refused(node)

    def _column(self, node: Column) -> Field:
        field = self._fields[node.index]
        self.read[field.name] = field
        return field

    def _read(self, node: Column) -> str:
        """Return a column as the declared type."""
        field = self._column(node)
        name, kind = quoted(field.name), field.type
        if self._database != "sqlite":
            return self._as(name, kind)
        if isinstance(kind, String):
            return f"CAST({name} AS TEXT)"
        # a FLOAT is read with fewer digits than SQLite has
        if is_integer(kind) or isinstance(kind, Double | Boolean | Binary):
            return name
        raise self._refused(node)

    def _constant(self, node: Expression) -> str:
        if not (is_timestamp(node.type) or isinstance(node.type, (Decimal, *_TYPES))):
            raise self._refused(node)
        column = compile_expression(node)(empty_columns(1))
        if self._database == "sqlite":
            self.values += parameters(column)
            return PLACEHOLDER
        self.values += column.to_pylist()
        return self._as(PLACEHOLDER, node.type)

    def _as(self, text: str, kind: DataType) -> str:
        return text if self._database == "sqlite" else f"CAST({text} AS {self._type(kind)})"

    def _type(self, kind: DataType) -> str:
        place = 0 if self._database == "postgres" else 1
        if is_timestamp(kind):
            return "TIMESTAMPTZ" if isinstance(kind, TimestampLtz) else "TIMESTAMP"
        if isinstance(kind, Decimal):
            return f"DECIMAL({kind.precision}, {kind.scale})"
        return _TYPES[type(kind)][place]

    def _refused(self, node: Expression) -> PenstockError:
        name = _NAMES[self._database]
        return PenstockError(
            "SQL-1601",
            f"{self._statement} is not supported: {name} has nothing that surely means the same as {node}",
            span=node.span,
            hint=f"compare and assign columns, constants, sums and products; or run the statement in {name}",
            sqlstate="0A000",
        )
