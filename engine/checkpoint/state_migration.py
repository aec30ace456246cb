"""State migration: whether and how an operator's state can be restored in the types of another plan."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.checkpoint.manifest import Manifest, Migration, OperatorRole
from penstock.engine.checkpoint.plan_identity import PlanIdentity
from penstock.engine.checkpoint.snapshot_format import plain_type
from penstock.engine.state.state_snapshot import OPTIONAL
from penstock.planner.expressions.type_widening import crosses_words, keeps_layout
from penstock.planner.physical.state_compatibility import CarriedColumn, DeclaredTable

# A column a<part>_<column> of an accumulator.
_SUMS = re.compile(r"\ba\d+_\d+ ")


@dataclass(frozen=True)
class Obstacle:
    """Why a state cannot be migrated."""

    reason: str


class Migrations:
    """Compares the operators of a checkpoint with those of a plan that differ only in the width of types and
    in added columns.
    """

    def __init__(self, manifest: Manifest, plan: PlanIdentity) -> None:
        self._manifest, self._plan = manifest, plan
        self._old, self._new = manifest.compatibility, plan.compatibility
        self._was = {table.key: table for table in self._old.tables}
        self._is = {table.key: table for table in self._new.tables}
        # By former operator id: the layouts of its keyed states.
        self._fingerprints: dict[str, list[str]] = {}
        for part in (part for task in manifest.tasks for part in task.keyed):
            self._fingerprints.setdefault(part.operator_id, []).append(part.fingerprint)

    def alike(self, one: str, other: str) -> bool:
        """Return whether the former and the new operator have the same digest, the width of types aside."""
        old, new = self._old.operators.get(one), self._new.operators.get(other)
        return old is not None and new is not None and old.alike == new.alike

    def has_rows(self, one: str) -> bool:
        """Return whether a checkpoint has keyed state of an operator."""
        return one in self._fingerprints

    def of(self, one: str, other: str) -> Migration | Obstacle | None:
        """Return how the state of ``one`` becomes that of ``other``; None when its columns are unchanged or
        unknown. An ``Obstacle`` says why it cannot.
        """
        old, new = self._old.operators.get(one), self._new.operators.get(other)
        # Without a description of both, columns cannot be compared: the layouts are checked when they are
        # restored.
        if old is None or new is None or len(old.ports) != len(new.ports):
            return None
        # a narrower type below the operator: its rows may overflow
        narrowed = next(self._narrowed(other), None)
        if narrowed is not None:
            return Obstacle(narrowed)
        # columns named a<n>_<m> are accumulators
        sums = any(_SUMS.search(text) for text in self._fingerprints.get(one, ()))
        ports: list[tuple[int, ...]] = []
        notes: list[str] = []
        for before, after in zip(old.ports, new.ports, strict=True):
            positions = self._former_positions(before, after, sums, notes)
            if isinstance(positions, Obstacle):
                return positions
            ports.append(positions)
        # Every column where it was: if the types are the same too, there is nothing to convert.
        same = all(
            positions == tuple(range(len(before))) for positions, before in zip(ports, old.ports, strict=True)
        )
        if same and not notes and old.alike == new.alike and one == other:
            return None
        return Migration(tuple(ports), ", ".join(dict.fromkeys(notes)))

    def _former_positions(
        self, old: tuple[CarriedColumn, ...], new: tuple[CarriedColumn, ...], sums: bool, notes: list[str]
    ) -> tuple[int, ...] | Obstacle:
        """Return the former position of each column. All former columns must exist, in their order."""
        positions: list[int] = []
        done = 0
        # merge: former columns in their order, added ones in between
        for column in new:
            # a former column: its stored values must fit the new type
            if done < len(old) and old[done].text == column.text:
                was = old[done].type
                # The words of a stored value must mean the same in the new type.
                if not keeps_layout(was, column.type):
                    return Obstacle(f"column {column.name} was {was} and is {column.type}")
                # Sums of up to 18 digits have one word, others two: their columns differ.
                if sums and crosses_words(was, column.type):
                    return Obstacle(
                        f"column {column.name} was {was} and is {column.type}: aggregates of more "
                        "than 18 digits have another state format"
                    )
                notes += [] if was == column.type else [f"{column.name} {was} is {column.type}"]
                positions.append(done)
                # The next former column.
                done += 1
                continue
            # a new column: it must be NULL in all stored rows
            why = self._not_added(column)
            if why is not None:
                return Obstacle(
                    f"its rows have a column {column.name} {column.type} that the restored rows do "
                    f"not have, and {why}"
                )
            notes.append(f"{column.name} {column.type} is added, NULL in the restored state")
            positions.append(-1)
        # A former column that the new rows lack, or have elsewhere.
        if done < len(old):
            return Obstacle(
                f"column {old[done].name} {old[done].type} of the restored state is at another position"
            )
        return tuple(positions)

    def _not_added(self, column: CarriedColumn) -> str | None:
        """Return why a column cannot be NULL in the stored rows; None if it can: a nullable column added to
        the end of its table.
        """
        if not column.origins:
            return "it is computed"
        # A column may come from several tables (a union): each must allow it.
        for key, name in column.origins:
            table, was = self._is.get(key), self._was.get(key)
            if table is None or was is None:
                return "nothing is known of its table"
            names = [one.name for one in table.columns]
            before = [one.name for one in was.columns]
            # marks of the connector: no stored row has them
            if name not in names:
                continue
            # the table had the column, the former query did not read it: its values are unknown
            if name in before:
                return f"table {table.name} had it then: the restored rows were read without it"
            if names[: len(before)] != before:
                return f"it is not at the end of table {table.name} as it was declared"
            if not table.columns[names.index(name)].optional:
                return (
                    "it is NOT NULL, filled by the connector, or of a table of changes, which may "
                    "retract rows with another value"
                )
        return None

    def _narrowed(self, other: str) -> Iterator[str]:
        """Yield the columns below an operator whose type is neither the former one nor wider."""
        below = self._plan.below.get(other, frozenset())
        for key, table in self._is.items():
            if self._was.get(key) is not None and self._reads(below, key):
                yield from _narrowed(self._was[key], table)

    def _reads(self, below: frozenset[str], key: str) -> bool:
        """Return whether a table's rows reach an operator."""
        readers = {
            o.operator_id
            for o in self._plan.operators
            if o.role is OperatorRole.SOURCE and o.place.startswith(key)
        }
        # Without known readers, the table counts as read.
        return not readers or bool(readers & below)


