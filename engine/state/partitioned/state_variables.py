"""State variables of a process table function: a value, a list or a map for each partition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.catalog.process_table_functions import StateDeclaration, StateKind
from penstock.catalog.types import to_arrow
from penstock.engine.api.arrow_numpy import array_of, truths
from penstock.engine.state.partitioned.partition_rows import KeyedRows, PartitionKeys, PartitionRows
from penstock.engine.state.time_to_live import LastWrites


class ValueVariable(PartitionRows):
    """One value for each partition. NULL is no value: it is not stored."""

    def __init__(
        self, kind: pa.DataType, partitions: PartitionKeys, writes: LastWrites | None = None
    ) -> None:
        super().__init__(pa.schema([("value", kind)]), partitions, writes)
        self.type = kind

    def get(self, slots: np.ndarray) -> pa.Array:
        """Return the value of each partition, NULL where there is none."""
        positions, ids = self._links.expand(slots)
        if not ids.size:
            return pa.nulls(slots.size, self.type)
        values = self.take(ids).column(0)
        # the usual batch: each of its partitions has a value
        if ids.size == slots.size:
            return values
        at = np.full(slots.size, -1, np.int64)
        at[positions] = np.arange(ids.size)
        return values.take(array_of(at, at < 0))

    def put(self, slots: np.ndarray, values: pa.Array) -> None:
        """Store a value for each of distinct partitions; NULL clears it."""
        self.clear(slots)
        if values.null_count:
            known = truths(values.is_valid())
            slots, values = slots[known], values.filter(array_of(known))
        if slots.size:
            self.append(slots, pa.RecordBatch.from_arrays([values], schema=self.schema))


class ListVariable(PartitionRows):
    """A list of values for each partition, in the order in which they were added."""

    def __init__(
        self, kind: pa.DataType, partitions: PartitionKeys, writes: LastWrites | None = None
    ) -> None:
        super().__init__(pa.schema([("value", kind)]), partitions, writes, numbered=True)
        self.type = kind

    def get(self, slots: np.ndarray) -> pa.Array:
        """Return the list of each partition; an empty one where there is none."""
        positions, ids = self.of(slots)
        offsets = np.zeros(slots.size + 1, np.int32)
        np.cumsum(np.bincount(positions, minlength=slots.size), out=offsets[1:])
        return pa.ListArray.from_arrays(array_of(offsets), self.take(ids).column(0))

    def extend(self, slots: np.ndarray, values: pa.Array) -> None:
        """Add a value to the list of each slot, in this order; a slot may be named several times."""
        if slots.size:
            self.append(slots, pa.RecordBatch.from_arrays([values], schema=self.schema))


class MapVariable(KeyedRows):
    """A map for each partition. NULL is a key like others; a value may be NULL."""

    def __init__(
        self, key: pa.DataType, kind: pa.DataType, partitions: PartitionKeys, writes: LastWrites | None = None
    ) -> None:
        schema = pa.schema([("key", key), ("value", kind)])
        super().__init__(schema, partitions, lambda rows: [rows.column(0)], writes)
        self.key_type, self.type = key, kind

    def get(self, slots: np.ndarray, keys: pa.Array) -> pa.Array:
        """Return the value of each (partition, key), NULL where there is none."""
        ids = self.find(slots, [keys])
        if (ids < 0).all():
            return pa.nulls(slots.size, self.type)
        values = self.take(ids[ids >= 0]).column(1)
        at = np.cumsum(ids >= 0) - 1
        return values.take(array_of(at, ids < 0))

    def set(self, slots: np.ndarray, keys: pa.Array, values: pa.Array) -> None:
        """Store a value for each (partition, key); of equal ones the last counts."""
        if slots.size:
            self.put(slots, pa.RecordBatch.from_arrays([keys, values], schema=self.schema))

    def discard(self, slots: np.ndarray, keys: pa.Array) -> None:
        """Forget the values of (partition, key) pairs; unknown ones are skipped."""
        ids = self.find(slots, [keys])
        self.drop(np.unique(ids[ids >= 0]))

    def entries(self, slots: np.ndarray) -> tuple[np.ndarray, pa.Array, pa.Array]:
        """Return all entries of partitions: position in ``slots``, key, value; ordered by position."""
        positions, ids = self.of(slots)
        rows = self.take(ids)
        return positions, rows.column(0), rows.column(1)


StateVariable = ValueVariable | ListVariable | MapVariable

_MAKERS: dict[StateKind, Callable[..., StateVariable]] = {
    StateKind.VALUE: lambda declared, *rest: ValueVariable(to_arrow(declared.type), *rest),
    StateKind.LIST: lambda declared, *rest: ListVariable(to_arrow(declared.type), *rest),
    StateKind.MAP: lambda declared, *rest: MapVariable(
        to_arrow(declared.key), to_arrow(declared.type), *rest
    ),
}


def make_variable(
    declared: StateDeclaration, partitions: PartitionKeys, writes: LastWrites | None
) -> StateVariable:
    """Return the state of a declaration, with nothing in it."""
    return _MAKERS[declared.kind](declared, partitions, writes)
