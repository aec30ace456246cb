"""Barriers that go ahead at a gate: what belongs to the checkpoint is what the task has not taken,
whatever the order things come in.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.api.stream_elements import (
    Barrier,
    Batch,
    Element,
    EndOfInput,
    LatencyMarker,
    Watermark,
)
from penstock.engine.exchange.channel import Channel
from penstock.engine.exchange.channel_state import ChannelRows, EdgeTarget, batches_of, channel_state_table
from penstock.engine.exchange.input_gate import InputGate
from penstock.engine.exchange.unaligned_barriers import BarrierAhead, OvertakenRows
from penstock.engine.task.operator_chain import OperatorSnapshot
from penstock.engine.task.task import PendingBarrier
from penstock.planner.logical.distribution import Partition, Shuffle
from tests.harness.runtime.fakes import batch, rows_of

NOW, SOON = 0.0, 100.0


def one(value: int) -> Batch:
    return batch([(value % 5, value, 0)])


def gate(count: int, *, overtakable: list[bool] | None = None) -> tuple[InputGate, list[Channel]]:
    channels = [Channel(100) for _ in range(count)]
    return InputGate(channels, [0] * count, overtakable=overtakable or [True] * count), channels


def values(batches: list[Batch]) -> list[int]:
    return [row[1] for piece in batches for row in rows_of(piece)]


def in_flight(event: object) -> dict[int, list[int]]:
    assert isinstance(event, OvertakenRows)
    return {channel.source: values(channel.batches) for channel in event.channels}


def test_a_barrier_goes_ahead_of_what_is_queued_and_the_rest_follows_when_it_is_known() -> None:
    mine, (first, second) = gate(2)
    for element in (one(1), Watermark(1), one(2), Barrier(7, overtakes_at_ms=NOW), one(3)):
        first.put(element)
    second.put(one(10))
    assert mine.next(NOW) == BarrierAhead(Barrier(7, overtakes_at_ms=NOW))
    taken = [event for _ in range(4) if isinstance(event := mine.next(NOW), Batch)]
    second.put(one(11))
    second.put(Barrier(7, overtakes_at_ms=NOW))
    second.put(one(12))
    told = mine.next(NOW)
    assert in_flight(told) == {0: [1, 2], 1: [10, 11]}
    while isinstance(event := mine.next(NOW), Batch | Watermark):
        taken += [event] if isinstance(event, Batch) else []
    assert sorted(values(taken)) == [1, 2, 3, 10, 11, 12]
    assert event is None


def test_the_end_of_a_channel_stands_for_its_barrier() -> None:
    mine, (first, second) = gate(2)
    second.put(one(5))
    second.put(EndOfInput())
    first.put(Barrier(1, overtakes_at_ms=NOW))
    assert isinstance(mine.next(NOW), BarrierAhead)
    assert in_flight(mine.next(NOW)) == {1: [5]}


def test_a_barrier_waits_its_turn_until_its_time_has_come_and_then_goes_ahead_in_the_middle_of_an_alignment() -> (
    None
):
    mine, (first, second) = gate(2)
    first.put(Barrier(1, overtakes_at_ms=SOON))
    first.put(one(1))
    second.put(one(2))
    assert rows_of(mine.next(NOW)) == [(2, 2, 0)]
    assert mine.next(NOW) is None
    assert (mine.aligning, mine.due_ms) == (True, SOON)
    assert mine.next(SOON) == BarrierAhead(Barrier(1, overtakes_at_ms=SOON))
    assert rows_of(mine.next(SOON)) == [(1, 1, 0)]
    second.put(one(3))
    assert rows_of(mine.next(SOON)) == [(3, 3, 0)]
    second.put(Barrier(1, overtakes_at_ms=SOON))
    assert in_flight(mine.next(SOON)) == {1: [3]}


def test_where_it_may_not_overtake_a_barrier_is_waited_for() -> None:
    mine, (free, in_line) = gate(2, overtakable=[True, False])
    free.put(one(1))
    free.put(Barrier(1, overtakes_at_ms=NOW))
    in_line.put(one(2))
    assert sorted(values([mine.next(NOW), mine.next(NOW)])) == [1, 2]
    free.put(one(9))
    assert mine.next(NOW) is None
    in_line.put(one(3))
    in_line.put(Barrier(1, overtakes_at_ms=NOW))
    assert rows_of(mine.next(NOW)) == [(3, 3, 0)]
    assert mine.next(NOW) == Barrier(1, overtakes_at_ms=NOW)


def test_a_newer_checkpoint_supersedes_one_that_was_given_up() -> None:
    mine, (first, second) = gate(2)
    first.put(Barrier(1, overtakes_at_ms=NOW))
    assert mine.next(NOW) == BarrierAhead(Barrier(1, overtakes_at_ms=NOW))
    second.put(one(4))
    for channel in (first, second):
        channel.put(Barrier(2, overtakes_at_ms=NOW))
    assert mine.next(NOW) == BarrierAhead(Barrier(2, overtakes_at_ms=NOW))
    told = mine.next(NOW)
    assert isinstance(told, OvertakenRows)
    assert (told.checkpoint_id, in_flight(told)) == (2, {1: [4]})
    second.put(Barrier(1, overtakes_at_ms=NOW))
    assert rows_of(mine.next(NOW)) == [(4, 4, 0)]
    assert mine.next(NOW) is None


def test_latency_markers_that_are_overtaken_go_on_and_are_not_kept() -> None:
    mine, (channel,) = gate(1)
    marker, barrier = LatencyMarker("s", 0), Barrier(1, overtakes_at_ms=NOW)
    for element in (marker, one(1), marker, one(2), barrier):
        channel.put(element)
    assert mine.next(NOW) == BarrierAhead(barrier)
    told = mine.next(NOW)
    assert isinstance(told, OvertakenRows)
    assert in_flight(told) == {0: [1, 2]}
    events = [mine.next(NOW) for _ in range(5)]
    assert [type(event).__name__ for event in events] == [
        "LatencyMarker",
        "Batch",
        "LatencyMarker",
        "Batch",
        "NoneType",
    ]

    edge_target = EdgeTarget("agg", 0, Partition((0,)), 16)
    for elements, rows in (([marker, one(3), marker], 1), ([marker], 0)):
        pending = PendingBarrier(
            barrier, (OperatorSnapshot("op", {}, {}),), told.channels, [(edge_target, list(elements))]
        )
        (kept_by,) = pending.snapshot({0: edge_target}, 0)
        assert {name: table.num_rows for name, table in kept_by.keyed.items()} == {"@input.0": 2} | (
            {"@output.agg.0": rows} if rows else {}
        )


@pytest.mark.parametrize("seed", range(150))
def test_taken_before_and_in_flight_are_what_was_sent_before_the_barrier(seed: int) -> None:
    """Any interleaving of producers and gate, barriers that may overtake at once, later or never, channels
    where they may not.
    """
    random = Random(seed)
    count = random.choice([1, 2, 3])
    mine, channels = gate(count, overtakable=[random.random() < 0.7 for _ in range(count)])
    at = random.choice([NOW, 15.0, 1e9])
    scripts: list[list[Element]] = []
    before: list[int] = []
    for index in range(count):
        rows = [index * 1000 + number for number in range(random.randrange(12))]
        cut = random.randrange(len(rows) + 1)
        before += rows[:cut]
        ends = random.random() < 0.2
        tail: list[Element] = (
            [EndOfInput()] if ends else [Barrier(1, overtakes_at_ms=at), *map(one, rows[cut:])]
        )
        scripts.append([*map(one, rows[:cut]), *tail])
    if all(isinstance(script[-1], EndOfInput) for script in scripts):
        return
    taken: list[int] = []
    snapshot: list[int] | None = None
    rows_told: list[int] | None = None
    for step in range(400):
        index = random.randrange(count)
        if scripts[index] and random.random() < 0.5:
            channels[index].put(scripts[index].pop(0))
        for event in [mine.next(float(step)) if random.random() < 0.7 else None]:
            match event:
                case Batch():
                    taken += values([event])
                case Barrier():
                    snapshot, rows_told = list(taken), []
                case BarrierAhead():
                    snapshot = list(taken)
                case OvertakenRows():
                    rows_told = [value for found in in_flight(event).values() for value in found]
    assert snapshot is not None
    assert rows_told is not None
    assert sorted(snapshot + rows_told) == sorted(before)


@pytest.mark.parametrize("edge", [Partition((0,)), Partition(()), Shuffle()])
def test_rows_in_flight_come_back_with_weights_and_lateness_in_the_order_of_their_keys(
    edge: Partition | Shuffle,
) -> None:
    edge_target = EdgeTarget("agg", 1, edge, 16)
    plain = batch([(key, number, 0) for number, key in enumerate([3, 1, 3, 2])])
    weighted = Batch(batch([(3, 9, 5), (1, 10, 6)]).rows, np.array([1, -1]), np.array([7, -(2**63)]))
    table = channel_state_table(
        edge_target, [ChannelRows(1, 0, [plain, weighted]), ChannelRows(1, 2, [plain])]
    )
    assert table is not None
    groups = table.column("key_group").to_numpy()
    assert (np.diff(groups.astype(int)) >= 0).all()
    back = list(batches_of(table, 3))
    assert [source for source, _ in back] == [0, 0, 2, 2]
    facts = []
    for source, piece in back:
        weights = piece.weights if piece.weights is not None else np.ones(piece.num_rows, np.int64)
        behind = piece.behind if piece.behind is not None else np.full(piece.num_rows, -(2**63))
        facts += [
            (source, *row, int(w), int(b)) for row, w, b in zip(rows_of(piece), weights, behind, strict=True)
        ]
    assert sorted(facts) == sorted(
        [(source, *row, 1, -(2**63)) for source in (0, 2) for row in rows_of(plain)]
        + [(0, 3, 9, 5, 1, 7), (0, 1, 10, 6, -1, -(2**63))]
    )
    assert [fact[2] for fact in facts if fact[:2] == (0, 3)] == [0, 2, 9]
    assert back[0][1].rows.schema == plain.rows.schema


def test_rows_in_flight_come_back_in_batches_of_some_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    edge_target = EdgeTarget("agg", 1, Partition((0,)), 16)
    rows = [(key % 7, key, 0) for key in range(200)]
    channels = [ChannelRows(1, 0, [batch(rows[n : n + 20]) for n in range(0, 200, 20)])]
    whole = channel_state_table(edge_target, channels)
    assert whole is not None
    expected = [row for _, piece in batches_of(whole, 1_000) for row in rows_of(piece)]
    assert len(list(batches_of(whole, 1_000))) == 1
    for limit in ("array_bytes", "chunk_bytes", "batch_bytes"):
        monkeypatch.setattr(LIMITS, limit, 240)
    table = channel_state_table(edge_target, channels)
    assert table is not None and table.column(0).num_chunks > 1, "one array could not hold it"
    pieces = [piece for _, piece in batches_of(table, 8)]
    assert [row for piece in pieces for row in rows_of(piece)] == expected
    assert max(piece.rows.num_rows for piece in pieces) == 8 and len(pieces) > 200 // 8
    assert all(piece.rows.num_rows * 24 <= 240 for piece in pieces)
