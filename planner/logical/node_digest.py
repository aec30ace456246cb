"""What nodes and their expressions mean, as hashes over the meanings of their input's columns: with their
types, or alike whatever the width of their types.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from penstock.catalog.connectors.registry import is_secret
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import DataType, Decimal, Row, is_integer
from penstock.planner.expressions.lambdas import Lambda, LambdaVariable
from penstock.planner.expressions.nodes import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    SortKey,
)
from penstock.planner.expressions.python_calls import PythonCall
from penstock.planner.expressions.type_widening import widens
from penstock.planner.logical.windows import AttachedWindow, Windowing

_BY_WIDTH = frozenset({"shiftleft", "shiftright", "shiftrightunsigned", "hash", "xxhash64"})
"""Functions that give something else for the same number in a wider type."""


# Options that say how fast, how often or in what pieces, never which rows.
_IMMATERIAL_OPTIONS = frozenset(
    {
        "source.monitor-interval",
        "scan.reload.interval",
        "source.missing-columns",  # without it such a file is not read at all
        "source.rows-per-second",
        "rows-per-second",
        "print-identifier",
        "sink.rolling.rows",
        "sink.rolling.bytes",
        "sink.parquet.compression",
    }
)
_ID_LENGTH = 16


def hash_parts(*parts: str) -> str:
    """Return the SHA-256 of a list of strings as hex; each is framed by its length, so no two lists run
    together.
    """
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(framed.encode()).hexdigest()


@dataclass(frozen=True)
class Digest:
    """Hashes of the rows (as a bag, whatever columns are kept of them) and of each column."""

    rows: str
    columns: tuple[str, ...]

    def identity(self, *more: str) -> str:
        """Return the operator id of a node with this meaning: the hash of its rows, its columns and what
        else distinguishes it.
        """
        return hash_parts("operator", self.rows, *self.columns, *more)[:_ID_LENGTH]


def number_parts(word: str, rows: str, count: int) -> tuple[str, ...]:
    """Return what columns mean that a node adds to its rows, told apart by their number."""
    return tuple(hash_parts(word, rows, str(i)) for i in range(count))


class ExactTexts:
    """Types are part of what an expression means, and all columns of what breaks ties among rows."""

    def kind(self, kind: DataType) -> str:
        """Return what a type is called."""
        return str(kind)

    def ties(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return what stands for the columns that rows carry along, where these are part of what the rows
        are.
        """
        return columns

    def union_column(self, position: int, branches: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        """Return what tells a column of a union from its others, given the columns of its branches."""
        return (str(position),)

    def cast(self, cast: Cast, inner: str) -> str:
        """Return what a CAST of something means."""
        return hash_parts("cast", str(cast.safe), self.kind(cast.type), inner)

    def _kind_of(self, expression: Expression) -> str:
        return self.kind(expression.type)

    def expression(self, expression: Expression, columns: tuple[str, ...]) -> str:
        """Return an expression as text over the meanings of its input's columns, types included."""
        kind = self._kind_of(expression)
        match expression:
            case Column(index=index):
                return columns[index]
            case Literal(value=value):
                return hash_parts("literal", kind, repr(value))
            case PythonCall(function=function, body=body):
                head = ("python", hash_parts(function, body.version))
            case Call(function="field", args=(row, Literal(value=int(place)))) if isinstance(row.type, Row):
                return hash_parts(
                    "field", row.type.fields[place][0].lower(), kind, self.expression(row, columns)
                )
            case Call(function=function):
                head = ("call", function)
            case Cast(arg=arg):
                return self.cast(expression, self.expression(arg, columns))
            case Case():
                head = ("case", "")
            case Lambda(parameters=parameters):
                head = ("lambda", " ".join(str(one.number) for one in parameters))
            case LambdaVariable(number=number):
                head = ("parameter", str(number))
            case _:
                raise AssertionError(type(expression))
        return hash_parts(*head, kind, *(self.expression(child, columns) for child in expression.children))

    def column(self, expression: Expression, columns: tuple[str, ...]) -> str:
        """Return what a computed column means."""
        return (
            columns[expression.index]
            if isinstance(expression, Column)
            else self.expression(expression, columns)
        )

    def call(self, call: AggregateCall, columns: tuple[str, ...]) -> str:
        """Return what an aggregate means."""
        keep = "" if call.filter is None else self.expression(call.filter, columns)
        order = [str(way) for way in call.order]
        order += [f"version {call.version}"] if call.version is not None else []
        args = (self.expression(arg, columns) for arg in call.args)
        return hash_parts(call.function, self.kind(call.type), str(call.distinct), keep, *args, *order)

    def sort(self, key: SortKey, columns: tuple[str, ...]) -> str:
        """Return what a key of an order means."""
        return hash_parts(self.expression(key.expression, columns), str(key.descending), str(key.nulls_first))

    def window(self, window: Windowing | AttachedWindow, columns: tuple[str, ...]) -> str:
        """Return what a window means."""
        if isinstance(window, AttachedWindow):
            return hash_parts("attached", columns[window.start_column], columns[window.end_column])
        sizes: Iterable[object] = (window.size_us, window.step_us, window.offset_us, window.sliced)
        return hash_parts(
            window.name,
            columns[window.time_column],
            *map(str, sizes),
            *(columns[key] for key in window.partition_keys),
        )


class AlikeTexts(ExactTexts):
    """Integers are alike whatever their width, decimals of one scale whatever their precision, and a CAST
    that only widens means its argument.

    So is what carries other columns along. What is alike need not be the same: whether types were widened,
    and not narrowed, is for who compares.
    """

    def kind(self, kind: DataType) -> str:
        if is_integer(kind):
            return "an integer"
        return f"a decimal of scale {kind.scale}" if isinstance(kind, Decimal) else str(kind)

    def ties(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        return ()

    def union_column(self, position: int, branches: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(columns[position] for columns in branches)

    def cast(self, cast: Cast, inner: str) -> str:
        return (
            inner
            if widens(cast.arg.type, cast.type)
            else hash_parts("cast", str(cast.safe), str(cast.type), inner)
        )

    def _kind_of(self, expression: Expression) -> str:
        if isinstance(expression, Call) and expression.function in _BY_WIDTH:
            return " ".join(str(part.type) for part in (expression, *expression.args))
        return super()._kind_of(expression)


EXACT = ExactTexts()
ALIKE = AlikeTexts()


def table_text(table: CatalogTable) -> str:
    """Return what identifies a table: its name and the options that say where its rows are and how they
    are read.
    """
    told = {
        key: text
        for key, text in table.options.items()
        if key not in _IMMATERIAL_OPTIONS and not key.startswith("lookup.")
    }
    options = (f"{key}={told[key]}" for key in sorted(told) if not is_secret(table.connector, key))
    return hash_parts("table", table.name.lower(), *options)
