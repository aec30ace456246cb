"""The position of a reader of snapshots: it says what comes next."""

from __future__ import annotations

from pathlib import Path

from penstock.engine.connectors.iceberg.snapshot_reader import SnapshotReader, StartSnapshot
from tests.unit.engine.connectors.delta.delta_files import request, rows
from tests.unit.engine.connectors.iceberg.iceberg_files import WRITER, declared, loaded, target


def test_a_position_in_the_middle_of_a_snapshot_and_after_it(tmp_path: Path) -> None:
    target(declared(tmp_path)).commit(WRITER, 1, rows(1, 2, 3))
    table = declared(tmp_path, options={"scan.mode": "full"})
    newest = loaded(tmp_path).current_snapshot().snapshot_id
    reader = SnapshotReader(request(table), loaded(tmp_path), StartSnapshot(newest, True, False, None), None)
    begun = {"after": 0, "reading": newest, "whole": True, "step": 0, "row": 0}
    assert reader.position() == begun
    assert reader.poll(2).column(0).to_pylist() == [1, 2]  # type: ignore[union-attr]
    assert reader.position() == {**begun, "row": 2}
    assert reader.poll(2).column(0).to_pylist() == [3]  # type: ignore[union-attr]
    assert reader.poll(2) is None
    assert reader.position() == {"after": newest, "reading": 0, "whole": False, "step": 0, "row": 0}
