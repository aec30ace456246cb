"""A task: one subtask of one chain. ``step`` does one piece of ready work and returns; it never blocks and
knows no thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import NamedTuple

import pyarrow as pa

from penstock.engine.api.clock import Clock
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.operator import Context, KeysKnown
from penstock.engine.api.stream_elements import (
    MAX_WATERMARK_US,
    Barrier,
    Batch,
    Element,
    EndOfInput,
    Idle,
    LatencyMarker,
    Watermark,
)
from penstock.engine.exchange.channel import Wakeup, no_wakeup
from penstock.engine.exchange.channel_state import ChannelRows, EdgeTarget, channel_state_table
from penstock.engine.exchange.input_gate import InputGate, PortEnd, PortTime
from penstock.engine.exchange.record_writer import TaskOutput
from penstock.engine.exchange.unaligned_barriers import BarrierAhead, OvertakenRows
from penstock.engine.metrics.busy_time import Spending, TimeSpent
from penstock.engine.metrics.operator_metrics import TaskMetrics
from penstock.engine.metrics.row_rates import RowRates
from penstock.engine.metrics.task_metrics import NO_QUEUES, TaskFigures, task_figures
from penstock.engine.task.memory_budget import MemoryBudget
from penstock.engine.task.messages import (
    CheckpointComplete,
    CompletionAcknowledged,
    EndSource,
    HistoryRead,
    SnapshotCompleted,
    TaskEnded,
    TaskId,
    TaskMessage,
    TaskReport,
    TriggerCheckpoint,
)
from penstock.engine.task.operator_chain import OperatorChain, OperatorSnapshot

# between two ticks of processing time, milliseconds
TICK_MS = 50.0

# between two measurements of the state's size, where no budget is enforced
MEASURE_MS = 1_000.0

# until an operator that took no rows (a full result queue) is asked again: it wakes nobody
NOT_READY_RETRY_MS = 5.0

# until a source without rows is polled again, unless it names a time
SOURCE_RETRY_MS = 10.0

# a source is polled at least this often, whatever time it names
SOURCE_WAIT_MS_MAX = 1_000.0


class Did(Enum):
    """The result of a step: work (step again), no input, no credit, or the task's end."""

    WORKED = "worked"
    WAITING = "waiting"
    BLOCKED = "blocked"
    ENDED = "ended"


class StepResult(NamedTuple):
    """What a step did; unless woken before, step again at ``wake_ms`` (monotonic) or never when ``None``."""

    did: Did
    wake_ms: float | None = None


WORKED = StepResult(Did.WORKED)

ENDED = StepResult(Did.ENDED)


class TaskPhase(StrEnum):
    """The life of a task."""

    NEW = "new"
    RUNNING = "running"
    ENDED = "ended"
    CLOSED = "closed"


@dataclass
class PendingBarrier:
    """A barrier that has passed the operators but not yet left the task; the snapshot lacks channel state.

    ``received``: channel state of the task's inputs, ``None`` until all is known. ``unsent``: elements the
    barrier overtook behind the task, by the target of their edge.
    """

    barrier: Barrier
    operators: tuple[OperatorSnapshot, ...]
    received: Sequence[ChannelRows] | None
    unsent: list[tuple[EdgeTarget, list[Element]]]

    def snapshot(self, edge_targets: Mapping[int, EdgeTarget], subtask: int) -> tuple[OperatorSnapshot, ...]:
        """Return the operators' state with the channel state: received rows go into the first operator by
        port, unsent rows into the last.
        """
        first, *others = self.operators
        first = _with(
            first,
            {
                edge_target.received: channel_state_table(
                    edge_target, [c for c in self.received or () if c.port == port]
                )
                for port, edge_target in edge_targets.items()
            },
        )
        operators = [first, *others]
        for edge_target, elements in self.unsent:
            rows = ChannelRows(edge_target.port, subtask)
            rows.add(elements)
            operators[-1] = _with(
                operators[-1], {edge_target.unsent: channel_state_table(edge_target, [rows])}
            )
        return tuple(operators)


def _with(operator: OperatorSnapshot, states: dict[str, pa.Table | None]) -> OperatorSnapshot:
    """Return a snapshot with further states, those that are not empty."""
    present = {name: table for name, table in states.items() if table is not None}
    return replace(operator, keyed={**operator.keyed, **present}) if present else operator


