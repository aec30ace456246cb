"""The exactly-once file sink: nothing visible before a commit, everything once after it, whatever crashes
in between.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, BINARY, DOUBLE, INT, STRING
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyGroups, RestoredFrom, Services
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.filesystem.commit_log import COMMITS, CommitLog
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.operators.sink import SinkOperator
from tests.harness.operator_specs import sink_spec
from tests.harness.reading import Taken, as_rows, read, table_of
from tests.unit.engine.formats.test_formats import COLUMNS, sample

FORMATS = ["csv", "json", "parquet", "arrow"]


def sink(
    table: CatalogTable,
    *,
    subtask: int = 0,
    parallelism: int = 1,
    job: str = "job1",
    owner: str = "",
    restored: RestoredFrom | None = None,
    operator_id: str = "abcdef0123",
) -> SinkOperator:
    """Return the operator of a job whose owner is its name, unless that is given."""
    operator = SinkOperator(sink_spec(operator_id, "sink", table.schema, table, None, True), JobOptions())
    groups, whose = KeyGroups(0, 128, 128), {"owner": owner or job, "restored": restored}
    operator.open(
        Context(
            operator_id,
            "sink",
            subtask,
            parallelism,
            groups,
            ManualClock(),
            OperatorMetrics(),
            Services(),
            job,
            **whose,
        )
    )
    return operator


def ids(directory: Path, kind: str = "parquet", **options: str) -> CatalogTable:
    return table_of(
        {"id": INT}, {"connector": "filesystem", "path": str(directory), "format": kind, **options}
    )


def batch(*values: int) -> Batch:
    return Batch(pa.record_batch({"id": pa.array(values, pa.int32())}))


def visible(directory: Path) -> list[int]:
    return sorted(row["id"] for row in read(ids(directory)))


def staged(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*.inprogress"))


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_written_is_read_back(tmp_path: Path, kind: str) -> None:
    table = table_of(COLUMNS, {"connector": "filesystem", "path": str(tmp_path / "out"), "format": kind})
    operator, data = sink(table), sample(40)
    for rows in data.to_batches(max_chunksize=7):
        operator.on_batch(Batch(rows), 0, Taken())
    operator.before_barrier(1, Taken())
    assert read(table) == []
    operator.on_checkpoint_complete(1)
    operator.close()
    assert read(table) == as_rows(data)
    assert not (tmp_path / "out" / ".penstock.staging").exists()


@pytest.mark.parametrize(("codec", "suffix"), [("gzip", ".csv.gz"), ("zstd", ".csv.zst")])
def test_compressed_text(tmp_path: Path, codec: str, suffix: str) -> None:
    operator = sink(ids(tmp_path, "csv", compression=codec))
    operator.on_batch(batch(1, 2), 0, Taken())
    operator.before_barrier(1, Taken())
    operator.on_checkpoint_complete(1)
    assert [path.name.endswith(suffix) for path in tmp_path.glob("part-*")] == [True]
    assert [row["id"] for row in read(ids(tmp_path, "csv"))] == [1, 2]


@pytest.mark.parametrize(
    ("kind", "reader"),
    [
        ("csv", "read_csv(?, allow_quoted_nulls=false)"),
        ("json", "read_json(?)"),
        ("parquet", "read_parquet(?)"),
    ],
)
def test_duckdb_reads_the_same(tmp_path: Path, kind: str, reader: str) -> None:
    columns = {"id": INT, "name": STRING, "x": DOUBLE}
    operator = sink(table_of(columns, {"connector": "filesystem", "path": str(tmp_path), "format": kind}))
    rows = sample(30).select(list(columns))
    operator.on_batch(Batch(rows.to_batches()[0]), 0, Taken())
    operator.before_barrier(1, Taken())
    operator.on_checkpoint_complete(1)
    operator.on_batch(Batch(rows.slice(0, 1).to_batches()[0]), 0, Taken())
    operator.before_barrier(2, Taken())
    suffix = {"json": "jsonl"}.get(kind, kind)
    got = (
        duckdb.connect()
        .sql(f"select id, name, x from {reader} order by id", params=[f"{tmp_path}/**/*.{suffix}"])
        .fetchall()
    )
    assert got == [tuple(row.values()) for row in as_rows(rows)]


def test_commit_is_idempotent_and_follows_the_checkpoint(tmp_path: Path) -> None:
    operator = sink(ids(tmp_path))
    operator.on_batch(batch(1), 0, Taken())
    operator.before_barrier(1, Taken())
    operator.on_batch(batch(2), 0, Taken())
    operator.before_barrier(2, Taken())
    items = operator.snapshot_items()
    assert [item["checkpoint"] for item in items] == [1, 2]
    operator.on_checkpoint_complete(1)
    assert visible(tmp_path) == [1]
    operator.on_checkpoint_complete(2)
    operator.on_checkpoint_complete(2)
    assert visible(tmp_path) == [1, 2]
    for item in items:
        operator._writer.commit(item["items"])
    assert visible(tmp_path) == [1, 2]
    assert operator.snapshot_items() == []
    assert len({path.name for path in tmp_path.glob("part-*.parquet")}) == 2


def test_crash_between_prepare_and_commit(tmp_path: Path) -> None:
    first = sink(ids(tmp_path))
    first.on_batch(batch(1, 2), 0, Taken())
    first.before_barrier(1, Taken())
    items = first.snapshot_items()
    first.on_batch(batch(3), 0, Taken())
    first.before_barrier(2, Taken())
    first.on_batch(batch(4), 0, Taken())
    assert visible(tmp_path) == [] and len(staged(tmp_path)) == 3
    for _ in range(2):
        again = sink(ids(tmp_path))
        again.restore_items(items)
        assert visible(tmp_path) == [1, 2] and staged(tmp_path) == []
    again.on_batch(batch(3), 0, Taken())
    again.before_barrier(2, Taken())
    again.on_checkpoint_complete(2)
    assert visible(tmp_path) == [1, 2, 3]


def test_crash_before_the_first_checkpoint(tmp_path: Path) -> None:
    first = sink(ids(tmp_path))
    first.on_batch(batch(1), 0, Taken())
    first.before_barrier(1, Taken())
    other_job = sink(ids(tmp_path), job="job2")
    other_job.on_batch(batch(7), 0, Taken())
    again = sink(ids(tmp_path))
    again.on_batch(batch(1), 0, Taken())
    assert len(staged(tmp_path)) == 2
    again.before_barrier(1, Taken())
    again.on_checkpoint_complete(1)
    other_job.before_barrier(1, Taken())
    other_job.on_checkpoint_complete(1)
    assert visible(tmp_path) == [1, 7]


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_rescale_with_pending_commits(tmp_path: Path, parallelism: int) -> None:
    items: list[dict[str, Any]] = []
    for subtask in range(3):
        operator = sink(ids(tmp_path), subtask=subtask, parallelism=3)
        operator.on_batch(batch(subtask), 0, Taken())
        operator.before_barrier(1, Taken())
        items += operator.snapshot_items()
        operator.on_batch(batch(100 + subtask), 0, Taken())
        operator.before_barrier(2, Taken())
    assert len(staged(tmp_path)) == 6
    operators = [sink(ids(tmp_path), subtask=s, parallelism=parallelism) for s in range(parallelism)]
    for operator in operators:
        operator.restore_items(items)
    assert visible(tmp_path) == [0, 1, 2] and staged(tmp_path) == []


def test_jobs_of_one_name_write_side_by_side(tmp_path: Path) -> None:
    """One crashes and is restored while the other has rows staged at every stage of their way."""
    first, other = (sink(ids(tmp_path), owner=owner) for owner in ("a", "b"))
    for checkpoint, value in ((1, 10), (2, 20)):
        for operator in (first, other):
            operator.on_batch(batch(value), 0, Taken())
            operator.before_barrier(checkpoint, Taken())
    items = first.snapshot_items()
    other.on_batch(batch(30), 0, Taken())
    again = sink(ids(tmp_path), owner="a")
    again.restore_items(items)
    other.on_checkpoint_complete(2)
    other.before_barrier(3, Taken())
    other.on_checkpoint_complete(3)
    assert visible(tmp_path) == [10, 10, 20, 20, 30] and staged(tmp_path) == []


def test_a_copy_of_a_job_publishes_what_was_pending_once_and_deletes_nothing(tmp_path: Path) -> None:
    job = sink(ids(tmp_path), owner="a")
    job.on_batch(batch(1), 0, Taken())
    job.before_barrier(1, Taken())
    items = job.snapshot_items()
    job.on_batch(batch(2), 0, Taken())
    job.before_barrier(2, Taken())
    copy = sink(ids(tmp_path), owner="b", restored=RestoredFrom("a", 1))
    copy.restore_items(items)
    assert visible(tmp_path) == [1] and len(staged(tmp_path)) == 1
    copy.on_batch(batch(7), 0, Taken())
    copy.before_barrier(2, Taken())
    job.on_checkpoint_complete(2)
    copy.on_checkpoint_complete(2)
    copy.close()
    job.close()
    assert visible(tmp_path) == [1, 2, 7] and not (tmp_path / ".penstock.staging").exists()


def test_what_a_checkpoint_of_an_early_version_holds_is_published(tmp_path: Path) -> None:
    """It names no folder: there was one for each job name and operator, cut short."""
    job = sink(ids(tmp_path))
    job.on_batch(batch(1), 0, Taken())
    job.before_barrier(1, Taken())
    ((item,),) = (entry["items"] for entry in job.snapshot_items())
    early = tmp_path / ".penstock.staging" / "insertintoatablewithalon-abcdef01" / item["staged"]
    early.parent.mkdir()
    staged(tmp_path)[0].rename(early)
    (early.parent / "0-1-77.inprogress").write_text("of another job, perhaps")
    again = sink(
        ids(tmp_path),
        job="insert-into-a-table-with-a-long-name-1",
        owner="b",
        restored=RestoredFrom("insert-into-a-table-with-a-long-name-1", 1),
    )
    again.restore_items(
        [
            {
                "checkpoint": 1,
                "items": [{"staged": item["staged"], "final": "part-early-000001-0000.parquet", "rows": 1}],
            }
        ]
    )
    assert visible(tmp_path) == [1] and len(staged(tmp_path)) == 1


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_changed_query_publishes_and_logs_what_its_sink_had_prepared(
    tmp_path: Path, parallelism: int
) -> None:
    """The operator has another id now; what was in progress under the old one is cleared away."""
    old = [sink(ids(tmp_path), subtask=subtask, parallelism=2) for subtask in (0, 1)]
    for number, operator in enumerate(old):
        operator.on_batch(batch(number), 0, Taken())
        operator.before_barrier(1, Taken())
    items = [item for operator in old for item in operator.snapshot_items()]
    old[0].on_checkpoint_complete(1)
    for operator in old:
        operator.on_batch(batch(8), 0, Taken())
    changed = RestoredFrom("job1", 1)
    new = [
        sink(ids(tmp_path), subtask=i, parallelism=parallelism, restored=changed, operator_id="0123abcdef")
        for i in range(parallelism)
    ]
    for operator in new:
        operator.succeeds("abcdef0123")
        operator.restore_items(items)
    assert visible(tmp_path) == [0, 1] and staged(tmp_path) == []
    new[0].on_batch(batch(2), 0, Taken())
    for step in ("before_barrier", "on_checkpoint_complete"):
        for operator in new:
            getattr(operator, step)(2, *([Taken()] if step == "before_barrier" else []))
    for operator in new:
        operator.close()
    log = CommitLog(tmp_path)
    assert visible(tmp_path) == [0, 1, 2]
    assert sorted(file.path for number in log.numbers() for file in log.read(number).files) == sorted(
        path.name for path in tmp_path.glob("part-*")
    )
    assert not (tmp_path / COMMITS / "under-way").exists()
    for operator in old:
        operator.close()
    assert not (tmp_path / ".penstock.staging").exists()


@pytest.mark.parametrize("content", ["same length", "other"])
def test_a_file_of_the_final_name_is_ours_only_if_it_holds_what_was_prepared(
    tmp_path: Path, content: str
) -> None:
    operator = sink(ids(tmp_path))
    operator.on_batch(batch(1), 0, Taken())
    operator.before_barrier(1, Taken())
    items = operator.snapshot_items()
    ((item,),) = (entry["items"] for entry in items)
    whole = staged(tmp_path)[0].read_bytes()
    final = tmp_path / item["final"]
    final.write_bytes(bytes(len(whole)) if content == "same length" else b"other")
    with pytest.raises(PenstockError, match="DAT-4605"):
        operator.on_checkpoint_complete(1)
    staged(tmp_path)[0].unlink()
    with pytest.raises(PenstockError, match=r"DAT-4604.* is another file"):
        sink(ids(tmp_path)).restore_items(items)
    final.write_bytes(whole)
    sink(ids(tmp_path)).restore_items(items)
    assert visible(tmp_path) == [1]


@pytest.mark.parametrize(("parallelism", "further"), [(1, 1), (2, 1), (2, 3)])
@pytest.mark.parametrize("owner", ["job1", "copy"])
def test_a_file_that_was_published_may_be_moved_away_at_once(
    tmp_path: Path, parallelism: int, further: int, owner: str
) -> None:
    """The job, or a copy of it, goes on from the checkpoint behind which the file was published, twice;
    the log names each file once.
    """
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "parquet"}
    table = table_of({"k": STRING, "id": INT}, options, partitioned_by=["k"])
    first = [sink(table, subtask=subtask, parallelism=parallelism) for subtask in range(parallelism)]
    for number, operator in enumerate(first):
        rows = pa.record_batch({"k": ["a"], "id": pa.array([number], pa.int32())})
        operator.on_batch(Batch(rows), 0, Taken())
        operator.before_barrier(1, Taken())
    items = [item for operator in first for item in operator.snapshot_items()]
    first[0].on_checkpoint_complete(1)  # the others do when they are restored
    moved = {path.name for path in tmp_path.glob("k=a/part-*")}
    shutil.move(tmp_path / "k=a", tmp_path / "_taken")
    for _ in range(2):
        again = [
            sink(table, subtask=i, parallelism=further, owner=owner, restored=RestoredFrom("job1", 1))
            for i in range(further)
        ]
        for operator in again:
            operator.restore_items(items)
        assert len(moved) == 1 and {path.name for path in tmp_path.glob("k=a/part-*")}.isdisjoint(moved)
    for operator in again:
        operator.before_barrier(2, Taken())
    for operator in again:
        operator.on_checkpoint_complete(2)
    log = CommitLog(tmp_path)
    named = [file.path for number in log.numbers() for file in log.read(number).files]
    assert sorted(named) == sorted(item["final"] for entry in items for item in entry["items"])
    for item in items:
        item["items"][0]["crc32"] ^= 1
    with pytest.raises(PenstockError, match=r"DAT-460[45]"):
        for i in range(further):
            sink(
                table, subtask=i, parallelism=further, owner=owner, restored=RestoredFrom("job1", 1)
            ).restore_items(items)


def test_a_subtask_that_ends_does_not_take_the_folder_from_one_that_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is gone between the moment it is made and the first file in it."""
    ends, begins = (sink(ids(tmp_path), subtask=subtask, parallelism=2) for subtask in (0, 1))
    make, taken = Path.mkdir, []

    def tidied(path: Path, *words: Any, **more: Any) -> None:
        make(path, *words, **more)
        if path.name not in taken:
            taken.append(path.name)
            ends.close()
            assert not path.exists()

    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", tidied)
        begins.on_batch(batch(1), 0, Taken())
    begins.before_barrier(1, Taken())
    begins.on_checkpoint_complete(1)
    assert len(set(taken)) == 2 and visible(tmp_path) == [1]


