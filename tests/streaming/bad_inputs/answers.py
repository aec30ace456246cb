"""What the HTTP server of the bad inputs answers, by path."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import fastavro

from tests.harness.http_server import Answered, Asked

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [{"name": "child", "type": ["null", "Tree"]}],
}
JSON = {"Content-Type": "application/json"}


def avro_of(row: dict[str, Any]) -> bytes:
    """Return a row as Avro without a head."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(ORDER), row)
    return out.getvalue()


def write_descriptor(path: Path) -> None:
    """Write protobuf's descriptor file of shop.Order (id, name) and of the recursive shop.Tree."""
    from google.protobuf import descriptor_pb2

    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=kind.TYPE_INT64, label=1)
    order.field.add(name="name", number=2, type=kind.TYPE_STRING, label=1)
    tree = file.message_type.add(name="Tree")
    tree.field.add(name="child", number=1, type=kind.TYPE_MESSAGE, label=1, type_name=".shop.Tree")
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())


_WHOLE = avro_of({"id": 7, "name": "seven"})

# bodies that are one message each
MESSAGES: dict[str, bytes] = {
    "json-no-object": b'"just a text"',
    "json-cut": b'{"n": 1, "name": "cut of',
    "json-type": b'{"n": "seven"}',
    "json-great": b'{"n": 99999999999}',
    "json-deep": b'{"n": 1, "name": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "json-bytes": b'{"n": 1, "name": "\xff\xfe"}',
    "json-fraction": b'{"n": 1.5}',
    "csv-nul": b"1\x002,ab",
    "csv-few": b"1",
    "csv-quote": b'1,"never ends',
    "csv-number": b"one,a",
    "raw-short": b"\x01\x02\x03",
    "raw-bytes": b"\xff\xfe",
    "raw-truth": b"\x07\x07",
    "avro-cut": _WHOLE[:-2],
    "avro-none": b"",
    "avro-noise": b"\xff" * 40,
    "avro-more": _WHOLE + b"\x00\x01",
    "confluent-magic": b"\x05" + _WHOLE,
    "confluent-short": b"\x00\x00",
    "protobuf-cut": b"\x08\x07\x12\x20abc",
    "protobuf-kind": b"\x0d\x07\x00\x00\x00",
    "protobuf-noise": b"\xff\xff\xff\xff",
    "debezium-op": b'{"before": null, "after": {"n": 1}, "op": "x"}',
    "debezium-after": b'{"before": null, "op": "c"}',
    "debezium-none": b'{"n": 1}',
    "debezium-before": b'{"before": null, "after": {"n": 2}, "op": "u"}',
    "maxwell-type": b'{"type": "truncate", "data": {"n": 1}}',
    "canal-truncate": b'{"type": "TRUNCATE", "data": null, "isDdl": true}',
    "canal-data": b'{"type": "INSERT", "data": {"n": 1}}',
    "ogg-before": b'{"op_type": "D", "after": {"n": 1}}',
}
_DEEP_ARRAY = b"[" * 20_000 + b"]" * 20_000

OTHERS: dict[str, Answered] = {
    "rows": Answered(b'[{"n": 1}, {"n": 2}]', headers=JSON),
    "302": Answered(b"", 302, {"Location": "http://elsewhere.invalid/rows"}),
    "html": Answered(b"<html><body>Please log in</body></html>", headers={"Content-Type": "text/html"}),
    "broken": Answered(b'[{"n": 1}, {"n":', headers=JSON, broken=True),
    "half": Answered(b'[{"n": 1}, {"n":', headers=JSON),
    "huge": Answered(b"[" + b'{"n": 1}, ' * 500 + b'{"n": 1}]', headers=JSON),
    "deep": Answered(_DEEP_ARRAY, headers=JSON),
    "empty": Answered(b"", headers=JSON),
    "gzip": Answered(b"this is no gzip", headers={**JSON, "Content-Encoding": "gzip"}),
}


def answer(asked: Asked) -> Answered:
    """Return the answer of a path: a message, one of ``OTHERS``, or a status by its number."""
    name = asked.path.strip("/").partition("?")[0]
    if name in MESSAGES:
        return Answered(MESSAGES[name], headers={"Content-Type": "application/octet-stream"})
    if name in OTHERS:
        return OTHERS[name]
    status = int(name) if name.isdecimal() else 404
    return Answered(json.dumps({"error": f"status {status}"}).encode(), status, {"Retry-After": "0"})


def registry_messages(ids: dict[str, int]) -> dict[str, bytes]:
    """Return messages with Confluent's head: of schemas that are known, and of one that is not."""

    def message(number: int, body: bytes) -> bytes:
        return b"\0" + struct.pack(">i", number) + body

    return {
        "confluent-cut": message(ids["order"], _WHOLE[:-2]),
        "confluent-unknown": message(4_711, _WHOLE),
        "confluent-tree": message(ids["tree"], b"\x00"),
        "confluent-jsonschema": message(ids["jsonschema"], b"{}"),
        "confluent-other": message(ids["other"], b"\x06abc\x06abc"),
    }
