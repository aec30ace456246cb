"""Each feature of Delta's protocol: a table that has it is read and appended to right, or refused by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, STRING, TIMESTAMP, DataType
from penstock.engine.connectors.delta.source import DeltaSource
from tests.unit.engine.connectors.delta.delta_files import (
    WRITER,
    declared,
    read_from,
    request,
    rows,
    target,
    with_options,
)
from tests.unit.engine.connectors.delta.foreign_tables import add_version, added, foreign

THREE = pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"]})
STREAM = {"scan.mode": "from-version", "scan.version": "0", "scan.end-version": "0"}


def read(path: Path, columns: dict[str, DataType] | None = None, **options: str) -> list[Any]:
    source = DeltaSource(request(with_options(declared(path, columns), **options)))
    return sorted(row[1:] for row in read_from(source, *source.splits())[0])


def append(path: Path, *batches: pa.RecordBatch, **how: Any) -> None:
    one = target(declared(path, **how))
    one.commit(WRITER, one.last_committed(WRITER) + 1, batches)


def code(act: Any, *args: Any, **how: Any) -> tuple[str, str]:
    """Return the code of a refusal, and its sentence in small letters without signs."""
    try:
        act(*args, **how)
    except PenstockError as error:
        assert not error.retriable
        return error.code, "".join(filter(str.isalnum, error.message.rpartition(":")[2])).lower()
    return "", ""


@pytest.mark.parametrize(
    ("feature", "writes"),
    [
        ("deletionVectors", True),
        ("columnMapping", True),
        ("timestampNtz", True),
        ("v2Checkpoint", True),
        ("vacuumProtocolCheck", False),
        ("typeWidening", None),
        ("typeWidening-preview", None),
        ("variantType", None),
        ("variantShredding-preview", None),
        ("geospatial", None),
        ("catalogManaged", None),
    ],
)
def test_features_of_readers(tmp_path: Path, feature: str, writes: bool | None) -> None:
    path = foreign(tmp_path / "t", THREE, reader=[feature])
    small = feature.replace("-", "").lower()
    for options in ({}, STREAM):
        expected = ("", "") if writes is not None else ("DAT-5305", small)
        assert code(read, path, **options) == expected
    if writes:
        append(path, *rows(9))
        assert read(path) == [(1, "a"), (2, "b"), (3, "c"), (9, "v9")]
    # no column of the table is a variant, so that rows may be added
    elif feature != "variantType":
        assert code(append, path, *rows(9)) == ("DAT-5305", small)


@pytest.mark.parametrize(
    ("feature", "writes"),
    [
        ("appendOnly", True),
        ("invariants", True),
        ("checkConstraints", True),
        ("changeDataFeed", True),
        ("generatedColumns", True),
        ("domainMetadata", False),
        ("clustering", False),
        ("icebergCompatV1", False),
        ("materializePartitionColumns", False),
        ("inCommitTimestamp", False),
    ],
)
def test_features_of_writers(tmp_path: Path, feature: str, writes: bool) -> None:
    path = foreign(tmp_path / "t", THREE, writer=[feature])
    assert read(path) == read(path, **STREAM) == [(1, "a"), (2, "b"), (3, "c")]
    if writes:
        append(path, *rows(9))
        assert read(path)[3:] == [(9, "v9")]
    else:
        assert code(append, path, *rows(9))[0] == "DAT-5305"


def test_identity_columns_of_a_protocol_without_features(tmp_path: Path) -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.highWaterMark": 3}
    fields = [("k", "long", identity), ("v", "string", {})]
    path = foreign(tmp_path / "t", THREE, fields, legacy=(1, 6))
    assert len(read(path)) == 3
    assert code(append, path, *rows(9)) == ("DAT-5305", "identitycolumns")
    only = pa.record_batch({"v": ["z"]})
    assert code(append, path, only, columns={"v": STRING}) == ("DAT-5305", "identitycolumns")


def test_times_without_a_zone(tmp_path: Path) -> None:
    columns = {"k": BIGINT, "t": TIMESTAMP}
    stored = pa.table({"k": [1], "t": pa.array([1], pa.timestamp("us"))})
    fields = [("k", "long", {}), ("t", "timestamp_ntz", {})]
    path = foreign(tmp_path / "t", stored, fields, reader=["timestampNtz"])
    append(path, pa.record_batch({"k": [2], "t": pa.array([2], pa.timestamp("us"))}), columns=columns)
    assert [(k, t.microsecond) for k, t in read(path, columns)] == [(1, 1), (2, 2)]


def test_a_checkpoint_of_version_2(tmp_path: Path) -> None:
    path = foreign(tmp_path / "t", THREE, reader=["v2Checkpoint"], delta_checkpointPolicy="v2")
    log = path / "_delta_log"
    first = log / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    kinds = {"path": pa.string(), "partitionValues": pa.map_(pa.string(), pa.string()), "size": pa.int64()}
    kind = pa.struct([*kinds.items(), ("modificationTime", pa.int64()), ("dataChange", pa.bool_())])
    (log / "_sidecars").mkdir()
    sidecar = log / "_sidecars" / "3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet"
    pq.write_table(pa.table({"add": pa.array([{**add, "partitionValues": []}], kind)}), sidecar)
    described = {"path": sidecar.name, "sizeInBytes": sidecar.stat().st_size, "modificationTime": 1}
    kept = [action for action in actions if "metaData" in action or "protocol" in action]
    whole = [{"checkpointMetadata": {"version": 0}}, *kept, {"sidecar": described}]
    name = f"{0:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    (log / name).write_text("\n".join(map(json.dumps, whole)))
    (log / f"{1:020d}.json").write_text(json.dumps({"commitInfo": {"timestamp": 5}}))
    first.unlink()
    append(path, *rows(9))
    assert read(path) == [(1, "a"), (2, "b"), (3, "c"), (9, "v9")]
    assert code(read, path, **STREAM)[0] == "DAT-5309"
    assert read(path, **{"scan.mode": "from-version", "scan.version": "1"}) == [(9, "v9")]


def test_times_that_commits_record(tmp_path: Path) -> None:
    settings = {"delta_enableInCommitTimestamps": "true"}
    path = foreign(tmp_path / "t", None, writer=["inCommitTimestamp"], **settings)  # type: ignore[arg-type]
    first = path / "_delta_log" / f"{0:020d}.json"
    recorded = '{"commitInfo": {"inCommitTimestamp": 1000000, '
    first.write_text(first.read_text().replace('{"commitInfo": {', recorded))
    pq.write_table(THREE, path / "a.parquet")
    for at_ms in (2_000_000, 3_000_000):
        add_version(path, [{"commitInfo": {"inCommitTimestamp": at_ms, "timestamp": 7}}, added(path)])

    def at(seconds: int) -> int:
        return len(read(path, **{"scan.timestamp": f"1970-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}Z"}))

    assert (at(1_000), at(1_999), at(2_000), at(3_001)) == (0, 0, 3, 3)
    assert code(at, 999)[0] == "DAT-5302"
