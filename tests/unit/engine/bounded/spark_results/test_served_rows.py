"""Rows that Spark cannot read itself: its tasks fetch them, as often as they like, and no executor needs
to see a file of ours.
"""

from __future__ import annotations

import datetime as dt
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.settings import Settings
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    YEAR_MONTH_INTERVAL,
    Array,
    Map,
    Row,
)
from penstock.engine.api.operator import Services
from penstock.engine.bounded.file_relations import hadoop_url
from penstock.engine.bounded.spark import relations as spark_relations
from penstock.engine.bounded.spark.backend import SparkBackend
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.relations import SparkRelations
from penstock.engine.bounded.spark_results import served_rows
from penstock.engine.bounded.spark_results.listener import RowListener
from penstock.engine.bounded.spark_results.push_task import HELLO, pulling_task
from penstock.engine.bounded.spark_results.served_rows import ServedRows
from penstock.engine.connectors.filesystem import listing
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.planner.logical.scan import Scan
from penstock.planner.sql_generator.query import ScannedTable
from tests.harness.patience import PATIENCE_S
from tests.unit.engine.bounded.plans import answer, files
from tests.unit.engine.bounded.spark_results.test_result_rows import FakeContext

pyspark = pytest.importorskip("pyspark")
BATCHES = [
    pa.record_batch({"n": pa.array(range(start, start + 10)), "s": [f"text {i}" for i in range(10)]})
    for start in range(0, 100, 10)
]


class FakeSession:
    """Makes of a range and what is asked of it a function from a partition's number to its rows."""

    def range(self, start: int, end: int, step: int, partitions: int) -> FakeSession:
        self.ids = (
            [start + number * (end - start) // partitions for number in range(partitions)]
            if end > start
            else []
        )
        self.size = 8 * (end - start)
        return self

    def where(self, text: str) -> FakeSession:
        divisor = int(text.removeprefix("id % ").removesuffix(" = 0"))
        # the filter leaves the first id of each partition
        assert all(number % divisor == 0 for number in self.ids)
        return self

    def mapInArrow(self, task: Any, schema: Any) -> FakeSession:
        self.task = task
        return self

    def createOrReplaceTempView(self, name: str) -> None:
        """Nothing: whoever asked for the frame has it."""

    def rows(self, partition: int) -> list[dict[str, Any]]:
        given = pa.record_batch({"id": pa.array([self.ids[partition]])})
        return [row for batch in self.task(iter([given])) for row in batch.to_pylist()]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedRows]:
    monkeypatch.setattr(served_rows, "SEGMENT_BYTES", 400)
    monkeypatch.setattr(pyspark, "TaskContext", FakeContext)
    FakeContext.here.context = FakeContext(0, 0)
    made = ServedRows(RowListener, lambda: "127.0.0.1", tmp_path)
    yield made
    made.close()


def test_each_segment_is_fetched_as_often_as_it_is_asked_for(served: ServedRows, tmp_path: Path) -> None:
    first, second = (
        served.frame(FakeSession(), iter(BATCHES), ""),
        served.frame(FakeSession(), iter(BATCHES[:2]), ""),
    )
    assert len(first.ids) > 3 and first.size >= sum(batch.nbytes for batch in BATCHES) * 0.9
    wanted = [row for batch in BATCHES for row in batch.to_pylist()]
    for _ in range(2):
        assert [row for partition in range(len(first.ids)) for row in first.rows(partition)] == wanted
    assert second.rows(0)[0] == {"n": 0, "s": "text 0"}
    assert list(tmp_path.iterdir()) == []  # what is kept has no name


def test_one_large_batch_is_cut(served: ServedRows) -> None:
    frame = served.frame(FakeSession(), iter([pa.record_batch({"n": pa.array(range(1000))})]), "")
    assert len(frame.ids) >= 20
    assert [row["n"] for partition in range(len(frame.ids)) for row in frame.rows(partition)] == list(
        range(1000)
    )


def test_no_rows(served: ServedRows) -> None:
    assert served.frame(FakeSession(), iter([]), "").ids == []


