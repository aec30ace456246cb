"""Upserts into a table of Flink's: its equality deletes hold for the files that are written anew."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.engine.api.epoch_target import DELETED
from penstock.engine.api.failpoints import armed
from tests.unit.engine.connectors.iceberg.flink_tables import COLUMNS, made, read, upsert
from tests.unit.engine.connectors.iceberg.iceberg_files import WRITER, declared, target

KEY = ("k", "g")


def change(k: int, g: str, v: str | None) -> pa.RecordBatch:
    texts = pa.array([v], pa.string())
    return pa.RecordBatch.from_arrays(
        [pa.array([v is None]), pa.array([k], pa.int64()), pa.array([g]), texts], [DELETED, "k", "g", "v"]
    )


@pytest.mark.parametrize("partitioned", [False, True])
def test_rows_that_equality_deletes_leave_out_do_not_come_back(tmp_path: Path, partitioned: bool) -> None:
    made(tmp_path, partitioned=partitioned)
    for changes in (
        [((k, g), f"{k}{g}") for k in (1, 2, 3) for g in "ab"],
        [((1, "a"), None), ((2, "a"), "new"), ((3, "b"), "new")],
    ):
        first = upsert(tmp_path, changes, partitioned=partitioned)
    one = target(declared(tmp_path, COLUMNS, key=KEY))
    # in files with deletes: replaced, deleted, and inserted where a row was deleted
    batches = [change(2, "a", "ours"), change(2, "b", None), change(1, "a", "ours"), change(9, "b", "ours")]
    one.commit(WRITER, 1, batches)
    expected = Counter(
        [
            (1, "a", "ours"),
            (1, "b", "1b"),
            (2, "a", "ours"),
            (3, "a", "3a"),
            (3, "b", "new"),
            (9, "b", "ours"),
        ]
    )
    assert read(tmp_path) == expected
    one.commit(WRITER, 1, batches)
    # no file has the key
    one.commit(WRITER, 2, [change(10, "a", None)])
    # Flink gets ahead: the commit is tried again over its deletes
    flinks = [[((3, "a"), None), ((1, "b"), "flink")]]

    def get_ahead(point: str) -> None:
        if flinks:
            upsert(tmp_path, flinks.pop(), partitioned=partitioned)

    with armed({"L1": get_ahead}):
        one.commit(WRITER, 3, [change(1, "b", "last")])
    expected = Counter(
        [(1, "a", "ours"), (1, "b", "last"), (2, "a", "ours"), (3, "b", "new"), (9, "b", "ours")]
    )
    assert read(tmp_path) == expected
    stream = {"scan.mode": "full", "scan.snapshot-id": str(first), "read-change-feed": "true"}
    assert read(tmp_path, **stream) == expected
