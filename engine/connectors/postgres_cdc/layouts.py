"""Layouts of a table's rows: which column that the server sends is which declared one, also after the table
was altered there. It does no input or output.

The server sends a layout before the first row that has it. One of a transaction that was committed before
the table's columns were looked up may be older than those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.persistence.show_create import quoted_name
from penstock.catalog.schema import Field
from penstock.catalog.types import is_integer

_NUMERIC = 1700
# ranks of the server's integer types, and of the declared ones that hold their values
_INTEGERS = {21: 2, 23: 3, 20: 4}
_RANKS = {"SMALLINT": 2, "INT": 3, "BIGINT": 4}
# text and varchar: a value is the same in both, whatever the length
_TEXTS = frozenset({25, 1043})
# what to declare for a type of the server; all others have a text form
_NAMES = {
    16: "BOOLEAN",
    17: "BYTES",
    20: "BIGINT",
    21: "SMALLINT",
    23: "INT",
    700: "FLOAT",
    701: "DOUBLE",
    1082: "DATE",
    1114: "TIMESTAMP(6)",
    1184: "TIMESTAMP_LTZ(6)",
}
_MOST_DIGITS = 38
# the server adds the length of a header to a modifier
_HEADER = 4


@dataclass(frozen=True)
class ColumnType:
    """A column's type on the server: the id of the type and its modifier, such as a length."""

    oid: int
    modifier: int = -1

    @property
    def digits(self) -> tuple[int, int] | None:
        """The precision and scale of a numeric; ``None`` without."""
        if self.oid != _NUMERIC or self.modifier < _HEADER:
            return None
        word = self.modifier - _HEADER
        return word >> 16, word & 0x7FF

    @property
    def declaration(self) -> str:
        """The type to declare for it here."""
        digits = self.digits
        if digits is not None and digits[1] <= digits[0] <= _MOST_DIGITS:
            return f"DECIMAL({digits[0]}, {digits[1]})"
        return _NAMES.get(self.oid, "STRING")


@dataclass(frozen=True)
class ReplicatedTable:
    """What was known of a table when its columns were looked up. ``name``: as statements there write it;
    ``here``: its name in our catalog. ``columns``: in the server's order; ``position``: of the log, just
    before. ``has_gaps``: some column was dropped before.
    """

    name: str
    oid: int
    columns: dict[str, ColumnType]
    here: str = ""
    position: int = 0
    has_gaps: bool = False


@dataclass(frozen=True)
class SentColumn:
    """A column of a layout. ``in_key``: rows that are only a key have it."""

    name: str
    type: ColumnType
    in_key: bool = True


@dataclass(frozen=True)
class Layout:
    """``lines``: for each column that is sent the declared one, -1 for none. ``notices``: what the user may
    want to do here, a sentence each.
    """

    lines: np.ndarray
    notices: tuple[str, ...] = field(default=())


def match_layout(
    table: ReplicatedTable, fields: Sequence[Field], sent: Sequence[SentColumn], commit: int
) -> Layout:
    """Return the layout of rows that a transaction with this commit has written. DAT-5413 when rows could
    be wrong: a declared column is gone, was renamed or has a type with other values.
    """
    places = {column.name: place for place, column in enumerate(sent)}
    is_earlier = commit < table.position
    found = {
        line: _earlier_index(table, one, sent, places) if is_earlier else places.get(one.name)
        for line, one in enumerate(fields)
    }
    notices = [] if is_earlier else _added(table, sent)
    lines = np.full(len(sent), -1, np.int64)
    for line, place in found.items():
        one = fields[line]
        if place is None:
            if is_earlier and one.nullable:
                # the row was written before the column was added: it had none
                continue
            raise _gone(table, one, sent)
        changed = _check_type(table, one, sent[place].type)
        notices += [] if is_earlier else changed
        lines[place] = line
    return Layout(lines, tuple(notices))


def addition(table: ReplicatedTable, name: str, kind: ColumnType) -> str:
    """Return what to say of a column that was added there and is not declared here."""
    return (
        f"table {table.name} has a new column {name}, which is not read; to read it, stop the job and run "
        f"here: ALTER TABLE {quoted_name(table.here)} ADD {quoted_name(name)} {kind.declaration}"
    )


def late_column(table: ReplicatedTable, name: str) -> str:
    """Return what to say of a column that was declared after rows had been read."""
    column = '"' + name.replace('"', '""') + '"'
    return (
        f"column {name} of table {table.name} is read from now on: rows that were read before have NULL in "
        f"it until they change; to read all of them again, run there: UPDATE {table.name} SET {column} = "
        f"{column}"
    )


def _earlier_index(
    table: ReplicatedTable, one: Field, sent: Sequence[SentColumn], places: dict[str, int]
) -> int | None:
    """Return where a column is in a layout that may be older than the names that are known."""
    if not table.has_gaps:
        # columns keep their order for life, and new ones come last
        place = list(table.columns).index(one.name)
        return place if place < len(sent) else None
    if one.name not in places and any(name not in table.columns for name in places):
        # it is new, or one of those under another name: which one nobody says
        raise _refused(
            f"column {one.name} of table {table.name} was added or renamed after a column was dropped",
            "start the job anew without its state: it reads the table again",
        )
    return places.get(one.name)


def _added(table: ReplicatedTable, sent: Sequence[SentColumn]) -> list[str]:
    return [addition(table, one.name, one.type) for one in sent if one.name not in table.columns]


def _gone(table: ReplicatedTable, one: Field, sent: Sequence[SentColumn]) -> PenstockError:
    """Return the error of a column that rows no longer have."""
    here, name = quoted_name(table.here), quoted_name(one.name)
    if sent and not table.has_gaps and len(sent) == len(table.columns):
        now = sent[list(table.columns).index(one.name)]
        if now.name not in table.columns:
            return _refused(
                f"column {one.name} of table {table.name} is named {now.name} now",
                f"run here: ALTER TABLE {here} RENAME {name} TO {quoted_name(now.name)}; then start the job "
                "with the new name in its query: it resumes",
            )
    return _refused(
        f"column {one.name} of table {table.name} is not in its changes: it was dropped, renamed or is "
        "generated",
        f"run here: ALTER TABLE {here} DROP {name}; then start the job with a query that does not read it",
    )


def _check_type(table: ReplicatedTable, one: Field, now: ColumnType) -> list[str]:
    """Return notices of a type that is another than it was. DAT-5413 when values could be others."""
    known = table.columns[one.name]
    if now == known or (known.oid in _TEXTS and now.oid in _TEXTS):
        return []
    modify = f"ALTER TABLE {quoted_name(table.here)} MODIFY {quoted_name(one.name)} {now.declaration}"
    changed = f"column {one.name} of table {table.name} has another type now, {now.declaration}"
    if known.oid in _INTEGERS and now.oid in _INTEGERS:
        if not is_integer(one.type) or _INTEGERS[now.oid] <= _RANKS.get(str(one.type), 0):
            return [f"{changed}: its values are read as {one.type}, as before"]
        raise _refused(changed, f"run here: {modify}; then start the job: it resumes")
    digits, scale = known.digits, now.digits
    if known.oid == now.oid == _NUMERIC and (scale is None or (digits and digits[1] == scale[1])):
        return []
    raise _refused(
        changed,
        f"rows that were read have values of the old type: run here: {modify}; then start the job "
        "anew without its state",
    )


def _refused(message: str, hint: str) -> PenstockError:
    return PenstockError("DAT-5413", message, hint=hint, kind=Kind.EXTERNAL)
