"""Reading Iceberg tables: one snapshot, and what snapshots add. Where reading stops, it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness
from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, BOOLEAN, INT, STRING
from penstock.engine.api.clock import ManualClock
from penstock.engine.connectors.iceberg.source import IcebergSource
from penstock.planner.expressions.nodes import Call, Column, Literal
from tests.unit.engine.connectors.delta.delta_files import read_from, request, rows
from tests.unit.engine.connectors.iceberg.iceberg_files import WRITER, declared, loaded, target


def source(path: Path, clock: ManualClock | None = None, **options: str) -> IcebergSource:
    return IcebergSource(request(declared(path, options=dict(options)), clock))


def keys(found: list[Any]) -> list[int]:
    return [key for _, key, _ in found]


def filled(path: Path, epochs: int = 3) -> list[int]:
    """One row a snapshot; return the snapshots: the attempt's, then each epoch's."""
    one = target(declared(path))
    for epoch in range(1, epochs + 1):
        one.commit(WRITER, epoch, rows(epoch))
    return [snapshot.snapshot_id for snapshot in loaded(path).snapshots()]


def test_a_snapshot_is_a_table(tmp_path: Path) -> None:
    snapshots = filled(tmp_path)
    newest = source(tmp_path)
    assert boundedness(newest._table) is Boundedness.BOUNDED
    assert newest.splits() == [f"table-{snapshots[-1]}"]
    assert sorted(keys(read_from(newest, *newest.splits())[0])) == [1, 2, 3]
    earlier = source(tmp_path, **{"scan.snapshot-id": str(snapshots[1])})
    assert keys(read_from(earlier, *earlier.splits())[0]) == [1]
    with pytest.raises(PenstockError, match="DAT-5302"):
        source(tmp_path, **{"scan.snapshot-id": "7"}).splits()
    with pytest.raises(PenstockError, match="DAT-5302"):
        source(tmp_path, **{"scan.timestamp": "1999-01-01"}).splits()
    assert source(tmp_path, **{"scan.timestamp": "2999-01-01"}).splits() == newest.splits()
    with pytest.raises(PenstockError, match="DAT-5301"):
        IcebergSource(request(declared(tmp_path, name="db.none"))).splits()


def test_a_stream_follows_the_table(tmp_path: Path) -> None:
    filled(tmp_path)
    clock = ManualClock()
    follower = source(tmp_path, clock, **{"scan.mode": "full", "monitor-interval": "1 s"})
    assert boundedness(follower._table) is Boundedness.UNBOUNDED
    reader = follower.open(*follower.splits(), None)
    first = [row for _ in range(3) for row in reader.poll(1).to_pylist()]  # type: ignore[union-attr]
    assert sorted(row["k"] for row in first) == [1, 2, 3]
    assert reader.poll(10) is None
    target(declared(tmp_path)).commit(WRITER, 9, rows(9))
    # it looks once an interval
    assert reader.poll(10) is None
    clock.advance(1_000)
    assert reader.poll(10).to_pylist() == [{"k": 9, "v": "v9"}]  # type: ignore[union-attr]
    assert not reader.ended


def test_latest_and_a_snapshot_to_begin_with(tmp_path: Path) -> None:
    snapshots = filled(tmp_path)
    latest = source(tmp_path, **{"scan.mode": "latest"})
    (split,) = latest.splits()
    target(declared(tmp_path)).commit(WRITER, 7, rows(7))
    assert keys(read_from(latest, split)[0]) == [7]
    ends = {"scan.snapshot-id": str(snapshots[2]), "scan.end-snapshot-id": str(snapshots[3])}
    since = source(tmp_path, **{"scan.mode": "from-snapshot", **ends})
    assert boundedness(since._table) is Boundedness.REPLAY
    assert keys(read_from(since, *since.splits())[0]) == [2, 3]
    reader = since.open(*since.splits(), None)
    while reader.poll(1) is not None:
        pass
    assert reader.ended
    assert since.open(*since.splits(), reader.position()).poll(1) is None


@pytest.mark.parametrize("mode", ["full", "from-snapshot"])
def test_reading_goes_on_after_each_row(tmp_path: Path, mode: str) -> None:
    one = target(declared(tmp_path))
    for epoch in (1, 2):
        one.commit(WRITER, epoch, rows(epoch * 10, epoch * 10 + 1, epoch * 10 + 2))
    snapshots = [snapshot.snapshot_id for snapshot in loaded(tmp_path).snapshots()]
    options = {"scan.mode": mode, "scan.snapshot-id": str(snapshots[1])}
    whole = source(tmp_path, **options)
    (split,) = whole.splits()
    expected = [10, 11, 12, 20, 21, 22]
    assert keys(read_from(whole, split)[0]) == expected
    found, position = [], None
    while True:
        reader = source(tmp_path, **options).open(split, position)
        batch = reader.poll(1)
        position = reader.position()
        if batch is None:
            break
        found += batch.column(0).to_pylist()
    assert found == expected


def test_a_snapshot_that_removes_rows_is_no_silence(tmp_path: Path) -> None:
    snapshots = filled(tmp_path)
    table = loaded(tmp_path)
    table.delete("k = 1")
    since = source(tmp_path, **{"scan.mode": "from-snapshot", "scan.snapshot-id": str(snapshots[0])})
    # the library's own scan returns rows over it
    scan = table.incremental_append_scan(from_snapshot_id_exclusive=snapshots[0])
    assert scan.to_arrow().num_rows == 3
    with pytest.raises(PenstockError, match="DAT-5308"):
        read_from(since, *since.splits())


def test_snapshots_that_expired_and_another_table(tmp_path: Path) -> None:
    snapshots = filled(tmp_path)
    since = source(tmp_path, **{"scan.mode": "from-snapshot", "scan.snapshot-id": str(snapshots[1])})
    (split,) = since.splits()
    loaded(tmp_path).maintenance.expire_snapshots().by_ids(snapshots[:2]).commit()
    with pytest.raises(PenstockError, match="DAT-5309"):
        read_from(since, split)
    with pytest.raises(PenstockError, match="DAT-5309"):
        read_from(since, "changes-12345")


def test_columns_that_come_and_are_renamed(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    table = loaded(tmp_path)
    with table.update_schema() as update:
        update.union_by_name(pa.schema([("n", pa.int32())]))
        update.rename_column("v", "w")
    renamed = declared(tmp_path, {"k": BIGINT, "w": STRING, "n": INT})
    one = IcebergSource(request(renamed))
    assert read_from(one, *one.splits())[0] == [(1, 1, "v1", None)]
    with pytest.raises(PenstockError, match="DAT-5306"):
        source(tmp_path).splits()


def test_a_filter_and_partitions(tmp_path: Path) -> None:
    table = declared(tmp_path, {"k": BIGINT, "p": STRING}, partitioned_by=("p",))
    part = pa.record_batch({"k": pa.array(range(6), pa.int64()), "p": ["a", "b", None] * 2})
    target(table).commit(WRITER, 1, [part])
    one = Literal(BIGINT, False, value=3)
    predicate = Call(BOOLEAN, True, function="greater", args=(Column(BIGINT, True, index=0), one))
    filtered = IcebergSource(request(table, predicate=predicate))
    assert sorted(read_from(filtered, *filtered.splits())[0]) == [(1, 4, "b"), (1, 5, None)]


def test_a_table_without_snapshots(tmp_path: Path) -> None:
    target(declared(tmp_path, name="db.other"))
    from penstock.engine.connectors.iceberg.iceberg_table import opened_catalog

    catalog = opened_catalog(declared(tmp_path).options)
    catalog.create_table("db.t", pa.schema([("k", pa.int64()), ("v", pa.string())]))
    empty = source(tmp_path)
    assert empty.splits() == ["table-0"]
    assert read_from(empty, "table-0")[0] == []
    follower = source(tmp_path, **{"scan.mode": "full"})
    assert follower.splits() == ["full-0"]
    filled(tmp_path, 2)
    assert keys(read_from(follower, "full-0")[0]) == [1, 2]
