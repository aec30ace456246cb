"""Process table functions: a Python class is called with the rows and timers of many partitions at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.process_table_functions import PythonProcessTable
from penstock.catalog.python_functions import PROGRAM_ERRORS, CallMode
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    KeyedState,
    ListState,
    Operator,
    Output,
    PendingOutput,
    start_output,
)
from penstock.engine.api.row_pieces import copies_at_once
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.expressions import EvaluationContext, compile_expression
from penstock.engine.expressions.datum import repeated
from penstock.engine.expressions.evaluation_errors import Fault
from penstock.engine.expressions.python_calls import raised
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.partition import counting_sort
from penstock.engine.operators.process.ordered_table_rows import OrderedTableRows
from penstock.engine.operators.process.partition_call import Clocks, Emitted, PartitionCall, not_allowed
from penstock.engine.operators.process.row_calls import RowCalls
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.engine.state.partitioned.partition_rows import PartitionKeys, PartitionRows
from penstock.engine.state.partitioned.state_variables import make_variable
from penstock.engine.state.partitioned.timers import LATEST_US, Timers
from penstock.engine.state.time_to_live import EXPIRED, LastWrites
from penstock.engine.state.watermark_state import KeyGroupWatermarkState
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.logical.process_table import ProcessTable
from penstock.planner.physical.operator_specs import OperatorSpec

LATE_TIMERS = "late_timers"
"""The counter of timers that were set behind the watermark."""

# Rounds of timers that set the next one without end. Each is a call: 100,000 take about ten seconds.
_ROUNDS_MAX = 100_000
_US_PER_MS = 1_000


class ProcessTableOperator(Operator):
    """Rows go to the function as they arrive, those of one batch in one call. Timers fire when the watermark,
    or the clock, has reached them: of each partition one a call, in order of time.

    Rows behind the watermark go to the function too. The rows it emits for them keep their time and are late
    above. Timers of the clock that are still set when all tables have ended fire at the end.

    Rows of a table with ORDER BY go to the function when the watermark has passed them, before the timers
    that it has reached.
    """

    refuses_unknown_states = True

    def __init__(self, spec: OperatorSpec[ProcessTable, PartitionFacts], options: JobOptions) -> None:
        self._node, self._facts = spec.node, spec.facts
        self._function: PythonProcessTable = spec.node.function
        self._schema = spec.schema.to_arrow()
        self._zone, self._options = options.time_zone, options
        self._distinct = DistinctSlots()
        self._ended = False
        ordered = map(self._ordered_name, self._ordered_ports)
        self.added_states = frozenset({*self._state_names().values(), *ordered})

    @property
    def _ordered_ports(self) -> list[int]:
        return [port for port, columns in enumerate(self._node.orders) if columns]

    def _state_names(self) -> dict[str, str]:
        """Return the name of each variable's state in checkpoints; another kind is another state."""
        return {name: f"{declared.kind} {name}" for name, declared in self._function.state}

    def open(self, context: Context) -> None:
        self._metrics, self._clock = context.metrics, context.clock
        groups, first = context.key_groups, self._node.tables[0].schema.to_arrow()
        types = [first.field(key).type for key in self._node.partitions[0]]
        self._partitions = PartitionKeys.of(types, groups.max_parallelism)
        self._states = {
            name: make_variable(declared, self._partitions, self._writes(declared.ttl_ms))
            for name, declared in self._function.state
        }
        # by whether they go by the clock
        self._timers: dict[bool, Timers] = {}
        if self._function.has_timers:
            self._timers[True] = Timers(self._partitions)
            if self._node.times:
                self._timers[False] = Timers(self._partitions)
        self._ordered = {
            port: OrderedTableRows(
                self._node.tables[port].schema,
                self._node.partitions[port],
                self._node.sort_keys(port),
                self._options,
                groups.max_parallelism,
            )
            for port in self._ordered_ports
        }
        self._passed = KeyGroupWatermarkState(groups)
        self._restored = True
        self._instance = self._started(context)

    def _writes(self, declared_ms: int | None) -> LastWrites | None:
        ttl_ms = self._facts.ttl_ms if declared_ms is None else declared_ms
        return LastWrites(ttl_ms, self._clock) if ttl_ms else None

    def _started(self, context: Context) -> Any:
        """Return the object of the function's class and evaluate the constants of the call."""
        one = pa.RecordBatch.from_arrays([array_of(np.zeros(1, np.int64))], ["nothing"])
        evaluation = EvaluationContext(self._zone, context.clock)
        self._args: dict[str, Any] = {}
        for (name, _), argument in zip(self._function.arguments, self._node.arguments, strict=True):
            value = compile_expression(argument, evaluation)(one)
            self._args[name] = (
                repeated(value, 1)[0].as_py() if isinstance(value, pa.Scalar) else value[0].as_py()
            )
        body: Any = self._function.body
        try:
            made = body()
        except PROGRAM_ERRORS as error:
            raise self._error(raised(self._function, error), "when it was made") from error
        return RowCalls(self._function, made) if self._function.mode is CallMode.ROW else made

    def keyed_states(self) -> dict[str, KeyedState]:
        names = self._state_names()
        states: dict[str, KeyedState] = {names[name]: state for name, state in self._states.items()}
        timers = {"processing timers" if clock else "timers": one for clock, one in self._timers.items()}
        ordered = {self._ordered_name(port): table.rows for port, table in self._ordered.items()}
        return states | timers | ordered

    def _ordered_name(self, port: int) -> str:
        return f"ordered {self._function.tables[port][0]}"

    def state_ports(self) -> dict[str, int]:
        return {self._ordered_name(port): port for port in self._ordered}

    def list_states(self) -> dict[str, ListState]:
        return {"passed": self._passed}

    # rows

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        if port in self._ordered:
            self._ordered[port].add(batch, self._passed.us, self._metrics)
            self._count_entries()
            return None
        return start_output(_collected(self._rows_of(batch, port), out))

    def _rows_of(self, batch: Batch, port: int) -> Iterator[Batch]:
        """Yield what the function emits for a batch, a row of weight 2 being two rows."""
        if batch.weights is None:
            yield from self._process(batch, None, port)
            return
        for piece in batch.copies(copies_at_once(batch.weights, batch.rows)):
            assert piece.weights is not None
            single = piece.take(np.repeat(np.arange(piece.num_rows), np.abs(piece.weights)))
            assert single.weights is not None
            yield from self._process(single, np.sign(single.weights), port)

    def _process(self, batch: Batch, weights: np.ndarray | None, port: int) -> Iterator[Batch]:
        if not batch.num_rows:
            return
        node, names = self._node, self._node.names[port]
        columns = [batch.rows.column(key) for key in node.partitions[port]]
        of_rows = self._partitions.keys.lookup_or_insert(columns, batch.num_rows)
        capacity = self._partitions.keys.capacity
        slots = self._distinct.of(of_rows, capacity)
        # slots to positions in this call: slots are small and dense
        position = np.zeros(capacity, np.int64)
        position[slots] = np.arange(slots.size)
        order, offsets = counting_sort(position[of_rows], slots.size)
        rows = pa.RecordBatch.from_arrays(batch.rows.columns[: len(names)], list(names))
        behind = batch.behind
        # one partition: the rows are in its order already
        if slots.size > 1:
            rows = rows.take(array_of(order))
            weights = None if weights is None else weights[order]
            behind = None if behind is None else behind[order]
        call = self._call(slots, port)
        call.input, call.rows, call.offsets = self._function.tables[port][0], rows, offsets
        call.weights = np.ones(rows.num_rows, np.int64) if weights is None else weights
        if node.times:
            call.times_us = col.words(rows.column(node.times[port]))
            call.needs_rows = True
        call.needs_rows |= self._function.passes_columns
        self._invoke(self._instance.process, call, f"{rows.num_rows:,} rows of {call.input}")
        # made before the keys of partitions without state are removed
        made = [self._output(call, emitted, behind) for emitted in call.emitted]
        self._release(slots)
        for one in made:
            yield from one.pieces()

    def _call(self, slots: np.ndarray, port: int) -> PartitionCall:
        names = [self._node.names[port][key] for key in self._node.partitions[port]]
        keys = (
            pa.RecordBatch.from_arrays(self._partitions.keys.keys(slots), names)
            if names
            # no PARTITION BY: one row without columns
            else pa.RecordBatch.from_struct_array(pa.array([{}] * slots.size, pa.struct([])))
        )
        reached = None if self._passed.us == MIN_WATERMARK_US else self._passed.us
        clocks = Clocks(self._clock.wall_ms(), reached, self._ended, self._count_late)
        return PartitionCall(self._function, self._states, self._timers, slots, keys, clocks, self._args)

    def _count_late(self, count: int) -> None:
        if count:
            self._metrics.count(LATE_TIMERS, count)

    def _invoke(self, method: Callable[[PartitionCall], Any], call: PartitionCall, what: str) -> None:
        """Call a method of the function. What it raises fails the job, with what it was called for."""
        try:
            method(call)
        except Fault as fault:
            raise self._error(fault, f"called for {what}") from None
        except PenstockError:
            raise
        except PROGRAM_ERRORS as error:
            where = f"called for {what} of {call.num_partitions:,} partitions"
            raise self._error(raised(self._function, error), where) from error

    def _error(self, fault: Fault, what: str) -> PenstockError:
        return PenstockError(
            fault.code,
            fault.message,
            detail=f"in {self._function.name}, {what}",
            hint=fault.hint,
            span=self._node.span,
            sqlstate=fault.sqlstate,
        )

    def _output(self, call: PartitionCall, emitted: Emitted, behind: np.ndarray | None) -> Batch:
        """Return what was emitted with the columns of PARTITION BY, or of the input, and the time."""
        rows, partitions = emitted.rows, array_of(emitted.partitions)
        if self._function.passes_columns:
            assert rows is not None and call.rows is not None
            columns = list(call.rows.take(array_of(rows)).columns)
        else:
            keys = [column.take(partitions) for column in call.keys.columns]
            columns = keys * len(self._node.tables)
        columns += emitted.columns
        late = None
        if self._node.times:
            columns.append(self._times(call, emitted))
            late = self._lateness(call, emitted, behind)
        weights = None if emitted.retracts is None else np.where(emitted.retracts, -1, 1)
        return Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema), weights, late)

    def _times(self, call: PartitionCall, emitted: Emitted) -> pa.Array:
        kind = self._schema.field(len(self._schema) - 1).type
        if call.rows is not None:
            assert emitted.rows is not None and call.input is not None
            port = [name for name, _ in self._function.tables].index(call.input)
            return call.rows.column(self._node.times[port]).take(array_of(emitted.rows))
        # timers of the clock have no event time
        if call.processing_time or call.times_us is None:
            return pa.nulls(emitted.partitions.size, kind)
        return array_of(call.times_us[emitted.partitions]).view(kind)

    def _lateness(
        self, call: PartitionCall, emitted: Emitted, behind: np.ndarray | None
    ) -> np.ndarray | None:
        if emitted.rows is not None:
            return None if behind is None else behind[emitted.rows]
        if call.processing_time or call.times_us is None:
            return None
        # a late timer: windows above may have closed at the watermark before
        late = call.times_us[emitted.partitions] < self._passed.us
        return np.where(late, self._passed.us, MIN_WATERMARK_US) if late.any() else None

    def _release(self, slots: np.ndarray) -> None:
        """Remove the keys of partitions that have no state and no timer."""
        states: list[PartitionRows] = [*self._states.values(), *self._timers.values()]
        used = np.zeros(slots.size, np.bool_)
        for state in states:
            used |= state.counts(slots) > 0
        self._partitions.keys.remove(slots[~used])
        self._count_entries()

    def _count_entries(self) -> None:
        states: list[Sized] = [*self._states.values(), *self._timers.values()]
        pending = [table.rows for table in self._ordered.values()]
        self._metrics.state_entries = sum(map(len, [*states, *pending]))

    # time

    def on_restored(self) -> None:
        # timers are late, and rows emitted by late ones, against the watermark of the checkpoint
        self._passed.us = self._passed.least_us(MIN_WATERMARK_US)

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        return start_output(_collected(self._pass_time(time_us), out))

    def _pass_time(self, time_us: int) -> Iterator[Batch]:
        self._ended |= time_us >= MAX_WATERMARK_US
        for port, table in self._ordered.items():
            for batch in table.due(time_us):
                yield from self._rows_of(batch, port)
        if False in self._timers:
            yield from self._fire(False, time_us)
        self._passed.us = time_us

    @property
    def wants_ticks(self) -> bool:
        ttls = (declared.ttl_ms for _, declared in self._function.state)
        expires = any(self._facts.ttl_ms if ttl_ms is None else ttl_ms for ttl_ms in ttls)
        return self._function.has_timers or expires

    def on_processing_time(self, now_ms: int, out: Output) -> PendingOutput | None:
        """Fire timers of the clock, and expire state that was not written for its time to live."""
        for state in self._states.values():
            expired = state.due(now_ms)
            if expired.size:
                self._metrics.count(EXPIRED, int(expired.size))
                state.clear(expired)
                self._release(expired)
        if True not in self._timers:
            return None
        return start_output(_collected(self._fire(True, now_ms * _US_PER_MS), out))

    def on_end(self, out: Output) -> PendingOutput | None:
        """Fire the timers of the clock that are left: nothing comes any more that they could wait for."""
        self._ended = True
        if True not in self._timers:
            return None
        return start_output(_collected(self._fire(True, LATEST_US), out))

    def _fire(self, clock: bool, time_us: int) -> Iterator[Batch]:
        """Yield what due timers emit. Timers that they set up to the same time fire too, in their order."""
        timers, stalled, latest = self._timers[clock], 0, MIN_WATERMARK_US
        due = timers.take_due(time_us)
        while due.size:
            rounds = timers.rounds(due)
            for number, ids in enumerate(rounds):
                times = timers.times(ids)
                yield from self._fire_round(clock, ids, times)
                fresh = timers.take_due(time_us)
                # a timer set one that is due: it may precede what is left
                if fresh.size:
                    rest = np.concatenate([fresh, *rounds[number + 1 :]])
                    due = self._still_set(timers, rest)
                    ahead = int(times.max()) > latest
                    latest = max(latest, int(times.max()))
                    stalled = 0 if ahead and not self._ended else stalled + 1
                    if stalled > _ROUNDS_MAX:
                        raise self._endless()
                    break
            else:
                return

    def _still_set(self, timers: Timers, ids: np.ndarray) -> np.ndarray:
        ids = np.unique(ids)
        return ids[timers.is_set(ids, timers.times(ids))]

    def _endless(self) -> PenstockError:
        hint = (
            "set none when ctx.ended is True"
            if self._ended
            else "set a timer that is later than the one that fires"
        )
        fault = not_allowed(self._function, "sets a timer at each timer without end", hint)
        return self._error(fault, f"after {_ROUNDS_MAX:,} rounds")

    def _fire_round(self, clock: bool, ids: np.ndarray, times: np.ndarray) -> Iterator[Batch]:
        timers = self._timers[clock]
        # timers of earlier rounds may have cleared or moved some
        kept = timers.is_set(ids, times)
        ids, times = ids[kept], times[kept]
        if not ids.size:
            return
        slots = timers.owners(ids)
        call = self._call(slots, 0)
        call.times_us, call.processing_time = times, clock
        call.timer_names = timers.take(ids).column(0)
        # a timer that fires is no longer set; the function may set it again
        timers.drop(ids)
        self._invoke(self._instance.on_timer, call, f"{ids.size:,} timers")
        made = [self._output(call, emitted, None) for emitted in call.emitted]
        self._release(slots)
        for one in made:
            yield from one.pieces()


def _collected(batches: Iterator[Batch], out: Output) -> PendingOutput:
    """Emit batches, each a piece."""
    for number, batch in enumerate(batches):
        if number:
            yield
        out.collect(batch)
