"""Alignment of barriers, merging of watermarks, ports and their ends."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.catalog.errors import PenstockError
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
from penstock.engine.exchange.barrier_alignment import Alignment
from penstock.engine.exchange.channel import Channel
from penstock.engine.exchange.input_gate import (
    BarrierAhead,
    GateEvent,
    InputGate,
    OvertakenRows,
    PortEnd,
    PortTime,
    WatermarkMerge,
)
from tests.harness.runtime.fakes import batch, rows_of


def gate(
    *inputs: Sequence[Element], ports: Sequence[int] | None = None, bounded: Sequence[int] = ()
) -> tuple[InputGate, list[Channel]]:
    channels = []
    for elements in inputs:
        channel = Channel(100)
        for element in elements:
            channel.put(element)
        channels.append(channel)
    return InputGate(channels, ports or [0] * len(channels), bounded), channels


def drain(given: InputGate) -> list[object]:
    """All events; batches as (port, first value)."""
    events: list[object] = []
    while (event := given.next()) is not None:
        events.append((given.port, rows_of(event)[0][1]) if isinstance(event, Batch) else event)
    return events


def one(value: int) -> Batch:
    return batch([(0, value, 0)])


def test_rows_behind_a_barrier_wait_for_the_other_channel() -> None:
    mine, channels = gate([one(1), Barrier(7), one(2)], [one(3)])
    assert drain(mine) == [(0, 1), (0, 3)]
    assert mine.aligning
    channels[1].put(one(4))
    assert drain(mine) == [(0, 4)]
    channels[1].put(Barrier(7))
    channels[1].put(one(5))
    events = drain(mine)
    assert events[0] == Barrier(7)
    assert sorted(events[1:]) == [(0, 2), (0, 5)]
    assert not mine.aligning


def test_an_ended_channel_counts_as_aligned_before_and_after_the_barrier() -> None:
    mine, channels = gate([Barrier(1), one(2)], [EndOfInput()])
    assert drain(mine) == [Barrier(1), (0, 2)]
    channels[0].put(Barrier(2))
    assert drain(mine) == [Barrier(2)]
    mine, _ = gate([Barrier(1)], [one(1), EndOfInput()])
    assert drain(mine) == [(0, 1), Barrier(1)]


def test_barriers_out_of_step_are_a_bug_that_is_named() -> None:
    alignment = Alignment(2)
    assert alignment.on_barrier(0, Barrier(1)) is None
    with pytest.raises(PenstockError, match="barrier 2"):
        alignment.on_barrier(1, Barrier(2))


def test_only_barriers_pass_while_channels_are_full() -> None:
    mine, _ = gate([one(1)], [Barrier(1), one(2)])
    assert mine.next(only_barriers=True) is None
    assert mine.aligning
    assert drain(mine) == [(0, 1)]


def test_watermark_is_the_minimum_and_never_goes_back() -> None:
    merge = WatermarkMerge(2)
    assert merge.on_watermark(0, 10) == []
    assert merge.on_watermark(1, 5) == [Watermark(5)]
    assert merge.on_watermark(1, 3) == []
    assert merge.on_watermark(1, 20) == [Watermark(10)]
    assert merge.on_watermark(0, MAX_WATERMARK_US) == [Watermark(20)]


def test_an_idle_channel_holds_nobody_back() -> None:
    merge = WatermarkMerge(2)
    merge.on_watermark(0, 10)
    assert merge.on_idle(1) == [Watermark(10)]
    assert merge.on_watermark(0, 12) == [Watermark(12)]
    assert merge.on_watermark(1, 11) == []  # back with an old time: it holds, but nothing goes back
    assert merge.on_watermark(0, 20) == []
    assert merge.on_watermark(1, 15) == [Watermark(15)]


def test_all_idle_is_said_once_at_the_highest_time_and_ends_with_a_watermark() -> None:
    merge = WatermarkMerge(2)
    merge.on_watermark(0, 10)
    merge.on_watermark(1, 5)
    assert merge.on_idle(0) == []
    assert merge.on_idle(1) == [Watermark(10), Idle()]
    assert merge.on_idle(1) == []
    assert merge.on_watermark(1, 7) == [Watermark(10)]


def test_an_ended_channel_leaves_the_minimum() -> None:
    merge = WatermarkMerge(2)
    merge.on_watermark(0, 10)
    assert merge.on_end(1) == [Watermark(10)]
    assert merge.on_idle(0) == [Idle()]
    assert merge.on_end(0) == []


def test_ports_end_one_by_one_then_the_input() -> None:
    mine, _ = gate([EndOfInput()], [one(1), EndOfInput()], [EndOfInput()], ports=[0, 0, 1])
    events = drain(mine)
    assert [e for e in events if not isinstance(e, tuple)].count(EndOfInput()) == 1
    assert events[-1] == EndOfInput()
    assert {e for e in events if isinstance(e, PortEnd)} == {PortEnd(0), PortEnd(1)}


def test_the_bounded_port_is_read_to_its_end_first_except_while_aligning() -> None:
    mine, channels = gate([one(1), one(2)], [one(8)], ports=[0, 1], bounded=[1])
    assert drain(mine) == [(1, 8)]
    channels[1].put(Barrier(1))
    assert drain(mine) == [(0, 1), (0, 2)]
    channels[0].put(Barrier(1))
    channels[0].put(one(3))
    assert drain(mine) == [Barrier(1)]
    channels[1].put(EndOfInput())
    assert drain(mine) == [PortEnd(1), (0, 3)]


def test_time_is_told_port_by_port_where_it_is_asked_for() -> None:
    channels = [Channel(64) for _ in range(3)]
    mine = InputGate(channels, [0, 0, 1], by_port=True)
    for index, element in (
        (0, Watermark(5)),
        (2, Watermark(3)),
        (1, Watermark(9)),
        (2, Idle()),
        (0, EndOfInput()),
        (1, EndOfInput()),
    ):
        channels[index].put(element)
    told = [event for event in drain(mine) if isinstance(event, PortTime | PortEnd)]
    assert [event for event in told if event.port == 0] == [PortTime(0, 5), PortTime(0, 9), PortEnd(0)]
    assert [event for event in told if event.port == 1] == [PortTime(1, 3), PortTime(1, None)]


def test_channels_are_read_in_turn() -> None:
    mine, _ = gate([one(1), one(1)], [one(2), one(2)])
    assert drain(mine) == [(0, 1), (0, 2), (0, 1), (0, 2)]


def test_events_are_a_closed_sum() -> None:
    assert set(GateEvent.__args__) == {
        Batch,
        Watermark,
        PortTime,
        Idle,
        Barrier,
        BarrierAhead,
        OvertakenRows,
        PortEnd,
        EndOfInput,
        LatencyMarker,
    }


def test_rows_held_for_a_bounded_port_are_told_its_end_before_time_moves_on() -> None:
    """The stream has ended long before the bounded side is loaded: the port's end must come before the end
    of time.
    """
    stream = [one(1), Watermark(50), Watermark(MAX_WATERMARK_US), EndOfInput()]
    mine, channels = gate(stream, [Barrier(1)], ports=[0, 1], bounded=[1])
    assert drain(mine)[0] == (0, 1)
    channels[1].put(one(2))
    channels[1].put(Watermark(MAX_WATERMARK_US))
    channels[1].put(EndOfInput())
    events = [event for event in drain(mine) if event not in (PortEnd(0), Barrier(1))]
    assert events == [(1, 2), PortEnd(1), EndOfInput()]


def test_the_end_of_a_bounded_port_comes_before_the_watermark_it_held_back() -> None:
    mine, _ = gate([Watermark(50)], [Watermark(MAX_WATERMARK_US), EndOfInput()], ports=[0, 1], bounded=[1])
    assert drain(mine) == [PortEnd(1), Watermark(50)]


def test_rows_are_ready_only_where_they_may_be_taken_next() -> None:
    mine, channels = gate([one(1), Watermark(5)], [one(2), Barrier(7), one(3)])
    assert mine.rows_ready and isinstance(mine.next(), Batch)
    assert mine.rows_ready and isinstance(mine.next(), Batch)
    assert not mine.rows_ready
    assert drain(mine) == [] and mine.aligning
    channels[0].put(one(4))
    assert not mine.rows_ready  # a barrier is awaited: nothing is held for what comes before it
    held, (stream, table) = gate([one(1)], [], ports=[0, 1], bounded=[1])
    assert not held.rows_ready
    table.put(one(2))
    assert held.rows_ready and len(stream) == 1


def merging(*inputs: Sequence[Element], ports: Sequence[int], max_rows: int = 4) -> list[object]:
    """All events of a gate that merges; batches as (port, values)."""
    channels = []
    for elements in inputs:
        channel = Channel(100)
        for element in elements:
            channel.put(element)
        channels.append(channel)
    mine = InputGate(channels, ports, max_rows=max_rows)
    events: list[object] = []
    while (event := mine.next()) is not None:
        whole = isinstance(event, Batch)
        events.append((mine.port, [row[1] for row in rows_of(event)]) if whole else event)
    return events


def test_queued_batches_of_a_port_are_one_with_the_last_watermark_behind_them() -> None:
    first = [one(1), Watermark(5), one(2), Watermark(9)]
    assert merging(first, [one(3), Watermark(7)], ports=[0, 0]) == [(0, [1, 2, 3]), Watermark(7)]
    # other ports have rows of their own, and a batch is never larger than asked for
    assert merging(first, [one(3), Watermark(7)], ports=[0, 1]) == [(0, [1, 2]), (1, [3]), Watermark(7)]
    assert merging(first, [one(3)], ports=[0, 0], max_rows=2) == [(0, [1, 2]), (0, [3])]
    assert merging(first, [one(3)], ports=[0, 0], max_rows=0) == [(0, [1]), (0, [3]), (0, [2])]


def test_a_batch_is_never_merged_across_a_barrier_an_idle_channel_or_an_end() -> None:
    barrier = Barrier(1)
    assert merging([one(1), barrier, one(2), one(3)], [one(4), barrier, one(5)], ports=[0, 0]) == [
        (0, [1, 4]),
        barrier,
        (0, [5, 2, 3]),
    ]
    assert merging([one(1), Idle(), one(2)], [Watermark(4)], ports=[0, 0]) == [
        (0, [1]),
        Watermark(4),
        (0, [2]),
    ]
    assert merging([one(1), EndOfInput()], [one(2), EndOfInput()], ports=[0, 0])[0] == (0, [1, 2])


def test_merged_rows_that_a_barrier_overtook_are_all_channel_state() -> None:
    ahead = Barrier(3, overtakes_at_ms=0.0)
    channels = [Channel(100), Channel(100)]
    for element in (one(1), one(2), ahead):
        channels[0].put(element)
    channels[1].put(one(3))
    mine = InputGate(channels, [0, 0], overtakable=[True, True], max_rows=4)
    assert mine.next(1.0) == BarrierAhead(ahead)
    merged = mine.next(1.0)
    assert isinstance(merged, Batch) and sorted(row[1] for row in rows_of(merged)) == [1, 2, 3]
    channels[1].put(one(4))
    channels[1].put(ahead)
    overtaken = mine.next(1.0)
    assert isinstance(overtaken, OvertakenRows)
    values = [row[1] for channel in overtaken.channels for each in channel.batches for row in rows_of(each)]
    assert sorted(values) == [1, 2, 3, 4]
