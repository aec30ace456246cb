"""One call of a process table function: rows or timers of many partitions, their state, and what it emits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.process_table_functions import PythonProcessTable
from penstock.catalog.types import to_arrow
from penstock.engine.api.arrow_numpy import numbers_of, truths
from penstock.engine.expressions.evaluation_errors import Fault
from penstock.engine.expressions.python_calls import as_column, checked_variants, values_as_column
from penstock.engine.state.partitioned.state_variables import (
    ListVariable,
    MapVariable,
    StateVariable,
    ValueVariable,
)
from penstock.engine.state.partitioned.timers import LATEST_US, Timers

Index = Any
"""Positions of rows or partitions: a numpy or Arrow array, or a list of integers."""


@dataclass(frozen=True)
class Emitted:
    """Rows that a call emitted: the position of each one's partition, and of its input row if it has one.
    ``retracts``: which of them retract a row that was emitted before; None for none.
    """

    columns: list[pa.Array]
    partitions: np.ndarray
    rows: np.ndarray | None
    retracts: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Clocks:
    """The times that a call sees. ``watermark_us``: the event time reached, None before the first watermark.
    ``ended``: all tables have ended. ``late``: counts timers that were set behind the watermark.
    """

    now_ms: int
    watermark_us: int | None
    ended: bool
    late: Callable[[int], None]


def not_allowed(function: PythonProcessTable, what: str, hint: str) -> Fault:
    """Return the fault of a function that uses its context in a wrong way."""
    return Fault("RUN-2013", "39000", f"Python function {function.name} {what}", hint)


class PartitionCall:
    """The context of a call: what a process table function sees and does. Arrays by partition have
    ``num_partitions`` elements, arrays by row ``rows.num_rows``.

    ``input``: the table the rows are from, None for timers. ``rows``: its columns, sorted by partition, in
    each in order of arrival. Partition i has the rows ``offsets[i]`` up to ``offsets[i + 1]``. ``keys``: the
    columns of PARTITION BY, a row for each partition. ``weights``: by row +1, or -1 for a retraction.
    ``times_us``: by row the column of ``on_time``; of timers their times, one for each partition.
    ``timer_names``: by partition, NULL without a name. ``processing_time``: they are timers of the clock.
    """

    def __init__(
        self,
        function: PythonProcessTable,
        states: Mapping[str, StateVariable],
        timers: Mapping[bool, Timers],
        slots: np.ndarray,
        keys: pa.RecordBatch,
        clocks: Clocks,
        args: Mapping[str, Any],
    ) -> None:
        self._function, self._timers, self._slots, self._clocks = function, timers, slots, clocks
        self._kinds = [to_arrow(field.type) for field in function.result]
        self.emitted: list[Emitted] = []
        self.keys, self.args = keys, MappingProxyType(dict(args))
        self.state = StateView(self, states)
        # of rows; timers replace them
        self.input: str | None = None
        self.rows: pa.RecordBatch | None = None
        self.offsets = np.zeros(slots.size + 1, np.int64)
        self.weights = np.zeros(0, np.int64)
        self.times_us: np.ndarray | None = None
        self.timer_names: pa.Array | None = None
        self.processing_time = False
        # what on_time wants of each emitted row
        self.needs_rows = False

    @property
    def num_partitions(self) -> int:
        """The number of partitions of this call."""
        return self._slots.size

    @property
    def partitions(self) -> np.ndarray:
        """The partition of each row, ascending."""
        return np.repeat(np.arange(self.num_partitions), np.diff(self.offsets))

    @property
    def now_ms(self) -> int:
        """The clock in milliseconds since 1970."""
        return self._clocks.now_ms

    @property
    def watermark_us(self) -> int | None:
        """The event time reached so far, microseconds; None before the first watermark."""
        return self._clocks.watermark_us

    @property
    def ended(self) -> bool:
        """Whether all tables have ended: timers that fire now are the last."""
        return self._clocks.ended

    def emit(
        self,
        columns: Mapping[str, Any] | Sequence[Any] | pa.RecordBatch,
        *,
        partitions: Index | None = None,
        rows: Index | None = None,
        retract: Any = None,
    ) -> None:
        """Emit rows. ``columns``: by name or in the declared order, arrays or one value for all rows.

        ``rows``: the input row that each derives from, which has its partition and time. ``partitions``: the
        partition of each, where they derive from no single row. Without both there is one row for each
        partition. ``retract``: by row, whether it retracts a row emitted before; True for all. Faults:
        RUN-2011 for other columns, RUN-2013 for positions that do not exist.
        """
        of_rows = None
        if rows is not None:
            if self.rows is None or partitions is not None:
                hint = "pass partitions=.. from on_timer; rows have their partitions themselves"
                raise not_allowed(self._function, "emits rows= of a timer, or with partitions=", hint)
            of_rows = self._positions(rows, self.rows.num_rows, "row")
            owners = np.searchsorted(self.offsets, of_rows, side="right") - 1
        elif self.needs_rows and self.rows is not None:
            hint = "pass rows=.., the input row of each output row"
            raise not_allowed(self._function, "emits rows that have no input row, thus no time", hint)
        elif partitions is not None:
            owners = self.positions_of(partitions)
        else:
            owners = np.arange(self.num_partitions)
        made = self._columns(columns, owners.size)
        self.emitted.append(Emitted(made, owners, of_rows, self._retractions(retract, owners.size)))

    def _columns(self, columns: Any, count: int) -> list[pa.Array]:
        names = self._function.result.names
        if isinstance(columns, pa.RecordBatch | pa.Table):
            columns = dict(zip(columns.schema.names, columns.columns, strict=True))
        if isinstance(columns, Mapping):
            by_name = {str(name).lower(): value for name, value in columns.items()}
            if sorted(by_name) != sorted(name.lower() for name in names):
                raise self._bad(f"emitted the columns {', '.join(map(str, columns)) or 'of no name'}")
            columns = [by_name[name.lower()] for name in names]
        if len(columns) != len(names):
            raise self._bad(f"emitted {len(columns)} columns")
        made = [
            self.column(value, kind, count, f"column {name}")
            for name, value, kind in zip(names, columns, self._kinds, strict=True)
        ]
        return [
            checked_variants(self._function, column, field.type)
            for column, field in zip(made, self._function.result, strict=True)
        ]

    def _bad(self, what: str) -> Fault:
        declared = ", ".join(f"{field.name} {field.type}" for field in self._function.result)
        message = f"Python function {self._function.name} {what}"
        return Fault("RUN-2011", "39004", message, f"it is declared to emit ({declared})")

    def column(self, value: Any, kind: pa.DataType, count: int, what: str) -> pa.Array:
        """Return a value of the function as a column of a type, or raise RUN-2011 that names it."""
        try:
            given = values_as_column(self._function, value, kind) if isinstance(value, list) else value
            return as_column(self._function, given, kind, count)
        except Fault as fault:
            fault.message = f"{fault.message} ({what})"
            fault.hint = f"{what} has the type {kind}"
            raise

    def values(self, values: list[Any], kind: pa.DataType) -> pa.Array:
        """Return Python values as a column of a type, or raise RUN-2011."""
        return values_as_column(self._function, values, kind)

    def _retractions(self, retract: Any, count: int) -> np.ndarray | None:
        if retract is None or retract is False:
            return None
        if not self._function.emits_updates:
            hint = "declare it with @penstock.ptf(.., emits_updates=True)"
            raise not_allowed(self._function, "retracts rows without declaring it", hint)
        marks = truths(self.column(retract, pa.bool_(), count, "retract").fill_null(False))
        return marks if marks.any() else None

    def positions_of(self, partitions: Index | None) -> np.ndarray:
        """Return positions of partitions as numbers; all of them for None."""
        if partitions is None:
            return np.arange(self.num_partitions)
        return self._positions(partitions, self.num_partitions, "partition")

    def _positions(self, given: Index, bound: int, what: str) -> np.ndarray:
        if isinstance(given, pa.Array):
            given = given.to_numpy(zero_copy_only=False)
        positions = np.asarray(given)
        whole = positions.ndim == 1 and (positions.size == 0 or positions.dtype.kind in "iu")
        positions = positions.astype(np.int64) if whole else positions
        if not whole or (positions.size and (positions.min() < 0 or positions.max() >= bound)):
            hint = f"{what}s are numbered from 0 to {bound - 1} in this call"
            raise not_allowed(self._function, f"names a {what} that does not exist", hint)
        return positions

    def slots_of(self, partitions: Index | None) -> np.ndarray:
        """Return the slots of partitions; all of them for None."""
        return self._slots if partitions is None else self._slots[self.positions_of(partitions)]

    # timers

    def set_timer(
        self,
        times_us: Any,
        *,
        partitions: Index | None = None,
        names: Any = None,
        processing_time: bool = False,
    ) -> None:
        """Set a timer for each of ``partitions`` (None: one for each). ``times_us``: microseconds of event
        time, or with ``processing_time`` of the clock.

        ``names``: a text for all, or one by timer; setting a named timer again moves it. An event timer fires
        once the watermark has reached its time; one behind the watermark fires at the next one. Faults:
        RUN-2013.
        """
        slots = self.slots_of(partitions)
        timers = self._timers_of(processing_time)
        moments = self.column(times_us, pa.int64(), slots.size, "the time of a timer")
        if moments.null_count:
            hint = "set timers for partitions that have a time only: set_timer(.., partitions=..)"
            raise not_allowed(self._function, "sets a timer without a time", hint)
        texts = pa.nulls(slots.size, pa.string())
        if names is not None:
            texts = self.column(names, pa.string(), slots.size, "the name of a timer")
        # a timer at the end of time fires at the end
        times = np.minimum(numbers_of(moments), LATEST_US)
        if not processing_time and self.watermark_us is not None and not self.ended:
            self._clocks.late(int((times <= self.watermark_us).sum()))
        timers.set(slots, texts, times)

    def clear_timer(
        self, names: Any, *, partitions: Index | None = None, processing_time: bool = False
    ) -> None:
        """Forget the timers of these names; those that are not set are skipped."""
        slots = self.slots_of(partitions)
        texts = self.column(names, pa.string(), slots.size, "the name of a timer")
        self._timers_of(processing_time).clear_named(slots, texts)

    def clear_timers(self, *, partitions: Index | None = None) -> None:
        """Forget all timers of partitions, of both times."""
        for timers in self._timers.values():
            timers.clear(np.unique(self.slots_of(partitions)))

    def _timers_of(self, processing_time: bool) -> Timers:
        if processing_time not in self._timers:
            message, hint = "sets a timer and has no method on_timer", "write def on_timer(self, ctx)"
            if self._function.has_timers:
                message = "sets a timer of event time without on_time"
                hint = "call it with on_time => DESCRIPTOR(ts), or declare requires_time=True for its table"
            raise not_allowed(self._function, message, hint)
        return self._timers[processing_time]


class StateView:
    """The state variables of a call as attributes. A value is an array by partition, which is read and
    assigned; NULL is no value. Lists and maps have methods.
    """

    def __init__(self, call: PartitionCall, states: Mapping[str, StateVariable]) -> None:
        object.__setattr__(self, "_call", call)
        object.__setattr__(self, "_states", states)

    def __getattr__(self, name: str) -> Any:
        call, state = self._call, self._variable(name)
        if isinstance(state, ListVariable):
            return ListView(call, state, name)
        if isinstance(state, MapVariable):
            return MapView(call, state, name)
        return state.get(call.slots_of(None))

    def __setattr__(self, name: str, value: Any) -> None:
        call, state = self._call, self._variable(name)
        if not isinstance(state, ValueVariable):
            hint = "a list has append, replace and clear; a map has put, remove and clear"
            raise not_allowed(call._function, f"assigns state {name}, which is no value", hint)
        state.put(call.slots_of(None), call.column(value, state.type, call.num_partitions, f"state {name}"))

    def _variable(self, name: str) -> StateVariable:
        state = self._states.get(name)
        if state is None:
            known = ", ".join(self._states) or "none"
            raise not_allowed(self._call._function, f"has no state {name}", f"it declares {known}")
        return state  # type: ignore[no-any-return]  # set without types, for attributes are the user's

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)


class ListView:
    """A list for each partition of a call."""

    def __init__(self, call: PartitionCall, state: ListVariable, name: str) -> None:
        self._call, self._state, self._what = call, state, f"state {name}"

    def get(self) -> pa.ListArray:
        """Return the list of each partition; empty ones where nothing is stored."""
        return self._state.get(self._call.slots_of(None))

    def append(self, values: Any, partitions: Index) -> None:
        """Append values, each to the list of its partition."""
        slots = self._call.slots_of(partitions)
        self._state.extend(slots, self._call.column(values, self._state.type, slots.size, self._what))

    def replace(self, values: Any, partitions: Index) -> None:
        """Replace the lists of all partitions by these values, each one's in their order."""
        self.clear()
        self.append(values, partitions)

    def clear(self, partitions: Index | None = None) -> None:
        """Forget the lists of partitions; of all for None."""
        self._state.clear(np.unique(self._call.slots_of(partitions)))


