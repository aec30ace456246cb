"""Records as structures of librdkafka: addresses and lengths of slices, NULLs and empty values."""

from __future__ import annotations

import ctypes

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.connectors.kafka import producer_records
from penstock.engine.connectors.kafka.librdkafka import Message
from penstock.engine.connectors.kafka.producer_records import MESSAGE, Records, places
from tests.unit.engine.connectors.kafka.kafka_sinks import binary, records


def test_the_structure_is_the_one_that_readers_use() -> None:
    assert ctypes.sizeof(Message) == MESSAGE.itemsize
    assert MESSAGE.fields is not None
    for name, of_reader in (("payload", Message.payload), ("len", Message.len), ("key_len", Message.key_len)):
        assert MESSAGE.fields[name][1] == of_reader.offset


def test_values_of_a_slice_are_where_they_are() -> None:
    values = binary(b"zero", b"one", None, b"", b"four").slice(1)
    addresses, lengths = places(values)
    assert [
        None if not address else ctypes.string_at(int(address), int(length))
        for address, length in zip(addresses, lengths, strict=True)
    ] == [b"one", None, b"", b"four"]
    assert places(binary(b"", b""))[0].all(), "an empty value is no NULL, also without any byte"
    assert not len(places(binary())[0])


def test_chunks_are_of_limited_bytes_and_one_record_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_records, "CHUNK_BYTES", 10)
    made = records(b"1234", b"5678", b"x" * 50, b"ab", keys=(b"k", None, b"k", b""))
    assert list(made.chunks()) == [(0, 2), (2, 3), (3, 4)]
    assert made.records_of_a_chunk() == 1
    assert records(b"12", b"3456", None).records_of_a_chunk() == 5
    assert records(b"", None).records_of_a_chunk() == 10
    monkeypatch.setattr(producer_records, "CHUNK_RECORDS", 1)
    assert list(made.chunks()) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_some_records_keep_all_their_parts() -> None:
    headers = pa.array([[("a", b"1")], None, []], pa.map_(pa.string(), pa.binary()))
    made = Records(
        binary(b"x", b"y", None),
        binary(b"1", b"2", b"3"),
        np.array([0, -1, 2], np.int32),
        np.arange(3),
        headers,
    )
    some = made.take(np.array([0, 2]))
    assert some.values.to_pylist() == [b"x", None]
    assert some.messages()["partition"].tolist() == [0, 2]
    assert some.timestamps is not None and some.timestamps.tolist() == [0, 2]
    assert some.headers is not None and some.headers.to_pylist() == [[("a", b"1")], []]
    assert made.sizes().tolist() == [2, 2, 1]
    assert not made.are_plain
