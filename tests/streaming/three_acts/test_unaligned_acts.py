"""Queries behind a slow client: killed after a checkpoint, finished by three subtasks; barriers that
overtake rows and those that wait their turn.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.api.sink import Committable, DirectSink, SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors import registry
from penstock.engine.exchange.input_gate import InputGate
from tests.harness.patience import PATIENCE_S, await_that
from tests.streaming.three_acts.acts import Script, rows_read
from tests.streaming.three_acts.oracle import assert_same

ROWS = 336_776
SLOW_S = 0.05


class Client:
    """Takes the changes of checkpoints that are done. ``slow``: as long as it is, each batch takes its
    time.
    """

    def __init__(self) -> None:
        self.slow = True
        self.committed: dict[str, Counter[tuple[Any, ...]]] = {}
        self.staged: dict[str, Counter[tuple[Any, ...]]] = {}

    def rows(self) -> Counter[tuple[Any, ...]]:
        total: Counter[tuple[Any, ...]] = Counter()
        for changes in self.committed.values():
            total.update(changes)
        assert min(total.values()) >= 0
        return +total


class ClientSink(DirectSink):
    """The client's end of a job in two phases."""

    def __init__(self, request: SinkRequest, client: Client) -> None:
        self._request = request
        self._client = client
        self._changes: Counter[tuple[Any, ...]] = Counter()

    def write(self, batch: Batch) -> None:
        if self._client.slow:
            time.sleep(SLOW_S)
        weights = [1] * batch.num_rows if batch.weights is None else batch.weights.tolist()
        for row, weight in zip(
            zip(*(column.to_pylist() for column in batch.rows.columns), strict=True), weights, strict=True
        ):
            self._changes[row] += weight

    def prepare(self, checkpoint_id: int) -> list[Committable]:
        name = f"{checkpoint_id}-{self._request.subtask}-{id(self)}"
        self._client.staged[name], self._changes = self._changes, Counter()
        return [{"name": name}]

    def commit(self, items: list[Committable]) -> None:
        for item in items:
            if item["name"] not in self._client.committed:
                self._client.committed[item["name"]] = self._client.staged.pop(item["name"])


def acted(
    query: str, directory: Path, monkeypatch: pytest.MonkeyPatch, *, unaligned: bool
) -> tuple[Counter[tuple[Any, ...]], int]:
    """Kill the job of two behind a slow client after a checkpoint, have three finish it; return the rows,
    and how many were in flight.
    """
    client = Client()
    monkeypatch.setitem(registry.SINKS, "collect", lambda request: ClientSink(request, client))
    settings = {
        "execution.batch.max-rows": "2000",
        "execution.checkpointing.unaligned.enabled": str(unaligned).lower(),
    }
    script = Script(query, settings)
    try:
        job, _ = script.submit(2, directory, 100)
        await_that(lambda: rows_read(job) > ROWS // 20, "rows come")
        known = len(job.checkpoints)
        await_that(
            lambda: any(c.channel_state_rows or not unaligned for c in job.checkpoints[known:][-1:]),
            "a checkpoint with rows in flight",
        )
        job.cancel()
        assert job.wait(PATIENCE_S)
        in_flight = job.checkpoints[-1].channel_state_rows
        assert rows_read(job) < ROWS, "it was to be killed in the middle"

        client.slow = False
        job, _ = script.submit(3, directory, 100)
        assert job.wait(PATIENCE_S)
        assert job.error is None
        assert rows_read(job) < ROWS, "it was to go on, not to begin again"
        return client.rows(), in_flight
    finally:
        script.close()


@pytest.mark.parametrize("query", ["cancellations", "top_airports", "busy_planes"])
def test_killed_behind_a_slow_client(query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, in_flight = acted(query, tmp_path, monkeypatch, unaligned=True)
    assert in_flight
    assert_same(rows, query)


def test_mr11_barriers_that_wait_their_turn_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, in_flight = acted("cancellations", tmp_path, monkeypatch, unaligned=False)
    assert not in_flight
    assert_same(rows, "cancellations")


@pytest.mark.at_length
def test_rows_in_flight_that_are_not_put_back_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InputGate, "put_back", lambda self, port, source, batches: None)
    rows, in_flight = acted("busy_planes", tmp_path, monkeypatch, unaligned=True)
    assert in_flight
    with pytest.raises(AssertionError):
        assert_same(rows, "busy_planes")
