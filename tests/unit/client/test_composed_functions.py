"""Functions that are written with others: the values that Spark 4 gave to the same words, in both runtimes."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

VALUES: list[tuple[str, object]] = [
    ("mask('abcd-EFGH-8765')", "xxxx-XXXX-nnnn"),
    ("mask('abcd-EFGH-8765', NULL, 'q', 'd', '*')", "qqqq*EFGH*dddd"),
    ("mask('é1', 'n', 'X', 'x')", "Xx"),
    ("to_number('12,454.8-', '99,999.9S')", Decimal("-12454.8")),
    ("to_number('<12>', '99PR')", Decimal(-12)),
    ("to_number('454', '99,999')", Decimal(454)),
    ("to_number('$78.12', '$99.99')", Decimal("78.12")),
    ("try_to_number('.5', '99.9')", Decimal("0.5")),
    ("try_to_number('12.', '99.9')", Decimal("12.0")),
    ("try_to_number('1', '00')", None),
    ("try_to_number('123', '99')", None),
    ("try_to_number('12', '$99')", None),
    ("quote('Don''t')", "'Don\\'t'"),
    ("bitmap_bit_position(-5)", 5),
    ("bitmap_bucket_number(32769)", 2),
    ("bitmap_bucket_number(-123)", 0),
    ("luhn_check('79927398713')", True),
    ("luhn_check('')", False),
    ("try_make_timestamp(2026, 2, 28, 1, 2, 60)", datetime(2026, 2, 28, 1, 3)),
    ("try_make_timestamp(2026, 2, 30, 1, 2, 3)", None),
    ("try_to_binary('abc')", b"\n\xbc"),
    ("try_to_binary('zz')", None),
    ("try_to_binary('!!', 'base64')", None),
    ("try_url_decode('https%3A%2F%2Fspark.apache.org')", "https://spark.apache.org"),
    ("try_url_decode('https%3A%2F%2Fspark%2')", None),
    ("try_parse_url('http://spark.apache.org/path?query=1', 'QUERY')", "query=1"),
    ("try_parse_url('inva lid://spark.apache.org', 'HOST')", None),
    ("lpad(X'01', 3)", b"\x00\x00\x01"),
    ("rpad(X'01', 3, X'0A0B')", b"\x01\n\x0b"),
    ("substr(X'0011FF', -2)", b"\x11\xff"),
    ("substr(X'0011FF', 0, 2)", b"\x00\x11"),
    ("length(X'0011')", 2),
    ("trim(X'2020522020')", b"R"),
    ("rtrim(X'20520220')", b" R\x02"),
    # pairs of digits that are no byte are not removed: 02 02 20 has 20 at an odd place
    ("rtrim(X'02020220', X'20')", b"\x02\x02\x02"),
    ("btrim(X'000100', X'00')", b"\x01"),
    ("trim(BOTH X'0001' FROM X'0001020001')", b"\x02"),
    ("trim(LEADING X'2A' FROM X'2A2A012A')", b"\x01*"),
    ("ltrim(X'0000', X'00')", b""),
    ("trim(X'00', X'')", b"\x00"),
    ("trim(X'00', CAST(NULL AS BINARY))", None),
    ("concat_ws('-', sequence(1, 3), 'a', array('b', NULL))", "1-2-3-a-b"),
    ("make_dt_interval(1, 12, 30, 1.001001)", timedelta(days=1, hours=12, minutes=30, seconds=1.001001)),
    ("INTERVAL 5 DAYS 3 HOURS 7 MINUTES", timedelta(days=5, hours=3, minutes=7)),
    ("extract(epoch FROM TIMESTAMP '2024-01-01 00:00:00')", 1704067200),
    ("element(array(5))", 5),
    ("extract(day FROM INTERVAL '-3 05:06:07.5' DAY TO SECOND)", -3),
    ("extract(second FROM INTERVAL '-3 05:06:07.5' DAY TO SECOND)", Decimal("-7.500000")),
    ("extract(month FROM INTERVAL '-3-2' YEAR TO MONTH)", -2),
    ("collation('a')", "SYSTEM.BUILTIN.UTF8_BINARY"),
    # this Spark has no TIME, and returns no such interval: these are by hand
    ("TIME '23:20:30' + INTERVAL '1' HOUR", time(0, 20, 30)),
    ("make_time(1, 2, 3.5)", time(1, 2, 3, 500000)),
    ("make_interval(0, 0, 1, 1, 1, 1, 1.001)", timedelta(days=8, seconds=3661, milliseconds=1)),
    ('json_unquote(\'"a\\"b"\')', 'a"b'),
    ('json_unquote(\'"a"b"\')', '"a"b"'),
    ("json_quote('a\"b')", '"a\\"b"'),
    ("map_union(map('a', 1), map('a', CAST(NULL AS INT)))", [("a", None)]),
]


@pytest.mark.parametrize("mode", ["streaming", "automatic"])
def test_values_are_those_of_spark(mode: str) -> None:
    with closing(Session({"execution.runtime-mode": mode, "bounded.backend": "duckdb"})) as session:
        session.register("one", pa.table({"n": [1]}))
        items = ", ".join(f"{words} AS c{i}" for i, (words, _) in enumerate(VALUES))
        rows = session.execute(f"SELECT {items} FROM one WHERE n > 0").final_rows(PATIENCE_S)
    found = [column.to_pylist()[0] for column in rows.columns]
    assert found == [value for _, value in VALUES]
