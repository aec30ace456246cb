"""Avro with a schema registry, over HTTP: evolution within a batch, registration, what a registry can answer."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.connectors.message_formats import FORMATS_OF_MESSAGES, MessageFormat, value_format
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, INT, STRING, Double, Row
from penstock.engine.api.stream_elements import Batch
from penstock.engine.formats.messages.registry import deserializer, serializer
from penstock.engine.formats.messages.schema_registry import RegistryOptions, SchemaRegistryClient
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.schema_registry import schema_registry

FIELDS = (Field("id", BIGINT), Field("name", STRING))


@pytest.fixture
def registry():
    with schema_registry() as made:
        yield made


def form(url: str, name: str = "avro-confluent", **options: str) -> MessageFormat:
    given = {f"{name}.{key.replace('_', '-')}": text for key, text in options.items()}
    return value_format({"format": name, f"{name}.url": url} | given)


def record(*fields: Any, name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": k} | m for n, k, m in fields]}


def decode(made: Any, values: list[bytes | None]) -> Any:
    return made.deserialize(pa.array(values, pa.binary()))


def code(error: Any) -> str:
    return error.value.code


def test_several_schemas_in_one_batch_keep_their_order(registry):
    first = registry.add("t-value", record(("id", "int", {})))
    second = registry.add(
        "t-value", record(("name", ["null", "string"], {"default": None}), ("id", "long", {}))
    )
    values = [
        *registry.encode(first, {"id": 1}),
        *registry.encode(second, {"id": 2, "name": "b"}),
        None,
        *registry.encode(first, {"id": 3}),
        b"\0\0",
        b"\1\0\0\0\1x",
        b"\0\0\0\0\7xx",
        registry.encode(second, {"id": 4, "name": "dd"})[0][:-2],
        *registry.encode(second, {"id": 5, "name": None}),
    ]
    metrics = OperatorMetrics()
    made = deserializer(form(registry.url), FIELDS, FIELDS, metrics)
    decoded = decode(made, values)
    assert decoded.rows.to_pylist() == [
        {"id": 1, "name": None},
        {"id": 2, "name": "b"},
        {"id": 3, "name": None},
        {"id": 5, "name": None},
    ]
    assert decoded.ordinals.tolist() == [0, 1, 3, 8]
    head = "the value does not begin with a zero and the four bytes of a schema's id"
    assert [(bad.ordinal, bad.raw, bad.column, bad.byte, bad.error) for bad in decoded.bad] == [
        (4, values[4], None, 0, head),
        (5, values[5], None, 0, head),
        (6, values[6], None, 0, f"schema 7 is not in the registry {registry.url}"),
        (7, values[7], "name", 6, "the value ends too early"),
    ]
    asked = len(registry.requests)
    assert decode(made, values[:2]).rows.num_rows == 2
    assert len(registry.requests) == asked == metrics.counters["schema_registry_requests"] == 3
    # no value at all, and none that can be read
    assert decode(made, [None, b"?"]).rows.schema == decoded.rows.schema


def test_rows_written_are_read_by_fastavro_and_by_us(registry):
    rows = pa.record_batch({"id": [1, None], "name": ["a", None]})
    out = serializer(form(registry.url), FIELDS, "orders-value")
    assert registry.requests == []
    values = out.serialize(Batch(rows)).to_pylist()
    (schema_id,) = registry.subjects["orders-value"]
    assert {value[:5] for value in values} == {b"\0" + schema_id.to_bytes(4, "big")}
    schema = fastavro.parse_schema(json.loads(registry.schemas[schema_id]["schema"]))
    read = [fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, schema) for value in values]
    assert read == rows.to_pylist()
    assert decode(deserializer(form(registry.url), FIELDS, FIELDS), values).rows.equals(rows)
    # a second writer finds the schema it has registered
    again = serializer(form(registry.url, auto_register="false"), FIELDS, "orders-value")
    assert again.serialize(Batch(rows)).to_pylist() == values
    assert registry.subjects == {"orders-value": [schema_id]}


def test_a_schema_that_cannot_be_registered(registry):
    registry.add("s", record(("id", ["null", "string"], {})))
    with pytest.raises(PenstockError, match="refuses the schema of subject s") as refused:
        serializer(form(registry.url, subject="s"), FIELDS, "t").serialize(
            Batch(pa.record_batch({"id": [1], "name": ["a"]}))
        )
    assert (code(refused), refused.value.detail) == ("DAT-5223", "Schema being registered is incompatible")
    with pytest.raises(PenstockError, match="does not have the schema of subject new") as refused:
        SchemaRegistryClient(RegistryOptions(registry.url)).register("new", '"string"', False)
    assert code(refused) == "DAT-5223"


def test_references_defaults_and_aliases(registry):
    registry.add("money", record(("cents", "long", {}), name="shop.Money"))
    registry.add("address", record(("price", "shop.Money", {}), name="shop.Line"),
                 references=[{"name": "shop.Money", "subject": "money", "version": 1}])  # fmt: skip
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "line", "type": "shop.Line"}, {"name": "old", "type": "int"}],
    }
    order = registry.add("o", schema, references=[
        {"name": "shop.Line", "subject": "address", "version": 1},
        {"name": "shop.Money", "subject": "money", "version": 1},
    ])  # fmt: skip
    value = b"\0" + order.to_bytes(4, "big") + b"\x14\x06"
    fields = (
        Field("line", Row((("price", Row((("cents", BIGINT),))),))),
        Field("n", Double()),
        Field("d", STRING),
    )
    reader = record(
        ("n", "double", {"aliases": ["old"]}), ("d", "string", {"default": "x"}), ("line", "null", {})
    )
    made = deserializer(form(registry.url, schema=json.dumps(reader)), fields, fields)
    assert decode(made, [value]).rows.to_pylist() == [{"line": {"price": {"cents": 10}}, "n": 3.0, "d": "x"}]


def test_a_registry_that_is_not_ready_is_asked_again(registry):
    schema_id = registry.add("s", record(("id", "long", {})))
    registry.failures = 2
    metrics, pauses = OperatorMetrics(), []
    client = SchemaRegistryClient(RegistryOptions(registry.url), metrics, pauses.append)
    assert client.schema(schema_id) is not None
    assert (pauses, metrics.counters["schema_registry_retries"]) == ([100, 200], 2)
    registry.failures = 9
    with pytest.raises(PenstockError, match="cannot be reached") as refused:
        client.schema(1)
    assert (code(refused), refused.value.retriable) == ("DAT-5220", True)
    assert refused.value.detail == "it answers 503; asked 4 times"


def test_a_registry_that_is_not_there():
    pauses: list[float] = []
    client = SchemaRegistryClient(RegistryOptions("http://127.0.0.1:9", retries=1), None, pauses.append)
    with pytest.raises(PenstockError, match="cannot be reached") as refused:
        client.schema(1)
    assert code(refused) == "DAT-5220"
    assert "refused; asked 2 times" in refused.value.detail
    assert pauses == [100]


def test_users_and_tokens(registry):
    schema_id = registry.add("s", record(("id", "long", {})))
    registry.user_info, registry.token = "me:secret word", "token-of-mine"
    bare = registry.url.removeprefix("http://")
    for options in (
        RegistryOptions(registry.url, user_info="me:secret word"),
        RegistryOptions(registry.url, token="token-of-mine"),
        RegistryOptions(f"http://me:secret%20word@{bare}"),
    ):
        assert SchemaRegistryClient(options).schema(schema_id) is not None
    for options in (RegistryOptions(registry.url), RegistryOptions(f"http://me:wrongly@{bare}")):
        with pytest.raises(PenstockError, match="refuses access") as refused:
            SchemaRegistryClient(options).schema(schema_id)
        assert code(refused) == "DAT-5221"
        assert "wrongly" not in str(refused.value)


def test_schemas_that_do_not_fit(registry):
    fields = (Field("id", INT),)
    text = registry.add("s", record(("id", "string", {})))
    with pytest.raises(
        PenstockError, match=f"schema {text} of the registry .* does not match the table: id is INT"
    ) as refused:
        decode(deserializer(form(registry.url), fields, fields), registry.encode(text, {"id": "x"}))
    assert code(refused) == "DAT-5212"
    for more, schema, expected in (
        ({"schemaType": "PROTOBUF"}, "syntax", "DAT-5222"),
        ({}, "{", "DAT-5210"),
        ({"references": [{"name": "x", "subject": "none", "version": 1}]}, '"int"', "DAT-5224"),
    ):
        schema_id = registry.add("other", schema, **more)
        with pytest.raises(PenstockError) as refused:
            SchemaRegistryClient(RegistryOptions(registry.url)).schema(schema_id)
        assert code(refused) == expected
    # with "on-error" = "skip" a wrong address would skip each message
    with pytest.raises(PenstockError) as refused:
        SchemaRegistryClient(RegistryOptions(registry.url + "/elsewhere")).schema(text)
    assert code(refused) == "DAT-5224"
    with pytest.raises(PenstockError) as refused:
        SchemaRegistryClient(RegistryOptions(registry.url + "/elsewhere")).register("s", '"int"', True)
    assert code(refused) == "DAT-5223"


def test_certificates_that_cannot_be_read(tmp_path):
    with pytest.raises(PenstockError, match="certificates for the schema registry cannot be read") as refused:
        SchemaRegistryClient(RegistryOptions("https://localhost:1", ca_location=str(tmp_path / "no.pem")))
    assert code(refused) == "DAT-5225"


def test_changes_with_a_registry(registry):
    changes = form(registry.url, "debezium-avro-confluent")
    rows = pa.record_batch({"id": [1, 2], "name": ["a", None]})
    values = serializer(changes, FIELDS, "t-value").serialize(Batch(rows, np.array([1, -1]))).to_pylist()
    made = deserializer(changes, FIELDS, FIELDS)
    decoded = decode(made, values)
    assert (decoded.rows.to_pylist(), decoded.weights.tolist()) == (rows.to_pylist(), [1, -1])
    # as Debezium writes them: more in the envelope, an update, a change without its row
    side = record(("id", "long", {}), ("name", ["null", "string"], {}), name="v.Value")
    envelope = record(
        ("before", ["null", side], {}), ("after", ["null", "v.Value"], {}), ("ts_ms", ["null", "long"], {}),
        ("op", "string", {}), name="v.Envelope",
    )  # fmt: skip
    schema_id = registry.add("d", envelope)
    old, new = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    sent = registry.encode(
        schema_id,
        {"before": None, "after": old, "op": "r", "ts_ms": 1},
        {"before": old, "after": new, "op": "u", "ts_ms": None},
        {"before": None, "after": None, "op": "d", "ts_ms": 1},
        {"before": new, "after": None, "op": "d", "ts_ms": 1},
    )
    decoded = decode(made, [sent[0], None, *sent[1:]])
    assert decoded.rows.to_pylist() == [old, old, new, new]
    assert decoded.weights.tolist() == [1, -1, 1, -1]
    assert decoded.ordinals.tolist() == [0, 2, 2, 4]
    assert [(bad.ordinal, bad.error[:33]) for bad in decoded.bad] == [
        (3, "the change lacks the row before o")
    ]


def test_secrets_are_declared():
    secret = {option.key for option in FORMATS_OF_MESSAGES["avro-confluent"].options if option.secret}
    assert secret == {"avro-confluent.basic-auth.user-info", "avro-confluent.bearer-auth.token"}
