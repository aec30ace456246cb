"""Rows of messages: keys, metadata, tombstones, and the policy for what cannot be decoded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable, MetadataColumn
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process.bad_records import BadRecords
from penstock.engine.connectors.messages.message_reader import KeyColumns, MessageBatch, MessageReader

SCHEMA = Schema((Field("k", BIGINT), Field("v", STRING), Field("o", BIGINT)))


def reader(
    columns: tuple[int, ...] = (0, 1, 2), keys: KeyColumns | None = None, **options: str
) -> tuple[MessageReader, ScanRequest]:
    given = {"connector": "kafka", "format": "json"} | {k.replace("_", "."): t for k, t in options.items()}
    given = {key.replace("on.error", "on-error"): text for key, text in given.items()}
    table = CatalogTable("t", SCHEMA, SCHEMA, given, (MetadataColumn("o", "offset", True),))
    request = ScanRequest(table, columns, None, 1000, SystemClock(), Services(BadRecords()))
    return MessageReader(request, "t-0", "topic t, partition 0", "offset", keys or KeyColumns()), request


def batch(values: list[bytes | None], keys: list[bytes | None] | None = None) -> MessageBatch:
    numbers = np.arange(10, 10 + len(values))
    made_keys = None if keys is None else pa.array(keys, pa.binary())
    return MessageBatch(pa.array(values, pa.binary()), numbers, made_keys, {"offset": pa.array(numbers)})


def test_columns_come_in_the_order_asked_for_and_tombstones_are_counted() -> None:
    messages, request = reader((2, 1))
    rows = messages.read(batch([b'{"k":1,"v":"a"}', None, b'{"k":2,"v":null}']))
    assert isinstance(rows, pa.RecordBatch)
    assert rows.to_pylist() == [{"o": 10, "v": "a"}, {"o": 12, "v": None}]
    assert request.metrics.counters["tombstones"] == 1
    assert (messages.wants_keys, messages.metadata) == (False, {"offset"})


def test_no_messages_and_no_columns_are_rows_all_the_same() -> None:
    messages, _ = reader(())
    assert messages.read(batch([b"{}", b"{}"])).num_rows == 2
    assert messages.read(batch([])).num_rows == 0


def test_a_bad_value_and_a_bad_key_have_a_place() -> None:
    messages, _ = reader()
    with pytest.raises(PenstockError) as failed:
        messages.read(batch([b'{"k":1}', b'{"k":"x"}']))
    assert failed.value.message.startswith("topic t, partition 0, offset 11: column k:")
    keys = KeyColumns(("k",), only=True)
    messages, request = reader((0, 1), keys, key_format="json", on_error="skip")
    rows = messages.read(
        batch([b'{"v":"a"}', b'{"v":"b"}', b"{", b'{"v":"d"}'], [b'{"k":1}', b"x", b"y", None])
    )
    assert isinstance(rows, pa.RecordBatch)
    assert rows.to_pylist() == [{"k": 1, "v": "a"}, {"k": None, "v": "d"}]
    assert request.metrics.counters["bad_records"] == 2


def test_upserts_have_the_key_also_where_the_value_is_gone() -> None:
    keys = KeyColumns(("k",), upserts=True)
    messages, request = reader((1, 0), keys, key_format="json", on_error="skip")
    assert messages.wants_keys
    rows = messages.read(
        batch([b'{"k":1,"v":"a"}', None, b'{"v":"c"}', b"{"], [b'{"k":1}', b'{"k":2}', None, b'{"k":4}'])
    )
    assert isinstance(rows, Batch)
    assert rows.rows.to_pylist() == [{"v": "a", "k": 1}, {"v": None, "k": 2}]
    assert rows.weights is not None
    assert rows.weights.tolist() == [1, -1]
    assert request.metrics.counters == {"bad_records": 2, "tombstones": 1}


def test_changes_have_weights() -> None:
    messages, _ = reader((0,), format="debezium-json")
    rows = messages.read(
        batch(
            [
                b'{"before":null,"after":{"k":1},"op":"c"}',
                b'{"before":{"k":1},"after":{"k":2},"op":"u"}',
                None,
            ]
        )
    )
    assert isinstance(rows, Batch)
    assert rows.rows.to_pylist() == [{"k": 1}, {"k": 1}, {"k": 2}]
    assert rows.weights is not None
    assert rows.weights.tolist() == [1, -1, 1]
