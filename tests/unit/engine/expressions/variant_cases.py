"""What is compared with Spark on VARIANT: generated columns, and expressions both sides read in the same
words. Numbers such as 1.0 and 1.5e0 are left out: their type is known to differ.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal as D

import pyarrow as pa

from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    Array,
    DataType,
    Decimal,
    Map,
    Row,
    to_arrow,
)

COLUMNS: dict[str, tuple[DataType, list]] = {
    "j": (
        STRING,
        [
            None, "null", "{}", "[]", "1", "-0", "-12", "1.50", "0.001", "-0.5", "123456789012345678901", "9223372036854775808", "1e10", "1.5E-9", "true",
            '"text"', '""', '"5"', '"-7.5"', '"true"', '"2024-02-29"', '"q\\"uo\\\\te\\n\\u00e9 \\/ \\ud83d\\ude00 \\u0001"', ' { "b" : 1 , "a" : [ 1 , null, "x" ] } ',
            '{"a": {"b": [10, 20, {"c": "deep"}]}, "x y": 1}', '[1, 2, 3]', '[1, 1.5]', '["a", null, 1]', '[[1], [], null]', '{"a": null}',
            '{"a": 300}', '{"a": "300"}', '{"a": true, "ñ": "日本 😀"}', '{"z": 1, "y": 2, "x": 3}', '{"k": {"a": 1, "b": "y"}, "l": {"b": "z"}}',
            '[{"a": 1}, {"b": 2, "a": 1.5}]', '{"a": 2147483648}', '{"a": 12345678.25}',
        ],
    ),
    "w": (STRING, [None, "", "x", "[1,]", '{"a": 1, "a": 2}', "{'a': 1}", "1", "NaN", '{"a"}', "tru", '"a', '"\\x"', "01"]),
    "i": (INT, [None, 1, -5]),
    "n": (BIGINT, [None, 2**62]),
    "p": (Decimal(10, 2), [None, D("1.10"), D("-2555.55")]),
    "x": (DOUBLE, [None, 1.5, 1e20, 1e-7, 123456789.125]),
    "b": (BOOLEAN, [None, True, False]),
    "k": (STRING, [None, "a", 'q"\\\n', "ñ"]),
    "d": (DATE, [None, date(2024, 2, 29)]),
    "a": (Array(INT), [None, [], [1, None, 3]]),
    "m": (Map(STRING, INT), [None, [], [("k", 1), ("b", None)]]),
    "r": (Row((("z", INT), ("a", STRING))), [None, {"z": 1, "a": "x"}, {"z": None, "a": None}]),
}  # fmt: skip

TEXTS = """
to_json(parse_json(j))
to_json(try_parse_json(w))
to_json(try_parse_json(j))
is_variant_null(parse_json(j))
schema_of_variant(parse_json(j))
to_json(variant_get(parse_json(j), '$.a'))
to_json(variant_get(parse_json(j), '$.a.b[2]'))
to_json(variant_get(parse_json(j), '$[1]'))
to_json(variant_get(parse_json(j), '$["x y"]'))
to_json(variant_get(parse_json(j), '$.ñ', 'variant'))
variant_get(parse_json(j), '$.a.b[2].c', 'string')
try_variant_get(parse_json(j), '$', 'string')
try_variant_get(parse_json(j), '$', 'int')
try_variant_get(parse_json(j), '$.a', 'tinyint')
try_variant_get(parse_json(j), '$.a', 'int')
try_variant_get(parse_json(j), '$.a', 'bigint')
try_variant_get(parse_json(j), '$', 'bigint')
try_variant_get(parse_json(j), '$', 'double')
try_variant_get(parse_json(j), '$', 'decimal(10, 2)')
try_variant_get(parse_json(j), '$', 'boolean')
try_variant_get(parse_json(j), '$', 'date')
try_variant_get(parse_json(j), '$', 'array<int>')
try_variant_get(parse_json(j), '$', 'array<string>')
try_variant_get(parse_json(j), '$', 'map<string, int>')
try_variant_get(parse_json(j), '$', 'map<string, string>')
try_variant_get(parse_json(j), '$', 'struct<a: int, b: string>')
try_variant_get(parse_json(j), '$', 'map<string, struct<a: int, b: string>>')
try_variant_get(parse_json(j), '$', 'array<struct<a: double>>')
CAST(parse_json(j) AS STRING)
TRY_CAST(parse_json(j) AS DECIMAL(5, 1))
to_json(CAST(i AS VARIANT))
to_json(CAST(n AS VARIANT))
to_json(CAST(p AS VARIANT))
to_json(CAST(x AS VARIANT))
to_json(CAST(b AS VARIANT))
to_json(CAST(k AS VARIANT))
to_json(CAST(a AS VARIANT))
to_json(to_variant_object(m))
to_json(to_variant_object(r))
to_json(named_struct('v', parse_json(j), 'i', i))
to_json(array(parse_json(j), NULL))
"""


def texts() -> list[str]:
    """Return the expressions."""
    return TEXTS.strip().splitlines()


def rows() -> pa.RecordBatch:
    """Every value of every pool, the shorter ones over and over."""
    count = max(len(pool) for _, pool in COLUMNS.values())
    arrays = [
        pa.array([pool[i % len(pool)] for i in range(count)], to_arrow(kind))
        for kind, pool in COLUMNS.values()
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))
