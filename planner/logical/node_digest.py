"""Digests of nodes and their expressions: hashes over the digests of their input's columns. Exact digests
include types; alike digests ignore the width of types.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.catalog.connectors.common_options import IMMATERIAL
from penstock.catalog.connectors.registry import is_client_option, is_secret
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import DataType, Decimal, Row, is_integer
from penstock.planner.expressions.nodes import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Lambda,
    LambdaVariable,
    Literal,
    SortKey,
)
from penstock.planner.expressions.python_calls import PythonCall
from penstock.planner.expressions.type_widening import widens
from penstock.planner.logical.windows import AttachedWindow, Windowing

_BY_WIDTH = frozenset({"shiftleft", "shiftright", "shiftrightunsigned", "hash", "xxhash64"})
"""Functions whose result for a number depends on the width of its type."""


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
        *IMMATERIAL,
    }
)
# hex digits: 64 bits of the SHA-256
_ID_LENGTH = 16


def hash_parts(*parts: str) -> str:
    """Return the SHA-256 of a list of strings as hex. Each string is framed by its length, so different lists
    never collide by concatenation.
    """
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(framed.encode()).hexdigest()


@dataclass(frozen=True)
class Digest:
    """The digest of a plan: a hash of its rows, as a bag and independent of the columns read, and a hash of
    each column.
    """

    rows: str
    columns: tuple[str, ...]

    def identity(self, *more: str) -> str:
        """Return the operator id of a node with this digest: the hash of its rows, its columns and further
        details.
        """
        return hash_parts("operator", self.rows, *self.columns, *more)[:_ID_LENGTH]


def number_parts(word: str, rows: str, count: int) -> tuple[str, ...]:
    """Return the digests of the ``count`` columns that a node appends, distinguished by their number."""
    return tuple(hash_parts(word, rows, str(i)) for i in range(count))


class ExactTexts:
    """Digests that include types, and all columns where ties among rows matter."""

    def table(self, table: CatalogTable) -> str:
        """Return the identity of a table."""
        return table_text(table)

    def kind(self, kind: DataType) -> str:
        """Return the name of a type."""
        return str(kind)

    def ties(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return the digests of carried columns where they are part of the rows."""
        return columns

    def union_column(self, position: int, branches: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        """Return what distinguishes a column of a union; ``branches`` are the columns of its inputs."""
        return (str(position),)

    def cast(self, cast: Cast, inner: str) -> str:
        """Return the digest of a CAST."""
        return hash_parts("cast", str(cast.safe), self.kind(cast.type), inner)

    def _kind_of(self, expression: Expression) -> str:
        return self.kind(expression.type)

    def expression(self, expression: Expression, columns: tuple[str, ...]) -> str:
        """Return the digest of an expression over the digests of its input's columns, types included."""
        kind = self._kind_of(expression)
        match expression:
            # a column is what it was computed from, whatever its name and position
            case Column(index=index):
                return columns[index]
            # with its type: 1 INT and 1 BIGINT are different constants
            case Literal(value=value):
                return hash_parts("literal", kind, repr(value))
            # a changed function body is another function
            case PythonCall(function=function, body=body):
                head = ("python", hash_parts(function, body.version))
            # a field by name: other fields of the row may come and go
            case Call(function="field", args=(row, Literal(value=int(place)))) if isinstance(row.type, Row):
                return hash_parts(
                    "field", row.type.fields[place][0].lower(), kind, self.expression(row, columns)
                )
            case Call(function=function):
                head = ("call", function)
            case Cast(arg=arg):
                return self.cast(expression, self.expression(arg, columns))
            # the structure is in the children's order
            case Case():
                head = ("case", "")
            # parameters by number: their names are for display
            case Lambda(parameters=parameters):
                head = ("lambda", " ".join(str(one.number) for one in parameters))
            case LambdaVariable(number=number):
                head = ("parameter", str(number))
            case _:
                raise AssertionError(type(expression))
        return hash_parts(*head, kind, *(self.expression(child, columns) for child in expression.children))

    def column(self, expression: Expression, columns: tuple[str, ...]) -> str:
        """Return the digest of a computed column."""
        return (
            columns[expression.index]
            if isinstance(expression, Column)
            else self.expression(expression, columns)
        )

    def call(self, call: AggregateCall, columns: tuple[str, ...]) -> str:
        """Return the digest of an aggregate call."""
        # COUNT(x) FILTER (WHERE c)
        keep = "" if call.filter is None else self.expression(call.filter, columns)
        order = [str(direction) for direction in call.order]
        # a Python aggregate: a changed body has other state
        order += [f"version {call.version}"] if call.version is not None else []
        args = (self.expression(arg, columns) for arg in call.args)
        return hash_parts(call.function, self.kind(call.type), str(call.distinct), keep, *args, *order)

    def sort(self, key: SortKey, columns: tuple[str, ...]) -> str:
        """Return the digest of a sort key."""
        return hash_parts(self.expression(key.expression, columns), str(key.descending), str(key.nulls_first))

    def window(self, window: Windowing | AttachedWindow, columns: tuple[str, ...]) -> str:
        """Return the digest of a window."""
        if isinstance(window, AttachedWindow):
            return hash_parts("attached", columns[window.start_column], columns[window.end_column])
        # field by field: a new field of Windowing must not change the digests of old windows
        sizes: Iterable[object] = (window.size_us, window.step_us, window.offset_us, window.sliced)
        return hash_parts(
            window.name,
            columns[window.time_column],
            *map(str, sizes),
            *(columns[key] for key in window.partition_keys),
        )


class AlikeTexts(ExactTexts):
    """Digests that ignore widths: all integers are alike, decimals of one scale are alike, and a widening
    CAST is its argument.

    Rows with other carried columns are alike too. Alike is not equal: the caller checks that types were
    widened, not narrowed.
    """

    def kind(self, kind: DataType) -> str:
        if is_integer(kind):
            # TINYINT .. BIGINT: state written by one width is read by a wider one
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
        # shiftleft(x, 40) of an INT and of a BIGINT differ
        if isinstance(expression, Call) and expression.function in _BY_WIDTH:
            return " ".join(str(part.type) for part in (expression, *expression.args))
        return super()._kind_of(expression)


class ReachedTexts(ExactTexts):
    """Exact digests over tables that may be reached in another way, as by other brokers or another user."""

    def table(self, table: CatalogTable) -> str:
        own = {k: text for k, text in table.options.items() if not is_client_option(table.connector, k)}
        return table_text(replace(table, options=own))


EXACT = ExactTexts()
REACHED = ReachedTexts()
ALIKE = AlikeTexts()


def table_text(table: CatalogTable) -> str:
    """Return the identity of a table: its name and the options that determine its location and format.
    Secrets and lookup options play no part.
    """
    # lookup.* options say how a table is queried, not which rows it has
    material = {
        key: text
        for key, text in table.options.items()
        if key not in _IMMATERIAL_OPTIONS and not key.startswith("lookup.")
    }
    options = (f"{key}={material[key]}" for key in sorted(material) if not is_secret(table.connector, key))
    return hash_parts("table", table.name.lower(), *options)