class Task:
    """Drives one operator chain between an input gate (or a source at its head) and its record writers.

    ``restore`` is called once, after opening and before the first row. ``finished``: the restored snapshot
    was the chain's last, so the task only forwards its end. ``keep_snapshots`` is False when no snapshots are
    stored. ``marker_interval_ms``: time between the latency markers of a source, 0 for none. ``budget``: the
    memory budget of its slot, enforced after every batch; without one state is only measured, about once a
    second. ``edge_targets``: by port, the target of its input's edge.
    """

    def __init__(
        self,
        task_id: TaskId,
        chain: OperatorChain,
        gate: InputGate | None,
        output: TaskOutput,
        *,
        clock: Clock,
        report: Callable[[TaskReport], None],
        attempt: int = 1,
        last_checkpoint_id: int = 0,
        keep_snapshots: bool = True,
        restore: Callable[[OperatorChain, InputGate | None], None] | None = None,
        finished: bool = False,
        wake: Wakeup = no_wakeup,
        marker_interval_ms: int = 0,
        budget: MemoryBudget | None = None,
        edge_targets: Mapping[int, EdgeTarget] | None = None,
    ) -> None:
        self.task_id = task_id
        self.chain = chain
        self.operators: tuple[Context, ...] = tuple(chained.context for chained in chain.operators)
        self.phase = TaskPhase.NEW
        self.metrics = TaskMetrics(
            TimeSpent(clock.monotonic_ms()),
            RowRates(clock.monotonic_ms()),
            operators={o.context.operator_id: o.metrics for o in chain.operators},
        )
        self._gate = gate
        self._output = output
        self._clock = clock
        self._report = report
        self._attempt = attempt
        self._last_checkpoint_id = last_checkpoint_id
        self._keep_snapshots = keep_snapshots
        self._restore = restore
        self._finished = finished
        self._wake = wake
        self._marker_interval_ms = marker_interval_ms if gate is None else 0
        self._next_marker_ms = 0.0
        self._budget = budget
        self._next_measure_ms = 0.0
        self._edge_targets = edge_targets or {}
        self._pending_barrier: PendingBarrier | None = None
        # filled by other threads: append and popleft of a deque are atomic
        self._mailbox: deque[TaskMessage] = deque()
        # paused: a barrier that stops the job has passed
        self._paused = self._history_reported = False
        self._ending = False
        self._poll_again_ms = 0.0
        self._caught_up = False
        self._arrivals = self.operators[0].arrivals
        self._next_tick_ms = 0.0
        self._aligning_since_ms: float | None = None

    @property
    def attempt(self) -> int:
        """The deployment the task belongs to."""
        return self._attempt

    @property
    def is_source(self) -> bool:
        """Whether barriers are injected here."""
        return self._gate is None

    @property
    def keeps_up(self) -> bool:
        """Whether it has no backlog of its own: the last poll of its source returned all there was."""
        return self._gate is not None or self._caught_up

    def post(self, message: TaskMessage) -> None:
        """Post a message for the next step; any thread may."""
        self._mailbox.append(message)
        self._wake()

    def step(self) -> StepResult:
        """Do one piece of work: a message, or one element, or one poll of the source."""
        started_ms = self._clock.monotonic_ms()
        result = self._advance(started_ms)
        if result.did is Did.WORKED:
            self.metrics.worked(started_ms, self._clock.monotonic_ms())
        # the time until the next step counts as back pressure or as idle
        elif result.did is not Did.ENDED:
            self.metrics.time.waits(
                Spending.BACKPRESSURED if result.did is Did.BLOCKED else Spending.IDLE, started_ms
            )
        return result

    def figures(self) -> TaskFigures:
        """Return what the task has counted until now; any thread may ask."""
        queues = NO_QUEUES if self._gate is None else self._gate.queues()
        operators = [(context.operator_id, context.name, context.metrics) for context in self.operators]
        bytes_out, now_ms = self._output.bytes_out, self._clock.monotonic_ms()
        return task_figures(
            self.task_id.chain,
            self.task_id.subtask,
            str(self.phase),
            self.is_source,
            self.metrics,
            operators,
            queues,
            bytes_out,
            now_ms,
        )

    def close(self) -> None:
        """Close the operators and release their state; raises the first failure after all are closed.

        ``operators`` and ``figures`` stay, ``chain`` does not.
        """
        if self.phase is not TaskPhase.CLOSED:
            opened = self.phase is not TaskPhase.NEW
            self.phase = TaskPhase.CLOSED
            try:
                if opened:
                    self.chain.close()
            finally:
                # A session lists its ended jobs with their figures. The state of their operators must not
                # stay in memory with them: 160 MB a run of a Top-N over 2 million rows.
                del self.chain
                self._restore = None

    def _advance(self, now_ms: float) -> StepResult:
        if self.phase is TaskPhase.NEW:
            self._start()
            return WORKED
        if self.phase is TaskPhase.CLOSED:
            self._mailbox.clear()
            return ENDED
        # Messages first. A checkpoint or an end must not cut the pending output of one input in two, so those
        # wait.
        has_pending = self.chain.has_pending
        if self._mailbox and not (
            has_pending and isinstance(self._mailbox[0], TriggerCheckpoint | EndSource)
        ):
            self._on_message(self._mailbox.popleft())
            return WORKED
        if self.phase is not TaskPhase.RUNNING:
            return ENDED
        # The rest of the last input before anything new: an operator gets no input while it has pending
        # output.
        if has_pending:
            return self._resume(now_ms)
        # Timers before input, so that a full input cannot starve them.
        due_ms = min(self._run_timers(now_ms), self._advance_barrier(now_ms))
        if self._ending:
            return (
                WORKED
                if self._finish()
                else StepResult(Did.WAITING, due_ms if due_ms < float("inf") else None)
            )
        # Input: one poll of the source, or one event of the gate. Without credit only barriers may pass.
        ready = self.chain.ready
        blocked = self._output.blocked or not ready
        if (
            self._poll_source(now_ms, blocked)
            if self._gate is None
            else self._take(now_ms, self._gate, blocked)
        ):
            # With a budget after every batch: one batch may be what exceeds it.
            if self._budget is not None or now_ms >= self._next_measure_ms:
                self._next_measure_ms = now_ms + MEASURE_MS
                # the flush may have grown the state
                self.chain.measure_state(self._budget)
            return WORKED
        # Nothing to do: sleep until the first of the timers, or until woken.
        if self._gate is not None and self._gate.due_ms is not None:
            due_ms = min(due_ms, self._gate.due_ms)
        if self._gate is None and not self._paused and not blocked:
            due_ms = min(due_ms, self._poll_again_ms)
        if not ready:
            due_ms = min(due_ms, now_ms + NOT_READY_RETRY_MS)
        return StepResult(Did.BLOCKED if blocked else Did.WAITING, due_ms if due_ms < float("inf") else None)

    def _resume(self, now_ms: float) -> StepResult:
        """Emit the next piece of pending output when there is credit. Until it is done, rows, watermarks and
        barriers wait.
        """
        blocked = self._output.blocked
        due_ms = self._advance_barrier(now_ms)
        # rows of the other operators of the chain still fall due meanwhile
        for due in (None if blocked else self.chain.release_due(now_ms), self._output.ship_due(now_ms)):
            due_ms = due_ms if due is None else min(due_ms, due)
        has_capacity = self.chain.has_capacity
        if has_capacity and not blocked:
            self.chain.resume()
            return WORKED
        if not has_capacity:
            due_ms = min(due_ms, now_ms + NOT_READY_RETRY_MS)
        return StepResult(Did.BLOCKED, due_ms if due_ms < float("inf") else None)

    def _start(self) -> None:
        """Open and restore the chain; a chain that had finished only reports its end again."""
        self.phase = TaskPhase.RUNNING
        self.chain.open()
        if self._restore is not None:
            failpoint("R1")
            self._restore(self.chain, self._gate)
            self.chain.restored()
            self._restore = None
        now_ms = self._clock.monotonic_ms()
        self._next_tick_ms = now_ms + TICK_MS
        # not at the first batch: measuring takes longer than processing a small one
        self._next_measure_ms = now_ms + MEASURE_MS
        # the chain's final state is in the restored checkpoint: it is reported again for the next one
        if self._finished:
            self._report_end(self._snapshot(self._last_checkpoint_id + 1))

    def _run_timers(self, now_ms: float) -> float:
        """Release rows that operators buffered and record writers' rows that are due, emit a latency marker,
        tick. Return when any of it is due again (infinity: never).
        """
        due_ms = float("inf")
        for due in (
            None if self._output.blocked or self._paused else self.chain.release_due(now_ms),
            self._output.ship_due(now_ms),
        ):
            due_ms = due_ms if due is None else min(due_ms, due)
        # no markers under back pressure: they would pile up in the channels
        if self._marker_interval_ms and not (self._paused or self._output.blocked):
            if now_ms >= self._next_marker_ms:
                self._next_marker_ms = now_ms + self._marker_interval_ms
                self.chain.marker(LatencyMarker(self.chain.operators[0].context.name, now_ms))
            due_ms = min(due_ms, self._next_marker_ms)
        if self.chain.ticks and not (self._paused or self._ending):
            if now_ms >= self._next_tick_ms:
                self._next_tick_ms = now_ms + TICK_MS
                self.chain.tick(self._clock.wall_ms())
            due_ms = min(due_ms, self._next_tick_ms)
        return due_ms

    def _advance_barrier(self, now_ms: float) -> float:
        """Report the snapshot once its barrier has left, or overtake what it waits behind. Return when it may
        overtake (infinity: nothing waits for that).
        """
        pending = self._pending_barrier
        # no barrier is pending, or the rows it overtook are not known yet
        if pending is None or pending.received is None:
            return float("inf")
        # The barrier is behind rows that a slow consumer has not fetched. From its time on it overtakes them.
        if self._output.has_buffered(pending.barrier):
            if now_ms < pending.barrier.overtakes_at_ms:
                return pending.barrier.overtakes_at_ms
            pending.unsent += self._output.overtake_buffered(pending.barrier)
        self._report_snapshot(pending)
        return float("inf")

    def _report_snapshot(self, pending: PendingBarrier) -> None:
        self._pending_barrier = None
        operators = pending.snapshot(self._edge_targets, self.task_id.subtask) if self._keep_snapshots else ()
        self._report(SnapshotCompleted(self._attempt, self.task_id, pending.barrier.checkpoint_id, operators))

    def _poll_source(self, now_ms: float, blocked: bool) -> bool:
        """Poll the source unless the output is blocked or it asked for a pause; return whether it had
        something.
        """
        if blocked or self._paused or (now_ms < self._poll_again_ms and not self._arrivals.pending):
            return False
        # a source that was woken has no pause left: what it said before is over
        self._poll_again_ms = 0.0
        counters = self.chain.operators[0].metrics
        rows_before = counters.rows_out
        status = self.chain.poll()
        had_rows = counters.rows_out > rows_before
        self.metrics.batches += had_rows
        self._caught_up = status.caught_up or not status.more
        if status.ended:
            self._finish()
        # no rows now: sleep until the source wants to be polled
        elif not status.more:
            if status.rests and not self._history_reported:
                self._history_reported = True
                self._report(HistoryRead(self._attempt, self.task_id))
            wait_ms = SOURCE_RETRY_MS if status.wake_ms is None else status.wake_ms - now_ms
            self._poll_again_ms = now_ms + min(max(wait_ms, 1.0), SOURCE_WAIT_MS_MAX)
            return had_rows
        return True

    def _take(self, now_ms: float, gate: InputGate, blocked: bool) -> bool:
        """Act on the next event of the gate (only barriers while the output is blocked); return whether there
        was one.
        """
        event = gate.next(now_ms, only_barriers=blocked)
        if gate.aligning and self._aligning_since_ms is None:
            self._aligning_since_ms = now_ms
        if event is None:
            return False
        match event:
            # Rows: into the head of the chain.
            case Batch():
                self.metrics.batches += 1
                self.metrics.bytes_in += event.size_bytes
                self.chain.push(event, gate.port, behind=self.chain.gathers and gate.rows_ready)
            # Time: merged over all inputs, of one port, or standing still.
            case Watermark(time_us):
                self.chain.watermark(time_us)
            case PortTime(port, time_us):
                self.chain.port_time(port, time_us)
            case Idle():
                self.chain.idle()
            case LatencyMarker():
                self.chain.marker(event)
            # A barrier that has arrived on every channel: rows behind it were blocked, so there is no channel
            # state.
            case Barrier():
                self._note_alignment(now_ms)
                failpoint("W5")
                self._checkpoint(event)
            # A barrier that overtakes: the snapshot is taken now, the channel state follows in OvertakenRows.
            case BarrierAhead(barrier):
                self._aligning_since_ms = (
                    now_ms if self._aligning_since_ms is None else self._aligning_since_ms
                )
                self._checkpoint(barrier, ahead=True)
            # A newer checkpoint may have replaced the pending one: its rows belong to nobody then.
            case OvertakenRows(checkpoint_id, channels):
                self._note_alignment(now_ms)
                if (
                    self._pending_barrier is not None
                    and self._pending_barrier.barrier.checkpoint_id == checkpoint_id
                ):
                    self._pending_barrier.received = channels
                    self._advance_barrier(now_ms)
            case PortEnd(port):
                self.chain.port_end(port)
            case EndOfInput():
                self._finish()
        return True

    def _on_message(self, message: TaskMessage) -> None:
        match message:
            # only sources get it: the barrier reaches the others through their gates
            case TriggerCheckpoint(checkpoint_id, then_stop, overtakes_after_ms):
                if self.phase is TaskPhase.RUNNING and self._gate is None and not self._ending:
                    failpoint("W1")
                    self._checkpoint(
                        Barrier(checkpoint_id, then_stop, self._clock.monotonic_ms() + overtakes_after_ms)
                    )
            # a stop with drain: as if the input had ended
            case EndSource():
                if (
                    self.phase is TaskPhase.RUNNING
                    and self._gate is None
                    and not (self._paused or self._ending)
                ):
                    self._finish()
            # the loaded side of a join is complete: scans may skip rows
            case KeysKnown():
                if self.phase is TaskPhase.RUNNING:
                    self.chain.keys_known(message)
            # sinks commit, also in tasks that have ended: their last snapshot is part of this checkpoint
            case CheckpointComplete(checkpoint_id):
                self.chain.checkpoint_complete(checkpoint_id)
                self._report(CompletionAcknowledged(self._attempt, self.task_id, checkpoint_id))

    def _note_alignment(self, now_ms: float) -> None:
        """Record how long barriers were aligned."""
        since_ms, self._aligning_since_ms = self._aligning_since_ms, None
        self.metrics.alignment_ms = 0.0 if since_ms is None else now_ms - since_ms

    def _checkpoint(self, barrier: Barrier, *, ahead: bool = False) -> None:
        """Take a checkpoint: flush, snapshot, and only then forward the barrier. After a barrier that stops
        the job nothing happens any more, not even ticks.

        A barrier ``ahead`` has overtaken rows that are known later; the snapshot is reported when they are.
        """
        # flush first: what operators buffer outside their state leaves before the barrier
        self.chain.before_barrier(barrier.checkpoint_id)
        self.chain.measure_state(self._budget)
        operators = self._snapshot(barrier.checkpoint_id)
        failpoint("W2" if self._gate is None else "W6")
        now_ms = self._clock.monotonic_ms()
        self._pending_barrier = PendingBarrier(
            barrier, operators, None if ahead else (), self._output.barrier(barrier, now_ms)
        )
        self._paused = barrier.then_stop
        self._last_checkpoint_id = barrier.checkpoint_id
        self._advance_barrier(now_ms)

    def _finish(self) -> bool:
        """End the chain; return False while an operator has pending output. Then it is tried again, and no
        checkpoint begins here.

        The last snapshot belongs to every later checkpoint; the first of them follows the last barrier it
        passed.
        """
        # Emit all that is left, then take one more snapshot. It is part of every later checkpoint.
        self._ending = not self.chain.end()
        if self._ending:
            return False
        self.chain.measure_state(self._budget)
        self.chain.before_barrier(self._last_checkpoint_id + 1)
        self._report_end(self._snapshot(self._last_checkpoint_id + 1))
        return True

    def _report_end(self, operators: tuple[OperatorSnapshot, ...]) -> None:
        # a barrier still waits to leave: its snapshot is reported before the end
        if self._pending_barrier is not None and self._pending_barrier.received is not None:
            self._pending_barrier.unsent += self._output.overtake_buffered(self._pending_barrier.barrier)
            self._report_snapshot(self._pending_barrier)
        # a restored chain without input: the end of time comes from here
        if self._finished:
            self._output.watermark(MAX_WATERMARK_US)
        self._output.end()
        self.phase = TaskPhase.ENDED
        failpoint("W12")
        self._report(TaskEnded(self._attempt, self.task_id, self._last_checkpoint_id, operators))

    def _snapshot(self, checkpoint_id: int) -> tuple[OperatorSnapshot, ...]:
        """Return the snapshot of the chain. Only this blocks rows; writing happens elsewhere."""
        if not self._keep_snapshots:
            return ()
        started_ms = self._clock.monotonic_ms()
        operators = self.chain.snapshot(checkpoint_id)
        self.metrics.snapshot(self._clock.monotonic_ms() - started_ms)
        return operators
