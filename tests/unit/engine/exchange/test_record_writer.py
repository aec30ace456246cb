"""Edges: who gets which rows, and when."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given as given_values
from hypothesis import settings
from hypothesis import strategies as st

from penstock.engine.api.clock import ManualClock
from penstock.engine.api.key_groups import groups_of_hashes, subtask_of_groups
from penstock.engine.api.stream_elements import Barrier, Batch, Watermark
from penstock.engine.exchange.batch_concat import concat_batches
from penstock.engine.exchange.channel import Channel
from penstock.engine.exchange.record_writer import TaskOutput, record_writer
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.planner.logical.distribution import Broadcast, Edge, Forward, Partition, Shuffle
from tests.harness.length import examples
from tests.harness.runtime.fakes import batch, rows_of

CLOCK = ManualClock()


def writer(
    edge: Edge, targets: int, *, max_rows: int = 100, timeout_ms: float = 0, clock: ManualClock = CLOCK
):
    channels = [Channel(8) for _ in range(targets)]
    return record_writer(
        edge, channels, subtask=1, max_parallelism=16, clock=clock, max_rows=max_rows, timeout_ms=timeout_ms
    ), channels


def values(channel: Channel) -> list[object]:
    return [rows_of(e) if isinstance(e, Batch) else e for e in (channel.take() for _ in range(len(channel)))]


ROWS = [(key, key * 10, 0) for key in range(12)]


@pytest.mark.parametrize("edge", [Forward(), Partition((0,)), Partition(()), Shuffle(), Broadcast()])
def test_a_single_target_is_given_the_batch_itself(edge: Edge) -> None:
    mine, (channel,) = writer(edge, 1)
    given = batch(ROWS)
    mine.write(given)
    assert channel.take() is given


def test_partition_sends_each_row_to_the_owner_of_its_key_group_in_order() -> None:
    mine, channels = writer(Partition((0,)), 3)
    given = batch(ROWS + ROWS)
    mine.write(given)
    owners = subtask_of_groups(groups_of_hashes(stable_hash([given.rows.column(0)]), 16), 3, 16)
    for target, channel in enumerate(channels):
        expected = [row for row, owner in zip(ROWS + ROWS, owners, strict=True) if owner == target]
        assert values(channel) == ([expected] if expected else [])


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given_values(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([1, 2, 70, 200])), max_size=30), st.integers(2, 5)
)
def test_grouped_rows_and_mixed_ones_reach_the_owner_of_their_key_in_order(
    groups: list[tuple[int, int]], targets: int
) -> None:
    rows = [(key, nth, number) for number, (key, count) in enumerate(groups) for nth in range(count)]
    mine, channels = writer(Partition((0,)), targets, max_rows=10_000, timeout_ms=10)
    given = batch(rows)
    if rows:
        mine.write(given)
    mine.control(Watermark(1))
    owners = subtask_of_groups(groups_of_hashes(stable_hash([given.rows.column(0)]), 16), targets, 16)
    for target, channel in enumerate(channels):
        expected = [row for row, owner in zip(rows, owners, strict=True) if owner == target]
        assert values(channel) == [*([expected] if expected else []), Watermark(1)]


def test_a_batch_in_two_runs_is_cut_and_not_copied() -> None:
    mine, channels = writer(Partition((0,)), 2)
    every = batch(ROWS)
    owners = subtask_of_groups(groups_of_hashes(stable_hash([every.rows.column(0)]), 16), 2, 16).tolist()
    given = batch([(key, n, 0) for key in (owners.index(1), owners.index(0)) for n in range(200)])
    mine.write(given)
    memory = given.rows.column(1).buffers()[1].address
    assert [channel.take().rows.column(1).buffers()[1].address for channel in channels] == [memory, memory]


def test_rows_and_the_watermark_behind_them_wake_the_consumer_once() -> None:
    woken: list[int] = []
    channels = [Channel(8, wake_consumer=lambda: woken.append(1)) for _ in range(2)]
    mine = record_writer(
        Partition((0,)), channels, subtask=0, max_parallelism=16, clock=CLOCK, max_rows=100, timeout_ms=10
    )
    mine.write(batch(ROWS))
    mine.control(Watermark(5))
    assert [len(channel) for channel in channels] == [2, 2] and len(woken) == 2


def test_partition_without_keys_sends_all_rows_to_the_first_and_control_to_all() -> None:
    mine, channels = writer(Partition(()), 2)
    mine.write(batch(ROWS))
    mine.control(Watermark(3))
    assert [values(c) for c in channels] == [[ROWS, Watermark(3)], [Watermark(3)]]


def test_weights_and_lateness_travel_with_their_rows() -> None:
    mine, channels = writer(Partition((0,)), 2)
    rows = batch(ROWS).rows
    mine.write(Batch(rows, np.arange(12), np.arange(12) * 100))
    for channel in channels:
        piece = channel.take()
        assert isinstance(piece, Batch)
        keys = piece.rows.column(0).to_numpy()
        assert piece.weights is not None
        assert piece.behind is not None
        assert (piece.weights == keys).all()
        assert (piece.behind == keys * 100).all()


def test_shuffle_gives_batches_in_turn_and_broadcast_to_everyone() -> None:
    mine, channels = writer(Shuffle(), 2)
    for value in range(3):
        mine.write(batch([(0, value, 0)]))
    assert [len(c) for c in channels] == [1, 2]  # the turn begins at the producing subtask's number
    mine, channels = writer(Broadcast(), 2)
    mine.write(batch(ROWS))
    assert [values(c) for c in channels] == [[ROWS], [ROWS]]


def test_small_pieces_are_gathered_until_the_timeout() -> None:
    clock = ManualClock(1000)
    mine, channels = writer(Partition((0,)), 2, timeout_ms=10, clock=clock)
    output = TaskOutput([mine])
    output.collect(batch(ROWS))
    clock.advance(4)
    output.collect(batch(ROWS))
    assert [len(c) for c in channels] == [0, 0]
    assert output.ship_due(clock.monotonic_ms()) == 1010
    clock.advance(6)
    assert output.ship_due(clock.monotonic_ms()) is None
    assert [len(c) for c in channels] == [1, 1]
    assert sum(len(values(c)[0]) for c in channels) == 24
    assert mine.deadline_ms is None


def test_a_full_piece_is_shipped_at_once() -> None:
    mine, channels = writer(Partition((0,)), 2, max_rows=1, timeout_ms=1000)
    mine.write(batch(ROWS))
    assert [len(c) for c in channels] == [1, 1]
    assert mine.deadline_ms is None


def test_a_piece_of_many_bytes_is_shipped_at_once_and_a_few_bytes_wait() -> None:
    mine, channels = writer(Partition((1,)), 2, max_rows=1000, timeout_ms=10)
    text = pa.RecordBatch.from_pydict({"text": ["x" * (1 << 20)] * 3, "k": [0] * 3})
    mine.write(Batch(text))
    # one key: all rows are of one target
    owner = channels[subtask_of_groups(groups_of_hashes(stable_hash([text.column(1)]), 16), 2, 16)[0]]
    assert len(owner) == 0 and mine.deadline_ms is not None
    mine.write(Batch(text))
    assert sum(piece.num_rows for piece in (owner.take() for _ in range(len(owner)))) == 6
    # nothing is left: nothing falls due, and the count begins anew
    assert mine.deadline_ms is None
    mine.write(Batch(text))
    assert len(owner) == 0


def test_control_elements_ship_what_is_buffered_first() -> None:
    mine, channels = writer(Partition((0,)), 2, timeout_ms=1000)
    mine.write(batch(ROWS))
    mine.control(Barrier(4))
    for channel in channels:
        rows, barrier = values(channel)
        assert rows
        assert barrier == Barrier(4)


def test_gathered_pieces_fill_missing_weights_and_lateness() -> None:
    pieces = [batch(ROWS[:2]), Batch(batch(ROWS[2:4]).rows, np.array([-1, 2]), np.array([5, 6]))]
    (whole,) = concat_batches(pieces)
    assert whole.weights is not None
    assert whole.weights.tolist() == [1, 1, -1, 2]
    assert whole.behind is not None
    assert whole.behind.tolist() == [-(2**63), -(2**63), 5, 6]
    assert rows_of(whole) == ROWS[:4]


def test_an_output_is_blocked_when_one_target_is_full() -> None:
    mine, channels = writer(Shuffle(), 2)
    output = TaskOutput([mine])
    assert not output.blocked
    for _ in range(8):
        channels[1].put(Watermark(1))
    assert output.blocked
