"""The position of a reader of versions: it says what comes next, and nothing is read before it is asked for."""

from __future__ import annotations

from pathlib import Path

from penstock.engine.connectors.delta.delta_table import TableStore
from penstock.engine.connectors.delta.log import DeltaLog
from penstock.engine.connectors.delta.version_reader import StartVersion, VersionReader
from tests.unit.engine.connectors.delta.delta_files import WRITER, declared, request, rows, target


def test_the_end_of_a_stream_and_its_position(tmp_path: Path) -> None:
    table = declared(tmp_path, scan_mode="from-version", scan_version="1", scan_end__version="2")
    one = target(declared(tmp_path))
    store = TableStore(table)
    log = DeltaLog(table, store)
    reader = VersionReader(request(table), store, log, StartVersion(1, False, 2, False), None)
    assert reader.position() == {"version": 1, "whole": False, "step": 0, "file": {}}
    # version 1 is an attempt without rows, 2 is not there yet
    assert reader.poll(10) is None
    assert not reader.ended
    one.commit(WRITER, 1, rows(1))
    later = VersionReader(request(table), store, log, StartVersion(1, False, 2, False), reader.position())
    found = later.poll(10)
    assert found is not None and found.num_rows == 1
    assert later.poll(10) is None
    assert later.ended
    again = VersionReader(request(table), store, log, StartVersion(1, False, 2, False), later.position())
    assert again.poll(10) is None
    assert again.ended
