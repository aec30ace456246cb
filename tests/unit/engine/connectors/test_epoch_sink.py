"""The sink of targets with epochs: each row is in the target once, wherever an attempt ends and whatever the
parallelism of the next one is.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT
from penstock.engine.api.epoch_target import DELETED, EpochWriter, StagedForm
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import Origin, SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors import epoch_sink
from penstock.engine.connectors.epoch_sink import EpochSink

SCHEMA = Schema((Field("k", BIGINT, False), Field("v", BIGINT)))


class Crash(Exception):
    """The process ends here."""


def crash() -> None:
    raise Crash


@dataclass
class Store:
    """The store behind targets: committed batches, the epochs, and who fences whom."""

    rows: list[list[tuple[Any, ...]]] = field(default_factory=list)
    epochs: dict[EpochWriter, int] = field(default_factory=dict)
    fences: dict[EpochWriter, int] = field(default_factory=dict)
    retired: list[EpochWriter] = field(default_factory=list)
    forgets: bool = False

    def flat(self) -> list[tuple[Any, ...]]:
        return sorted(itertools.chain.from_iterable(self.rows))


class Target:
    """A target in memory. ``crash_at``: "before" or "after" its next commit."""

    def __init__(self, store: Store, form: StagedForm = StagedForm.INSERTS) -> None:
        self.store, self.form = store, form
        self.held: dict[EpochWriter, int] = {}
        self.crash_at = ""
        self.failures: list[PenstockError] = []

    def fence(self, writers: list[EpochWriter]) -> None:
        for writer in writers:
            self.held[writer] = self.store.fences[writer] = self.store.fences.get(writer, 0) + 1

    def last_committed(self, writer: EpochWriter) -> int:
        return 0 if self.store.forgets else self.store.epochs.get(writer, 0)

    def commit(self, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        if self.crash_at == "before":
            crash()
        if self.held.get(writer, self.store.fences.get(writer, 0)) != self.store.fences.get(writer, 0):
            raise PenstockError("STA-3504", "a later attempt writes", kind=Kind.EXTERNAL)
        self.store.rows.append([tuple(row.values()) for batch in rows for row in batch.to_pylist()])
        self.store.epochs[writer] = epoch
        if self.crash_at == "after":
            crash()

    def retire(self, writer: EpochWriter) -> None:
        self.store.retired.append(writer)

    def close(self) -> None:
        pass


def request(subtask: int = 0, parallelism: int = 1, restored: int | None = None, **more: Any) -> SinkRequest:
    origin = None if restored is None else Origin("job", "s1", restored)
    table = CatalogTable("t", SCHEMA, SCHEMA, {"connector": "test"})
    asked: dict[str, Any] = {"owner": "job", "origin": origin, "key_group": subtask, **more}
    return SinkRequest(table, SCHEMA, (0,), "s1", "j", subtask, parallelism, Services(), **asked)


def batch(*rows: tuple[int, int], weights: list[int] | None = None) -> Batch:
    columns = [[row[i] for row in rows] for i in range(2)]
    made = pa.RecordBatch.from_arrays(
        [pa.array(column, pa.int64()) for column in columns], schema=SCHEMA.to_arrow()
    )
    return Batch(made, None if weights is None else np.array(weights))


@dataclass
class Saved:
    """A checkpoint of all subtasks."""

    number: int
    items: list[dict[str, Any]]
    staged: list[pa.Table]


def saved(sinks: list[EpochSink], number: int) -> Saved:
    items = [{"checkpoint": number, "items": sink.prepare(number)} for sink in sinks]
    return Saved(number, items, [sink.keyed_states()["staged"].snapshot() for sink in sinks])


def started(store: Store, parallelism: int, checkpoint: Saved | None = None) -> list[EpochSink]:
    """Start the subtasks as the sink operator does; each reads all staged rows."""
    number = None if checkpoint is None else checkpoint.number
    sinks = [EpochSink(request(i, parallelism, number), Target(store)) for i in range(parallelism)]
    for i, sink in enumerate(sinks):
        items = [] if checkpoint is None else checkpoint.items
        sink.recover([entry for item in items for entry in item["items"]])
        for item in items[i::parallelism]:
            sink.commit(item["items"])
        for staged in [] if checkpoint is None else checkpoint.staged:
            sink.keyed_states()["staged"].restore(staged)
    return sinks


def finish(sinks: list[EpochSink], checkpoint: Saved) -> None:
    for sink, item in zip(sinks, checkpoint.items, strict=True):
        sink.commit(item["items"])
        sink.completed(checkpoint.number)


def ends(crash_at: str, crashing: int, parallelism: tuple[int, int], store: Store) -> list[tuple[int, int]]:
    """Run one checkpoint to its end and another whose commit ends in the middle, then resume from it."""
    sinks = started(store, parallelism[0])
    rows = [(n, n) for n in range(12)]
    for number, part in ((1, rows[:6]), (2, rows[6:])):
        for place, row in enumerate(part):
            sinks[place % parallelism[0]].write(batch(row))
        checkpoint = saved(sinks, number)
        if number == 2:
            target = sinks[crashing]._target
            assert isinstance(target, Target)
            target.crash_at = crash_at
        # the second commit ends in the middle
        with contextlib.suppress(Crash):
            finish(sinks, checkpoint)
    resumed = started(store, parallelism[1], checkpoint)
    for sink in resumed:
        sink.on_restored()
        assert sink.keyed_states()["staged"].snapshot().num_rows == 0
    return rows


@pytest.mark.parametrize("crash_at", ["before", "after", ""])
@pytest.mark.parametrize("parallelism", [(1, 1), (2, 2), (3, 2), (2, 3)])
def test_each_row_is_there_once(crash_at: str, parallelism: tuple[int, int]) -> None:
    for crashing in range(parallelism[0]):
        store = Store()
        assert ends(crash_at, crashing, parallelism, store) == store.flat()


def test_a_target_that_forgets_its_epoch_has_rows_twice() -> None:
    store = Store(forgets=True)
    assert len(ends("after", 0, (2, 2), store)) < len(store.flat())


def test_an_earlier_attempt_is_fenced_off_also_after_a_rescale() -> None:
    store = Store()
    old = started(store, 3)
    old[2].write(batch((1, 1)))
    checkpoint = saved(old, 1)
    new = started(store, 2, checkpoint)
    with pytest.raises(PenstockError, match="STA-3504"):
        finish(old, checkpoint)
    for sink in new:
        sink.on_restored()
    assert store.flat() == [(1, 1)]


def test_an_older_checkpoint_than_the_rows_in_the_target_is_refused() -> None:
    store = Store()
    sinks = started(store, 1)
    first = saved(sinks, 1)
    finish(sinks, first)
    sinks[0].write(batch((1, 1)))
    finish(sinks, saved(sinks, 2))
    with pytest.raises(PenstockError, match=r"STA-3505.*checkpoint 2 .*resumes from checkpoint 1"):
        started(store, 1, first)


def test_an_epoch_without_rows_commits_nothing_but_names_its_writer() -> None:
    store = Store()
    sinks = started(store, 1)
    checkpoint = saved(sinks, 1)
    finish(sinks, checkpoint)
    assert store.rows == [] and checkpoint.items[0]["items"][0]["subtask"] == 0


@pytest.mark.parametrize("buffered", [1, 1 << 20])
def test_an_upsert_target_gets_the_last_change_of_each_key(
    buffered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch_sink, "BUFFERED_BYTES", buffered)
    store = Store()
    sink = EpochSink(request(), Target(store, StagedForm.UPSERTS))
    sink.recover([])
    sink.write(batch((1, 10), (2, 20), (3, 30)))
    sink.write(batch((1, 10), (1, 11), (2, 20), weights=[-1, 1, -1]))
    assert sink._in_form(batch((1, 1))).schema.names[0] == DELETED
    sink.commit(sink.prepare(1))
    assert store.flat() == [(False, 1, 11), (False, 3, 30), (True, 2, 20)]


def test_a_target_of_changes_gets_every_change_in_order() -> None:
    store = Store()
    sink = EpochSink(request(), Target(store, StagedForm.CHANGES))
    sink.recover([])
    sink.write(batch((1, 10)))
    sink.write(batch((1, 10), (1, 11), weights=[-1, 1]))
    sink.commit(sink.prepare(1))
    assert store.rows == [[("+I", 1, 10), ("-U", 1, 10), ("+U", 1, 11)]]


def test_an_error_that_may_pass_is_tried_again_and_another_is_not() -> None:
    store = Store()
    target = Target(store)
    sink = EpochSink(request(), target)
    sink.recover([])
    sink.write(batch((1, 1)))
    items = sink.prepare(1)
    target.failures = [PenstockError("DAT-4115", "gone", kind=Kind.EXTERNAL, retriable=True)]
    sink.commit(items)
    assert store.flat() == [(1, 1)]
    sink.write(batch((2, 2)))
    items = sink.prepare(2)
    target.failures = [PenstockError("DAT-4707", "refused", kind=Kind.USER)]
    with pytest.raises(PenstockError, match="DAT-4707"):
        sink.commit(items)
    assert sink.keyed_states()["staged"].snapshot().num_rows == 1, "its rows stay in the checkpoint"


def test_a_job_without_checkpoints_leaves_no_epoch_behind() -> None:
    store = Store()
    sink = EpochSink(request(resumes=False), Target(store))
    sink.recover([])
    sink.write(batch((1, 1)))
    sink.end()
    sink.commit(sink.prepare(1))
    sink.close()
    assert [writer.subtask for writer in store.retired] == [0]