def test_close_throws_away_what_was_never_prepared(tmp_path: Path) -> None:
    operator = sink(ids(tmp_path, **{"sink.rolling.rows": "1"}))
    operator.on_batch(batch(1), 0, Taken())
    operator.before_barrier(1, Taken())
    operator.on_batch(batch(2), 0, Taken())
    operator.close()
    assert len(staged(tmp_path)) == 1
    operator._writer.abort(operator.snapshot_items()[0]["items"])
    assert staged(tmp_path) == [] and visible(tmp_path) == []


def test_rolling(tmp_path: Path) -> None:
    operator = sink(ids(tmp_path, **{"sink.rolling.rows": "2"}))
    for value in range(5):
        operator.on_batch(batch(value), 0, Taken())
    operator.before_barrier(1, Taken())
    operator.on_checkpoint_complete(1)
    assert len(list(tmp_path.glob("part-*"))) == 3
    assert visible(tmp_path) == [0, 1, 2, 3, 4]


def test_partitioned(tmp_path: Path) -> None:
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "parquet"}
    table = table_of({"k": STRING, "id": INT}, options, partitioned_by=["k"])
    operator = sink(table)
    rows = pa.record_batch({"k": ["a/b", None, "a/b", ""], "id": pa.array([1, 2, 3, 4], pa.int32())})
    operator.on_batch(Batch(rows), 0, Taken())
    operator.before_barrier(1, Taken())
    operator.on_checkpoint_complete(1)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("k=")) == [
        "k=",
        "k=__HIVE_DEFAULT_PARTITION__",
        "k=a%2Fb",
    ]
    assert sorted(read(table), key=lambda r: r["id"]) == [
        {"k": k, "id": i} for i, k in ((1, "a/b"), (2, None), (3, "a/b"), (4, ""))
    ]


