"""The Delta target: an epoch's rows are in the table once, whoever else writes. The library reads what is
there.
"""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, DOUBLE, INT, STRING
from penstock.engine.api.epoch_target import EpochWriter, StagedForm
from penstock.engine.api.operator import Recovered, Warned
from penstock.engine.connectors.delta.target import DeltaTarget
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.unit.engine.connectors.delta.delta_files import (
    WRITER,
    declared,
    deltalake,
    rows,
    target,
    there,
    upserts,
    versions,
)

OTHER = EpochWriter("job", "s1", 1)


def fault(act: object, *args: object) -> PenstockError:
    with pytest.raises(PenstockError) as raised:
        act(*args)  # type: ignore[operator]
    return raised.value


def test_the_table_is_made_when_the_job_starts(tmp_path: Path) -> None:
    table = declared(
        tmp_path / "t", {"k": BIGINT, "p": STRING}, partitioned_by=("p",), change__data__feed="true"
    )
    target(table)
    made = deltalake.DeltaTable(str(tmp_path / "t"))
    assert [field.name for field in made.schema().fields] == ["k", "p"]
    assert made.metadata().partition_columns == ["p"]
    assert made.metadata().configuration == {"delta.enableChangeDataFeed": "true"}


def test_an_epoch_is_appended_once(tmp_path: Path) -> None:
    first = target(declared(tmp_path))
    assert first.form is StagedForm.INSERTS
    assert first.last_committed(WRITER) == 0
    first.commit(WRITER, 3, rows(1, 2))
    first.commit(WRITER, 3, rows(1, 2))
    first.commit(WRITER, 2, rows(9))
    assert first.last_committed(WRITER) == 3
    assert there(tmp_path) == [(1, "v1"), (2, "v2")]
    # a new attempt knows it, too
    again = target(declared(tmp_path))
    assert again.last_committed(WRITER) == 3
    again.commit(WRITER, 4, rows(3))
    assert len(there(tmp_path)) == 3


def test_the_library_alone_would_write_an_epoch_twice(tmp_path: Path) -> None:
    """The negative control: without the question before it, the same number is accepted again."""
    one = target(declared(tmp_path))
    one.commit(WRITER, 1, rows(1))
    one._is_done = lambda writer, epoch: False  # type: ignore[method-assign]
    one.commit(WRITER, 1, rows(1))
    assert there(tmp_path) == [(1, "v1"), (1, "v1")]


def test_an_epoch_without_rows_is_known(tmp_path: Path) -> None:
    one = target(declared(tmp_path))
    one.commit(WRITER, 1, [])
    assert one.last_committed(WRITER) == 1
    assert there(tmp_path) == []


def test_an_earlier_attempt_is_fenced_off(tmp_path: Path) -> None:
    zombie = target(declared(tmp_path))
    zombie.commit(WRITER, 1, rows(1))
    target(declared(tmp_path))
    assert fault(zombie.commit, WRITER, 2, rows(2)).code == "STA-3504"
    assert there(tmp_path) == [(1, "v1")]


def test_a_commit_that_began_before_the_later_attempt_fails(tmp_path: Path) -> None:
    zombie = target(declared(tmp_path))
    real, later = zombie._write, []

    def slow(*args: object) -> None:
        # the zombie has read the table, and stops; another attempt starts
        later.append(target(declared(tmp_path)))
        real(*args)  # type: ignore[arg-type]

    zombie._write = slow  # type: ignore[method-assign]
    # its commit fails, and the next try finds the later attempt
    assert fault(zombie.commit, WRITER, 1, rows(1)).code == "STA-3504"
    assert zombie._metrics.counters["commit_conflicts"] == 1
    later[0].commit(WRITER, 1, rows(1))
    assert there(tmp_path) == [(1, "v1")]


@pytest.mark.parametrize("key", [(), ("k",)])
def test_of_two_that_commit_one_epoch_at_once_one_wins(tmp_path: Path, key: tuple[str, ...]) -> None:
    table = declared(tmp_path, key=key)
    pair = [DeltaTarget(table, OperatorMetrics()) for _ in range(2)]
    pair[0].fence([WRITER])
    pair[1]._attempts = pair[0]._attempts
    ready = threading.Barrier(2, timeout=60)
    for one in pair:
        real = one._merge if key else one._write

        def together(*args: object, real: object = real) -> None:
            ready.wait()
            real(*args)  # type: ignore[operator]

        one._lock = threading.RLock()
        if key:
            one._merge = together  # type: ignore[method-assign]
        else:
            one._write = together  # type: ignore[method-assign]
    codes: list[str] = []

    def commit(one: DeltaTarget) -> None:
        try:
            one.commit(WRITER, 1, upserts(k1="a") if key else rows(1))
            codes.append("")
        except PenstockError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=commit, args=(one,)) for one in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # it is tried again, and finds the epoch there
    assert codes == ["", ""]
    assert len(there(tmp_path)) == 1