class MapView:
    """A map for each partition of a call."""

    def __init__(self, call: PartitionCall, state: MapVariable, name: str) -> None:
        self._call, self._state, self._what = call, state, f"state {name}"

    def get(self, keys: Any, partitions: Index) -> pa.Array:
        """Return the values of keys, each in its partition; NULL where there is none."""
        slots, columns = self._pairs(keys, partitions)
        return self._state.get(slots, columns)

    def put(self, keys: Any, values: Any, partitions: Index) -> None:
        """Store values; of equal keys of a partition the last counts."""
        slots, columns = self._pairs(keys, partitions)
        stored = self._call.column(values, self._state.type, slots.size, self._what)
        self._state.set(slots, columns, stored)

    def remove(self, keys: Any, partitions: Index) -> None:
        """Forget keys; unknown ones are skipped."""
        self._state.discard(*self._pairs(keys, partitions))

    def entries(self) -> tuple[np.ndarray, pa.Array, pa.Array]:
        """Return all entries: partition, key and value of each, ordered by partition."""
        return self._state.entries(self._call.slots_of(None))

    def clear(self, partitions: Index | None = None) -> None:
        """Forget the maps of partitions; of all for None."""
        self._state.clear(np.unique(self._call.slots_of(partitions)))

    def _pairs(self, keys: Any, partitions: Index) -> tuple[np.ndarray, pa.Array]:
        slots = self._call.slots_of(partitions)
        return slots, self._call.column(keys, self._state.key_type, slots.size, f"keys of {self._what}")
