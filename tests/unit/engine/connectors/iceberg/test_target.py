"""The Iceberg target: an epoch's rows are in the table once, whoever else writes. The library reads what is
there.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, DOUBLE, INT, STRING
from penstock.engine.api.epoch_target import EpochWriter, StagedForm
from penstock.engine.connectors.iceberg.target import EPOCH, IcebergTarget
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.unit.engine.connectors.delta.delta_files import rows, upserts
from tests.unit.engine.connectors.iceberg.iceberg_files import WRITER, declared, loaded, target, there


def fault(act: object, *args: object) -> PenstockError:
    with pytest.raises(PenstockError) as raised:
        act(*args)  # type: ignore[operator]
    return raised.value


def test_the_table_is_made_when_the_job_starts(tmp_path: Path) -> None:
    target(declared(tmp_path, {"k": BIGINT, "p": STRING}, partitioned_by=("p",)))
    made = loaded(tmp_path)
    assert made.schema().column_names == ["k", "p"]
    assert [field.name for field in made.spec().fields] == ["p"]
    assert there(tmp_path) == []


def test_an_epoch_is_appended_once(tmp_path: Path) -> None:
    first = target(declared(tmp_path))
    assert first.form is StagedForm.INSERTS
    assert first.last_committed(WRITER) == 0
    first.commit(WRITER, 3, rows(1, 2))
    first.commit(WRITER, 3, rows(1, 2))
    first.commit(WRITER, 2, rows(9))
    assert there(tmp_path) == [(1, "v1"), (2, "v2")]
    # the snapshot says which epoch it is, and the table keeps its settings
    made = loaded(tmp_path)
    assert made.current_snapshot().summary.additional_properties[EPOCH + WRITER.name] == "3"
    assert "commit.retry.num-retries" not in made.properties
    again = target(declared(tmp_path))
    assert again.last_committed(WRITER) == 3
    again.commit(WRITER, 4, rows(3))
    assert len(there(tmp_path)) == 3


def test_an_earlier_attempt_is_fenced_off(tmp_path: Path) -> None:
    zombie = target(declared(tmp_path))
    zombie.commit(WRITER, 1, rows(1))
    target(declared(tmp_path))
    assert fault(zombie.commit, WRITER, 2, rows(2)).code == "STA-3504"
    assert there(tmp_path) == [(1, "v1")]


def test_a_commit_that_began_before_the_later_attempt_fails(tmp_path: Path) -> None:
    zombie = target(declared(tmp_path))
    real, later = zombie._commit, []

    def slow(*args: object) -> None:
        # the zombie has read the table, and stops; another attempt starts
        if not later:
            later.append(target(declared(tmp_path)))
        real(*args)  # type: ignore[arg-type]

    zombie._commit = slow  # type: ignore[method-assign]
    assert fault(zombie.commit, WRITER, 1, rows(1)).code == "STA-3504"
    later[0].commit(WRITER, 1, rows(1))
    assert there(tmp_path) == [(1, "v1")]


@pytest.mark.parametrize("retries", ["0", "4"])
def test_of_two_that_commit_one_epoch_at_once_one_wins(tmp_path: Path, retries: str) -> None:
    """With the library's own retries, the negative control, both would win."""
    pair = [target(declared(tmp_path)), IcebergTarget(declared(tmp_path), OperatorMetrics())]
    pair[1]._attempts = pair[0]._attempts
    real, began = pair[0]._commit, []

    def overtaken(*args: object) -> None:
        if not began:
            began.append(1)
            pair[1].commit(WRITER, 1, rows(1))
            pair[0]._iceberg.metadata.properties["commit.retry.num-retries"] = retries
        real(*args)  # type: ignore[arg-type]

    pair[0]._commit = overtaken  # type: ignore[method-assign]
    pair[0].commit(WRITER, 1, rows(1))
    assert len(there(tmp_path)) == (1 if retries == "0" else 2)


def test_subtasks_and_jobs_append_side_by_side(tmp_path: Path) -> None:
    writers = [EpochWriter(f"job{number}", "s1", number) for number in range(3)]
    targets = [target(declared(tmp_path), writer) for writer in writers]

    def write(number: int) -> None:
        for epoch in range(1, 3):
            targets[number].commit(writers[number], epoch, rows(number * 10 + epoch))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [key for key, _ in there(tmp_path)] == [n * 10 + e for n in range(3) for e in range(1, 3)]


def test_upserts_replace_insert_and_delete(tmp_path: Path) -> None:
    one = target(declared(tmp_path, key=("k",)))
    assert one.form is StagedForm.UPSERTS
    one.commit(WRITER, 1, upserts(k1="a", k2="b", k3="c"))
    one.commit(WRITER, 2, upserts(k1="new", k2=None, k4="d", k9=None))
    one.commit(WRITER, 2, upserts(k1="twice"))
    assert there(tmp_path) == [(1, "new"), (3, "c"), (4, "d")]


def test_keys_of_several_columns_and_partitions(tmp_path: Path) -> None:
    columns = {"Key": INT, "P": STRING, "x": DOUBLE}
    one = target(declared(tmp_path, columns, key=("Key", "P"), partitioned_by=("P",)))
    schema = pa.schema([("gone", pa.bool_()), ("a", pa.int32()), ("b", pa.string()), ("c", pa.float64())])

    def batch(*changes: tuple[bool, int, str, float]) -> list[pa.RecordBatch]:
        return [
            pa.RecordBatch.from_pylist(
                [dict(zip(schema.names, change, strict=True)) for change in changes], schema=schema
            )
        ]

    one.commit(WRITER, 1, batch((False, 1, "ü/%", 1.0), (False, 1, "b", 2.0), (False, 2, "b", 3.0)))
    one.commit(WRITER, 2, batch((False, 1, "ü/%", 4.0), (True, 2, "b", 0.0)))
    assert there(tmp_path) == [(1, "b", 2.0), (1, "ü/%", 4.0)]


def test_a_column_that_another_added_is_null(tmp_path: Path) -> None:
    one = target(declared(tmp_path))
    one.commit(WRITER, 1, rows(1))
    with loaded(tmp_path).update_schema() as update:
        update.union_by_name(pa.schema([("z", pa.int32())]))
    one.commit(WRITER, 2, rows(3))
    assert there(tmp_path) == [(1, "v1", None), (3, "v3", None)]


def test_columns_that_differ_are_refused_or_added(tmp_path: Path) -> None:
    target(declared(tmp_path)).commit(WRITER, 1, rows(1))
    other = fault(target, declared(tmp_path, {"k": BIGINT, "v": INT}))
    assert (other.code, "declared INT, and is STRING" in other.message) == ("DAT-5306", True)
    wider = {"k": BIGINT, "v": STRING, "d": DOUBLE}
    assert fault(target, declared(tmp_path, wider)).code == "DAT-5306"
    assert fault(target, declared(tmp_path, partitioned_by=("v",))).code == "DAT-5307"
    evolving = declared(tmp_path, wider, options={"sink.schema-evolution": "additive"})
    for _ in range(2):
        one = target(evolving)
    one.commit(WRITER, 2, [pa.record_batch({"k": pa.array([2], pa.int64()), "v": ["b"], "d": [0.5]})])
    assert there(tmp_path) == [(1, "v1", None), (2, "b", 0.5)]
