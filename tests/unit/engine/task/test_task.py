"""One task by itself: what a step does, in which order things reach operators, and what is measured."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import (
    Context,
    HeadOperator,
    KeyGroups,
    Operator,
    Output,
    PendingOutput,
    Services,
    SourceStatus,
    start_output,
)
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, Barrier, Batch, EndOfInput, Watermark
from penstock.engine.exchange.channel import Channel
from penstock.engine.exchange.input_gate import InputGate
from penstock.engine.exchange.record_writer import RecordWriter, TaskOutput
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.task.messages import (
    CheckpointComplete,
    CompletionAcknowledged,
    SnapshotCompleted,
    TaskEnded,
    TaskId,
    TriggerCheckpoint,
)
from penstock.engine.task.operator_chain import ChainedOperator, OperatorChain
from penstock.engine.task.task import Did, Task, TaskPhase
from tests.harness.runtime.fakes import batch, rows_of


class Recorder(Operator):
    """Writes down every call; passes rows on; emits a row at its end and before a barrier."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log, self.is_ready = name, log, True

    def open(self, context: Context) -> None:
        self.log.append(f"{self.name} open")

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        self.log.append(f"{self.name} batch {batch.num_rows} @{port}")
        out.collect(batch)

    def on_watermark(self, time_us: int, out: Output) -> None:
        self.log.append(f"{self.name} watermark {'max' if time_us == MAX_WATERMARK_US else time_us}")

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        self.log.append(f"{self.name} tick {now_ms}")

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        self.log.append(f"{self.name} before {checkpoint_id}")
        out.collect(batch([(0, 0, 0)]))

    def on_port_end(self, port: int, out: Output) -> None:
        self.log.append(f"{self.name} port {port} ends")

    def on_end(self, out: Output) -> None:
        self.log.append(f"{self.name} end")

    def list_states(self) -> dict[str, Any]:
        return {"log": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        self.log.append(f"{self.name} snapshot")
        return []

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.log.append(f"{self.name} complete {checkpoint_id}")

    def ready(self) -> bool:
        return self.is_ready

    def close(self) -> None:
        self.log.append(f"{self.name} close")


class Rig:
    """A task over recorders with one input channel per port and one output channel."""

    def __init__(
        self,
        names: str = "ab",
        ports: int = 1,
        capacity: int = 8,
        head: Operator | None = None,
        first: Sequence[Operator] = (),
        **options: Any,
    ) -> None:
        self.log: list[str] = []
        self.clock = ManualClock(1000)
        self.reports: list[Any] = []
        self.inputs = [Channel(8) for _ in range(ports)]
        self.out = Channel(capacity)
        output = TaskOutput([RecordWriter([self.out])])
        operators: list[Operator] = [*first, *(Recorder(name, self.log) for name in names)]
        if head is not None:
            operators.insert(0, head)
        self.operators = operators
        chained = [ChainedOperator(o, self._context(f"op{i}")) for i, o in enumerate(operators)]
        gate = None if head is not None else InputGate(self.inputs, list(range(ports)))
        self.task = Task(
            TaskId(0, 0),
            OperatorChain(chained, output),
            gate,
            output,
            clock=self.clock,
            report=self.reports.append,
            **options,
        )

    def _context(self, name: str) -> Context:
        return Context(name, name, 0, 1, KeyGroups(0, 8, 8), self.clock, OperatorMetrics(), Services())

    def run(self) -> list[str]:
        """Step until there is nothing to do; return and forget what was written down."""
        while self.task.step().did is Did.WORKED:
            pass
        log, self.log[:] = list(self.log), []
        return log

    def sent(self) -> list[object]:
        elements = [self.out.take() for _ in range(len(self.out))]
        return ["rows" if isinstance(e, Batch) else e for e in elements]


class Endless(HeadOperator):
    def __init__(self) -> None:
        self.statuses: list[SourceStatus] = []

    def poll(self, out: Output) -> SourceStatus:
        out.collect(batch([(1, 1, 1)]))
        return self.statuses.pop(0) if self.statuses else SourceStatus(more=True)


def test_barrier_flushes_snapshots_and_only_then_goes_on() -> None:
    rig = Rig()
    rig.run()
    rig.inputs[0].put(Barrier(3))
    assert rig.run() == ["a before 3", "b batch 1 @0", "b before 3", "a snapshot", "b snapshot"]
    assert rig.sent() == ["rows", "rows", Barrier(3)]
    assert [type(r) for r in rig.reports] == [SnapshotCompleted]


def test_end_of_input_ends_time_then_operators_then_prepares_then_says_so() -> None:
    rig = Rig(ports=2, last_checkpoint_id=4)
    rig.run()
    for channel in rig.inputs:
        channel.put(EndOfInput())
    assert rig.run() == [
        *["a port 0 ends", "a port 1 ends", "a watermark max", "b watermark max", "a end", "b end"],
        *["a before 5", "b batch 1 @0", "b before 5", "a snapshot", "b snapshot"],
    ]
    assert rig.sent() == [Watermark(MAX_WATERMARK_US), "rows", "rows", EndOfInput()]
    assert rig.task.phase is TaskPhase.ENDED
    (ended,) = rig.reports
    assert (type(ended), ended.last_checkpoint_id) == (TaskEnded, 4)
    rig.task.post(CheckpointComplete(9))
    assert rig.run() == ["a complete 9", "b complete 9"]
    assert rig.reports[1:] == [CompletionAcknowledged(1, TaskId(0, 0), 9)]
    rig.task.close()
    rig.task.close()
    assert rig.run() == ["a close", "b close"]


def test_a_closed_task_keeps_its_figures_and_no_state() -> None:
    rig = Rig()
    rig.run()
    task, operators = rig.task, [weakref.ref(o.operator) for o in rig.task.chain.operators]
    figures = task.figures()
    task.close()
    rig.operators.clear()
    assert [operator() for operator in operators] == [None, None]
    assert [o.operator_id for o in task.figures().operators] == [o.operator_id for o in figures.operators]
    task.post(CheckpointComplete(1))
    assert task.step().did is Did.ENDED  # whoever posts late is ignored


def test_a_finished_chain_only_says_so_again() -> None:
    rig = Rig(finished=True)
    assert rig.run() == ["a open", "b open", "a snapshot", "b snapshot"]
    assert rig.sent() == [Watermark(MAX_WATERMARK_US), EndOfInput()]


def test_no_credit_stops_rows_but_not_barriers() -> None:
    rig = Rig("a", capacity=1)
    rig.run()
    for _ in range(3):
        rig.inputs[0].put(batch([(1, 1, 1)]))
    assert rig.run() == ["a batch 1 @0"]
    assert rig.task.step().did is Did.BLOCKED
    rig.sent()
    rig.run()
    rig.sent()
    rig.run()
    rig.inputs[0].put(Barrier(1))
    assert rig.run() == ["a before 1", "a snapshot"]


def test_an_operator_that_is_not_ready_is_asked_again_soon() -> None:
    rig = Rig("a")
    rig.run()
    recorder = rig.operators[0]
    assert isinstance(recorder, Recorder)
    recorder.is_ready = False
    rig.inputs[0].put(batch([(1, 1, 1)]))
    result = rig.task.step()
    assert (result.did, result.wake_ms) == (Did.BLOCKED, 1005)
    recorder.is_ready = True
    assert rig.run() == ["a batch 1 @0"]


def test_ticks_come_every_fifty_milliseconds() -> None:
    rig = Rig("a")
    rig.run()
    assert rig.task.step().wake_ms == 1050
    rig.clock.advance(60)
    assert rig.run() == ["a tick 1060"]
    assert rig.run() == []


def test_busy_idle_and_backpressured_time_add_up() -> None:
    rig = Rig("", head=Endless(), capacity=1)
    rig.task.step()
    rig.task.step()
    assert rig.task.step().did is Did.BLOCKED
    rig.clock.advance(30)
    rig.task.step()
    assert rig.task.figures().time.backpressured == 30
    rig.sent()
    source = rig.operators[0]
    assert isinstance(source, Endless)
    source.statuses = [SourceStatus(wake_ms=1100)]
    rig.task.step()
    rig.sent()
    result = rig.task.step()
    assert (result.did, result.wake_ms) == (Did.WAITING, 1100)
    rig.clock.advance(20)
    rig.task.step()
    assert rig.task.figures().time.idle == 20
    assert rig.task.metrics.batches == 2


def test_a_source_whose_rows_arrive_is_polled_before_its_pause_ends() -> None:
    source = Endless()
    rig = Rig("", head=source, capacity=100)
    rig.task.step()
    source.statuses = [SourceStatus(wake_ms=1100)]
    rig.task.step()
    assert rig.task.step().did is Did.WAITING
    assert rig.task.metrics.batches == 1
    arrivals = rig.task.operators[0].arrivals
    arrivals.notify()
    rig.task.step()
    assert rig.task.metrics.batches == 2
    # whoever polls takes the notice
    assert arrivals.take()
    # what follows is read at once, too: the pause is over
    rig.task.step()
    assert rig.task.metrics.batches == 3


def test_a_stopped_source_reads_nothing_after_its_barrier() -> None:
    rig = Rig("", head=Endless(), capacity=100)
    rig.task.step()
    rig.task.step()
    rig.task.post(TriggerCheckpoint(1, then_stop=True))
    rig.task.step()
    assert rig.task.step().did is Did.WAITING
    assert rig.sent() == ["rows", Barrier(1, True)]


def test_rows_are_counted_at_every_operator() -> None:
    rig = Rig("ab")
    rig.run()
    rig.inputs[0].put(batch([(1, 1, 1)] * 5))
    rig.run()
    assert [(m.rows_in, m.rows_out) for m in rig.task.metrics.operators.values()] == [(5, 5), (5, 5)]


def test_errors_name_the_innermost_operator() -> None:
    class Breaks(Operator):
        def on_batch(self, batch: Batch, port: int, out: Output) -> None:
            raise ValueError("no")

    rig = Rig("a")
    chain = [
        ChainedOperator(o, rig._context(n)) for n, o in (("first", Recorder("x", [])), ("second", Breaks()))
    ]
    with pytest.raises(PenstockError) as raised:
        OperatorChain(chain, TaskOutput([])).push(batch([(1, 1, 1)]), 0)
    assert raised.value.operator == "second"
    assert raised.value.message == "second failed: ValueError: no"


class Many(Operator):
    """Gives every row of a batch ``times`` times, a piece for each time; at the end one piece more than
    one.
    """

    def __init__(self, times: int = 5, fails_at: int | None = None) -> None:
        self.times, self.fails_at, self.emitted, self.is_ready = times, fails_at, 0, True

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        return start_output(self._pieces(batch, out, self.times))

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        return start_output(self._pieces(batch([(time_us % 100, 0, 0)]), out, 2))

    def on_end(self, out: Output) -> PendingOutput | None:
        return start_output(self._pieces(batch([(99, 9, 9)]), out, 2))

    def ready(self) -> bool:
        return self.is_ready

    def _pieces(self, rows: Batch, out: Output, times: int) -> PendingOutput:
        for number in range(times):
            if number:
                yield
            if self.emitted == self.fails_at:
                raise RuntimeError("in the middle")
            self.emitted += 1
            out.collect(rows)


def test_pieces_wait_for_credit_and_everything_else_waits_for_them() -> None:
    rig = Rig("", capacity=2, first=[many := Many()])
    rig.run()
    for element in (batch([(1, 1, 1)]), Barrier(3), Watermark(7), EndOfInput()):
        rig.inputs[0].put(element)
    rig.run()
    assert many.emitted == len(rig.out) == 2 and len(rig.inputs[0]) == 3 and rig.reports == []
    assert rig.task.step().did is Did.BLOCKED
    sent = []
    while len(rig.out) or rig.task.phase is not TaskPhase.ENDED:
        sent.append(rig.out.take())
        rig.run()
        assert len(rig.out) <= 4, "one piece at a time, and what is said behind the last"
    keys = [[row[0] for row in rows_of(e)] if isinstance(e, Batch) else e for e in sent]
    end = MAX_WATERMARK_US
    assert keys == [
        *[[1]] * 5,
        Barrier(3),
        [7],
        [7],
        Watermark(7),
        [end % 100],
        [end % 100],
        Watermark(end),
        [99],
        [99],
        EndOfInput(),
    ]
    assert [type(report) for report in rig.reports] == [SnapshotCompleted, TaskEnded]


def test_pieces_of_pieces_keep_their_order() -> None:
    rig = Rig("z", capacity=2, first=[first := Many(3), second := Many(2)])
    rig.run()
    rig.inputs[0].put(batch([(1, 1, 1), (2, 2, 2)]))
    rig.inputs[0].put(batch([(3, 3, 3)]))
    rig.run()
    assert (first.emitted, second.emitted) == (1, 2), (
        "the second one's pieces of the first piece fill the channel"
    )
    sent = []
    while len(rig.out):
        sent.append([row[0] for row in rows_of(rig.out.take())])
        rig.run()
    assert sent == [[1, 2]] * 6 + [[3]] * 6


def test_pieces_wait_for_an_operator_that_is_not_ready() -> None:
    rig = Rig("", capacity=99, first=[first := Many(3), second := Many(1)])
    rig.run()
    second.is_ready = False
    rig.task.chain.push(batch([(1, 1, 1)]), 0)
    rig.run()
    assert first.emitted == 1
    assert rig.task.step().wake_ms is not None
    second.is_ready = True
    rig.run()
    assert first.emitted == 3 and not rig.task.chain.has_pending


def test_a_source_is_neither_asked_nor_stopped_for_a_barrier_while_pieces_are_under_way() -> None:
    rig = Rig("", head=Endless(), capacity=2, first=[many := Many(4)])
    rig.task.step()
    rig.task.step()
    assert many.emitted == 1
    rig.task.post(TriggerCheckpoint(5))
    sent = []
    while not rig.reports:
        rig.run()
        sent += rig.sent()
    assert sent[:5] == ["rows"] * 4 + [Barrier(5)]


def test_a_failure_between_pieces_names_its_operator() -> None:
    rig = Rig("z", capacity=9, first=[Many(3, fails_at=2)])
    with pytest.raises(PenstockError, match="op0 failed: RuntimeError: in the middle"):
        rig.inputs[0].put(batch([(1, 1, 1)]))
        rig.run()
