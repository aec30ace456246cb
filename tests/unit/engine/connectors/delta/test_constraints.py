"""Writing to Delta tables of other tools: constraints hold, and what cannot be written is refused with a reason.

None of these errors is retriable: a job would restart for ever.
"""

from __future__ import annotations

import json
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, BINARY, DOUBLE, STRING, DataType, Decimal
from penstock.engine.api.epoch_target import DELETED
from penstock.engine.connectors.delta.source import DeltaSource
from tests.unit.engine.connectors.delta.delta_files import (
    WRITER,
    declared,
    deltalake,
    read_from,
    request,
    rows,
    target,
    there,
    upserts,
    with_options,
)
from tests.unit.engine.connectors.delta.foreign_tables import (
    LONG_AND_TEXT,
    add_version,
    added,
    delete_by_vector,
    foreign,
)

THREE = pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"]})
KEY = ("k",)
STREAM = {"scan.mode": "from-version", "scan.version": "0"}


def append(path: Path, *batches: pa.RecordBatch, **how: Any) -> None:
    """Write one more epoch."""
    table = declared(path, **how)
    one = target(table)
    one.commit(WRITER, one.last_committed(WRITER) + 1, batches)


def refusal(path: Path, *batches: pa.RecordBatch, **how: Any) -> PenstockError:
    with pytest.raises(PenstockError) as raised:
        append(path, *batches, **how)
    assert not raised.value.retriable
    return raised.value


def read(path: Path, columns: dict[str, DataType] | None = None, **options: str) -> list[tuple[Any, ...]]:
    source = DeltaSource(request(with_options(declared(path, columns), **options)))
    return sorted(read_from(source, *source.splits())[0])


def changes(key: int | None, value: str | None, *, gone: bool = False) -> pa.RecordBatch:
    """One row of UPSERTS."""
    return pa.record_batch(
        {DELETED: [gone], "k": pa.array([key], pa.int64()), "v": pa.array([value], pa.string())}
    )


@pytest.mark.parametrize(
    "feature",
    ["allowColumnDefaults", "rowTracking", "identityColumns", "icebergCompatV2", "readsMinds"],
)
def test_features_of_writers_that_the_library_has_not(tmp_path: Path, feature: str) -> None:
    path = foreign(tmp_path / "t", THREE, writer=[feature])
    for key in ((), KEY):
        error = refusal(path, *(upserts(k1="x") if key else rows(9)), key=key)
        assert (error.code, feature in error.message.partition("cannot write: ")[2]) == ("DAT-5305", True)
    # they are none of readers
    assert read(path) == [(1, 1, "a"), (1, 2, "b"), (1, 3, "c")]


@pytest.mark.parametrize(
    "how",
    [
        {"legacy": (1, 3), "delta_constraints_small": "k < 5"},
        {"writer": ["checkConstraints"], "delta_constraints_small": "k < 5"},
        {
            "legacy": (1, 2),
            "fields": [("k", "long", {"delta.invariants": '{"expression": {"expression": "k < 5"}}'})],
        },
    ],
)
def test_constraints_hold(tmp_path: Path, how: dict[str, Any]) -> None:
    how = {**how, "fields": [*how.get("fields", LONG_AND_TEXT[:1]), LONG_AND_TEXT[1]]}
    path = foreign(tmp_path / "t", THREE, **how)
    assert refusal(path, *rows(4, 5)).code == "DAT-5314"
    assert refusal(path, *upserts(k1="x", k7="y"), key=KEY).code == "DAT-5314"
    append(path, *rows(4))
    append(path, *upserts(k1="x"), key=KEY)
    assert there(path) == [(1, "x"), (2, "b"), (3, "c"), (4, "v4")]


def test_a_column_that_allows_no_null(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int64()), pa.field("v", pa.string(), False)])
    deltalake.write_deltalake(str(tmp_path), THREE.cast(schema))
    null = pa.record_batch({"k": [5], "v": pa.array([None], pa.string())})
    assert refusal(tmp_path, null).code == "DAT-5314"
    # the library would abort with an exception that no one catches
    assert refusal(tmp_path, changes(5, None), key=KEY).code == "DAT-5314"
    append(tmp_path, changes(2, None, gone=True), key=KEY)
    assert there(tmp_path) == [(1, "a"), (3, "c")]


@pytest.mark.parametrize("how", [{"legacy": (1, 4)}, {"writer": ["generatedColumns"]}])
def test_generated_columns(tmp_path: Path, how: dict[str, Any]) -> None:
    fields = [*LONG_AND_TEXT, ("twice", "long", {"delta.generationExpression": "k * 2"})]
    path = foreign(tmp_path / "t", THREE.append_column("twice", pa.array([2, 4, 6])), fields, **how)
    all_columns = {"k": BIGINT, "v": STRING, "twice": BIGINT}
    append(path, *rows(4))
    append(path, *upserts(k1="x", k5="y"), key=KEY)
    expected = [(1, "x", 2), (2, "b", 4), (3, "c", 6), (4, "v4", 8), (5, "y", 10)]
    assert there(path) == expected
    wrong = pa.record_batch({"k": [6], "v": ["z"], "twice": [13]})
    assert refusal(path, wrong, columns=all_columns).code == "DAT-5314"
    gone = pa.record_batch({DELETED: [False], "k": [1], "v": ["z"], "twice": [13]})
    assert refusal(path, gone, columns=all_columns, key=KEY).code == "DAT-5314"
    assert there(path) == expected


