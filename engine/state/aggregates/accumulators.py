"""Accumulators: the aggregates of a query by slot; add, retract, merge, result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from itertools import compress

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.row_pieces import LIMITS, TooLarge
from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.aggregates.accumulator import Part, SlotTable, TablePart, gathered
from penstock.engine.state.aggregates.aggregate_inputs import Evaluated, aggregate_input
from penstock.engine.state.aggregates.distinct import Distinct
from penstock.engine.state.aggregates.min_max import BestString
from penstock.engine.state.aggregates.registry import family, new_part, result
from penstock.engine.state.aggregates.sums import OutOfRange
from penstock.engine.state.aggregates.value_multiset import ValueBag
from penstock.engine.state.frozen_arrays import Columns, FrozenViews
from penstock.engine.storage.spill_files import SpillFiles
from penstock.planner.expressions.nodes import AggregateCall, Expression, Literal

LISTS_VALUES = ("collect_list", "listagg", "histogram")
"""Aggregates whose value is as large as all values of the slot."""
_ROWS_AT_ONCE = 8192
"""Rows added to one part before the next: few enough that the lines of their slots stay in the nearer cache.
"""
_NEAR_BYTES = 1 << 18
"""A table of so many bytes stays there as a whole."""

Before = np.ndarray | list[pa.Array]
"""Values of aggregates before a change: columns of the shared table when that is all there is, else
results.
"""


class ValueTooLarge(TooLarge):
    """RUN-2023: one aggregate of one slot is too large. The caller has the key and names the group."""

    def __init__(self, call: AggregateCall, size: int, slot: int, group: str = "one group") -> None:
        super().__init__(size)
        self.call, self.size, self.slot = call, size, slot
        name = "LISTAGG" if call.function == "listagg" else call.function.upper()
        self.message = f"{name} of {group} is {size:,} bytes long, a value may be {LIMITS.value_bytes:,}"
        self.args = (self.message,)
        self.hint = "group by more columns, filter the values, or write them as rows"
        self.span = call.span

    def of_group(self, group: str) -> ValueTooLarge:
        """Return the error with the key of its group."""
        return ValueTooLarge(self.call, self.size, self.slot, group)


class Accumulators:
    """All aggregates of a query by slot; aggregates over the same argument and filter share their state.

    ``insert_only`` promises that no weight is negative, which makes MIN and MAX cheap. Slots are empty until
    added to, and again after ``clear``. Results raise PenstockError RUN-2002 (out of range).
    """

    def __init__(self, calls: Sequence[AggregateCall], insert_only: bool, zone: str = "UTC") -> None:
        self._calls = tuple(calls)
        self._insert_only = insert_only
        self._part_of: list[int] = []
        # One part for each family of calls; ``_part_of`` is the part of each call, ``_filters`` the filters
        # of each part.
        self._makers: list[AggregateCall] = []
        self._filters: list[list[Expression | None]] = []
        shared: dict[tuple[object, ...], int] = {}
        for call in calls:
            key = family(call)
            if key not in shared:
                shared[key] = len(self._makers)
                self._makers.append(call)
                self._filters.append([])
            self._part_of.append(shared[key])
            # Only DISTINCT aggregates share a part under several filters: otherwise the filter is in the key.
            if call.filter not in self._filters[shared[key]]:
                self._filters[shared[key]].append(call.filter)
        # Equal calls (same function, type, constants, DISTINCT and FILTER) have one result column.
        result_keys = [
            (i, c.function, c.type, c.values[1:], c.distinct, c.filter)
            for c, i in zip(self._calls, self._part_of, strict=True)
        ]
        self._first_alike = [result_keys.index(key) for key in result_keys]
        self._inputs = [
            aggregate_input(call, filters, zone)
            for call, filters in zip(self._makers, self._filters, strict=True)
        ]
        self._begin()

    def _begin(self) -> None:
        """Make empty parts. Parts that are columns of numbers share one table; ``_columns`` has the columns
        of each.
        """
        # SUM0 is 0 over no values and needs no count; a part that only serves SUM0 leaves it out.
        counted = {
            index for index, call in zip(self._part_of, self._calls, strict=True) if call.function != "sum0"
        }
        self._parts = [
            new_part(call, self._insert_only, index in counted, len(self._filters[index]))
            for index, call in enumerate(self._makers)
        ]
        self._columns: dict[int, slice] = {}
        self._others: list[Part] = []
        width = 0
        # Strings have an arena beside their table: they stay apart.
        for index, part in enumerate(self._parts):
            if isinstance(part, TablePart) and not isinstance(part, BestString):
                self._columns[index] = slice(width, width + part.width)
                width += part.width
            else:
                self._others.append(part)
        self._table = SlotTable(width)
        # Of the shared table.
        self._views = FrozenViews()
        self._share()

    def _share(self) -> None:
        for index, columns in self._columns.items():
            # Views go stale when the table moves: share again after each move.
            part = self._parts[index]
            assert isinstance(part, TablePart)
            part.share(self._table.rows[:, columns])

    def spillable_bytes(self) -> int:
        """Return the bytes of the shared table if it is large and in memory; other parts report their own."""
        return self._table.in_memory_bytes()

    def spill(self, files: SpillFiles) -> None:
        """Move the shared table into a mapped file."""
        if self._table.in_memory_bytes():
            self._table.move(files)
            self._share()

    def fresh(self) -> Accumulators:
        # A shallow copy: the compiled arguments and filters are shared, the state is not.
        """Return empty accumulators of the same aggregates."""
        twin = copy(self)
        twin._begin()
        return twin

    def reserve(self, capacity: int) -> None:
        """Reserve slots below ``capacity``."""
        if self._table.reserve(capacity):
            self._share()
        for part in self._others:
            part.reserve(capacity)

    def add(self, slots: np.ndarray, batch: pa.RecordBatch, weights: np.ndarray | None = None) -> None:
        """Add the rows of a batch, each to its slot."""
        signed = col.NO_WORDS if weights is None else weights
        if self._insert_only and weights is not None and (weights < 0).any():
            message = "a retraction reached an aggregate that was planned for inserts only"
            raise PenstockError("INT-9046", message, kind=Kind.INTERNAL, sqlstate="XX000")
        # A filter or an argument of several aggregates is evaluated once for a batch.
        evaluated = Evaluated()
        inputs = [
            (part, *source.rows(slots, batch, signed, evaluated))
            for part, source in zip(self._parts, self._inputs, strict=True)
        ]
        # Only several parts in a large shared table gain from pieces; small batches are one piece anyway.
        pieces = (
            len(self._columns) > 1 and slots.size > _ROWS_AT_ONCE and self._table.rows.nbytes > _NEAR_BYTES
        )
        together = [pieces and index in self._columns for index in range(len(inputs))]
        for (part, its, values, counts), later in zip(inputs, together, strict=True):
            if not later:
                part.add(its, values, counts)
        # Piece by piece, all parts of a piece before the next piece.
        for start in range(0, slots.size if pieces else 0, _ROWS_AT_ONCE):
            for part, its, values, counts in compress(inputs, together):
                end = start + _ROWS_AT_ONCE
                # A filter or NULLs left this part fewer rows than the batch has.
                if start < its.size:
                    part.add(
                        its[start:end],
                        None if values is None else values.slice(start, _ROWS_AT_ONCE),
                        counts[start:end],
                    )

    def clear(self, slots: np.ndarray) -> None:
        """Empty distinct slots."""
        self._table.clear(slots)
        for part in self._others:
            part.clear(slots)

    def merge(self, into: np.ndarray, other: Accumulators, slots: np.ndarray) -> None:
        """Add the state of ``slots`` of other accumulators of the same aggregates to the slots ``into``.
        ``into`` may repeat a slot.
        """
        for part, from_part in zip(self._parts, other._parts, strict=True):
            part.merge(into, from_part, slots)

    def results(self, slots: np.ndarray) -> list[pa.Array]:
        """Return one column per aggregate: its value for each slot. Raises ``ValueTooLarge``, and
        ``TooLarge`` where the values of all slots are too large for an array. Ask ``sizes`` before.
        """
        # Only parts outside of the table can have values too large.
        if self._others:
            self.check_sizes(slots)
        return self._results(self._table.gathered(slots), slots)

    def last_counts(self, slots: np.ndarray) -> np.ndarray:
        """Return what the last aggregate, a count, has for each slot, without a value of the others."""
        call, table = self._calls[-1], self._table.gathered(slots)
        part, state = self._part_and_state(self._part_of[-1], call, table, slots)
        return col.words(result(call, part, state))

    def _results(self, table: np.ndarray, slots: np.ndarray) -> list[pa.Array]:
        """Return the aggregates of these columns of the shared table; other parts are read by ``slots``."""
        columns: list[pa.Array] = []
        for call, index, first in zip(self._calls, self._part_of, self._first_alike, strict=True):
            if first < len(columns):
                # an equal call earlier in the list has this result already
                columns.append(columns[first])
                continue
            try:
                part, state = self._part_and_state(index, call, table, slots)
                columns.append(result(call, part, state))
            # The sum is exact and stays; only the result does not fit its type.
            except OutOfRange:
                hint = "CAST the argument to DECIMAL(38, 0) or DOUBLE"
                raise PenstockError(
                    "RUN-2002",
                    f"{call} out of range for {call.type}",
                    hint=hint,
                    span=call.span,
                    sqlstate="22003",
                ) from None
        return columns

    def _part_and_state(
        self, index: int, call: AggregateCall, table: np.ndarray, slots: np.ndarray
    ) -> tuple[Part, np.ndarray]:
        """Return the part that has an aggregate's value (a distinct one's by its filter), and the state it
        reads it from.
        """
        part = self._parts[index]
        if index in self._columns:
            return part, table[self._columns[index]]
        # A part for each filter, in the order of the filters.
        if isinstance(part, Distinct):
            part = part.parts[self._filters[index].index(call.filter)]
        return part, part.state(slots) if isinstance(part, TablePart) else slots

    @property
    def is_near(self) -> bool:
        """Whether all state is a table that stays in the nearer cache."""
        return not self._others and self._table.rows.nbytes <= _NEAR_BYTES

    @property
    def keeps_values(self) -> bool:
        """Whether some aggregate stores all values of a slot: the larger a slot is, the longer its result
        takes.
        """
        return any(isinstance(part, ValueBag) for part in self._others)

    def sizes(self, slots: np.ndarray) -> np.ndarray:
        """Return about how many bytes the results of each slot are, int64, for aggregates that store values.
        Others count as 0.
        """
        sizes = np.zeros(slots.size, np.int64)
        for call, index in zip(self._calls, self._part_of, strict=True):
            if isinstance(part := self._parts[index], ValueBag):
                sizes += part.sizes(slots, once=call.distinct, between=_between(call))
        return sizes

    def check_sizes(self, slots: np.ndarray) -> None:
        """Raise ``ValueTooLarge`` where an aggregate of one slot would not fit into an array."""
        for call, index in zip(self._calls, self._part_of, strict=True):
            part = self._parts[index]
            if isinstance(part, ValueBag) and call.function in LISTS_VALUES:
                sizes = part.sizes(slots, once=call.distinct, between=_between(call))
                if sizes.size and int(sizes.max()) > LIMITS.value_bytes:
                    raise ValueTooLarge(call, int(sizes.max()), int(slots[sizes.argmax()]))

    def before(self, slots: np.ndarray) -> Before:
        """Return what ``before_and_after`` needs of distinct slots that are about to be added to."""
        # Values outside of the shared table have no columns to gather: their results are computed now.
        if self._others:
            return self.results(slots)
        # old and new state of each slot side by side, so that results of both are computed in one pass
        pairs = np.empty((self._table.width, 2 * slots.size), np.int64)
        self._table.gather_half(slots, pairs, 0)
        return pairs

    def before_and_after(self, slots: np.ndarray, before: Before) -> list[pa.Array]:
        """Return one column per aggregate of twice the slots: for each its value as it was, then as it is
        now.
        """
        if isinstance(before, np.ndarray):
            self._table.gather_half(slots, before, 1)
            return self._results(before, slots)
        return paired(before, self.results(slots))

    def save(self, slots: np.ndarray) -> None:
        """Save slots for the snapshots that are not copied yet. To be called before they change, also those
        that are to be added to or cleared.
        """
        self._views.save(slots)
        for part in self._others:
            part.save(slots)

    def freeze(
        self, count: int
    ) -> Callable[[np.ndarray | None], Callable[[np.ndarray], dict[str, pa.Array]]]:
        """Return the state of slots below ``count`` as it is now, to be copied later as FrozenColumns are, as
        named columns for a checkpoint.
        """
        width = self._table.width
        # without the words that only fill up a row: a copy has none
        frozen = self._views.freeze([self._table.rows[:, :width]], count)
        others = {p: part.freeze(count) for p, part in enumerate(self._parts) if p not in self._columns}

        def of(slots: np.ndarray | None) -> Callable[[np.ndarray], dict[str, pa.Array]]:
            (table,) = frozen.copies(slots)
            columns = {p: of_part(slots) for p, of_part in others.items()}
            return lambda at: self._named(gathered(table, width, at), at, columns)

        return of

    def _named(self, table: np.ndarray, at: np.ndarray, others: Mapping[int, Columns]) -> dict[str, pa.Array]:
        # On disk: a<part>_<column>.
        return {
            f"a{p}_{k}": column
            for p, part in enumerate(self._parts)
            for k, column in enumerate(
                part.arrays(table[self._columns[p]])
                if p in self._columns and isinstance(part, TablePart)
                else others[p](at)
            )
        }

    def restore(self, slots: np.ndarray, columns: dict[str, pa.Array]) -> None:
        """Set the state of empty slots from such columns."""
        for p, part in enumerate(self._parts):
            mine = [name for name in columns if name.startswith(f"a{p}_")]
            part.restore(slots, [columns[f"a{p}_{k}"] for k in range(len(mine))])


def paired(before: Sequence[pa.Array], after: Sequence[pa.Array]) -> list[pa.Array]:
    """Return columns of twice the rows: each as it was, then as it is now."""
    if not before:
        return []
    # 0, n, 1, n + 1, ...: old and new in turn.
    order = array_of(np.arange(2 * len(before[0])).reshape(2, -1).T.ravel())
    return [pa.concat_arrays([old, new]).take(order) for old, new in zip(before, after, strict=True)]


# A separator is a constant of the call.
def _between(call: AggregateCall) -> int:
    """Return how many bytes the separator between two values of an aggregate is."""
    if call.function == "listagg" and isinstance(separator := call.args[1], Literal):
        return len(str(separator.value).encode())
    return 0