def test_subtasks_and_jobs_append_side_by_side(tmp_path: Path) -> None:
    writers = [EpochWriter(f"job{number}", "s1", number) for number in range(4)]
    targets = [target(declared(tmp_path), writer) for writer in writers]

    def write(number: int) -> None:
        for epoch in range(1, 4):
            targets[number].commit(writers[number], epoch, rows(number * 10 + epoch))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [key for key, _ in there(tmp_path)] == [n * 10 + e for n in range(4) for e in range(1, 4)]


def test_upserts_replace_insert_and_delete(tmp_path: Path) -> None:
    one = target(declared(tmp_path, key=("k",)))
    assert one.form is StagedForm.UPSERTS
    one.commit(WRITER, 1, upserts(k1="a", k2="b", k3="c"))
    one.commit(WRITER, 2, upserts(k1="new", k2=None, k4="d", k9=None))
    one.commit(WRITER, 2, upserts(k1="twice"))
    assert there(tmp_path) == [(1, "new"), (3, "c"), (4, "d")]


def test_a_merge_is_tried_again_when_another_writer_gets_ahead(tmp_path: Path) -> None:
    one = target(declared(tmp_path, key=("k",)))
    one.commit(WRITER, 1, upserts(k1="a"))
    real, tries = one._merge, []

    def overtaken(*args: object) -> None:
        tries.append(1)
        if len(tries) == 1:
            deltalake.DeltaTable(str(tmp_path)).delete("k = 1")
        real(*args)  # type: ignore[arg-type]

    one._merge = overtaken  # type: ignore[method-assign]
    one.commit(WRITER, 2, upserts(k1="b"))
    assert len(tries) == 2
    assert there(tmp_path) == [(1, "b")]


def test_names_of_any_case_and_partitions(tmp_path: Path) -> None:
    columns = {"Key One": INT, "P": STRING, "select": DOUBLE}
    one = target(declared(tmp_path, columns, key=("Key One", "P"), partitioned_by=("P",)))

    def batch(value: float) -> list[pa.RecordBatch]:
        schema = pa.schema(
            [("__deleted", pa.bool_()), ("a", pa.int32()), ("b", pa.string()), ("c", pa.float64())]
        )
        return [
            pa.RecordBatch.from_pylist([{"__deleted": False, "a": 1, "b": "ü/%", "c": value}], schema=schema)
        ]

    one.commit(WRITER, 1, batch(1.0))
    one.commit(WRITER, 2, batch(2.0))
    assert there(tmp_path) == [(1, "ü/%", 2.0)]


def test_a_column_that_another_added_is_null(tmp_path: Path) -> None:
    one = target(declared(tmp_path))
    one.commit(WRITER, 1, rows(1))
    added = pa.table({"k": pa.array([2], pa.int64()), "v": ["w"], "z": [Decimal("1.5")]})
    deltalake.write_deltalake(str(tmp_path), added, mode="append", schema_mode="merge")
    one.commit(WRITER, 2, rows(3))
    assert there(tmp_path) == [(1, "v1", None), (2, "w", Decimal("1.5")), (3, "v3", None)]


def test_columns_that_differ_are_refused(tmp_path: Path) -> None:
    target(declared(tmp_path / "t"))
    other = fault(target, declared(tmp_path / "t", {"k": BIGINT, "v": INT}))
    assert (other.code, "declared INT, and is STRING" in other.message) == ("DAT-5306", True)
    more = fault(target, declared(tmp_path / "t", {"k": BIGINT, "v": STRING, "vv": INT}))
    assert (more.code, "sink.schema-evolution" in str(more.hint)) == ("DAT-5306", True)
    parts = fault(target, declared(tmp_path / "t", partitioned_by=("v",)))
    assert parts.code == "DAT-5307"
    needed = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.string())])
    deltalake.DeltaTable.create(str(tmp_path / "n"), needed)
    assert fault(target, declared(tmp_path / "n", {"v": STRING})).code == "DAT-5306"