def test_a_generated_column_by_a_function_of_spark(tmp_path: Path) -> None:
    fields = [*LONG_AND_TEXT, ("first", "string", {"delta.generationExpression": "spark_only(v)"})]
    path = foreign(tmp_path / "t", None, fields, legacy=(1, 4))
    assert refusal(path, *rows(4)).code == "DAT-5305"


def test_deletion_vectors(tmp_path: Path) -> None:
    def table(name: str) -> Path:
        path = foreign(tmp_path / name, THREE, reader=["deletionVectors"], delta_enableDeletionVectors="true")
        delete_by_vector(path, 1)
        return path

    path = table("read")
    assert read(path) == [(1, 1, "a"), (1, 3, "c")]
    assert read(path, **{"scan.version": "0"}) == [(1, 1, "a"), (1, 2, "b"), (1, 3, "c")]
    append(path, *rows(9))
    assert there(path) == [(1, "a"), (3, "c"), (9, "v9")]
    # a deleted row of a file that is written anew does not come back
    path = table("merged")
    append(path, *upserts(k1="x", k2="again"), key=KEY)
    assert there(path) == [(1, "x"), (2, "again"), (3, "c")]
    # its file is whole again, and so are those of a table that only allows vectors
    assert read(path) == [(1, 1, "x"), (1, 2, "again"), (1, 3, "c")]


def test_a_feature_that_a_later_version_brings(tmp_path: Path) -> None:
    path = foreign(tmp_path / "t", THREE, reader=["timestampNtz"])
    newer = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["typeWidening"]}
    add_version(path, [{"protocol": {**newer, "writerFeatures": ["typeWidening"]}}, added(path)])
    with pytest.raises(PenstockError, match="cannot read: typeWidening") as raised:
        read(path, **{**STREAM, "scan.end-version": "1"})
    assert raised.value.code == "DAT-5305"


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_written_by_their_physical_names(tmp_path: Path, mode: str) -> None:
    fields = [
        (name, kind, {"delta.columnMapping.id": at, "delta.columnMapping.physicalName": f"c-{at}"})
        for at, (name, kind, _) in enumerate(LONG_AND_TEXT, 1)
    ]
    path = foreign(tmp_path / "t", None, fields, legacy=(2, 5), delta_columnMapping_mode=mode)
    append(path, *rows(1, 2))
    append(path, *upserts(k2="new"), key=KEY)
    assert there(path) == [(1, "v1"), (2, "new")]
    for file in path.rglob("*/*.parquet"):
        found = {field.name: field.metadata[b"PARQUET:field_id"] for field in pq.read_schema(file)}
        assert found == {"c-1": b"1", "c-2": b"2"}
    assert read(path) == [(1, 1, "v1"), (1, 2, "new")]


def test_an_empty_text_is_no_value_of_a_partition_that_needs_one(tmp_path: Path) -> None:
    empty = changes(1, "")
    error = refusal(tmp_path / "key", empty, key=("k", "v"), partitioned_by=("v",))
    assert (error.code, "WHERE v <> ''" in str(error.hint)) == ("DAT-5314", True)
    # elsewhere it is a text, or NULL as the protocol says
    append(tmp_path / "plain", empty, key=KEY)
    assert there(tmp_path / "plain") == [(1, "")]
    append(tmp_path / "nullable", *rows(1, value=""), partitioned_by=("v",))
    append(tmp_path / "nullable", pa.record_batch({"k": [2], "v": [""]}), partitioned_by=("v",))
    assert read(tmp_path / "nullable") == [(1, 1, "1"), (1, 2, None)]


def test_partitions_that_do_not_come_back(tmp_path: Path) -> None:
    columns: dict[str, DataType] = {"k": BIGINT, "p": BINARY}
    error = refusal(tmp_path / "b", columns=columns, partitioned_by=("p",))
    assert (error.code, "which is BYTES" in error.message) == ("DAT-5307", True)
    written = pa.table({"k": [1], "p": [b"\0\xff"]})
    deltalake.write_deltalake(str(tmp_path / "w"), written, partition_by=["p"])
    with pytest.raises(PenstockError, match="DAT-5305"):
        read(tmp_path / "w", columns)
    assert read(tmp_path / "w", {"k": BIGINT}) == [(1, 1)]
    floats = refusal(tmp_path / "f", columns={"k": DOUBLE}, key=KEY, partitioned_by=KEY)
    assert floats.code == "DAT-5307"
    decimals: dict[str, DataType] = {"k": BIGINT, "p": Decimal(10, 2)}
    batch = pa.record_batch({"k": [1], "p": pa.array([Number("-1.5")], pa.decimal128(10, 2))})
    assert refusal(tmp_path / "d", batch, columns=decimals, partitioned_by=("p",)).code == "DAT-5314"
    positive = pa.record_batch({"k": [1], "p": pa.array([Number("1.5")], pa.decimal128(10, 2))})
    append(tmp_path / "e", positive, columns=decimals, partitioned_by=("p",))
    assert read(tmp_path / "e", decimals) == [(1, 1, Number("1.50"))]


def test_the_log_of_a_mapped_partition_has_physical_names(tmp_path: Path) -> None:
    fields = [("k", "long", {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c-1"})]
    path = foreign(tmp_path / "t", None, fields, legacy=(2, 5), delta_columnMapping_mode="name")
    append(path, pa.record_batch({"k": [7]}), columns={"k": BIGINT})
    newest = sorted((path / "_delta_log").glob("*.json"))[-1].read_text().splitlines()
    (action,) = (json.loads(line)["add"] for line in newest if "add" in json.loads(line))
    assert json.loads(action["stats"])["minValues"] == {"c-1": 7}