def test_weights(tmp_path: Path) -> None:
    operator = sink(ids(tmp_path))
    operator.on_batch(Batch(batch(1, 2).rows, np.array([1, 2])), 0, Taken())
    with pytest.raises(PenstockError, match="INT-9005"):
        operator.on_batch(Batch(batch(1).rows, np.array([-1])), 0, Taken())
    operator.before_barrier(1, Taken())
    operator.on_checkpoint_complete(1)
    assert visible(tmp_path) == [1, 2, 2]


def test_a_staged_file_deleted_by_hand(tmp_path: Path) -> None:
    operator = sink(ids(tmp_path))
    operator.on_batch(batch(1), 0, Taken())
    operator.before_barrier(1, Taken())
    staged(tmp_path)[0].unlink()
    with pytest.raises(PenstockError, match="DAT-4604"):
        operator.on_checkpoint_complete(1)


@pytest.mark.parametrize(
    "item",
    [
        {"staged": "../../x", "final": "y"},
        {"staged": "x", "final": "../y"},
        {"staged": "x", "final": "/tmp/y"},
    ],
)
def test_names_from_a_forged_checkpoint_lead_nowhere(tmp_path: Path, item: dict[str, str]) -> None:
    with pytest.raises(PenstockError, match="STA-3502"):
        sink(ids(tmp_path)).restore_items([{"checkpoint": 1, "items": [item]}])


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(PenstockError, match="DAT-4601"):
        sink(ids(tmp_path / "file"))
    with pytest.raises(PenstockError, match="DAT-4603"):
        sink(ids(tmp_path / "file" / "below"))
    with pytest.raises(PenstockError, match="SQL-1512"):
        sink(table_of({"id": BIGINT}, {"connector": "datagen"}))


