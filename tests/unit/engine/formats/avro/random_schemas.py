"""Random Avro schemas, the column types that match them, and values of both."""

from __future__ import annotations

import datetime as dt
import random
import struct
from decimal import Decimal as Number
from typing import Any

from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    INT,
    STRING,
    Array,
    DataType,
    Date,
    Decimal,
    Double,
    Float,
    Map,
    Row,
    Time,
    Timestamp,
    TimestampLtz,
)

UTC = dt.UTC
EPOCH = dt.datetime(1970, 1, 1)


class Maker:
    """Makes schemas of one seed; every named type has a name of its own."""

    def __init__(self, seed: int, widening: bool = True) -> None:
        self.chance = random.Random(seed)
        self.widening = widening
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def record(self, depth: int = 3, top: bool = True) -> tuple[dict[str, Any], Row]:
        fields, kinds = [], []
        for index in range(self.chance.randint(1, 6)):
            schema, kind = self.type(depth)
            name = f"f{index}"
            # inner columns may be NULL whatever the writer says, rows' columns as the union says
            fields.append({"name": name, "type": schema})
            kinds.append((name, kind))
        return {"type": "record", "name": self.name(), "fields": fields}, Row(tuple(kinds))

    def type(self, depth: int) -> tuple[Any, DataType]:
        schema, kind = self.plain(depth)
        shape = self.chance.random()
        if shape < 0.3:
            return ["null", schema], kind
        if shape < 0.4:
            return [schema, "null"], kind
        return schema, kind

    def plain(self, depth: int) -> tuple[Any, DataType]:
        choice = self.chance.choice
        nested = {
            "array": lambda: self._list("array", "items", depth),
            "map": lambda: self._list("map", "values", depth),
            "record": lambda: self.record(depth - 1),
        }
        if depth > 0 and self.chance.random() < 0.35:
            return nested[choice(sorted(nested))]()
        precision = self.chance.randint(1, 38)
        scale = self.chance.randint(0, precision)
        size = self.chance.randint(1, 9)
        decimal = {"logicalType": "decimal", "precision": precision, "scale": scale}
        return choice(
            [
                ("boolean", BOOLEAN),
                ("int", INT),
                ("int", BIGINT) if self.widening else ("long", BIGINT),
                ("long", BIGINT),
                ("float", Float()),
                ("double", Double()),
                ("string", STRING),
                ("bytes", BINARY),
                ({"type": "fixed", "name": self.name(), "size": size}, BINARY),
                ({"type": "enum", "name": self.name(), "symbols": ["A", "B", "LONGER"]}, STRING),
                ({"type": "bytes"} | decimal, Decimal(precision, scale)),
                (
                    {"type": "fixed", "name": self.name(), "size": 17} | decimal,
                    Decimal(precision, scale),
                ),
                ({"type": "int", "logicalType": "date"}, Date()),
                ({"type": "int", "logicalType": "time-millis"}, Time()),
                ({"type": "long", "logicalType": "time-micros"}, Time()),
                ({"type": "long", "logicalType": "timestamp-millis"}, TimestampLtz(3)),
                ({"type": "long", "logicalType": "timestamp-micros"}, TimestampLtz(6)),
                ({"type": "long", "logicalType": "local-timestamp-millis"}, Timestamp(3)),
                ({"type": "long", "logicalType": "local-timestamp-micros"}, Timestamp(6)),
            ]
        )

    def _list(self, word: str, part: str, depth: int) -> tuple[Any, DataType]:
        schema, kind = self.type(depth - 1)
        return {"type": word, part: schema}, Array(kind) if word == "array" else Map(STRING, kind)

    def value(self, schema: Any) -> Any:
        """Return a value as fastavro takes and returns it."""
        chance = self.chance
        if isinstance(schema, list):
            branch = chance.choice(schema)
            return None if branch == "null" else self.value(branch)
        kind = schema["type"] if isinstance(schema, dict) else schema
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        if logical is not None:
            return self._logical(schema, logical)
        match kind:
            case "record":
                return {field["name"]: self.value(field["type"]) for field in schema["fields"]}
            case "array":
                return [self.value(schema["items"]) for _ in range(chance.choice([0, 0, 1, 2, 5, 70]))]
            case "map":
                return {
                    f"k{index}é": self.value(schema["values"]) for index in range(chance.choice([0, 1, 3]))
                }
            case "boolean":
                return chance.random() < 0.5
            case "int":
                return chance.choice(
                    [0, -1, 1, 63, -64, 64, 2**31 - 1, -(2**31), chance.randint(-9999, 9999)]
                )
            case "long":
                return chance.choice([0, -1, 2**63 - 1, -(2**63), 2**40, chance.randint(-(2**50), 2**50)])
            case "float":
                number = chance.choice([0.0, -0.0, 1.5, -3e38, 1e-45, float("inf"), chance.random()])
                return struct.unpack("f", struct.pack("f", number))[0]
            case "double":
                return chance.choice([0.0, 1.1, -1e300, 5e-324, float("-inf"), chance.random()])
            case "string":
                return chance.choice(["", "a", "é" * 70, "x" * chance.randint(0, 30)])
            case "bytes":
                return chance.choice([b"", b"\xff\0", bytes(chance.randint(0, 90))])
            case "fixed":
                return bytes(chance.randrange(256) for _ in range(schema["size"]))
            case "enum":
                return chance.choice(schema["symbols"])
        raise AssertionError(kind)

    def _logical(self, schema: dict[str, Any], logical: str) -> Any:
        chance = self.chance
        if logical == "decimal":
            most = 10 ** schema["precision"] - 1
            number = chance.choice([0, 1, -1, 127, -128, 128, most, -most, chance.randint(-most, most)])
            number = max(-most, min(most, number))
            digits = tuple(int(digit) for digit in str(abs(number)))
            return Number((int(number < 0), digits, -schema["scale"]))
        millis = logical.endswith("millis")
        if logical == "date":
            return dt.date(1970, 1, 1) + dt.timedelta(days=chance.randint(-300_000, 900_000))
        if logical.startswith("time-"):
            micros = chance.randrange(86_400_000_000)
            micros -= micros % 1000 if millis else 0
            return (EPOCH + dt.timedelta(microseconds=micros)).time()
        micros = chance.randint(-(2**54), 2**54)
        micros -= micros % 1000 if millis else 0
        moment = EPOCH + dt.timedelta(microseconds=micros)
        return moment if logical.startswith("local") else moment.replace(tzinfo=UTC)


def comparable(value: Any) -> Any:
    """Return a value of Arrow or fastavro in one form: maps as dicts, instants at UTC, decimals by value."""
    if isinstance(value, dict):
        return {key: comparable(part) for key, part in value.items()}
    if isinstance(value, list):
        # a map of Arrow is a list of pairs
        if value and all(isinstance(part, tuple) for part in value):
            return {key: comparable(part) for key, part in value}
        return [comparable(part) for part in value] or {}
    if isinstance(value, dt.datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return value
