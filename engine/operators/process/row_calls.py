"""Process table functions called with one row or timer at a time, upon the form for many partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.process_table_functions import PythonProcessTable, StateKind
from penstock.engine.operators.process.partition_call import PartitionCall, not_allowed

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


class RowCalls:
    """Calls ``process(ctx, row)`` for each row and ``on_timer(ctx)`` for each timer, and writes what they
    changed and emitted at once. It is a loop over rows, as ``mode="row"`` of other Python functions is.
    """

    def __init__(self, function: PythonProcessTable, instance: Any) -> None:
        self._function, self._instance = function, instance

    def process(self, call: PartitionCall) -> None:
        """Call the function with each row of a call, by partition and in order of arrival."""
        assert call.rows is not None
        context = RowContext(self._function, call)
        rows, weights, offsets = call.rows.to_pylist(), call.weights.tolist(), call.offsets.tolist()
        times = None if call.times_us is None else call.times_us.tolist()
        for partition in range(call.num_partitions):
            for row in range(offsets[partition], offsets[partition + 1]):
                context._at(partition, row, None if times is None else times[row], weights[row] < 0)
                self._instance.process(context, rows[row])
        context._write()

    def on_timer(self, call: PartitionCall) -> None:
        """Call the function with each timer of a call."""
        assert call.times_us is not None and call.timer_names is not None
        context = RowContext(self._function, call)
        names = call.timer_names.to_pylist()
        for partition, time_us in enumerate(call.times_us.tolist()):
            context._at(partition, None, time_us, False)
            context.timer = names[partition]
            self._instance.on_timer(context)
        context._write()


class RowContext:
    """What a function of rows sees and does for the current row or timer.

    ``input``: the table of the row, None for a timer. ``time``: its time by ``on_time``, or that of the
    timer, as a datetime of UTC without a zone. ``timer``: the name of the timer. ``retracts``: the row is
    retracted. ``key``: the columns of PARTITION BY. ``state``: the state variables as attributes: a value, a
    list, a dict.
    """

    def __init__(self, function: PythonProcessTable, call: PartitionCall) -> None:
        self._function, self._call = function, call
        self._keys = call.keys.to_pylist() if call.keys.num_columns else [{}] * call.num_partitions
        self.state = RowState(function, call)
        self._emitted: list[tuple[int, int | None, bool, tuple[Any, ...]]] = []
        # (partition, name, time): a time of None clears the timer
        self._timers: dict[bool, dict[tuple[int, str | None, int | None], int | None]] = {}
        self._cleared: set[int] = set()
        self.args = call.args
        self.input = call.input
        self.timer: str | None = None
        self.processing_time = call.processing_time
        self.ended = call.ended

    def _at(self, partition: int, row: int | None, time_us: int | None, retracts: bool) -> None:
        self._partition, self._row, self.time_us, self.retracts = partition, row, time_us, retracts
        self.state._at(partition)

    @property
    def key(self) -> Mapping[str, Any]:
        """The columns of PARTITION BY by name."""
        return self._keys[self._partition]

    @property
    def time(self) -> datetime | None:
        """The time of the row or timer; None for a row without one."""
        return None if self.time_us is None else _EPOCH + self.time_us * _MICROSECOND

    @property
    def watermark(self) -> datetime | None:
        """The event time reached so far; None before the first watermark and at the end of time."""
        reached = self._call.watermark_us
        return None if reached is None or self.ended else _EPOCH + reached * _MICROSECOND

    @property
    def now_ms(self) -> int:
        """The clock in milliseconds since 1970."""
        return self._call.now_ms

    def emit(self, *values: Any, retract: bool = False) -> None:
        """Emit a row of these values. ``retract``: it retracts a row emitted before."""
        if len(values) != len(self._function.result):
            hint = f"it is declared to emit {len(self._function.result)}"
            raise not_allowed(self._function, f"emits a row of {len(values)} values", hint)
        self._emitted.append((self._partition, self._row, retract, values))

    def set_timer(self, time: Any, name: str | None = None, *, processing_time: bool = False) -> None:
        """Set a timer of this partition: a datetime of UTC, or microseconds; setting a named one moves it."""
        moment = _microseconds(time)
        if moment is None:
            raise not_allowed(
                self._function, "sets a timer without a time", "set it if row's time is not None"
            )
        key = (self._partition, name, moment if name is None else None)
        self._timers.setdefault(processing_time, {})[key] = moment

    def clear_timer(self, name: str, *, processing_time: bool = False) -> None:
        """Forget the timer of a name; nothing happens where it is not set."""
        self._timers.setdefault(processing_time, {})[(self._partition, name, None)] = None

    def clear_timers(self) -> None:
        """Forget all timers of this partition, of both times."""
        self._cleared.add(self._partition)
        for changes in self._timers.values():
            for key in [key for key in changes if key[0] == self._partition]:
                del changes[key]

    def _write(self) -> None:
        """Write what rows changed into the state, and emit their rows."""
        call = self._call
        self.state._write()
        if self._cleared:
            call.clear_timers(partitions=sorted(self._cleared))
        for processing_time, changes in self._timers.items():
            for clears in (True, False):
                chosen = [(k, v) for k, v in changes.items() if (v is None) is clears]
                partitions = [partition for (partition, _, _), _ in chosen]
                names = pa.array([name for (_, name, _), _ in chosen], pa.string())
                if chosen and clears:
                    call.clear_timer(names, partitions=partitions, processing_time=processing_time)
                elif chosen:
                    moments = pa.array([moment for _, moment in chosen], pa.int64())
                    call.set_timer(
                        moments, partitions=partitions, names=names, processing_time=processing_time
                    )
        if self._emitted:
            self._emit()

    def _emit(self) -> None:
        call = self._call
        partitions, rows, retracts, values = zip(*self._emitted, strict=True)
        columns = [
            call.values(list(column), kind)
            for column, kind in zip(zip(*values, strict=True), call._kinds, strict=True)
        ]
        of_rows = call.rows is not None
        call.emit(
            columns,
            partitions=None if of_rows else np.array(partitions, np.int64),
            rows=np.array(rows, np.int64) if of_rows else None,
            retract=np.array(retracts) if any(retracts) else None,
        )


class RowState:
    """The state variables of the current partition as attributes."""

    def __init__(self, function: PythonProcessTable, call: PartitionCall) -> None:
        object.__setattr__(self, "_function", function)
        object.__setattr__(self, "_call", call)
        object.__setattr__(self, "_kinds", {name: declared.kind for name, declared in function.state})
        # by name: what each partition of the call has, read when the first row asks for it
        object.__setattr__(self, "_read", {})
        object.__setattr__(self, "_partition", 0)

    def _at(self, partition: int) -> None:
        object.__setattr__(self, "_partition", partition)

    def __getattr__(self, name: str) -> Any:
        return self._of(name).now(self._partition)

    def __setattr__(self, name: str, value: Any) -> None:
        self._of(name).assign(self._partition, value)

    def _of(self, name: str) -> _Cached:
        if name not in self._read:
            if name not in self._kinds:
                known = ", ".join(self._kinds) or "none"
                raise not_allowed(self._function, f"has no state {name}", f"it declares {known}")
            self._read[name] = _CACHES[self._kinds[name]](self._call, name)
        return self._read[name]  # type: ignore[no-any-return]  # set without types, for attributes are the user's

    def _write(self) -> None:
        for cached in self._read.values():
            cached.write()

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)


class _Cached:
    """One variable of all partitions of a call as Python values; ``write`` stores what was changed."""

    def __init__(self, call: PartitionCall, name: str) -> None:
        self._call, self._name = call, name
        self._values = self._load()

    def _load(self) -> list[Any]:
        raise AssertionError(type(self))

    def now(self, partition: int) -> Any:
        """Return the value of a partition."""
        return self._values[partition]

    def assign(self, partition: int, value: Any) -> None:
        """Replace the value of a partition."""
        self._values[partition] = value

    def write(self) -> None:
        """Store what was changed."""
        raise AssertionError(type(self))


class _Values(_Cached):
    def _load(self) -> list[Any]:
        self._kind = self._call.state._states[self._name].type
        self._changed = False
        return getattr(self._call.state, self._name).to_pylist()  # type: ignore[no-any-return]  # an Arrow array

    def assign(self, partition: int, value: Any) -> None:
        self._values[partition] = value
        self._changed = True

    def write(self) -> None:
        if self._changed:
            setattr(self._call.state, self._name, self._call.values(self._values, self._kind))


class _Lists(_Cached):
    """A list is read as a Python list, which may be changed in place."""

    def _load(self) -> list[Any]:
        self._kind = self._call.state._states[self._name].type
        self._before = getattr(self._call.state, self._name).get().to_pylist()
        return [list(values) for values in self._before]

    def assign(self, partition: int, value: Any) -> None:
        self._values[partition] = [] if value is None else list(value)

    def write(self) -> None:
        """Append what is new at the end; lists that changed otherwise are replaced."""
        view = getattr(self._call.state, self._name)
        replaced, partitions, added = [], [], []
        for partition, (before, now) in enumerate(zip(self._before, self._values, strict=True)):
            kept = len(before)
            if now[:kept] != before:
                replaced.append(partition)
                kept = 0
            added += now[kept:]
            partitions += [partition] * (len(now) - kept)
        if replaced:
            view.clear(replaced)
        if added:
            view.append(self._call.values(added, self._kind), partitions)


class _Maps(_Cached):
    """A map is read as a dict, which may be changed in place."""

    def _load(self) -> list[Any]:
        state = self._call.state._states[self._name]
        self._kind, self._key = state.type, state.key_type
        partitions, keys, values = getattr(self._call.state, self._name).entries()
        before: list[dict[Any, Any]] = [{} for _ in range(self._call.num_partitions)]
        for partition, key, value in zip(
            partitions.tolist(), keys.to_pylist(), values.to_pylist(), strict=True
        ):
            before[partition][key] = value
        self._before = before
        return [dict(one) for one in before]

    def assign(self, partition: int, value: Any) -> None:
        self._values[partition] = {} if value is None else dict(value)

    def write(self) -> None:
        view = getattr(self._call.state, self._name)
        gone: list[tuple[int, Any]] = []
        put: list[tuple[int, Any, Any]] = []
        for partition, (before, now) in enumerate(zip(self._before, self._values, strict=True)):
            gone += [(partition, key) for key in before if key not in now]
            put += [
                (partition, key, value)
                for key, value in now.items()
                if key not in before or before[key] != value
            ]
        if gone:
            keys = self._call.values([key for _, key in gone], self._key)
            view.remove(keys, [partition for partition, _ in gone])
        if put:
            keys = self._call.values([key for _, key, _ in put], self._key)
            values = self._call.values([value for _, _, value in put], self._kind)
            view.put(keys, values, [partition for partition, _, _ in put])


_CACHES: dict[StateKind, type[_Cached]] = {
    StateKind.VALUE: _Values,
    StateKind.LIST: _Lists,
    StateKind.MAP: _Maps,
}


def _microseconds(time: Any) -> int | None:
    if not isinstance(time, datetime):
        return None if time is None else int(time)
    plain = time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
    return (plain - _EPOCH) // _MICROSECOND
