"""Rows as records: keys, values, tombstones, changes, METADATA columns and partitions."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from penstock.catalog.types import BINARY, INT, STRING, Map, TimestampLtz
from penstock.engine.api.epoch_target import DELETED, StagedForm
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.connectors.kafka.producer_records import ANY_PARTITION
from penstock.engine.connectors.kafka.record_encoder import RecordEncoder, pieces_of
from tests.unit.engine.connectors.kafka.kafka_sinks import declared, rows


def with_first(name: str, values: list[object], batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values), *batch.columns], names=[name, *batch.schema.names])


def test_keys_are_columns_of_values_too_unless_the_table_says_otherwise() -> None:
    made = RecordEncoder(declared("t", key_format="json", key_fields="k"), 0, 1).records(rows(1, 2))
    assert made.keys is not None
    assert made.keys.to_pylist() == [b'{"k":1}', b'{"k":2}']
    assert made.values.to_pylist() == [b'{"k":1,"v":"v1"}', b'{"k":2,"v":"v2"}']
    assert made.partitions is None and made.are_plain
    table = declared("t", key_format="json", key_fields="k", value_fields__include="except_key")
    assert RecordEncoder(table, 0, 1).records(rows(1)).values.to_pylist() == [b'{"v":"v1"}']
    assert RecordEncoder(declared("t"), 0, 1).records(rows(1)).keys is None


def test_names_of_key_columns_lose_their_prefix() -> None:
    columns = {"key_k": INT, "v": STRING}
    options = {"key_format": "json", "key_fields": "key_k", "value_fields__include": "except_key"}
    table = declared("t", columns=columns, **options)
    table.options["key.fields-prefix"] = "key_"
    made = RecordEncoder(table, 0, 1).records(rows(1).rename_columns(["key_k", "v"]))
    assert made.keys is not None and made.keys.to_pylist() == [b'{"k":1}']


def test_a_deleted_key_is_a_record_without_a_value() -> None:
    encoder = RecordEncoder(declared("t", primary_key=("k",), key_format="json"), 0, 1)
    assert encoder.form is StagedForm.UPSERTS
    made = encoder.records(with_first(DELETED, [False, True], rows(1, 2)))
    assert made.values.to_pylist() == [b'{"k":1,"v":"v1"}', None]
    assert made.keys is not None and made.keys.to_pylist() == [b'{"k":1}', b'{"k":2}']


def test_changes_are_written_by_formats_that_have_them() -> None:
    encoder = RecordEncoder(declared("t", format="debezium-json"), 0, 1)
    assert encoder.form is StagedForm.CHANGES
    made = encoder.records(with_first("op", ["+I", "-U", "+U", "-D"], rows(1, 2, 3, 4)))
    assert [b'"op":"c"' in value for value in made.values.to_pylist()] == [True, False, True, False]


def test_metadata_columns_are_no_part_of_values() -> None:
    columns = {"k": INT, "ts": TimestampLtz(3), "h": Map(STRING, BINARY), "p": INT}
    metadata = {"ts": "timestamp", "h": "headers", "p": "partition"}
    encoder = RecordEncoder(declared("t", columns=columns, metadata=metadata), 0, 4)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([1, 2], pa.int32()),
            pa.array([at, None], pa.timestamp("us", tz="UTC")),
            pa.array([[("a", b"x")], None], pa.map_(pa.string(), pa.binary())),
            pa.array([3, None], pa.int32()),
        ],
        names=list(columns),
    )
    made = encoder.records(batch)
    assert made.values.to_pylist() == [b'{"k":1}', b'{"k":2}']
    assert made.timestamps is not None and made.timestamps.tolist() == [int(at.timestamp() * 1000), 0]
    assert made.headers is not None and made.headers.to_pylist() == [[("a", b"x")], None]
    assert made.partitions is not None and made.partitions.tolist() == [3, ANY_PARTITION]


@pytest.mark.parametrize(
    ("partitioner", "expected"), [("fixed", [[1, 1], [1]]), ("round-robin", [[1, 2], [0]])]
)
def test_partitions_are_chosen(partitioner: str, expected: list[list[int]]) -> None:
    encoder = RecordEncoder(
        declared("t", sink_partitioner=partitioner), 4 if partitioner == "fixed" else 1, 3
    )
    made = [encoder.records(batch).partitions for batch in (rows(1, 2), rows(3))]
    assert [part.tolist() for part in made if part is not None] == expected


def test_large_batches_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "piece_bytes", 20)
    batch = rows(*range(10))
    pieces = list(pieces_of(batch))
    assert len(pieces) > 3 and pa.Table.from_batches(pieces) == pa.Table.from_batches([batch])
