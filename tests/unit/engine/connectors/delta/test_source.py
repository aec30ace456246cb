"""Reading Delta tables: one version, what versions add, and their changes. Where reading stops, it goes on."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness, emits_changes
from penstock.catalog.errors import PenstockError
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    DataType,
    Decimal,
)
from penstock.engine.api.clock import ManualClock
from penstock.engine.connectors.delta.source import DeltaSource
from penstock.planner.expressions.nodes import Call, Column, Literal
from tests.unit.engine.connectors.delta.delta_files import (
    WRITER,
    declared,
    deltalake,
    read_from,
    request,
    rows,
    target,
    upserts,
    versions,
    with_options,
)
from tests.unit.engine.connectors.delta.foreign_tables import foreign


def source(table: Any, clock: ManualClock | None = None, **options: str) -> DeltaSource:
    return DeltaSource(request(with_options(table, **options), clock))


def keys(found: list[Any]) -> list[int]:
    return [key for _, key, _ in found]


def filled(path: Path, epochs: int = 3, **options: str) -> Any:
    """Versions: 0 the table, 1 the attempt, then one row each; keys are 1, 2, .."""
    table = declared(path, **options)
    one = target(table)
    for epoch in range(1, epochs + 1):
        one.commit(WRITER, epoch, rows(epoch))
    return table


def test_a_version_is_a_table(tmp_path: Path) -> None:
    table = filled(tmp_path)
    assert boundedness(table) is Boundedness.BOUNDED
    newest = source(table)
    assert newest.splits() == ["table-4"]
    reader = newest.open("table-4", None)
    assert sorted(keys(read_from(newest, "table-4")[0])) == [1, 2, 3]
    while reader.poll(100) is not None:
        pass
    assert reader.ended
    earlier = source(table, **{"scan.version": "2"})
    assert keys(read_from(earlier, *earlier.splits())[0]) == [1]


def test_time_travel(tmp_path: Path) -> None:
    table = filled(tmp_path, 1)
    assert source(table, **{"scan.timestamp": "2999-01-01T00:00:00"}).splits() == ["table-2"]
    with pytest.raises(PenstockError, match="DAT-5302"):
        source(table, **{"scan.timestamp": "1999-01-01T00:00:00Z"}).splits()
    with pytest.raises(PenstockError, match="DAT-5302"):
        source(table, **{"scan.version": "99"}).splits()
    with pytest.raises(PenstockError, match="DAT-5301"):
        source(declared(tmp_path / "none")).splits()


def test_a_stream_follows_the_table(tmp_path: Path) -> None:
    table = filled(tmp_path, scan_mode="full", monitor__interval="1 s")
    assert boundedness(table) is Boundedness.UNBOUNDED
    clock = ManualClock()
    follower = source(table, clock)
    (split,) = follower.splits()
    assert split == "full-4"
    reader = follower.open(split, None)
    first = [row for _ in range(3) for row in reader.poll(1).to_pylist()]  # type: ignore[union-attr]
    assert sorted(row["k"] for row in first) == [1, 2, 3]
    assert reader.poll(10) is None
    one = target(table)
    one.commit(WRITER, 9, rows(9))
    # it looks once an interval
    assert reader.poll(10) is None
    clock.advance(1_000)
    assert reader.poll(10).to_pylist() == [{"k": 9, "v": "v9"}]  # type: ignore[union-attr]
    assert not reader.ended


def test_latest_and_a_version_to_begin_with(tmp_path: Path) -> None:
    table = filled(tmp_path)
    latest = source(table, **{"scan.mode": "latest"})
    (split,) = latest.splits()
    target(table).commit(WRITER, 7, rows(7))
    assert keys(read_from(latest, split)[0]) == [7]
    # the id has the version: a job that is restored before its first row begins where it was
    restored = source(table, **{"scan.mode": "latest"})
    restored.recall([split])
    assert restored.splits() == [split]
    since = source(table, **{"scan.mode": "from-version", "scan.version": "3", "scan.end-version": "4"})
    assert boundedness(since._table) is Boundedness.REPLAY
    assert keys(read_from(since, *since.splits())[0]) == [2, 3]


@pytest.mark.parametrize("feed", ["true", "false"])
def test_reading_goes_on_after_each_row(tmp_path: Path, feed: str) -> None:
    table = declared(tmp_path, key=("k",), change__data__feed=feed)
    one = target(table)
    one.commit(WRITER, 1, upserts(k1="a", k2="b", k3="c"))
    one.commit(WRITER, 2, upserts(k1="x", k2=None, k4="d"))
    options = {"scan.mode": "full", "scan.version": "2", "read-change-feed": "true"}
    changes = source(table, **options)
    assert emits_changes(changes._table)
    (split,) = changes.splits()
    whole, _ = read_from(changes, split)
    sums: Counter[Any] = Counter()
    for weight, *row in whole:
        sums[tuple(row)] += weight
        # a row is never taken back before it is there, and its follower comes after it
        assert sums[tuple(row)] >= 0
    assert {row for row, count in sums.items() if count} == {(1, "x"), (3, "c"), (4, "d")}
    # each stop and start in between gives the same rows
    stopped: list[Any] = []
    position = None
    while True:
        reader = source(table, **options).open(split, position)
        batch = reader.poll(1)
        while batch is not None and not batch.num_rows:
            batch = reader.poll(1)
        position = reader.position()
        reader.close()
        if batch is None:
            break
        stopped += [
            (weight, *row.values())
            for weight, row in zip(batch.weights, batch.rows.to_pylist(), strict=True)  # type: ignore[union-attr]
        ]
    assert stopped == whole


def test_a_version_that_removes_rows_is_no_silence(tmp_path: Path) -> None:
    table = filled(tmp_path)
    deltalake.DeltaTable(str(tmp_path)).delete("k = 1")
    since = source(table, **{"scan.mode": "from-version", "scan.version": "0"})
    with pytest.raises(PenstockError, match="DAT-5308") as raised:
        read_from(since, *since.splits())
    assert "version 5" in raised.value.message
    assert "'scan.version' = '6'" in str(raised.value.hint)


def test_a_compaction_is_no_change(tmp_path: Path) -> None:
    table = filled(tmp_path)
    deltalake.DeltaTable(str(tmp_path)).optimize.compact()
    since = source(table, **{"scan.mode": "from-version", "scan.version": "0"})
    assert keys(read_from(since, *since.splits())[0]) == [1, 2, 3]


def test_a_vacuumed_file_and_a_shortened_log(tmp_path: Path) -> None:
    table = filled(tmp_path)
    since = source(table, **{"scan.mode": "from-version", "scan.version": "0"})
    (split,) = since.splits()
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    for name in range(4):
        (tmp_path / "_delta_log" / f"{name:020d}.json").rename(tmp_path / f"kept-{name}")
    with pytest.raises(PenstockError, match="DAT-5309"):
        read_from(since, split)
    for name in range(4):
        (tmp_path / f"kept-{name}").rename(tmp_path / "_delta_log" / f"{name:020d}.json")
    gone = deltalake.DeltaTable(str(tmp_path)).file_uris()[0]
    Path(gone).unlink()
    with pytest.raises(PenstockError, match="DAT-5310"):
        read_from(since, split)


def test_another_table_at_the_path(tmp_path: Path) -> None:
    table = filled(tmp_path / "long")
    since = source(table, **{"scan.mode": "from-version", "scan.version": "0"})
    _, position = read_from(since, *since.splits())
    filled(tmp_path / "short", 1)
    moved = source(declared(tmp_path / "short"), **{"scan.mode": "from-version", "scan.version": "0"})
    with pytest.raises(PenstockError, match="DAT-5311"):
        read_from(moved, "changes-0", position)


def test_columns_that_come_and_go(tmp_path: Path) -> None:
    table = filled(tmp_path)
    wider = declared(tmp_path, {"k": BIGINT, "v": STRING, "n": INT})
    since = source(wider, **{"scan.mode": "from-version", "scan.version": "0"})
    added = pa.table({"k": pa.array([4], pa.int64()), "v": ["v4"], "n": pa.array([7], pa.int32())})
    deltalake.write_deltalake(str(tmp_path), added, mode="append", schema_mode="merge")
    found, _ = read_from(since, *since.splits())
    assert found == [(1, 1, "v1", None), (1, 2, "v2", None), (1, 3, "v3", None), (1, 4, "v4", 7)]
    assert sorted(keys(read_from(source(table), "table-5")[0])) == [1, 2, 3, 4]
    with pytest.raises(PenstockError, match="DAT-5306"):
        source(declared(tmp_path, {"k": BIGINT, "none": STRING})).splits()


def test_partitions_are_columns(tmp_path: Path) -> None:
    path = str(tmp_path)
    written = pa.table(
        {"d": [date(2026, 1, 1), date(2026, 1, 2), None], "p": ["a b%/ü", None, "c"], "k": [1, 2, 3]}
    )
    deltalake.write_deltalake(path, written, partition_by=["d", "p"])
    table = declared(tmp_path, {"d": DATE, "p": STRING, "k": BIGINT})
    expected = sorted((1, *row.values()) for row in written.sort_by("k").to_pylist() if row["k"] == 1)
    for options in ({}, {"scan.mode": "from-version", "scan.version": "0"}):
        one = source(table, **options)
        found, _ = read_from(one, *one.splits())
        assert sorted(found, key=lambda row: row[3]) == [
            *expected,
            (1, date(2026, 1, 2), None, 2),
            (1, None, "c", 3),
        ]


def test_files_are_left_out_by_partitions_and_statistics(tmp_path: Path) -> None:
    for number in range(3):
        part = pa.table({"k": [number * 10, number * 10 + 1], "v": [f"it's {number}"] * 2, "p": [number] * 2})
        deltalake.write_deltalake(str(tmp_path), part, partition_by=["p"], mode="append")
    table = declared(tmp_path, {"k": BIGINT, "v": STRING, "p": BIGINT})

    def found(*conditions: tuple[str, int, Any]) -> list[int]:
        tests = tuple(
            Call(
                BOOLEAN,
                True,
                function=name,
                args=(
                    Column(table.schema[at].type, True, index=at),
                    Literal(table.schema[at].type, False, value=value),
                ),
            )
            for name, at, value in conditions
        )
        predicate = tests[0] if len(tests) == 1 else Call(BOOLEAN, True, function="and", args=tests)
        one = DeltaSource(request(table, predicate=predicate))
        return sorted({row[1] // 10 for row in read_from(one, *one.splits())[0]})

    assert found(("equal", 2, 1)) == [1]
    assert found(("greater_equal", 0, 11)) == [1, 2]
    assert found(("equal", 1, "it's 2")) == [2]
    assert found(("greater", 0, 100)) == []
    assert versions(tmp_path) == 2


def test_a_column_that_was_there_and_is_lost_is_refused(tmp_path: Path) -> None:
    """A nullable column that never was is NULL until it comes; one that goes would be NULL in silence."""
    deltalake.write_deltalake(str(tmp_path), pa.table({"k": pa.array([1], pa.int64()), "v": ["a"]}))
    fewer = pa.table({"k": pa.array([2], pa.int64())})
    deltalake.write_deltalake(str(tmp_path), fewer, mode="overwrite", schema_mode="overwrite")
    stream = with_options(
        declared(tmp_path),
        **{"scan.mode": "from-version", "scan.version": "0", "read-change-feed": "true"},
    )
    source = DeltaSource(request(stream))
    with pytest.raises(PenstockError, match=r"DAT-5306.*has no column v any more"):
        read_from(source, *source.splits())
    extra = with_options(declared(tmp_path, {"k": BIGINT, "z": STRING}), **stream.options)
    source = DeltaSource(request(extra))
    found, _ = read_from(source, *source.splits())
    assert found == [(1, 1, None), (-1, 1, None), (1, 2, None)]


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (TIMESTAMP_LTZ, "2026-06-01 12:34:56.123456", datetime(2026, 6, 1, 12, 34, 56, 123456, tzinfo=UTC)),
        (TIMESTAMP_LTZ, "2026-06-01T12:34:56.000000Z", datetime(2026, 6, 1, 12, 34, 56, tzinfo=UTC)),
        (TIMESTAMP, "2026-06-01 12:34:56", datetime(2026, 6, 1, 12, 34, 56)),
        (DATE, "0001-01-01", date(1, 1, 1)),
        (BOOLEAN, "true", True),
        (DOUBLE, "-1.5E10", -1.5e10),
        (Decimal(10, 2), "-1.50", Number("-1.50")),
        (STRING, " a/b%20=:c", " a/b%20=:c"),
        (STRING, "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
        (STRING, '漢 it\'s "q"\\\n', '漢 it\'s "q"\\\n'),
        (STRING, "", None),
        (INT, None, None),
    ],
    ids=str,
)
def test_partition_values_as_other_writers_spell_them(
    tmp_path: Path, kind: DataType, written: str | None, value: Any
) -> None:
    names = {TIMESTAMP_LTZ: "timestamp", TIMESTAMP: "timestamp_ntz", INT: "integer"}
    spelled = names.get(kind, str(kind).lower().replace(" ", ""))
    fields = [("k", "long", {}), ("p", spelled, {})]
    path = foreign(tmp_path / "t", pa.table({"k": [1]}), fields, reader=["timestampNtz"], parts=["p"])
    log = path / "_delta_log" / f"{0:020d}.json"
    value_there = json.dumps({"p": written})
    log.write_text(log.read_text().replace('"partitionValues": {}', f'"partitionValues": {value_there}'))
    table = declared(path, {"k": BIGINT, "p": kind})
    for options in ({}, {"scan.mode": "from-version", "scan.version": "0"}):
        one = source(table, **options)
        assert read_from(one, *one.splits())[0] == [(1, 1, value)]