def test_a_slow_task_holds_up_no_other(served: ServedRows, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that reads nothing of a segment larger than the system buffers, while another fetches its own."""
    monkeypatch.setattr(served_rows, "SEGMENT_BYTES", 64 << 20)
    frame = served.frame(FakeSession(), iter([pa.record_batch({"b": [os.urandom(32 << 20)]})]), "")
    assert served._listener is not None
    with socket.create_connection(("127.0.0.1", served._listener.port)) as slow:
        slow.sendall(HELLO.pack(served._token, 0, 0, 0))
        assert slow.recv(1) == b"G"
        assert len(frame.rows(0)[0]["b"]) == 32 << 20


@pytest.mark.parametrize("hello", [b"x" * HELLO.size, HELLO.pack(b"y" * 32, 0, 0, 0)])
def test_strangers_get_nothing(served: ServedRows, hello: bytes) -> None:
    served.frame(FakeSession(), iter(BATCHES), "")
    assert served._listener is not None
    with socket.create_connection(("127.0.0.1", served._listener.port)) as stranger:
        stranger.settimeout(PATIENCE_S)
        stranger.sendall(hello)
        assert stranger.recv(1) == b""


def test_a_task_is_told_when_nobody_serves_any_more(served: ServedRows) -> None:
    frame = served.frame(FakeSession(), iter(BATCHES), "")
    beyond = pulling_task("127.0.0.1", served._listener.port, served._token, 1)  # type: ignore[union-attr]
    with pytest.raises(ConnectionError, match="PENSTOCK_REFUSED"):
        list(beyond(iter([pa.record_batch({"id": pa.array([10_000])})])))
    served.close()
    with pytest.raises(ConnectionError, match="PENSTOCK_REFUSED"):
        frame.rows(0)


def test_rows_that_are_read_here_are_no_idle_spark(
    served: ServedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has nothing to do as long as a large file is read for it, and a query that waits for that is
    not given up.
    """
    monkeypatch.setattr(spark_relations, "_HANDED_OVER_BYTES", 1000)
    came: list[int] = []

    def read(relation: ScannedTable, services: Services) -> Iterator[pa.RecordBatch]:
        for number in range(8):
            yield pa.record_batch({"n": pa.array(range(50), pa.int64())})
            assert len(came) == number + 1

    monkeypatch.setattr(spark_relations, "own_batches", read)
    schema = Schema((Field("n", BIGINT),))
    session = FakeSession()
    relations = SparkRelations(session, Services(), served, lambda: came.append(1))
    relations.register("t", ScannedTable(CatalogTable("t", schema, schema, {"connector": "datagen"}), (0,)))
    assert len(came) == 8 and len(session.ids) > 1


# -- by a real Spark

JSON = '{"k": 1, "r": {"a": "x", "t": "2026-01-01 00:00:00"}, "b": "AAE="}\n{"k": 2, "r": null, "b": null}\n{"k": 3}\n'
COLUMNS = [("k", BIGINT), ("r", Row((("a", STRING), ("t", TIMESTAMP)))), ("b", BINARY)]
REGISTERED = RegisteredTables()


@pytest.fixture(scope="module")
def spark() -> SparkBackend:
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    return SparkBackend(Services(REGISTERED), Settings())


@pytest.mark.spark
@pytest.mark.parametrize("limit", [0, 32 << 20])
def test_what_spark_does_not_read_travels_as_arrow(
    spark: SparkBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Handed over with the plan, or fetched: no plan names a file, and while it runs there is none that an
    executor could look for.
    """
    (tmp_path / "t.json").write_text(JSON, encoding="utf-8")
    monkeypatch.setattr(spark_relations, "_HANDED_OVER_BYTES", limit)
    monkeypatch.setattr(served_rows, "SEGMENT_BYTES", 1)  # a row each
    plans: list[str] = []
    register = SparkRelations.register

    def seen(self: SparkRelations, name: str, relation: ScannedTable) -> None:
        register(self, name, relation)
        frame = self._session.table(name)
        plans.append(frame._jdf.queryExecution().toString())
        assert list(self._served._scratch.iterdir()) == [] and frame.inputFiles() == []

    monkeypatch.setattr(SparkRelations, "register", seen)
    rows = answer(spark, Scan(files("t", tmp_path / "t.json", COLUMNS, format="json"), (0, 1, 2)))
    assert rows == [(1, {"a": "x", "t": dt.datetime(2026, 1, 1)}, b"AAE="), (2, None, None), (3, None, None)]
    assert "file:" not in plans[0] and ("MapInArrow" in plans[0]) is (limit == 0)


@pytest.mark.spark
@pytest.mark.parametrize("limit", [0, 32 << 20])
def test_rows_of_every_nested_kind(spark: SparkBackend, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(spark_relations, "_HANDED_OVER_BYTES", limit)
    kinds = [
        ("at", Array(TIME), [[1], None, []]),
        (
            "rt",
            Row((("l", TIMESTAMP_LTZ), ("n", TIMESTAMP), ("m", YEAR_MONTH_INTERVAL))),
            [{"l": 1, "n": 2, "m": 14}, None, {"l": None}],
        ),
        ("mm", Map(STRING, Array(YEAR_MONTH_INTERVAL)), [[("k", [-1, None])], [], None]),
    ]
    schema = Schema(tuple(Field(name, kind) for name, kind, _ in kinds))
    table = pa.table(
        [
            pa.array(values, field.type)
            for (_, _, values), field in zip(kinds, schema.to_arrow(), strict=True)
        ],
        schema=schema.to_arrow(),
    )
    REGISTERED.register("nested", table)
    scan = Scan(
        CatalogTable("nested", schema, schema, {"connector": "registered", "name": "nested"}), (0, 1, 2)
    )
    for zone in ("UTC", "Europe/Berlin"):
        assert pa.Table.from_batches(spark.run(scan, time_zone=zone)).to_pydict() == table.to_pydict()


@pytest.mark.spark
def test_many_rows_are_taken_for_many(spark: SparkBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would broadcast what it takes for small."""
    monkeypatch.setattr(spark_relations, "_HANDED_OVER_BYTES", 0)
    estimates: list[int] = []
    frame = ServedRows.frame

    def estimated(self: ServedRows, session: Any, batches: Iterator[pa.RecordBatch], schema: Any) -> Any:
        made = frame(self, session, batches, schema)
        estimates.append(int(str(made._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())))
        return made

    monkeypatch.setattr(ServedRows, "frame", estimated)
    REGISTERED.register("many", pa.table({"n": pa.array(range(500_000), pa.int64())}))
    schema = Schema((Field("n", BIGINT),))
    scan = Scan(CatalogTable("many", schema, schema, {"connector": "registered", "name": "many"}), (0,))
    assert [row for (row,) in answer(spark, scan)] == list(range(500_000))
    assert estimates[0] > 3_900_000


@pytest.mark.parametrize(
    ("table", "path", "url"),
    [
        ("s3://bucket/dir", "bucket/dir/a b.csv", "s3a://bucket/dir/a b.csv"),
        ("gs://bucket/dir", "bucket/dir/a.csv", "gs://bucket/dir/a.csv"),
        ("hdfs://host:9000/dir", "/dir/a.csv", "hdfs://host:9000/dir/a.csv"),
        (
            "abfss://box@account.dfs.core.windows.net/dir",
            "box/dir/a.csv",
            "abfss://box@account.dfs.core.windows.net/dir/a.csv",
        ),
        ("s3://key:secret@bucket/dir", "bucket/dir/a.csv", None),
        ("s3://bucket/dir?endpoint_override=localhost:9000", "bucket/dir/a.csv", None),
        ("mock:///dir", "dir/a.csv", None),
    ],
)
def test_what_hadoop_calls_a_file_of_a_store(table: str, path: str, url: str | None) -> None:
    assert hadoop_url(table, path) == url


STORE = {
    "fs.s3a.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
    "fs.s3a.impl.disable.cache": "true",
    "fs.viewfs.overload.scheme.target.s3a.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
}
"""Has Hadoop look for s3a://bucket/dir on this machine."""


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["csv", "parquet", "partitions"])
def test_spark_reads_a_store_it_can_open(
    spark: SparkBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """And leaves one it cannot open to us: the plan has files of the store, or none."""
    there = tmp_path / "bucket" / "dir"
    there.mkdir(parents=True)
    if kind == "csv":
        (there / "a b.csv").write_text("k,s\n1,x\n2,\n", encoding="utf-8")
    elif kind == "parquet":
        pq.write_table(pa.table({"k": pa.array([1, 2], pa.int64()), "s": ["x", None]}), there / "a b.parquet")
    else:
        for k, value in ((1, "x"), (2, None)):
            (there / f"k={k}").mkdir()
            pq.write_table(pa.table({"s": pa.array([value], pa.string())}), there / f"k={k}" / "a b.parquet")
    store = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    monkeypatch.setattr(listing, "resolve", lambda path, options: (store, path.removeprefix("s3://")))
    table = files(
        "t", "s3://bucket/dir", [("k", BIGINT), ("s", STRING)], format="csv" if kind == "csv" else "parquet"
    )
    scan = Scan(replace(table, partitioned_by=("k",)) if kind == "partitions" else table, (0, 1))
    plans: list[str] = []
    register = SparkRelations.register

    def seen(self: SparkRelations, name: str, relation: ScannedTable) -> None:
        for key, value in settings.items():
            self._session.conf.set(key, value)
        register(self, name, relation)
        plans.append(self._session.table(name)._jdf.queryExecution().toString())

    monkeypatch.setattr(SparkRelations, "register", seen)
    settings: dict[str, str] = {}
    assert sorted(answer(spark, scan)) == [(1, "x"), (2, None)]
    settings.update(STORE, **{"fs.viewfs.mounttable.bucket.link./dir": there.as_uri()})
    assert sorted(answer(spark, scan)) == [(1, "x"), (2, None)]
    assert ["s3a:" in plan for plan in plans] == [False, True]
