"""Staged epochs: batches come back as they were, from memory, from a temporary file, from a snapshot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.epoch_target import EpochWriter
from penstock.engine.connectors import staged_epochs
from penstock.engine.connectors.staged_epochs import OPEN_EPOCH, StagedEpoch, StagedEpochs
from penstock.engine.storage.spill_files import SpillFiles

ONE, TWO = EpochWriter("job", "sink", 0), EpochWriter("job", "sink", 1)


def rows(first: int, count: int = 3) -> pa.RecordBatch:
    return pa.record_batch({"n": range(first, first + count), "t": [f"row {n}" for n in range(count)]})


def everyone(writer: EpochWriter) -> bool:
    return True


def filled(spill: Path | None = None) -> StagedEpochs:
    staged = StagedEpochs(7, everyone, SpillFiles(spill))
    for number, writer in ((1, ONE), (10, ONE), (20, TWO)):
        staged.add(StagedEpoch(writer, OPEN_EPOCH), rows(number))
    assert staged.close_epoch(ONE, 4) == 2 and staged.close_epoch(ONE, 5) == 0
    staged.add(StagedEpoch(ONE, OPEN_EPOCH), rows(30, 0))
    staged.close_epoch(ONE, 5)
    staged.close_epoch(TWO, 4)
    return staged


def listed(staged: StagedEpochs) -> list[tuple[EpochWriter, int, list[pa.RecordBatch]]]:
    return [(s.writer, s.epoch, list(staged.rows(s))) for s in staged.epochs()]


def test_epochs_are_in_their_order_and_keep_their_batches() -> None:
    staged = filled()
    assert {(s.writer, s.epoch) for s in staged.epochs(4)} == {(ONE, 4), (TWO, 4)}
    assert [s.epoch for s in staged.epochs()] == [4, 4, 5]
    assert list(staged.rows(StagedEpoch(ONE, 4))) == [rows(1), rows(10)]
    assert list(staged.rows(StagedEpoch(ONE, 5))) == [rows(30, 0)]
    staged.drop(StagedEpoch(ONE, 4))
    assert list(staged.rows(StagedEpoch(ONE, 4))) == [] and len(staged.epochs()) == 2


def test_an_open_epoch_is_in_no_list() -> None:
    staged = StagedEpochs(0, everyone)
    staged.add(StagedEpoch(ONE, OPEN_EPOCH), rows(1))
    assert staged.epochs() == [] and staged.snapshot().num_rows == 0


@pytest.mark.parametrize("limit", [0, 600, 64 << 20])
def test_a_snapshot_has_all_of_it(limit: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(staged_epochs, "SPILL_BYTES", limit)
    staged = filled(tmp_path)
    table = staged.snapshot()
    assert table.column_names[0] == "key_group" and np.unique(table["key_group"]).tolist() == [7]
    other = StagedEpochs(3, everyone, SpillFiles(tmp_path))
    # in parts, as a large snapshot is read
    for first in range(0, table.num_rows, 2):
        other.restore(table.slice(first, 2))
    assert listed(other) == listed(staged) == listed(filled())
    for staged_epoch in other.epochs():
        other.drop(staged_epoch)
    assert other._bytes_in_memory == 0
    assert list(tmp_path.iterdir()) == [], "a temporary file has no name that could be left behind"


def test_what_another_subtask_commits_is_not_restored() -> None:
    staged = StagedEpochs(0, lambda writer: writer.subtask == 1)
    staged.restore(filled().snapshot())
    assert [(s.writer, s.epoch) for s in staged.epochs()] == [(TWO, 4)]
