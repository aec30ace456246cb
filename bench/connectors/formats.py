"""Message formats on one core: M rows/s into columns and back, beside what Python programs use.

``python -m bench.connectors.formats``: 100,000 messages of six columns; the best of seven passes, in CPU time.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.json as arrow_json

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, BOOLEAN, INT, STRING, Double, Timestamp
from penstock.engine.api.stream_elements import Batch
from penstock.engine.formats.avro.schema import parse_schema
from penstock.engine.formats.avro.serializer import AvroSerializer
from penstock.engine.formats.avro.writer_program import schema_text, table_schema
from penstock.engine.formats.json_lines import JsonParser
from penstock.engine.formats.messages.registry import deserializer, serializer
from penstock.engine.formats.messages.text_messages import TextDeserializer, json_frame

ROWS = 100_000
PASSES = 7
FIELDS = (
    Field("id", BIGINT),
    Field("user_name", STRING),
    Field("price", Double()),
    Field("ok", BOOLEAN),
    Field("at", Timestamp(3)),
    Field("quantity", INT),
)
_JSON = MessageFormat("json", {})
_CSV = MessageFormat("csv", {"csv.delimiter": ",", "csv.quote": '"', "csv.null-literal": ""})
_AVRO = MessageFormat("avro", {"avro.schema": None})


def report() -> None:
    """Print one line a format and direction."""
    print(f"{'format, 100,000 messages of 6 columns':58} {'M rows/s':>9}")
    for name, once in _benches():
        once()
        print(f"{name:58} {max(_rate(once) for _ in range(PASSES)):9.2f}", flush=True)


def _rate(once: Callable[[], Any]) -> float:
    start = time.thread_time()
    once()
    return ROWS / (time.thread_time() - start) / 1e6


def _rows() -> pa.RecordBatch:
    first = dt.datetime(2026, 1, 1, 10)
    columns = {
        "id": pa.array(range(0, ROWS * 1000, 1000)),
        "user_name": pa.array([f"user-{i % 977}" for i in range(ROWS)]),
        "price": pa.array([i % 9973 / 100 for i in range(ROWS)]),
        "ok": pa.array([i % 2 == 0 for i in range(ROWS)]),
        "at": pa.array([first + dt.timedelta(milliseconds=7 * i) for i in range(ROWS)], pa.timestamp("us")),
        "quantity": pa.array([i % 50 for i in range(ROWS)], pa.int32()),
    }
    return pa.record_batch(columns)


def _benches() -> Iterator[tuple[str, Callable[[], Any]]]:
    batch = Batch(_rows())
    for name, form in (("json", _JSON), ("csv", _CSV), ("avro", _AVRO)):
        out = serializer(form, FIELDS, "s")
        values = out.serialize(batch)
        read = deserializer(form, FIELDS, FIELDS)
        yield f"{name}: decoded", lambda read=read, values=values: read.deserialize(values)
        if name == "json":
            yield from _json_peers(values)
        yield f"{name}: encoded", lambda out=out: out.serialize(batch)
    yield from _avro_peers(batch)


def _json_peers(values: pa.Array) -> Iterator[tuple[str, Callable[[], Any]]]:
    general = TextDeserializer(JsonParser(FIELDS, "message"), json_frame)
    yield "json: decoded by the general parser", lambda: general.deserialize(values)
    plain = values.to_pylist()
    lines = pa.py_buffer(b"\n".join(plain))
    once = arrow_json.ReadOptions(use_threads=False, block_size=lines.size + 1)
    yield "  pyarrow.json of the same as lines", lambda: arrow_json.read_json(pa.BufferReader(lines), once)
    yield "  json.loads, to dicts", lambda: [json.loads(value) for value in plain]


def _avro_peers(batch: Batch) -> Iterator[tuple[str, Callable[[], Any]]]:
    described = table_schema(FIELDS)
    values = AvroSerializer(parse_schema(schema_text(described), "s"), FIELDS).serialize(batch).to_pylist()
    schema = fastavro.parse_schema(described)

    def decoded() -> list[Any]:
        return [fastavro.schemaless_reader(io.BytesIO(value), schema, schema) for value in values]

    rows = decoded()

    def encoded() -> None:
        for row in rows:
            fastavro.schemaless_writer(io.BytesIO(), schema, row)

    yield "  fastavro.schemaless_reader, to dicts", decoded
    yield "  fastavro.schemaless_writer, of dicts", encoded


if __name__ == "__main__":
    report()
