"""Files as splits: listing, watching, assignment to subtasks, order by event time, metadata and partition
columns, changed files.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness
from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, BOOLEAN, INT, STRING, TIMESTAMP, TimestampLtz
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import ScanRequest
from penstock.engine.connectors.filesystem.source import FilesystemSource
from penstock.planner.expressions.nodes import Call, Column, Literal
from tests.harness.reading import Taken, drain, open_source, read, table_of


def files(directory: Path, **contents: str) -> None:
    for name, text in contents.items():
        (directory / f"{name}.csv").write_text("id\n" + text)


def ids(path: Path, **options: str) -> Any:
    return table_of({"id": INT}, {"connector": "filesystem", "path": str(path), "format": "csv", **options})


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


def test_directory_glob_and_url(tmp_path: Path) -> None:
    files(tmp_path, a="1\n", b="2\n")
    (tmp_path / "sub").mkdir()
    files(tmp_path / "sub", c="3\n")
    files(tmp_path, _hidden="9\n")
    (tmp_path / ".staging").mkdir()
    files(tmp_path / ".staging", d="9\n")
    assert numbers(read(ids(tmp_path))) == [1, 2, 3]
    assert numbers(read(ids(tmp_path / "*.csv"))) == [1, 2]
    assert numbers(read(ids(tmp_path / "**" / "[c-d].csv"))) == [3]
    table = table_of(
        {"id": INT}, {"connector": "filesystem", "path": f"file://{tmp_path}/b.csv", "format": "csv"}
    )
    assert numbers(read(table)) == [2]


def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path, a="1\n")
    monkeypatch.chdir(tmp_path)
    assert numbers(read(ids(Path("a.csv")))) == [1]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("nothing.csv", "DAT-4101"),
        ("*.tsv", "DAT-4102"),
        ("fifo", "DAT-4103"),
        ("mixed", "DAT-4108"),
        ("nosuch://x/y", "DAT-4109"),
    ],
)
def test_paths_that_do_not_work(tmp_path: Path, path: str, code: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "mixed").mkdir()
    files(tmp_path / "mixed", a="1\n")
    (tmp_path / "mixed" / "b.parquet").write_bytes(b"")
    options = {
        "connector": "filesystem",
        "path": path if "://" in path else str(tmp_path / path),
        "format": "csv",
    }
    with pytest.raises(PenstockError, match=code):
        read(table_of({"id": INT}, options))


def test_empty_files_and_directories_have_no_rows(tmp_path: Path) -> None:
    assert read(ids(tmp_path)) == []
    (tmp_path / "a.csv").write_bytes(b"")
    files(tmp_path, b="", c="1\n")
    assert numbers(read(ids(tmp_path))) == [1]


def test_every_split_belongs_to_one_subtask(tmp_path: Path) -> None:
    files(tmp_path, **{f"f{i:02}": f"{i}\n" for i in range(11)})
    for options in ({}, {"source.monitor-interval": "1 s"}):
        parts = [
            numbers(drain(open_source(ids(tmp_path, **options), subtask=s, parallelism=3), polls=60).rows)
            for s in range(3)
        ]
        assert sorted(n for part in parts for n in part) == list(range(11))
        # a watched directory deals by hash: with few files a subtask may have none
        assert options or all(parts)


def test_restore_with_another_parallelism(tmp_path: Path) -> None:
    files(tmp_path, **{f"f{i:02}": f"{i}\n{i + 100}\n" for i in range(7)})
    table = ids(tmp_path)
    outs, items = [Taken(), Taken()], []
    for subtask, out in enumerate(outs):
        operator = open_source(table, subtask=subtask, parallelism=2, batch=1)
        for _ in range(4):
            operator.poll(out)
        items += operator.snapshot_items()
        operator.close()
    files(tmp_path, zz="999\n")
    for subtask in range(3):
        operator = open_source(table, subtask=subtask, parallelism=3, batch=1)
        operator.restore_items(items)
        outs.append(drain(operator))
    assert sorted(n for out in outs for n in numbers(out.rows)) == sorted([*range(7), *range(100, 107)])


def test_watched_directory_picks_up_new_files(tmp_path: Path) -> None:
    table, clock, out = ids(tmp_path / "in", **{"source.monitor-interval": "100 ms"}), ManualClock(), Taken()
    assert boundedness(table) is Boundedness.UNBOUNDED
    operator = open_source(table, clock=clock)
    status = operator.poll(out)
    assert not status.ended and status.wake_ms is not None and 100 <= status.wake_ms <= 102
    (tmp_path / "in").mkdir()
    files(tmp_path / "in", a="1\n2\n")
    operator.poll(out)
    assert out.rows == []
    clock.advance(101)
    for _ in range(3):
        operator.poll(out)
    assert numbers(out.rows) == [1, 2]
    items = operator.snapshot_items()
    operator.close()
    operator = open_source(table, clock=clock)
    operator.restore_items(items)
    files(tmp_path / "in", b="3\n")
    clock.advance(101)
    for _ in range(5):
        assert not operator.poll(out).ended
    assert numbers(out.rows) == [1, 2, 3]
    assert out.split_events == [("opened", 0), ("ended", 0), ("opened", 1), ("ended", 1)]


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    files(tmp_path, a="1\n2\n", b="3\n")
    table = ids(tmp_path)
    operator, out = open_source(table, batch=1), Taken()
    operator.poll(out)
    items = operator.snapshot_items()
    operator.close()
    files(tmp_path, a="1\n2\n5\n")
    again = open_source(table)
    with pytest.raises(PenstockError, match="DAT-4107") as caught:
        again.restore_items(items)
    assert "was 7 B, is 9 B" in caught.value.message
    (tmp_path / "a.csv").unlink()
    gone = open_source(table)
    gone.restore_items(items)
    with pytest.raises(PenstockError, match="is gone"):
        drain(gone)


def test_a_watched_file_that_grows_is_refused(tmp_path: Path) -> None:
    files(tmp_path, a="1\n")
    clock = ManualClock()
    operator, out = open_source(ids(tmp_path, **{"source.monitor-interval": "1 s"}), clock=clock), Taken()
    for _ in range(3):
        operator.poll(out)
    files(tmp_path, a="1\n2\n")
    clock.advance(1001)
    with pytest.raises(PenstockError, match="DAT-4107"):
        operator.poll(out)


def test_metadata_columns(tmp_path: Path) -> None:
    files(tmp_path, a="5\n6\n")
    metadata = {
        "p": ("file.path", STRING),
        "n": ("file.name", STRING),
        "r": ("file.row", BIGINT),
        "s": ("file.size", BIGINT),
        "m": ("file.modification-time", TimestampLtz(3)),
    }
    table = table_of(
        {"id": INT}, {"connector": "filesystem", "path": str(tmp_path), "format": "csv"}, metadata=metadata
    )
    rows = read(table, batch=1)
    path = tmp_path / "a.csv"
    assert [(r["id"], r["p"], r["n"], r["r"], r["s"]) for r in rows] == [
        (5, str(path), "a.csv", 0, 7),
        (6, str(path), "a.csv", 1, 7),
    ]
    assert rows[0]["m"].timestamp() == pytest.approx(path.stat().st_mtime)
    assert read(table, columns=["r", "id"]) == [{"r": 0, "id": 5}, {"r": 1, "id": 6}]


def test_partition_directories(tmp_path: Path) -> None:
    for name, text in (("k=1/day=a%2Fb", "1\n"), ("k=2/day=__HIVE_DEFAULT_PARTITION__", "2\n")):
        (tmp_path / name).mkdir(parents=True)
        files(tmp_path / name, a=text)
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "csv"}
    table = table_of({"k": INT, "id": INT, "day": STRING}, options, partitioned_by=["k", "day"])
    assert read(table) == [{"k": 1, "id": 1, "day": "a/b"}, {"k": 2, "id": 2, "day": None}]
    (tmp_path / "k=x").mkdir()
    files(tmp_path / "k=x", a="3\n")
    with pytest.raises(PenstockError, match="DAT-4110"):
        read(table)


def timed(directory: Path) -> Any:
    start = datetime(2013, 1, 1)
    for name, begin in (("a", 200), ("b", 0), ("c", 100)):
        times = [start + timedelta(seconds=begin + i) for i in range(100)]
        pq.write_table(
            pa.table({"ts": pa.array(times, pa.timestamp("us")), "s": [name] * 100}),
            directory / f"{name}.parquet",
            row_group_size=30,
        )
    return table_of(
        {"ts": TIMESTAMP, "s": STRING},
        {"connector": "filesystem", "path": str(directory), "format": "parquet"},
        watermark="ts",
    )


def test_splits_advance_together_in_event_time(tmp_path: Path) -> None:
    out = drain(open_source(timed(tmp_path), batch=10))
    assert out.split_events[:3] == [("opened", 0), ("opened", 1), ("opened", 2)]
    order = [batch.origin for batch in out.batches]
    assert order[:3] == [0, 1, 2]
    assert order[3:] == [1] * 9 + [2] * 9 + [0] * 9
    assert len(out.rows) == 300


def test_splits_finished_before_a_restore_are_not_opened_again(tmp_path: Path) -> None:
    operator, out = open_source(timed(tmp_path), batch=50), Taken()
    while ("ended", 1) not in out.split_events:
        operator.poll(out)
    again = open_source(timed_again(tmp_path), batch=50)
    again.restore_items(operator.snapshot_items())
    rest = drain(again)
    assert ("opened", 1) not in rest.split_events and ("opened", 0) in rest.split_events
    assert len(out.rows) + len(rest.rows) == 300


def timed_again(directory: Path) -> Any:
    return table_of(
        {"ts": TIMESTAMP, "s": STRING},
        {"connector": "filesystem", "path": str(directory), "format": "parquet"},
        watermark="ts",
    )


def greater(column: int, value: int) -> Call:
    return Call(
        BOOLEAN,
        True,
        function="greater",
        args=(Column(INT, True, index=column), Literal(INT, False, value=value)),
    )


def test_row_groups_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"id": pa.array(range(100), pa.int32()), "v": pa.array(range(100), pa.int32())}),
        tmp_path / "a.parquet",
        row_group_size=10,
    )
    table = table_of({"id": INT, "v": INT}, {"connector": "filesystem", "path": str(tmp_path / "a.parquet")})
    request = ScanRequest(table, (1, 0), greater(1, 74), 1000, ManualClock(), Services())
    source = FilesystemSource(request)
    reader = source.open(source.splits()[0], None)
    seen = []
    while (batch := reader.poll(1000)) is not None:
        seen += batch.column(1).to_pylist()
    assert seen == list(range(70, 100))
    assert numbers(read(table, predicate=greater(0, 74))) == list(range(75, 100))


@pytest.mark.parametrize("way", ["source.replay", "source.monitor-interval"])
def test_rate_is_kept_by_the_clock(way: str, tmp_path: Path) -> None:
    files(tmp_path, a="".join(f"{i}\n" for i in range(50)))
    clock, out = ManualClock(), Taken()
    value = "true" if way == "source.replay" else "10 s"
    operator = open_source(ids(tmp_path, **{way: value, "source.rows-per-second": "10"}), clock=clock)
    for _ in range(20):
        operator.poll(out)
    assert len(out.rows) == 1
    clock.advance(1000)
    for _ in range(20):
        status = operator.poll(out)
    assert len(out.rows) == 11
    assert status.wake_ms == 1101
    clock.advance(60_000)
    for _ in range(20):
        status = operator.poll(out)
    assert len(out.rows) == 21, "of what it missed it makes up for a second"


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_no_row_is_read_beside_a_file_of_other_columns(tmp_path: Path, kind: str) -> None:
    for number, values in enumerate(([1, 2], ["x"])):
        rows = pa.table({"id": pa.array(values)})
        if kind == "parquet":
            pq.write_table(rows, tmp_path / f"{number}.parquet")
        else:
            with pa.ipc.new_file(tmp_path / f"{number}.arrow", rows.schema) as sink:
                sink.write_table(rows)
    table = table_of({"id": INT}, {"connector": "filesystem", "path": str(tmp_path), "format": kind})
    out = Taken()
    with pytest.raises(PenstockError, match="DAT-4205"):
        drain(open_source(table), out)
    assert not out.rows