def test_a_declared_column_is_added(tmp_path: Path) -> None:
    target(declared(tmp_path)).commit(WRITER, 1, rows(1))
    wider = declared(tmp_path, {"k": BIGINT, "v": STRING, "d": DOUBLE}, sink_schema__evolution="additive")
    for _ in range(2):
        one = target(wider)
    one.commit(WRITER, 2, [pa.record_batch({"k": pa.array([2], pa.int64()), "v": ["b"], "d": [0.5]})])
    assert there(tmp_path) == [(1, "v1", None), (2, "b", 0.5)]


def test_small_files_are_merged(tmp_path: Path) -> None:
    table = declared(tmp_path, auto__compaction="true", compaction_commits="4")
    one = target(table)
    for epoch in range(1, 9):
        one.commit(WRITER, epoch, rows(epoch))
    assert len(deltalake.DeltaTable(str(tmp_path)).file_uris()) == 1
    assert [key for key, _ in there(tmp_path)] == list(range(1, 9))
    # two merges, eight epochs, the attempt
    assert versions(tmp_path) == 11


def test_a_path_that_is_no_table_and_a_store_that_is_down(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert fault(target, declared(tmp_path / "file")).code in ("DAT-5303", "DAT-5304")
    secret = {
        "connector": "delta",
        "table-path": "s3://bucket/t",
        "storage.aws_access_key_id": "AKIAHUSHHUSH",
        "storage.aws_secret_access_key": "hush-hush",
        "storage.aws_endpoint": "http://127.0.0.1:1",
        "storage.aws_allow_http": "true",
        "storage.max_retries": "0",
        "storage.aws_region": "us-east-1",
    }
    table = declared(tmp_path)
    table.options.clear()
    table.options.update(secret)
    down = fault(target, table)
    assert (down.code, down.retriable) == ("DAT-5303", True)
    assert "hush" not in f"{down} {down.detail}".lower()


def test_a_merge_of_small_files_that_fails_is_told_and_the_job_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = declared(tmp_path, auto__compaction="true", compaction_commits="1")
    events: list[object] = []
    one = DeltaTarget(table, OperatorMetrics(), events.append)
    one.fence([WRITER])
    real = deltalake.table.TableOptimizer.compact

    def fails(*words: object, **more: object) -> None:
        raise deltalake.exceptions.DeltaError("Generic LocalFileSystem error: no space left")

    monkeypatch.setattr(deltalake.table.TableOptimizer, "compact", fails)
    one.commit(WRITER, 1, rows(1))
    one.commit(WRITER, 2, rows(2))
    assert one._metrics.counters["compactions_failed"] == 2
    assert isinstance(events[0], Warned) and (events[0].code, len(events)) == ("DAT-5303", 2)
    assert "small files were not merged: Generic LocalFileSystem error" in events[0].sentence
    monkeypatch.setattr(deltalake.table.TableOptimizer, "compact", real)
    one.commit(WRITER, 3, rows(3))
    assert isinstance(events[2], Recovered) and one._metrics.counters["compactions"] == 1
    assert there(tmp_path) == [(1, "v1"), (2, "v2"), (3, "v3")]


@pytest.mark.parametrize("key", [(), ("k",)])
def test_a_log_that_is_not_checkpointed_behind_a_commit_is_told_and_the_job_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: tuple[str, ...]
) -> None:
    """The library raises what fails behind a commit, as if the commit had failed."""
    schema = pa.schema([pa.field("k", pa.int64(), not key), ("v", pa.string())])
    deltalake.DeltaTable.create(str(tmp_path), schema, configuration={"delta.checkpointInterval": "1"})
    # a directory is where the newest checkpoint is noted
    (tmp_path / "_delta_log" / "_last_checkpoint" / "x").mkdir(parents=True)
    events: list[object] = []
    one = DeltaTarget(declared(tmp_path, key=key), OperatorMetrics(), events.append)
    one.fence([WRITER])
    one.commit(WRITER, 1, upserts(k1="v1") if key else rows(1))
    assert one.last_committed(WRITER) == 1 and there(tmp_path) == [(1, "v1")]
    assert one._metrics.counters["log_maintenance_failed"] == len(events) == 2

    def before(*words: object) -> None:
        raise deltalake.exceptions.DeltaError("Generic error: no rows were written")

    # the control: an error of the commit itself is one
    monkeypatch.setattr(one, "_merge" if key else "_write", before)
    assert fault(one.commit, WRITER, 2, upserts(k2="v2") if key else rows(2)).code in ("DAT-5303", "DAT-5304")
    assert there(tmp_path) == [(1, "v1")]
