"""What is compared with Spark on JSON: generated columns, and expressions both sides read in the same
words.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal as D

import pyarrow as pa

from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Array,
    DataType,
    Decimal,
    Map,
    Row,
    to_arrow,
)

NAN = float("nan")
_PAIR = Row((("a", INT), ("b", STRING)))
COLUMNS: dict[str, tuple[DataType, list]] = {
    "j": (
        STRING,
        [
            None, "", "  ", "no json", "null", "{}", '{"a": 1, "b": "x"}', '{"a": "1", "b": 2}', '{"a": 1.5, "b": 1.50}', '{"a": 1e2, "b": 1E2}',
            '{"a": true, "b": false}', '{"a": {"c": 1}, "b": {"c" :  [1, "x"]}}', '{"a": [1], "b": [ 1,2 ]}', '{"a": null, "b": null}',
            '{"b": "only"}', '{"a": 5, "z": [1, {"y": 2}]}', '[{"a": 7, "b": "in"}]', '[{"a": 7}, {"a": 8}]', "[]", '{"a": 9999999999}',
            '{"a": 99999999999999999999}', '{"a": -5, "b": "ñ 日本 😀"}', '{"A": 3, "B": "upper"}', '{"a": 1, "c": 2, "b": "thrice"}',
            '{"a": 1} trailing', '{"a": 1, "b": "cut', '{"a": 1,}', "{'a': 4, 'b': 'sin\"gle'}", '{"a": NaN}', '"text"', "12", "true",
            '{"a": "", "b": ""}', '{"a": 300, "b": "q\\"uo\\\\te\\n\\u00e9"}', '{"a": 1, "b": "x"}{"a": 2}', ' {"a": 6}\n', '{a: 1}',
            '{"a": 01}', '{"b": "ok", "a": "bad"}', '[1, 2]', '[1, "x", null]', '{"a": -200}',
        ],
    ),
    "v": (
        STRING,
        [
            None, '{"v": 1}', '{"v": 1.5}', '{"v": "1.5"}', '{"v": "NaN"}', '{"v": "INF"}', '{"v": "-Infinity"}', '{"v": NaN}', '{"v": "2024-02-29"}',
            '{"v": "2024-02-29T12:30:00.123456"}', '{"v": "2024-02-29 12:30:00"}', '{"v": "x"}', '{"v": 12345678901234567890.123}', '{"v": true}',
            '{"v": "true"}', '{"v": [1, 2, null]}', '{"v": ["a", 1, true]}', '{"v": {"k": 1, "l": null}}', '{"v": {"a": 1, "b": "y", "c": 2}}',
            '{"v": [{"a": 1}, {"b": "z"}, null, 3]}', '{"v": "SGVsbG8="}', '{"v": -1e400}', '{"v": 1709164800}', '{"v": null}', '{"v": 0.1}',
            '{"v": 100000}', '{"v": ""}', '{"v": "2024-02-29T12:30:61"}', '{"v": {"k": {"a": 1, "b": "n"}}}', '{"v": 3000000000}', '{"v": -0}',
        ],
    ),
    "l": (
        STRING,
        [
            None, "", "[]", "[1, 2, 3]", '["a", "b"]', '[1, "x", null]', "{}", '{"a": 1, "b": 2}', '[{"a": 1}, {"b": "x"}]', "[[1], [2]]",
            "x", "null", "3", '{"k": null}', '{"a": [1, 2]}', '[{"a": "bad", "b": "x"}, {"a": 1}]', "[1.5]",
        ],
    ),
    "q": (STRING, [None, '{"a": 1, "a": 2, "b": "twice"}']),
    "r": (_PAIR, [None, {"a": 1, "b": "x"}, {"a": None, "b": "q\"\\/\n\t\r\b\f\x01\x1f\x7f"}, {"a": None, "b": None},
                  {"a": -7, "b": "ñ 日本 😀 \u2028"}]),
    "a": (Array(INT), [None, [], [1, None, 3], [None]]),
    "s": (Array(STRING), [None, ["a", None, '"'], []]),
    "m": (Map(STRING, INT), [None, [], [("k", 1), ("j\"", None)]]),
    "im": (Map(INT, STRING), [None, [(1, "one"), (2, None)]]),
    "aa": (Array(Array(INT)), [None, [[1], None, []]]),
    "ra": (Array(_PAIR), [None, [{"a": 1, "b": None}, None, {"a": None, "b": "y"}]]),
    "x": (DOUBLE, [None, 1.5, NAN, float("inf"), -0.0, 1e20, 1e-7, 123456789.125, 100.0]),
    "i": (INT, [None, 1, -5]),
    "n": (BIGINT, [None, 2**62]),
    "p": (Decimal(10, 2), [None, D("1.10"), D("-2555.55"), D("0.00")]),
    "b": (BOOLEAN, [None, True, False]),
    "d": (DATE, [None, date(2024, 2, 29), date(1969, 12, 31)]),
    "t": (TIMESTAMP, [None, datetime(2024, 2, 29, 12, 30, 0, 123456), datetime(1969, 12, 31, 23, 59, 59), datetime(2024, 1, 1, 0, 0, 0, 120000)]),
    "k": (STRING, [None, "a", 'q"', "ñ"]),
}  # fmt: skip

TEXTS = """
from_json(j, 'a INT, b STRING')
from_json(j, 'STRUCT<a: BIGINT, b: STRING>')
from_json(q, 'a INT, b STRING')
from_json(j, 'a TINYINT')
from_json(j, 'a SMALLINT')
from_json(j, 'a DOUBLE').a
from_json(j, 'b STRING, c INT')
from_json(j, 'ARRAY<INT>')
from_json(j, 'ARRAY<STRUCT<a: INT, b: STRING>>')
from_json(j, 'MAP<STRING, STRING>')
from_json(j, 'MAP<STRING, INT>')
from_json(v, 'v INT')
from_json(v, 'v DOUBLE').v
from_json(v, 'v FLOAT').v
from_json(v, 'v STRING')
from_json(v, 'v BOOLEAN')
from_json(v, 'v DECIMAL(10, 2)')
from_json(v, 'v DATE')
from_json(v, 'v TIMESTAMP_NTZ')
from_json(v, 'v ARRAY<INT>')
from_json(v, 'v ARRAY<STRING>')
from_json(v, 'v MAP<STRING, INT>')
from_json(v, 'v STRUCT<a: INT, b: STRING>')
from_json(v, 'v ARRAY<STRUCT<a: INT, b: STRING>>')
from_json(v, 'v MAP<STRING, STRUCT<a: INT, b: STRING>>')
from_json(l, 'ARRAY<INT>')
from_json(l, 'ARRAY<STRING>')
from_json(l, 'ARRAY<ARRAY<INT>>')
from_json(l, 'ARRAY<STRUCT<a: INT, b: STRING>>')
from_json(l, 'MAP<STRING, INT>')
from_json(l, 'MAP<STRING, ARRAY<INT>>')
from_json(l, 'a INT, b INT')
from_json(j, 'a INT, b STRING').b
to_json(r)
to_json(a)
to_json(s)
to_json(m)
to_json(im)
to_json(aa)
to_json(ra)
to_json(named_struct('x', x, 'i', i, 'n', n, 'p', p, 'b', b))
to_json(named_struct('d', d, 't', t, 'k', k))
to_json(named_struct('r', r, 'a', a, 'm', m, 'ra', ra))
to_json(array(x))
to_json(map('k', r))
to_json(struct(i, k))
to_json(named_struct('q"', i))
schema_of_json('{"a": 1, "b": [1.5, null], "c": {"d": true}}')
schema_of_json('[{"z": "x", "a": 1}, {"b": null}]')
schema_of_json('[]')
schema_of_json('12345678901234567890')
json_array_length(l)
json_object_keys(l)

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