def _narrowed(old: DeclaredTable, new: DeclaredTable) -> Iterator[str]:
    was = {column.name: column for column in old.columns if column.read}
    for column in new.columns:
        before = was.get(column.name)
        if column.read and before is not None and not keeps_layout(before.type, column.type):
            yield f"column {column.name} of table {new.name} was {before.type} and is {column.type}"


# A column of stored rows; others are the state's own.
_ROW_COLUMN = re.compile(r"c(\d+)")


def migrated(table: pa.Table, wanted: pa.Schema, positions: Sequence[int]) -> pa.Table | None:
    """Return a state's entries in the columns of ``wanted``; ``None`` when they do not fit.

    ``positions``: for each column of the stored rows (c0, c1, ..) its former position, -1 for an added one.
    The state's own columns follow those of the rows.
    """
    # Optional columns are neither required nor converted; they are appended at the end.
    wanted = pa.schema([wanted.field(name) for name in wanted.names if name not in _optional(wanted)])
    sources = _sources(table.schema, wanted, positions)
    if sources is None:
        return None
    columns = []
    for field, source in zip(wanted, sources, strict=True):
        # An added column: NULL in all stored entries.
        if source is None:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
            continue
        column = table.column(source)
        old, new = plain_type(column.type), plain_type(field.type)
        if not fits(old, new):
            return None
        columns.append(column if old == new else column.cast(field.type))
    converted = pa.table(columns, names=wanted.names)
    for name in _optional(table.schema):
        converted = converted.append_column(name, table.column(name))
    return converted


def _sources(old: pa.Schema, wanted: pa.Schema, positions: Sequence[int]) -> list[str | None] | None:
    """Return the former name of each wanted column, None for an added one. No column may be left over,
    optional ones aside.
    """
    # Row columns beyond those the migration describes are the state's own values: they follow in order.
    stored = sum(bool(_ROW_COLUMN.fullmatch(name)) for name in wanted.names)
    extra = stored - len(positions)
    if stored and extra < 0:
        return None
    former = sum(position >= 0 for position in positions)
    all_positions = [*positions, *range(former, former + extra)]
    named: list[str | None] = []
    for name in wanted.names:
        row = _ROW_COLUMN.fullmatch(name)
        position = all_positions[int(row[1])] if row and int(row[1]) < len(all_positions) else None
        named.append((None if position == -1 else f"c{position}") if row else name)
    used = {name for name in named if name is not None}
    # Dropping a column silently would lose state.
    return named if used == {*old.names}.difference(_optional(old)) else None


def _optional(schema: pa.Schema) -> list[str]:
    """Return the optional columns of a state: those at its end. An optional name before other columns belongs
    to the state itself.
    """
    names = list(schema.names)
    first = len(names)
    # from the end: only trailing columns are optional
    while first and names[first - 1] in OPTIONAL:
        first -= 1
    return names[first:]


def fits(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether every value of one type is the same value in another. That holds for equal types, wider
    integers and decimals of more digits, also inside lists and structs.
    """
    if old == new:
        return True
    if pa.types.is_signed_integer(old) and pa.types.is_signed_integer(new):
        return old.bit_width < new.bit_width
    # another scale would change the digits of every value
    if pa.types.is_decimal128(old) and pa.types.is_decimal128(new):
        return old.scale == new.scale and old.precision < new.precision
    if pa.types.is_list(old) and pa.types.is_list(new):
        return fits(old.value_type, new.value_type)
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        return [field.name for field in old] == [field.name for field in new] and all(
            fits(a.type, b.type) for a, b in zip(old, new, strict=True)
        )
    return False