def test_a_name_that_is_committed_again_stands_for_no_new_file(tmp_path: Path) -> None:
    """After a lost reply another subtask commits again what this one wrote, later than this one begins to
    write anew.
    """
    first = sink(ids(tmp_path))
    first.on_batch(batch(1, 2), 0, Taken())
    first.before_barrier(1, Taken())
    items = first.snapshot_items()
    first.on_checkpoint_complete(1)
    again, other = (sink(ids(tmp_path), subtask=i, parallelism=2) for i in (0, 1))
    none = {"checkpoint": 1, "items": []}
    again.restore_items([none, *items])
    again.on_batch(batch(3), 0, Taken())
    other.restore_items([none, *items])
    again.before_barrier(2, Taken())
    again.on_checkpoint_complete(2)
    assert visible(tmp_path) == [1, 2, 3]


@pytest.mark.parametrize("kind", ["csv", "json", "debezium-json"])
def test_bytes_that_are_no_text(tmp_path: Path, kind: str) -> None:
    table = table_of(
        {"id": INT, "b": BINARY}, {"connector": "filesystem", "path": str(tmp_path / "out"), "format": kind}
    )
    rows = [(1, b"abc"), (2, b"\xff\x00")]
    given = [
        Batch(pa.record_batch({"id": pa.array([i], pa.int32()), "b": pa.array([b], pa.binary())}))
        for i, b in rows
    ]
    operator = sink(table)
    operator.on_batch(given[0], 0, Taken())
    with pytest.raises(PenstockError) as caught:
        operator.on_batch(given[1], 0, Taken())
    assert (
        caught.value.code == "DAT-4607"
        and "column b" in caught.value.message
        and "hex(b)" in str(caught.value.hint)
    )
    assert not caught.value.retriable
