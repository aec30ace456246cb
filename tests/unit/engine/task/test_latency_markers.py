"""Latency markers: from sources to sinks behind the rows that came before them, past what is kept as
state.
"""

from __future__ import annotations

from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import (
    Context,
    HeadOperator,
    KeyGroups,
    Operator,
    Output,
    Services,
    SourceStatus,
)
from penstock.engine.api.stream_elements import Barrier, Batch, LatencyMarker
from penstock.engine.exchange.channel import Channel
from penstock.engine.exchange.input_gate import InputGate
from penstock.engine.exchange.record_writer import RecordWriter, TaskOutput, record_writer
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.task.messages import TaskId
from penstock.engine.task.operator_chain import ChainedOperator, OperatorChain
from penstock.engine.task.task import Did, Task
from penstock.planner.logical.distribution import Partition
from tests.harness.runtime.fakes import batch


class Holding(Operator):
    """Holds rows back until time 50."""

    def __init__(self) -> None:
        self.resident: list[Batch] = []

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        self.resident.append(batch)

    def buffered_until_ms(self) -> float | None:
        return 50.0 if self.resident else None

    def release(self, out: Output) -> None:
        for held in self.resident:
            out.collect(held)
        self.resident.clear()


class Keeping(Operator):
    """Keeps rows for ever, as a window does that never closes."""

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        pass


class Silent(HeadOperator):
    def poll(self, out: Output) -> SourceStatus:
        return SourceStatus()


def chain(
    clock: ManualClock, operators: list[Operator], targets: list[Channel]
) -> tuple[OperatorChain, TaskOutput, list[OperatorMetrics]]:
    metrics = [OperatorMetrics() for _ in operators]
    chained = [
        ChainedOperator(
            operator, Context(f"op{i}", f"op{i}", 0, 1, KeyGroups(0, 8, 8), clock, metrics[i], Services())
        )
        for i, operator in enumerate(operators)
    ]
    output = TaskOutput([RecordWriter(targets)] if targets else [])
    return OperatorChain(chained, output), output, metrics


def kinds(channel: Channel) -> list[str]:
    return [type(channel.take()).__name__ for _ in range(len(channel))]


def test_a_marker_waits_behind_held_rows_and_not_behind_state() -> None:
    clock, out = ManualClock(), Channel(9)
    mine, _, _ = chain(clock, [Holding(), Keeping()], [out])
    mine.push(batch([(1, 1, 1)]), 0)
    mine.marker(LatencyMarker("s", 0))
    mine.marker(LatencyMarker("t", 0))
    mine.release_due(49)
    assert kinds(out) == []
    mine.release_due(50)
    assert kinds(out) == ["LatencyMarker", "LatencyMarker"]


def test_a_marker_waits_behind_rows_that_are_gathered_for_its_target() -> None:
    clock, channels = ManualClock(), [Channel(9), Channel(9)]
    writer = record_writer(
        Partition((0,)), channels, subtask=0, max_parallelism=8, clock=clock, max_rows=1000, timeout_ms=10
    )
    writer.write(batch([(key, 0, 0) for key in range(20)]))
    writer.mark(LatencyMarker("s", 0))
    writer.mark(LatencyMarker("s", 0))
    assert [kinds(channel) for channel in channels] == [[], []]
    writer.flush()
    assert [kinds(channel) for channel in channels] == [["Batch", "LatencyMarker"]] * 2
    writer.mark(LatencyMarker("s", 0))
    assert [kinds(channel) for channel in channels] == [["LatencyMarker"], []]


def test_a_channel_that_waits_for_barriers_holds_its_markers() -> None:
    channels = [Channel(9), Channel(9)]
    gate = InputGate(channels, [0, 0])
    channels[0].put(Barrier(1))
    channels[0].put(LatencyMarker("s", 0))
    channels[1].put(LatencyMarker("t", 0))
    assert gate.next() == LatencyMarker("t", 0)
    assert gate.next() is None
    channels[1].put(Barrier(1))
    assert [gate.next(), gate.next()] == [Barrier(1), LatencyMarker("s", 0)]


def test_sources_mark_at_their_interval_and_sinks_record() -> None:
    clock, between = ManualClock(), Channel(9)
    head, output, _ = chain(clock, [Silent()], [between])
    source = Task(
        TaskId(0, 0), head, None, output, clock=clock, report=lambda report: None, marker_interval_ms=100
    )
    tail, end, metrics = chain(clock, [Keeping()], [])
    sink = Task(TaskId(1, 0), tail, InputGate([between], [0]), end, clock=clock, report=lambda report: None)
    for _ in range(30):
        while source.step().did is Did.WORKED:
            pass
        clock.advance(10)
        while sink.step().did is Did.WORKED:
            pass
    figures = sink.figures().operators[0].latency
    assert list(figures) == ["op0"]
    assert (figures["op0"].count, figures["op0"].max_us, metrics[0].rows_in) == (3, 10_000, 0)


def test_no_markers_without_an_interval() -> None:
    clock, out = ManualClock(), Channel(9)
    head, output, _ = chain(clock, [Silent()], [out])
    task = Task(TaskId(0, 0), head, None, output, clock=clock, report=lambda report: None)
    for _ in range(30):
        task.step()
        clock.advance(100)
    assert kinds(out) == []
